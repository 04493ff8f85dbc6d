"""One block device from sysfs: size, identity, queue limits, transport.

Source: Documentation/ABI/stable/sysfs-block. Caution: `write_cache` is the kernel's setting
(root can change it), not evidence about the drive; `rotational` of a virtual disk is often wrong.
"""

from __future__ import annotations

import fcntl
import os
import stat
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ssdlab.errors import TargetError
from ssdlab.storage_stack.pseudofile import read_int, read_text

SYS = Path("/sys")
SECTOR: Final = 512  # the unit of sysfs, independent of the device's sector size
_BLKGETSIZE64: Final = 0x80081272


@dataclass(frozen=True, slots=True)
class BlockDevice:
    """One block device; a partition has the identity and queue of its whole disk.

    A field is None if the kernel does not report it. Sizes are in bytes; `start` is a partition's
    offset on its disk; `scheduler` is the active one; `write_cache` is "write back" or "write
    through"; `discard_max` 0 means no discards. `transport` is a guess: nvme, nvme-tcp, nvme-rdma,
    sata, sas, usb, iscsi, scsi, virtio, xen, hyper-v, mmc, nbd, pmem, loop, ram, dm, dm-crypt,
    dm-lvm, md, bcache, or unknown.
    """

    name: str
    major: int
    minor: int
    whole_disk: str
    transport: str
    size: int | None
    start: int | None = None
    model: str | None = None
    vendor: str | None = None
    serial: str | None = None
    firmware: str | None = None
    rotational: bool | None = None
    removable: bool | None = None
    read_only: bool | None = None
    logical_sector: int | None = None
    physical_sector: int | None = None
    scheduler: str | None = None
    write_cache: str | None = None
    discard_max: int | None = None
    discard_granularity: int | None = None

    @property
    def node(self) -> Path:
        """The device file that udev creates, such as /dev/sda1."""
        return Path("/dev") / self.name.replace("!", "/")

    @property
    def is_partition(self) -> bool:
        """Whether this is a partition of `whole_disk`."""
        return self.name != self.whole_disk


def is_block_device(path: Path) -> bool:
    """Whether `path` is, or links to, a block device; False if it does not exist."""
    try:
        return stat.S_ISBLK(path.stat().st_mode)
    except OSError:
        return False


def size_of(path: Path) -> int:
    """Size of a block device in bytes (BLKGETSIZE64).

    Raises:
        TargetError: not a block device, or it cannot be opened for reading.
    """
    if not is_block_device(path):
        raise TargetError(f"{path} is not a block device: give one, such as /dev/nvme0n1")
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return int(struct.unpack("=Q", fcntl.ioctl(fd, _BLKGETSIZE64, bytes(8)))[0])
        finally:
            os.close(fd)
    except OSError as error:
        reason = error.strerror
        raise TargetError(f"{path} cannot be opened ({reason}); try as root") from error


def device_at(path: Path, sys: Path = SYS) -> BlockDevice:
    """The block device of a device file, by its major and minor number; links are followed.

    Raises:
        TargetError: not a block device, or not in `sys`.
    """
    if not is_block_device(path):
        raise TargetError(f"{path} is not a block device: give one, such as /dev/nvme0n1")
    number = path.stat().st_rdev
    device = device_by_number(os.major(number), os.minor(number), sys)
    if device is None:
        raise TargetError(f"{path}: the kernel has no such device; check that it is plugged in")
    return device


def device_by_number(major: int, minor: int, sys: Path = SYS) -> BlockDevice | None:
    """The block device with this number, or None; major 0 is never a block device."""
    directory = sys / "dev" / "block" / f"{major}:{minor}"
    return _device(directory.resolve()) if directory.exists() else None


def device_by_name(name: str, sys: Path = SYS) -> BlockDevice | None:
    """The block device with this kernel name (sda1, nvme0n1, dm-0), or None."""
    directory = sys / "class" / "block" / name.replace("/", "!")
    return _device(directory.resolve()) if directory.exists() else None


def device_by_node(node: str, sys: Path = SYS) -> BlockDevice | None:
    """The block device of a path such as "/dev/sda1" or "/dev/mapper/vg-root", or None.

    For mount sources and swap spaces. Kernel and device-mapper names are looked up in `sys`, so
    captured trees work; other links (/dev/disk/by-id/...) are followed on this machine.
    """
    name = node.removeprefix("/dev/")
    if name == node:
        return None
    device = device_by_name(name, sys)
    if device is not None:
        return device
    for entry in sorted((sys / "class" / "block").glob("dm-*")):
        if read_text(entry / "dm" / "name") == name.removeprefix("mapper/"):
            return device_by_name(entry.name, sys)
    if not is_block_device(Path(node)):
        return None
    number = Path(node).stat().st_rdev
    return device_by_number(os.major(number), os.minor(number), sys)


def directory_of(device: BlockDevice, sys: Path = SYS) -> Path:
    """The device's sysfs directory, links resolved."""
    return (sys / "dev" / "block" / f"{device.major}:{device.minor}").resolve()


def partitions_of(device: BlockDevice, sys: Path = SYS) -> tuple[BlockDevice, ...]:
    """The partitions of a whole disk, sorted by name; empty for a partition."""
    directory = directory_of(device, sys)
    parts = [entry.parent for entry in directory.glob("*/partition")]
    return tuple(_device(part) for part in sorted(parts))


def _device(directory: Path) -> BlockDevice:
    is_part = (directory / "partition").exists()
    whole = directory.parent if is_part else directory
    major, minor = (read_text(directory / "dev") or "0:0").split(":")
    sectors, start = read_int(directory / "size"), read_int(directory / "start")
    queue = whole / "queue"
    return BlockDevice(
        name=directory.name,
        major=int(major),
        minor=int(minor),
        whole_disk=whole.name,
        transport=transport_of(whole),
        size=None if sectors is None else sectors * SECTOR,
        start=None if start is None or not is_part else start * SECTOR,
        model=_first(whole, "device/model", "device/name", "dm/name"),
        vendor=_vendor(whole),
        serial=_serial(whole),
        firmware=_first(whole, "device/firmware_rev", "device/rev", "device/fwrev"),
        rotational=_flag(queue / "rotational"),
        removable=_flag(whole / "removable"),
        read_only=_flag(directory / "ro"),
        logical_sector=read_int(queue / "logical_block_size"),
        physical_sector=read_int(queue / "physical_block_size"),
        scheduler=_scheduler(read_text(queue / "scheduler")),
        write_cache=read_text(queue / "write_cache"),
        discard_max=read_int(queue / "discard_max_bytes"),
        discard_granularity=read_int(queue / "discard_granularity"),
    )


def _first(whole: Path, *names: str) -> str | None:
    texts = (read_text(whole / name) for name in names)
    return next((text for text in texts if text is not None), None)


def _flag(path: Path) -> bool | None:
    number = read_int(path)
    return None if number is None else bool(number)


def _vendor(whole: Path) -> str | None:
    vendor = read_text(whole / "device" / "vendor")
    # virtio reports a PCI vendor id here, such as 0x1af4.
    return None if vendor is None or vendor.startswith("0x") else vendor


def _serial(whole: Path) -> str | None:
    plain = _first(whole, "device/serial", "serial")
    if plain is not None:
        return plain
    try:
        page = (whole / "device" / "vpd_pg80").read_bytes()  # SCSI: four bytes of header
    except OSError:
        return None
    return page[4:].decode("ascii", "replace").strip(" \0") or None


def _scheduler(text: str | None) -> str | None:
    """The active scheduler: the bracketed name in "none [mq-deadline] kyber", or the only name."""
    if text is None:
        return None
    chosen = [word[1:-1] for word in text.split() if word.startswith("[")]
    return chosen[0] if chosen else text


_BY_NAME: Final = (
    ("loop", "loop"),
    ("zram", "ram"),
    ("ram", "ram"),
    ("md", "md"),
    ("bcache", "bcache"),
    ("nbd", "nbd"),
    ("mmcblk", "mmc"),
    ("pmem", "pmem"),
    ("xvd", "xen"),
)
# Parts of a sysfs path. If a path can contain two, the one nearer to the disk is listed first.
_BY_PATH: Final = (
    ("/usb", "usb"),
    ("/session", "iscsi"),
    ("/end_device-", "sas"),
    ("/ata", "sata"),
    ("/virtio", "virtio"),
    ("/VMBUS:", "hyper-v"),
    ("/host", "scsi"),
)


def transport_of(whole: Path) -> str:
    """The transport of a whole disk, guessed from its resolved sysfs directory."""
    name = whole.name
    if name.startswith("nvme"):
        fabric = read_text(whole / "device" / "transport")
        return "nvme" if fabric in {None, "pcie"} else f"nvme-{fabric}"
    if name.startswith("dm-"):
        kind = (read_text(whole / "dm" / "uuid") or "").partition("-")[0]
        return {"CRYPT": "dm-crypt", "LVM": "dm-lvm"}.get(kind, "dm")
    for prefix, transport in _BY_NAME:
        if name.startswith(prefix):
            return transport
    path = str(whole)
    return next((transport for part, transport in _BY_PATH if part in path), "unknown")
