"""TRIM through parity arrays that discard more than requested."""

from __future__ import annotations

import pytest

from ssdlab.doctor.checks import Verdict, judge
from ssdlab.snapshot import Device, Mounted, Snapshot, TrimLayer


def _verdicts(
    level: str, block: int | None, passes: str = "yes", kernel: str = "6.1.0-53-amd64"
) -> dict[str, Verdict]:
    drive = Device("nvme0n1", "/dev/nvme0n1", "drive", "nvme", is_drive=True)
    array = Device("md0", "/dev/md0", "md", "md", array_level=level, below=("nvme0n1",))
    crypt = Device("dm-0", "/dev/dm-0", "dm-crypt", "dm-crypt", below=("md0",))
    layers = (
        TrimLayer("dm-crypt", "dm-0", passes, "", of_below=passes == "no"),
        TrimLayer("md", "md0", passes, ""),
        TrimLayer("drive", "nvme0n1", "yes", ""),
    )
    mount = Mounted("/srv", "ext4", "/dev/dm-0", block_bytes=block, layers=layers)
    stack = Snapshot("/srv", True, kernel=kernel, mounts=(mount,), devices=(crypt, array, drive))
    return {verdict.code: verdict for verdict in judge(stack)}


@pytest.mark.parametrize("level", ["raid4", "raid5", "raid6"])
def test_trim_through_a_parity_array_destroys_data_in_small_blocks(
    level: str,
) -> None:
    verdict = _verdicts(level, 1024)["trim-destroys"]
    assert (verdict.severity, verdict.where, verdict.value) == ("bad", "md0 (md)", 1024)
    assert "raid456 devices_handle_discard_safely=N" in verdict.remedy


def test_trim_is_safe_with_4_kib_blocks_without_parity_and_on_newer_kernels() -> None:
    assert "trim-destroys" not in _verdicts("raid5", 4096)
    assert "trim-destroys" not in _verdicts("raid5", None)
    assert "trim-destroys" not in _verdicts("raid1", 1024)
    assert "trim-destroys" not in _verdicts("raid5", 1024, "no")
    assert "trim-destroys" not in _verdicts("raid5", 1024, kernel="6.12.117+deb12-amd64")


@pytest.mark.parametrize(
    ("why", "remedy"),
    [
        ("fstrim.timer is not enabled", "sudo systemctl enable --now fstrim.timer"),
        ("fstrim.timer is enabled, but systemd does not run here", "sudo fstrim -v /data   # once"),
    ],
)
def test_a_timer_is_advised_only_where_systemd_runs(why: str, remedy: str) -> None:
    drive = Device("sda", "/dev/sda", "drive", "sata", is_drive=True, rotational=False)
    layers = (
        TrimLayer("drive", "sda", "yes", "discard_max_bytes 2 GiB"),
        TrimLayer("schedule", "/data", "no", why),
    )
    mount = Mounted("/data", "ext4", "/dev/sda", devices=("sda",), layers=layers)
    stack = Snapshot("/data", True, mounts=(mount,), devices=(drive,))
    (verdict,) = [one for one in judge(stack) if one.code == "trim-never-asked"]
    assert verdict.remedy.startswith(remedy)
