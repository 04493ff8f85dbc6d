"""How the drive is attached: arrays, paths, links, loop devices, virtual disks, or no drive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ssdlab.doctor.checks.verdict import Verdict, device_label, experiment_target, is_rotating
from ssdlab.snapshot import Device, Snapshot

_MB: Final = 1e6
_SLOW_USB: Final = 60e6
_VIRTUAL: Final = frozenset({"virtio", "xen", "hyper-v"})
_NO_DRIVE: Final = ("memory", "pseudo", "network", "stacked")


def judge(snapshot: Snapshot) -> Iterator[Verdict]:
    """Codes: no-drive, virtual, rotating, array-degraded, array-busy, single-path, link-slow, ...

    Further codes: loop-buffered, usb, file-system-costs.
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
        reason = next((mount.warnings[code] for code in _NO_DRIVE if code in mount.warnings), None)
        if snapshot.drives or reason is None:
            continue
        yield Verdict(
            code="no-drive",
            severity="note",
            where=f"{mount.mount_point} ({mount.fs_type})",
            says="No drive is visible below this path.",
            evidence=reason,
            remedy="name a directory on the drive, or the drive itself: ssdlab doctor /dev/NAME",
            value=mount.fs_type,
        )
    for device in snapshot.devices:
        if device.transport == "ram":
            yield Verdict(
                code="no-drive",
                severity="note",
                where=device_label(device),
                says="This disk is memory; it has no flash.",
                evidence=f"its name is {device.name}",
                value="ram",
            )


def _array(device: Device) -> Iterator[Verdict]:
    if device.array_missing:
        yield Verdict(
            code="array-degraded",
            severity="bad",
            where=device_label(device),
            says=f"The array runs with {device.array_missing} member missing.",
            evidence=f"md/degraded is {device.array_missing} ({device.array_level})",
            costs="the next failure may lose the whole array; reads of the missing member are "
            "rebuilt from the others",
            remedy=f"cat /proc/mdstat; sudo mdadm --detail {device.node}",
            value=device.array_missing,
        )
    if device.array_action not in {None, "idle", "frozen"}:
        yield Verdict(
            code="array-busy",
            severity="note",
            where=device_label(device),
            says=f"The array is running a {device.array_action}.",
            evidence=f"md/sync_action is {device.array_action}",
            costs="it takes part of each drive's throughput; a resync also writes every block, so "
            "trimmed blocks count as used again",
            remedy="cat /proc/mdstat; when it has finished: sudo fstrim -av",
            value=device.array_action,
        )


def _paths(device: Device) -> Iterator[Verdict]:
    if device.is_multipath and len(device.below) < 2:
        yield Verdict(
            code="single-path",
            severity="warn",
            where=device_label(device),
            says="Only one path leads to this drive.",
            evidence=f"below it: {', '.join(device.below) or 'nothing'}",
            costs="half of the bandwidth, and the drive is lost when this path fails",
            remedy="sudo multipath -ll",
            value=len(device.below),
        )


def _loop(snapshot: Snapshot, device: Device) -> Iterator[Verdict]:
    if device.transport == "loop" and device.direct_io is False:
        yield Verdict(
            code="loop-buffered",
            severity="note",
            where=device_label(device),
            says="The loop device uses the page cache of its backing file.",
            evidence=f"loop/dio is 0; its backing file is {device.backing_file}",
            costs="data is cached twice, and measurements show memory instead of the drive",
            remedy=f"sudo losetup --direct-io=on {device.node}",
            proof=f"ssdlab run suite {experiment_target(snapshot)}",
            value=False,
        )


def _link(snapshot: Snapshot, device: Device) -> Iterator[Verdict]:
    now, best = device.link_bytes_per_s, device.best_link_bytes_per_s
    if now is None:
        return
    is_usb_2 = device.transport == "usb" and now <= _SLOW_USB
    if not is_usb_2 and (best is None or now >= 0.9 * best):
        return
    could = "USB 3 has 500" if is_usb_2 or best is None else f"both ends support {best / _MB:.0f}"
    yield Verdict(
        code="link-slow",
        severity="warn",
        where=device_label(device),
        says=f"The link is limited to {now / _MB:.0f} MB/s; {could}.",
        evidence="the negotiated speed and width in sysfs",
        costs="sequential reads cannot be faster than the link",
        remedy="use another port or cable; a slot wired for all lanes of the drive"
        if not is_usb_2
        else "use a USB 3 port and cable",
        proof=f"ssdlab run suite {experiment_target(snapshot)}",
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
            where=device_label(device),
            says="This is a rotating disk: what ssdlab says about flash does not apply to it.",
            evidence="queue/rotational is 1",
            value=True,
        )
    elif device.transport in _VIRTUAL:
        yield Verdict(
            code="virtual",
            severity="note",
            where=device_label(device),
            says="This is a virtual machine's disk: the drive behind it is not visible from here.",
            evidence=f"it is attached by {device.transport}",
            costs="the host's cache, rate limits and other guests affect every measurement",
            remedy="run ssdlab doctor on the host too",
            value=device.transport,
        )
