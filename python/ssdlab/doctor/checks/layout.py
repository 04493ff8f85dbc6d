"""Alignment: whether partitions, containers and volumes start on a page of the drive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ssdlab.doctor.checks.verdict import Verdict, device_label, experiment_target, is_rotating
from ssdlab.snapshot import Device, Mounted, Snapshot
from ssdlab.units import format_size

PAGE: Final = 4096
"""The mapping unit of flash drives, or a divisor of it."""
FLASH_PAGE: Final = 16 << 10
"""The page size of most current flash."""
SAFE: Final = 1 << 20
_COSTS: Final = (
    "each 4 KiB write touches two mapping units: the drive reads, merges and writes both, and "
    "wears twice as fast"
)


def judge(snapshot: Snapshot) -> Iterator[Verdict]:
    """Codes: misaligned, misaligned-inside, alignment-small, aligned, block-small."""
    starts = [device for device in snapshot.devices if device.start_bytes is not None]
    wrong = False
    for device in snapshot.devices:
        verdicts = list(_of_device(snapshot, device))
        wrong = wrong or bool(verdicts)
        yield from verdicts
    if starts and not wrong:
        offsets = ", ".join(f"{d.name} at {format_size(d.start_bytes or 0)}" for d in starts)
        yield Verdict(
            code="aligned",
            severity="good",
            where=", ".join(device.name for device in starts),
            says="All partitions are aligned to the drive's units.",
            evidence=f"{offsets}; alignment_offset is 0",
            value=True,
        )
    for mount in snapshot.mounts:
        yield from _block(snapshot, mount)


def _of_device(snapshot: Snapshot, device: Device) -> Iterator[Verdict]:
    if is_rotating(device):
        return
    off = device.off_by_bytes
    start = device.start_bytes
    unit = max(PAGE, device.physical_sector_bytes or 0)
    if start is not None and start % unit:
        yield _misaligned(
            snapshot,
            device,
            f"it starts at byte {start}, {start % unit} bytes past a multiple of "
            f"{format_size(unit)}",
        )
    elif off:
        why = f"alignment_offset is {off} bytes" if off > 0 else "its members do not agree"
        yield _misaligned(snapshot, device, why)
    elif start is not None and start % _alignment(device):
        yield _small(device, start)
    yield from _inside(device)


def _inside(device: Device) -> Iterator[Verdict]:
    """A container or volume whose data is not aligned on the device below."""
    wrong = [at for at in device.data_starts_bytes if at % PAGE]
    if not wrong:
        return
    below = ", ".join(device.below)
    yield Verdict(
        code="misaligned-inside",
        severity="bad",
        where=device_label(device),
        says=f"The data of {device.name} does not start on a page of {below}.",
        evidence=f"by its device-mapper table it starts at byte {wrong[0]} of {below}, "
        f"{wrong[0] % PAGE} bytes past a multiple of {format_size(PAGE)}",
        costs=_COSTS,
        remedy="back up the data, then recreate the container: cryptsetup luksFormat "
        "--align-payload 2048, or pvcreate --dataalignment 1m",
        risk="recreating a container or a volume destroys its data",
        value=wrong[0],
        unit="bytes",
    )


def _alignment(device: Device) -> int:
    alignment = FLASH_PAGE
    for unit in (device.optimal_io_bytes, device.discard_granularity_bytes):
        if unit and unit <= SAFE and unit % PAGE == 0:
            alignment = max(alignment, unit)
    return alignment


def _misaligned(snapshot: Snapshot, device: Device, why: str) -> Verdict:
    return Verdict(
        code="misaligned",
        severity="bad",
        where=device_label(device),
        says=f"{device.name} does not start on a page of the drive.",
        evidence=why,
        costs=_COSTS,
        remedy=f"back up the data, then recreate it at a multiple of 1 MiB:\n"
        f"sudo parted --align optimal /dev/{_disk(device)} mkpart ...",
        risk="recreating a partition destroys its data",
        proof=f"ssdlab run split {experiment_target(snapshot)}",
        value=device.off_by_bytes or device.start_bytes,
        unit="bytes",
    )


def _disk(device: Device) -> str:
    return device.below[0] if device.below else device.name


def _small(device: Device, start: int) -> Verdict:
    return Verdict(
        code="alignment-small",
        severity="note",
        where=device_label(device),
        says=f"{device.name} is aligned to a mapping unit, but not to a flash page or stripe.",
        evidence=f"it starts at byte {start}, which is not a multiple of "
        f"{format_size(_alignment(device))}",
        costs="some large requests touch one flash page more than necessary",
        value=start,
        unit="bytes",
    )


def _block(snapshot: Snapshot, mount: Mounted) -> Iterator[Verdict]:
    size = mount.block_bytes
    on_disk = [device for name in mount.devices if (device := snapshot.device(name))]
    if size is None or size >= PAGE or not on_disk or mount.fs_type == "vfat":
        return
    yield Verdict(
        code="block-small",
        severity="warn",
        where=f"{mount.mount_point} ({mount.fs_type})",
        says=f"The file system's block size, {size} bytes, is below the drive's mapping unit.",
        evidence=f"statvfs of {mount.mount_point}: f_frsize {size}",
        costs="for each small write the drive reads, merges and writes a whole 4 KiB unit",
        remedy="when you next create the file system, use 4 KiB blocks: mkfs -b 4096",
        value=size,
        unit="bytes",
    )
