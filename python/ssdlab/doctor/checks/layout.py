"""Alignment: whether what starts on a drive starts where its pages do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ssdlab.doctor.checks.verdict import Verdict, is_rotating, named, place
from ssdlab.snapshot import Device, Mounted, Snapshot
from ssdlab.units import format_size

PAGE: Final = 4096
"""What every flash drive maps by, or a divisor of it."""
FLASH_PAGE: Final = 16 << 10
"""A page of most of today's flash."""
SAFE: Final = 1 << 20


def judge(snapshot: Snapshot) -> Iterator[Verdict]:
    """Codes: misaligned, misaligned-inside, alignment-small, aligned, block-small."""
    starts = [device for device in snapshot.devices if device.start_bytes is not None]
    wrong = False
    for device in snapshot.devices:
        found = list(_of_device(snapshot, device))
        wrong = wrong or bool(found)
        yield from found
    if starts and not wrong:
        told = ", ".join(f"{d.name} at {format_size(d.start_bytes or 0)}" for d in starts)
        yield Verdict(
            code="aligned",
            severity="good",
            where=", ".join(device.name for device in starts),
            says="All partitions start at whole units of the drive.",
            evidence=f"{told}; alignment_offset is 0",
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
            f"it starts at byte {start}, which is {start % unit} "
            f"bytes off a unit of {format_size(unit)}",
        )
    elif off:
        said = f"alignment_offset is {off} bytes" if off > 0 else "its members do not agree"
        yield _misaligned(snapshot, device, said)
    elif start is not None and start % _wanted(device):
        yield _small(device, start)
    yield from _inside(device)


def _inside(device: Device) -> Iterator[Verdict]:
    """A container or volume whose data does not begin at a page of the device below."""
    wrong = [at for at in device.data_starts_bytes if at % PAGE]
    if not wrong:
        return
    below = ", ".join(device.below)
    yield Verdict(
        code="misaligned-inside",
        severity="bad",
        where=named(device),
        says=f"The data of {device.name} does not begin at a page of {below}.",
        evidence=f"its device-mapper table has it begin at byte {wrong[0]} of {below}, which is "
        f"{wrong[0] % PAGE} bytes off a unit of {format_size(PAGE)}",
        costs="each write of 4 KiB touches two units: the drive reads, merges and writes both, and "
        "wears twice as fast",
        remedy="back it up, and make it again: cryptsetup luksFormat --align-payload 2048, or "
        "pvcreate --dataalignment 1m",
        risk="making a container or a volume again destroys what is in it",
        value=wrong[0],
        unit="bytes",
    )


def _wanted(device: Device) -> int:
    wanted = FLASH_PAGE
    for unit in (device.optimal_io_bytes, device.discard_granularity_bytes):
        if unit and unit <= SAFE and unit % PAGE == 0:
            wanted = max(wanted, unit)
    return wanted


def _misaligned(snapshot: Snapshot, device: Device, why: str) -> Verdict:
    return Verdict(
        code="misaligned",
        severity="bad",
        where=named(device),
        says=f"{device.name} does not start at a page of the drive.",
        evidence=why,
        costs="each write of 4 KiB touches two units: the drive reads, merges and writes both, and "
        "wears twice as fast",
        remedy=f"back it up, and make it again at a multiple of 1 MiB:\n"
        f"sudo parted --align optimal /dev/{_disk(device)} mkpart ...",
        risk="making a partition again destroys what is in it",
        proof=f"ssdlab run split {place(snapshot)}",
        value=device.off_by_bytes or device.start_bytes,
        unit="bytes",
    )


def _disk(device: Device) -> str:
    return device.below[0] if device.below else device.name


def _small(device: Device, start: int) -> Verdict:
    return Verdict(
        code="alignment-small",
        severity="note",
        where=named(device),
        says=f"{device.name} starts at a mapping unit, but not at a whole flash page or stripe.",
        evidence=f"it starts at byte {start}; multiples of {format_size(_wanted(device))} or 1 MiB "
        "are whole",
        costs="some large requests touch one flash page more than they need",
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
        says=f"The file system's block of {size} bytes is less than the drive maps.",
        evidence=f"statvfs of {mount.mount_point}: f_frsize {size}",
        costs="small writes make the drive read, merge and write whole units of 4 KiB",
        remedy="make it again with blocks of 4 KiB when it is next made: mkfs -b 4096",
        value=size,
        unit="bytes",
    )
