"""Whether each layer passes a TRIM, in captured trees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ssdlab.snapshot import TrimLayer
from ssdlab.storage_stack.blockdev import device_by_name
from ssdlab.storage_stack.layers import Roots
from ssdlab.storage_stack.mounts import read_mounts
from ssdlab.storage_stack.trim.devices import discarded_bytes, used_bytes
from ssdlab.storage_stack.trim.stack import (
    blocking_layer,
    discards_online,
    trim_layers_of_device,
    trim_layers_of_mount,
)
from ssdlab.storage_stack.trim.tables import parse_tables

VIRTUAL = "devices/virtual/block"
NVME = "devices/pci0000:00/0000:01:00.0/nvme/nvme0"
NONE = {"queue/discard_max_bytes": "0", "queue/discard_granularity": "0"}


def _roots(captured: Any, **more: Any) -> Roots:
    root = captured.sys.parent
    return Roots(captured.sys, captured.proc, root / "etc", root / "run", **more)


def _rows(captured: Any, name: str, **more: Any) -> tuple[TrimLayer, ...]:
    device = device_by_name(name, captured.sys)
    assert device is not None
    return trim_layers_of_device(device, _roots(captured, **more))


def _summary(rows: tuple[TrimLayer, ...]) -> list[tuple[str, str, str]]:
    return [(row.layer, row.device, row.passes) for row in rows]


def _encrypted(captured: Any, limits: dict[str, str], drive: dict[str, str]) -> None:
    """dm-1, an LVM volume, on dm-0, a LUKS container, on a partition of an NVMe drive."""
    volume = {"dm/name": "vg-root", "dm/uuid": "LVM-x", **limits}
    crypt = {"dm/name": "luks", "dm/uuid": "CRYPT-LUKS2-5e-luks", **limits}
    upper = captured.disk("dm-1", "252:1", VIRTUAL, volume)
    middle = captured.disk("dm-0", "252:0", VIRTUAL, crypt)
    disk = captured.disk("nvme0n1", "259:0", NVME, drive)
    captured.rests_on(upper, middle)
    captured.rests_on(middle, captured.partition(disk, "nvme0n1p2", "259:2"))


def test_lvm_on_luks_on_nvme_passes_with_allow_discards(captured: Any) -> None:
    _encrypted(captured, {}, {"queue/write_zeroes_unmap_max_bytes": "2097152"})
    rows = _rows(captured, "dm-1", tables={"luks": ("crypt", "allow_discards")})
    assert _summary(rows) == [
        ("LVM", "dm-1", "yes"),
        ("dm-crypt", "dm-0", "yes"),
        ("partition", "nvme0n1p2", "yes"),
        ("drive", "nvme0n1", "yes"),
    ]
    assert "allow_discards in its table" in rows[1].why
    assert "promises zeros" in rows[3].why
    assert blocking_layer(rows) is None


def test_luks_without_allow_discards_blocks_and_not_the_volume_above_it(captured: Any) -> None:
    _encrypted(captured, NONE, {})
    rows = _rows(captured, "dm-1")
    assert [row.passes for row in rows] == ["no", "no", "yes", "yes"]
    assert (rows[0].of_below, rows[1].of_below) == (True, False)
    assert "dm-0 below accepts none" in rows[0].why
    blocker = blocking_layer(rows)
    assert blocker is not None
    assert (blocker.layer, blocker.device) == ("dm-crypt", "dm-0")
    assert "allow_discards" in blocker.why


def test_a_drive_without_discards_blocks_and_not_luks(captured: Any) -> None:
    _encrypted(captured, NONE, NONE)
    blocker = blocking_layer(_rows(captured, "dm-1"))
    assert blocker is not None
    assert (blocker.layer, blocker.device) == ("drive", "nvme0n1")


def _array(captured: Any, level: str, limits: dict[str, str], *members: dict[str, str]) -> None:
    array = captured.disk("md0", "9:0", VIRTUAL, {"md/level": level, **limits})
    for at, files in enumerate(members):
        where = f"devices/pci0/ata{at + 1}/host{at}/block"
        captured.rests_on(array, captured.disk(f"sd{'ab'[at]}", f"8:{16 * at}", where, files))


def test_a_mirror_passes_and_its_member_without_discards_blocks(captured: Any) -> None:
    _array(captured, "raid1", {}, {}, NONE)
    rows = _rows(captured, "md0")
    assert _summary(rows) == [("md", "md0", "yes"), ("drive", "sda", "yes"), ("drive", "sdb", "no")]
    assert "raid1" in rows[0].why
    blocker = blocking_layer(rows)
    assert blocker is not None
    assert blocker.device == "sdb"


@pytest.mark.parametrize("setting", ["N", None])
def test_parity_raid_blocks_unless_devices_handle_discard_safely(
    captured: Any, setting: str | None
) -> None:
    _array(captured, "raid5", NONE, {}, {})
    if setting:
        _set_module_parameter(captured, setting)
    blocker = blocking_layer(_rows(captured, "md0"))
    assert blocker is not None
    assert (blocker.layer, blocker.device) == ("md", "md0")
    assert f"devices_handle_discard_safely=Y (now {setting or 'not known'})" in blocker.why


def test_parity_raid_blocks_if_the_discard_granularity_exceeds_its_stripe(
    captured: Any,
) -> None:
    _array(captured, "raid5", NONE, {}, {})
    _set_module_parameter(captured, "Y")
    assert "larger than its stripe" in _rows(captured, "md0")[0].why
    (captured.sys / VIRTUAL / "md0/queue/discard_max_bytes").write_text("1048576\n")
    assert [row.passes for row in _rows(captured, "md0")] == ["yes", "yes", "yes"]


def _set_module_parameter(captured: Any, value: str) -> None:
    path = captured.sys / "module/raid456/parameters/devices_handle_discard_safely"
    path.parent.mkdir(parents=True)
    path.write_text(f"{value}\n")


def test_a_usb_bridge_is_reported_with_its_provisioning_mode(captured: Any) -> None:
    mode = {"device/scsi_disk/6:0:0:0/provisioning_mode": "full", **NONE}
    captured.disk("sdb", "8:16", "devices/pci0/usb2/2-1/host6/block", mode)
    (row,) = _rows(captured, "sdb")
    assert (row.layer, row.passes) == ("USB", "no")
    assert "provisioning_mode full" in row.why


def test_a_sata_drive_is_reported_with_the_trim_state_of_libata(captured: Any) -> None:
    captured.disk("sda", "8:0", "devices/pci0/ata3/host2/target2:0:0/block", NONE)
    trim = captured.sys / "devices/pci0/ata3/link3/dev3.0/ata_device/dev3.0/trim"
    trim.parent.mkdir(parents=True)
    trim.write_text("forced_unsupported\n")
    (row,) = _rows(captured, "sda")
    assert (row.layer, row.passes) == ("drive", "no")
    assert "ATA TRIM forced_unsupported" in row.why


@pytest.mark.parametrize(("limits", "passes"), [({}, "yes"), (NONE, "no")])
def test_a_virtual_disk_passes_if_its_host_offers_discards(
    captured: Any, limits: dict[str, str], passes: str
) -> None:
    captured.disk("vda", "254:0", "devices/pci0/virtio1/block", limits)
    (row,) = _rows(captured, "vda")
    assert row.passes == passes
    assert "host" in row.why


def test_a_limit_set_to_zero_is_distinguished_from_a_driver_without_discards(
    captured: Any,
) -> None:
    limits = {**NONE, "queue/discard_max_hw_bytes": "1073741824"}
    captured.disk("nvme0n1", "259:0", NVME, limits)
    assert "switched off" in _rows(captured, "nvme0n1")[0].why


def test_without_discard_max_bytes_the_result_is_unknown(captured: Any) -> None:
    disk = captured.disk("nvme0n1", "259:0", NVME)
    (disk / "queue/discard_max_bytes").unlink()
    assert [row.passes for row in _rows(captured, "nvme0n1")] == ["unknown"]


@pytest.mark.parametrize(
    ("words", "passes"),
    [
        (None, "unknown"),
        (("thin-pool",), "yes"),
        (("thin-pool", "no_discard_passdown"), "no"),
        (("thin-pool", "ignore_discard"), "no"),
    ],
)
def test_whether_a_thin_pool_passes_discards_depends_on_its_table(
    captured: Any, words: tuple[str, ...] | None, passes: str
) -> None:
    names = {"dm/name": "vg-pool-tpool", "dm/uuid": "LVM-x-tpool"}
    volume = captured.disk("dm-2", "252:2", VIRTUAL, {"dm/uuid": "LVM-y", "dm/name": "vg-thin"})
    pool = captured.disk("dm-1", "252:1", VIRTUAL, names)
    captured.rests_on(volume, pool)
    rows = _rows(captured, "dm-2", tables={"vg-pool-tpool": words} if words else {})
    assert _summary(rows) == [("LVM", "dm-2", "yes"), ("thin pool", "dm-1", passes)]


def test_only_known_words_of_a_table_are_kept() -> None:
    text = (
        "luks: 0 41943040 crypt aes-xts-plain64 :64:logon:key 0 8:3 32768 1 allow_discards\n"
        "vg-pool-tpool: 0 8192 thin-pool 252:1 252:2 128 0 1 no_discard_passdown\n"
        "No devices found\n"
    )
    assert parse_tables(text) == {
        "luks": ("crypt", "allow_discards", "starts=16777216"),
        "vg-pool-tpool": ("thin-pool", "no_discard_passdown"),
    }


def test_the_file_system_of_a_backing_file_is_below_a_loop_device(captured: Any) -> None:
    disk = captured.disk("nvme0n1", "259:0", NVME, NONE)
    captured.disk("loop0", "7:0", VIRTUAL, {"loop/backing_file": "/srv/disk.img", **NONE})
    captured.partition(disk, "nvme0n1p1", "259:1")
    captured.mountinfo("22 1 259:1 / / rw - xfs /dev/nvme0n1p1 rw")
    rows = _rows(captured, "loop0")
    assert [(row.layer, row.below_file) for row in rows] == [
        ("loop", False),
        ("schedule", True),
        ("file system", True),
        ("partition", True),
        ("drive", True),
    ]
    blocker = blocking_layer(rows)
    assert blocker is not None
    assert (blocker.layer, "punches no holes" in blocker.why) == ("loop", True)


def test_layers_below_a_backing_file_do_not_block_a_discard_on_the_loop_device(
    captured: Any,
) -> None:
    captured.disk("nvme0n1", "259:0", NVME, NONE)
    captured.disk("loop0", "7:0", VIRTUAL, {"loop/backing_file": "/srv/disk.img"})
    captured.mountinfo("22 1 259:0 / / rw - xfs /dev/nvme0n1 rw")
    rows = _rows(captured, "loop0")
    assert [row.passes for row in rows] == ["yes", "no", "yes", "no"]
    assert blocking_layer(rows) is None


def test_a_partition_not_aligned_to_the_discard_granularity_still_passes(captured: Any) -> None:
    disk = captured.disk("nvme0n1", "259:0", NVME, {"queue/discard_granularity": "2097152"})
    captured.partition(disk, "nvme0n1p1", "259:1", start=2048)
    row = _rows(captured, "nvme0n1p1")[0]
    assert (row.passes, "2 MiB" in row.why) == ("yes", True)


@pytest.mark.parametrize(
    ("options", "online"),
    [
        ("rw,discard", "discard"),
        ("rw,discard=async", "discard=async"),
        ("rw,nodiscard", ""),
        ("rw,discard,nodiscard", ""),
        ("rw", ""),
    ],
)
def test_the_last_discard_option_of_a_mount_counts(
    captured: Any, options: str, online: str
) -> None:
    captured.mountinfo(f"22 1 0:40 / /data rw - btrfs /dev/sda {options}")
    assert discards_online(read_mounts(captured.proc)[0], _roots(captured)) == online


def _schedule(captured: Any, fs_type: str = "ext4") -> TrimLayer:
    captured.mountinfo(f"22 1 259:0 / /data rw - {fs_type} /dev/nvme0n1 rw")
    return trim_layers_of_mount(read_mounts(captured.proc)[0], _roots(captured))[0]


def _systemd(captured: Any, fstab: str = "") -> Path:
    etc: Path = captured.sys.parent / "etc"
    wants = etc / "systemd/system/timers.target.wants"
    wants.mkdir(parents=True)
    (wants / "fstrim.timer").symlink_to("/usr/lib/systemd/system/fstrim.timer")
    (captured.sys.parent / "run/systemd/system").mkdir(parents=True)
    (etc / "fstab").write_text(fstab)
    return etc


def test_without_option_and_timer_discards_are_not_scheduled(captured: Any) -> None:
    row = _schedule(captured)
    assert (row.passes, "not enabled" in row.why) == ("no", True)


@pytest.mark.parametrize(
    ("fstab", "passes", "why"),
    [
        ("", "yes", "once a week"),
        ("# nothing\n/dev/sda1 / ext4 defaults 0 1\n", "no", "what fstab lists"),
        ("/dev/sda1 /data ext4 defaults,X-fstrim.notrim 0 1\n", "no", "X-fstrim.notrim"),
        ("/dev/sda1 /data ext4 defaults 0 1\n", "yes", "once a week"),
    ],
)
def test_the_timer_trims_only_entries_of_fstab_if_it_has_any(
    captured: Any, fstab: str, passes: str, why: str
) -> None:
    _systemd(captured, fstab)
    row = _schedule(captured)
    assert (row.passes, why in row.why) == (passes, True)


def test_a_masked_timer_or_a_timer_without_systemd_does_not_count(captured: Any) -> None:
    etc = _systemd(captured)
    (captured.sys.parent / "run/systemd/system").rmdir()
    assert "systemd does not run" in _schedule(captured).why
    (etc / "systemd/system/fstrim.timer").symlink_to("/dev/null")
    assert "not enabled" in _schedule(captured).why


@pytest.mark.parametrize(
    ("fs_type", "passes"),
    [("xfs", "yes"), ("tmpfs", "no"), ("nfs4", "no"), ("overlay", "unknown"), ("zfs", "unknown")],
)
def test_each_kind_of_file_system_sends_discards_or_not(
    captured: Any, fs_type: str, passes: str
) -> None:
    captured.mountinfo(f"22 1 0:40 / /data rw - {fs_type} source rw")
    rows = trim_layers_of_mount(read_mounts(captured.proc)[0], _roots(captured))
    assert [row.passes for row in rows if row.layer == "file system"] == [passes]


def test_all_members_of_a_btrfs_are_listed(captured: Any) -> None:
    disks = [captured.disk(f"nvme{at}n1", f"259:{at}", f"devices/nvme{at}") for at in (0, 1)]
    captured.btrfs("uuid", *disks)
    captured.mountinfo("22 1 0:40 / /data rw - btrfs /dev/nvme0n1 rw")
    rows = trim_layers_of_mount(read_mounts(captured.proc)[0], _roots(captured))
    assert [row.device for row in rows] == ["/data", "/data", "nvme0n1", "nvme1n1"]


def test_discarded_and_used_bytes_are_read_from_sysfs(captured: Any) -> None:
    line = "10 0 80 1 20 0 160 2 0 3 4 5 0 2048 6 7 8"
    disk = captured.disk("nvme0n1", "259:0", NVME, {"stat": line, "nuse": "1024"})
    device = device_by_name("nvme0n1", captured.sys)
    assert device is not None
    assert discarded_bytes(device, captured.sys) == 2048 * 512
    assert used_bytes(device, captured.sys) == 1024 * 512
    (disk / "stat").write_text("0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n")
    assert discarded_bytes(device, captured.sys) is None
    (disk / "stat").write_text("10 0 80 1 20 0 160 2 0 3 4\n")
    assert discarded_bytes(device, captured.sys) is None


def test_discarded_bytes_are_counted_in_512_bytes_on_a_drive_with_4_kib_sectors(
    captured: Any,
) -> None:
    files = {"stat": "10 0 80 1 20 0 160 2 0 3 4 5 0 2048 6 7 8"}
    captured.disk("nvme0n1", "259:0", NVME, {**files, "queue/logical_block_size": "4096"})
    device = device_by_name("nvme0n1", captured.sys)
    assert device is not None
    assert discarded_bytes(device, captured.sys) == 2048 * 512


def test_used_bytes_of_a_loop_device_are_the_blocks_of_its_file(
    captured: Any, tmp_path: Path
) -> None:
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(1 << 20)
        file.write(b"x" * 65536)
    captured.disk("loop0", "7:0", VIRTUAL, {"loop/backing_file": str(image)})
    device = device_by_name("loop0", captured.sys)
    assert device is not None
    used = used_bytes(device, captured.sys)
    assert used is not None
    assert 65536 <= used < 1 << 20
    image.unlink()
    assert used_bytes(device, captured.sys) is None
