"""Room: in the file system, in the drive's hidden flash, and in memory (swap)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ssdlab.analysis.spare import SpareArea
from ssdlab.doctor.checks.drives import flash_of
from ssdlab.doctor.checks.verdict import (
    Severity,
    Verdict,
    device_label,
    experiment_target,
    is_hardware,
)
from ssdlab.snapshot import Device, Mounted, Snapshot, Swap
from ssdlab.units import format_size

FULL_BAD, FULL_WARN = 0.97, 0.90
GOOD_SPARE: Final = 0.25
"""Hidden flash / all flash; the published test recommends 25 to 29 %."""
SWAP_SHARE: Final = 0.10
"""Fraction of memory: less than this in swap is normal, since idle pages are swapped out."""


def judge(snapshot: Snapshot) -> Iterator[Verdict]:
    """Codes: nearly-full, spare, swap-busy, swap-in-memory."""
    for mount in snapshot.mounts:
        yield from _full(mount)
    for drive in snapshot.drives:
        if is_hardware(drive):
            yield from _spare(snapshot, drive)
    for swap in snapshot.swaps:
        yield from _swap(snapshot, swap)


def _full(mount: Mounted) -> Iterator[Verdict]:
    if not mount.total_bytes or mount.free_bytes is None or "read-only" in mount.warnings:
        return
    used = 1 - mount.free_bytes / mount.total_bytes
    if used < FULL_WARN:
        return
    severity: Severity = "bad" if used >= FULL_BAD else "warn"
    yield Verdict(
        code="nearly-full",
        severity=severity,
        where=f"{mount.mount_point} ({mount.fs_type})",
        says=f"The file system is {used:.1%} full.",
        evidence=f"statvfs of {mount.mount_point}: {format_size(mount.free_bytes)} of "
        f"{format_size(mount.total_bytes)} free for an ordinary user",
        costs="new files are split over the remaining gaps, and TRIM can return little spare "
        "to the drive",
        remedy=f"du -xh {mount.mount_point} | sort -h | tail -20",
        proof=f"ssdlab run fragments {mount.mount_point}",
        value=round(used, 4),
    )


def _spare(snapshot: Snapshot, drive: Device) -> Iterator[Verdict]:
    """Spare area by both usual definitions: hidden / all flash, and hidden flash / capacity."""
    if not drive.size_bytes or drive.transport == "usb":
        return
    free = (drive.health and drive.health.unallocated_bytes) or 0
    flash = flash_of(drive.model, drive.size_bytes + free)
    area = SpareArea(flash.size_bytes, drive.size_bytes)
    also = f"; {format_size(free)} not in any namespace" if free else ""
    enough = area.spare >= GOOD_SPARE
    yield Verdict(
        code="spare",
        severity="good" if enough else "note",
        where=device_label(drive),
        says=f"Hidden flash: about {area.spare:.1%} of all flash "
        f"({area.overprovisioning:.1%} of the visible capacity).",
        evidence=f"{format_size(drive.size_bytes)} visible; {format_size(flash.size_bytes)} of "
        f"flash ({flash.why}){also}",
        costs=""
        if enough
        else "random writes on a full drive are limited by its spare: 8700/s with 6.85 %, 32000/s "
        "with 27 % on the twin of an 840 Pro",
        remedy="" if enough else f"ssdlab provision {_volume_of(snapshot, drive).node}",
        proof=f"ssdlab run steady {experiment_target(snapshot)}",
        value=round(area.spare, 4),
    )


def _volume_of(snapshot: Snapshot, drive: Device) -> Device:
    """The RAID controller's volume on a drive behind one, else the drive itself."""
    above = (d for d in snapshot.devices if d.controller and drive.name in d.below)
    return next(above, drive)


def _swap(snapshot: Snapshot, swap: Swap) -> Iterator[Verdict]:
    if swap.in_memory:
        yield Verdict(
            code="swap-in-memory",
            severity="good",
            where=swap.name,
            says="Swap is compressed memory: it writes no flash.",
            evidence=f"/proc/swaps: {swap.name}, {format_size(swap.used_bytes)} used",
            value=swap.used_bytes,
            unit="bytes",
        )
        return
    below = {drive.name for drive in snapshot.drives}
    memory = snapshot.memory_bytes or 0
    if not below.intersection(swap.drives) or swap.used_bytes < max(1, SWAP_SHARE * memory):
        return
    yield Verdict(
        code="swap-busy",
        severity="warn",
        where=f"{swap.name} on {', '.join(swap.drives)}",
        says="This machine swaps to the same drive.",
        evidence=f"/proc/swaps: {format_size(swap.used_bytes)} used; memory {format_size(memory)}",
        costs="each page fault from swap is a random read that other reads wait for; swapping out "
        "also writes in pieces of 4 KiB",
        remedy="vmstat 5   # si or so above 0: it is swapping now; add memory, or use zram",
        value=swap.used_bytes,
        unit="bytes",
    )
