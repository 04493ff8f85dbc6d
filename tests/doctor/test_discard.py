"""A TRIM that takes more than it is told to."""

from __future__ import annotations

import pytest

from ssdlab.doctor.checks import Verdict, judge
from ssdlab.snapshot import Device, Mounted, Snapshot, TrimLayer


def _judged(
    level: str, block: int | None, passes: str = "yes", kernel: str = "6.1.0-53-amd64"
) -> dict[str, Verdict]:
    drive = Device("nvme0n1", "/dev/nvme0n1", "drive", "nvme", is_drive=True)
    array = Device("md0", "/dev/md0", "md", "md", array_level=level, below=("nvme0n1",))
    secret = Device("dm-0", "/dev/dm-0", "dm-crypt", "dm-crypt", below=("md0",))
    layers = (
        TrimLayer("dm-crypt", "dm-0", passes, "", of_below=passes == "no"),
        TrimLayer("md", "md0", passes, ""),
        TrimLayer("drive", "nvme0n1", "yes", ""),
    )
    mount = Mounted("/srv", "ext4", "/dev/dm-0", block_bytes=block, layers=layers)
    found = judge(
        Snapshot("/srv", True, kernel=kernel, mounts=(mount,), devices=(secret, array, drive))
    )
    return {verdict.code: verdict for verdict in found}


@pytest.mark.parametrize("level", ["raid4", "raid5", "raid6"])
def test_a_trim_through_parity_destroys_data_of_file_systems_of_small_blocks(level: str) -> None:
    found = _judged(level, 1024)["trim-destroys"]
    assert (found.severity, found.where, found.value) == ("bad", "md0 (md)", 1024)
    assert "raid456 devices_handle_discard_safely=N" in found.remedy


def test_it_does_not_where_blocks_are_whole_or_not_known_or_there_is_no_parity_or_no_trim() -> None:
    assert "trim-destroys" not in _judged("raid5", 4096)
    assert "trim-destroys" not in _judged("raid5", None)
    assert "trim-destroys" not in _judged("raid1", 1024)
    assert "trim-destroys" not in _judged("raid5", 1024, "no")
    assert "trim-destroys" not in _judged("raid5", 1024, kernel="6.12.117+deb12-amd64")
