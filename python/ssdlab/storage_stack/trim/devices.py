"""Whether a block device passes discards, and how many bytes were discarded on it.

Decided by the queue limits and the kind of device. Source: Documentation/ABI/stable/sysfs-block
(discard_max_bytes: 0 means no discards; root may set it below discard_max_hw_bytes),
Documentation/admin-guide/md.rst, drivers/scsi/sd.c. `discard_zeroes_data` is always 0 since Linux
4.12. `write_zeroes_unmap_max_bytes` (Linux 6.17) is above 0 only if the device guarantees zeros.

Discarded bytes: field 14 of Documentation/block/stat.rst, in sectors of 512 bytes. It counts all
requests that reached the driver, from any program, not what the device did with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from ssdlab.snapshot import TrimLayer
from ssdlab.storage_stack.blockdev import SECTOR, SYS, BlockDevice, directory_of
from ssdlab.storage_stack.layers import Roots
from ssdlab.storage_stack.pseudofile import read_int, read_text
from ssdlab.storage_stack.raid import volume_of
from ssdlab.units import format_size

Passes = Literal["yes", "no", "unknown"]

_PARITY: Final = frozenset({"raid4", "raid5", "raid6"})
_ZEROES_PARAMETER: Final = "module/raid456/parameters/devices_handle_discard_safely"
_LAYER_NAMES: Final = {
    "dm": "device mapper",
    "dm-crypt": "dm-crypt",
    "dm-lvm": "LVM",
    "md": "md",
    "bcache": "bcache",
    "loop": "loop",
    "usb": "USB",
}
_TARGET_LAYERS: Final = {
    "vdo": "VDO",
    "cache": "LVM cache",
    "writecache": "LVM cache",
    "integrity": "dm-integrity",
}
"""Layers by the target in a device-mapper table."""
_NO_DISCARDS: Final = {
    "dm-crypt": "opened without allow_discards (cryptsetup --allow-discards, or crypttab: discard)",
    "loop": "the file system of its backing file punches no holes, or the loop device is read-only",
    "virtio": "the host offers no discards to this virtual disk",
}
_COMPOSED: Final = frozenset({"dm", "dm-crypt", "dm-lvm", "md", "bcache"})
_READS: Final = 0  # field numbers from 0
_WRITES: Final = 4
_DISCARD_SECTORS: Final = 13


def device_layer(device: BlockDevice, below: Sequence[BlockDevice], roots: Roots) -> TrimLayer:
    """The layer of one device; `below` are the devices directly below it."""
    if device.is_partition:
        return TrimLayer("partition", device.name, "yes", _partition(device))
    layer = _layer_name(device, roots)
    passes, why = _by_limits(device, roots)
    of_below = passes == "no" and _is_limited_by_below(device, below)
    if of_below:
        names = ", ".join(lower.name for lower in below if lower.discard_max == 0)
        why = f"offers no discards, because {names} below accepts none"
    if passes == "yes" and layer == "thin pool":
        passes, why = _thin_pool(device, roots)
    if passes == "yes" and layer == "VDO":
        passes, why = "unknown", "VDO frees its own blocks; it does not say what it passes down"
    return TrimLayer(layer, device.name, passes, why, of_below=of_below)


def _layer_name(device: BlockDevice, roots: Roots) -> str:
    if device.transport.startswith("dm") and _is_thin_pool(device, roots):
        return "thin pool"
    target = next((word for word in _table(device, roots) if word in _TARGET_LAYERS), None)
    if target is not None:
        return _TARGET_LAYERS[target]
    uuid = read_text(directory_of(device, roots.sys) / "dm" / "uuid") or ""
    if uuid.startswith("DMRAID-"):
        return "dmraid"
    if volume_of(device, roots.sys) is not None:
        return "RAID controller"
    return _LAYER_NAMES.get(device.transport, "drive")


def _is_thin_pool(device: BlockDevice, roots: Roots) -> bool:
    uuid = read_text(directory_of(device, roots.sys) / "dm" / "uuid") or ""
    return uuid.endswith("-tpool") or "thin-pool" in _table(device, roots)


def _table(device: BlockDevice, roots: Roots) -> tuple[str, ...]:
    name = read_text(directory_of(device, roots.sys) / "dm" / "name")
    return roots.tables.get(name or "", ())


def _partition(device: BlockDevice) -> str:
    granularity = device.discard_granularity or 0
    if granularity and device.start is not None and device.start % granularity:
        return (
            "passes what its disk accepts, but is not aligned to its units of "
            f"{format_size(granularity)}: a little is skipped at each end"
        )
    return "passes what its disk accepts"


def _is_limited_by_below(device: BlockDevice, below: Sequence[BlockDevice]) -> bool:
    """Whether devices below prevent discards: one is enough for device-mapper, md needs all."""
    if device.transport not in _COMPOSED or not below:
        return False
    without = [lower.discard_max == 0 for lower in below]
    return all(without) if device.transport == "md" else any(without)


def _by_limits(device: BlockDevice, roots: Roots) -> tuple[Passes, str]:
    if device.discard_max is None:
        return "unknown", "the kernel does not say (no discard_max_bytes)"
    directory = directory_of(device, roots.sys)
    if device.discard_max == 0:
        hardware = read_int(directory / "queue" / "discard_max_hw_bytes")
        if hardware:
            return "no", (
                "switched off: discard_max_bytes was set to 0, where the driver allows "
                f"{format_size(hardware)}"
            )
        return "no", _why_none(device, directory, roots)
    return "yes", _why_some(device, directory, roots)


def _why_none(device: BlockDevice, directory: Path, roots: Roots) -> str:
    """Why a device of this kind does not support discards, with the remedy if there is one."""
    if device.transport == "md":
        return _array(directory, roots)
    if device.transport in _NO_DISCARDS:
        return _NO_DISCARDS[device.transport]
    details = [*_scsi(directory), *_ata(directory)]
    suffix = f" ({', '.join(details)})" if details else ""
    volume = volume_of(device, roots.sys)
    if volume is not None:
        return f"the RAID controller ({volume.driver}) offers no discards for its volumes{suffix}"
    if device.transport == "usb":
        return (
            f"the USB bridge passes no discards{suffix}; a udev rule may set "
            "provisioning_mode=unmap"
        )
    if device.rotational:
        return f"a rotating disk accepts no discards{suffix}"
    return f"accepts no discards: discard_max_bytes is 0{suffix}"


def _array(directory: Path, roots: Roots) -> str:
    level = read_text(directory / "md" / "level") or "md"
    setting = read_text(roots.sys / _ZEROES_PARAMETER)
    if level in _PARITY and setting != "Y":
        return (
            f"{level} passes no discards unless raid456.devices_handle_discard_safely=Y "
            f"(now {setting or 'not known'}): parity needs trimmed blocks to read as zeros"
        )
    return f"{level} passes no discards: its members' discard granularity is larger than its stripe"


def _why_some(device: BlockDevice, directory: Path, roots: Roots) -> str:
    parts = [f"up to {format_size(device.discard_max or 0)} at once"]
    if device.discard_granularity:
        parts.append(f"in units of {format_size(device.discard_granularity)}")
    if device.transport == "dm-crypt":
        parts += ["allow_discards in its table"] * ("allow_discards" in _table(device, roots))
    if device.transport == "md":
        parts.append(read_text(directory / "md" / "level") or "level not known")
    if device.transport == "loop":
        parts.append(f"as holes in {read_text(directory / 'loop' / 'backing_file')}")
    if device.transport == "virtio":
        parts.append("what the host does with them is not known")
    if read_int(directory / "queue" / "write_zeroes_unmap_max_bytes"):
        parts.append("promises zeros when it unmaps")
    return "; ".join([", ".join(parts[:2]), *parts[2:], *_scsi(directory), *_ata(directory)])


def _thin_pool(device: BlockDevice, roots: Roots) -> tuple[Passes, str]:
    words = _table(device, roots)
    if not words:
        return (
            "unknown",
            "a thin pool frees its own blocks; run as root to see whether it passes discards down",
        )
    for word in ("ignore_discard", "no_discard_passdown"):
        if word in words:
            return "no", f"{word} in its table: freed in the pool, and not on the drive below"
    return "yes", "frees its blocks and passes discards down, except blocks shared with snapshots"


def _scsi(directory: Path) -> list[str]:
    modes = sorted((directory / "device" / "scsi_disk").glob("*/provisioning_mode"))
    texts = [read_text(path) for path in modes]
    return [f"provisioning_mode {text}" for text in texts if text]


def _ata(directory: Path) -> list[str]:
    """libata's TRIM state: unsupported, unqueued, queued, forced_unsupported or forced_unqueued."""
    for parent in directory.parents:
        if parent.name[:3] == "ata" and parent.name[3:].isdigit():
            texts = [read_text(path) for path in parent.glob("link*/dev*/ata_device/dev*/trim")]
            return [f"ATA TRIM {text}" for text in sorted(filter(None, texts))]
    return []


def discarded_bytes(device: BlockDevice, sys: Path = SYS) -> int | None:
    """Bytes discarded on this device or partition since it was attached.

    None before Linux 4.19, and for devices without I/O statistics: some stacked devices always
    report 0 reads and 0 writes.
    """
    words = (read_text(directory_of(device, sys) / "stat") or "").split()
    if len(words) <= _DISCARD_SECTORS or words[_READS] == words[_WRITES] == "0":
        return None
    return int(words[_DISCARD_SECTORS]) * SECTOR


def used_bytes(device: BlockDevice, sys: Path = SYS) -> int | None:
    """Bytes allocated to a loop device's backing file or to an NVMe namespace (NUSE).

    None for other devices, or if the file cannot be read. A drive may always report its capacity
    (NUSE equals NCAP), and may update the value late.
    """
    directory = directory_of(device, sys)
    backing = read_text(directory / "loop" / "backing_file")
    if backing is not None:
        try:
            return Path(backing).stat().st_blocks * SECTOR
        except OSError:
            return None
    blocks = read_int(directory / "nuse")
    sector = device.logical_sector
    return None if blocks is None or sector is None else blocks * sector
