"""How things hang together: no drive at all, arrays, paths, links, loop devices, other machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ssdlab.doctor.checks.verdict import Verdict, is_rotating, named, place
from ssdlab.snapshot import Device, Snapshot

_MB: Final = 1e6
_SLOW_USB: Final = 60e6
_VIRTUAL: Final = frozenset({"virtio", "xen", "hyper-v"})
_NO_DRIVE: Final = ("memory", "pseudo", "network", "stacked")


def judge(snapshot: Snapshot) -> Iterator[Verdict]:
    """Codes: no-drive, virtual, rotating, array-degraded, array-busy, single-path, link-slow, ...

    And loop-buffered, usb, file-system-costs.
    """
    yield from _no_drive(snapshot)
    for device in snapshot.devices:
        yield from _array(device)
        yield from _paths(device)
        yield from _loop(snapshot, device)
        yield from _link(snapshot, device)
        yield from _kind(device)


def _no_drive(snapshot: Snapshot) -> Iterator[Verdict]:
    for mount in snapshot.mounts:
        told = next((mount.warnings[code] for code in _NO_DRIVE if code in mount.warnings), None)
        if snapshot.drives or told is None:
            continue
        yield Verdict(
            code="no-drive",
            severity="note",
            where=f"{mount.mount_point} ({mount.fs_type})",
            says="No drive can be seen under this path.",
            evidence=told,
            remedy="give a directory on the drive, or the drive: ssdlab doctor /dev/NAME",
            value=mount.fs_type,
        )
    for device in snapshot.devices:
        if device.transport == "ram":
            yield Verdict(
                code="no-drive",
                severity="note",
                where=named(device),
                says="This disk is memory: there is no flash.",
                evidence=f"its name is {device.name}",
                value="ram",
            )


def _array(device: Device) -> Iterator[Verdict]:
    if device.array_missing:
        yield Verdict(
            code="array-degraded",
            severity="bad",
            where=named(device),
            says=f"The array runs with {device.array_missing} member missing.",
            evidence=f"md/degraded is {device.array_missing} ({device.array_level})",
            costs="the next failure may lose all of it; reads of the missing member are computed",
            remedy=f"cat /proc/mdstat; sudo mdadm --detail {device.node}",
            value=device.array_missing,
        )
    if device.array_action not in {None, "idle", "frozen"}:
        yield Verdict(
            code="array-busy",
            severity="note",
            where=named(device),
            says=f"The array is busy with itself ({device.array_action}).",
            evidence=f"md/sync_action is {device.array_action}",
            costs="it takes part of each drive's rate; a resync also writes every block, so what "
            "was trimmed counts as used again",
            remedy="cat /proc/mdstat; when it is done: sudo fstrim -av",
            value=device.array_action,
        )


def _paths(device: Device) -> Iterator[Verdict]:
    if device.is_multipath and len(device.below) < 2:
        yield Verdict(
            code="single-path",
            severity="warn",
            where=named(device),
            says="Only one path leads to this drive.",
            evidence=f"below it: {', '.join(device.below) or 'nothing'}",
            costs="half of the bandwidth, and no way left when this one fails",
            remedy="sudo multipath -ll",
            value=len(device.below),
        )


def _loop(snapshot: Snapshot, device: Device) -> Iterator[Verdict]:
    if device.transport == "loop" and device.direct_io is False:
        yield Verdict(
            code="loop-buffered",
            severity="note",
            where=named(device),
            says="The loop device goes through the page cache of its file.",
            evidence=f"loop/dio is 0; its file is {device.backing_file}",
            costs="everything is kept in memory twice, and no measurement shows the drive",
            remedy=f"sudo losetup --direct-io=on {device.node}",
            proof=f"ssdlab run suite {place(snapshot)}",
            value=False,
        )


def _link(snapshot: Snapshot, device: Device) -> Iterator[Verdict]:
    now, best = device.link_bytes_per_s, device.best_link_bytes_per_s
    if now is None:
        return
    is_usb_2 = device.transport == "usb" and now <= _SLOW_USB
    if not is_usb_2 and (best is None or now >= 0.9 * best):
        return
    could = "USB 3 carries 500" if is_usb_2 or best is None else f"both ends could {best / _MB:.0f}"
    yield Verdict(
        code="link-slow",
        severity="warn",
        where=named(device),
        says=f"The link carries {now / _MB:.0f} MB/s at most; {could}.",
        evidence="the negotiated speed and width in sysfs",
        costs="reading in order cannot be faster than the link",
        remedy="another port or cable; a slot wired for as many lanes as the drive has"
        if not is_usb_2
        else "a USB 3 port and cable",
        proof=f"ssdlab run suite {place(snapshot)}",
        value=round(now / _MB, 1),
        unit="MB/s",
    )


def _kind(device: Device) -> Iterator[Verdict]:
    if not device.is_drive:
        return
    if is_rotating(device):
        yield Verdict(
            code="rotating",
            severity="note",
            where=named(device),
            says="This disk says that it turns: what is told of flash does not hold for it.",
            evidence="queue/rotational is 1",
            value=True,
        )
    elif device.transport in _VIRTUAL:
        yield Verdict(
            code="virtual",
            severity="note",
            where=named(device),
            says="This is a virtual machine's disk: the drive behind it cannot be seen from here.",
            evidence=f"it is attached by {device.transport}",
            costs="the host's cache, limits and neighbours are part of every number",
            remedy="run ssdlab doctor on the host too",
            value=device.transport,
        )
