"""How the drive is attached: arrays, paths, links, loop devices, virtual disks, or no drive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ssdlab.doctor.checks.verdict import (
    Verdict,
    device_label,
    experiment_target,
    is_buffered_loop,
    is_rotating,
)
from ssdlab.snapshot import Device, Snapshot
from ssdlab.storage_stack.resync import REDUNDANT

_MB: Final = 1e6
_SLOW_USB: Final = 60e6
_VIRTUAL: Final = frozenset({"virtio", "xen", "hyper-v"})
_NO_DRIVE: Final = ("memory", "pseudo", "network", "stacked")


def judge(snapshot: Snapshot) -> Iterator[Verdict]:
    """Codes: no-drive, virtual, rotating, array-degraded, array-busy, single-path, link-slow, ...

    Further codes: loop-buffered, firmware-raid, raid-volume, resync-fills, zoned, usb-one-command,
    layer-unknown.
    """
    yield from _no_drive(snapshot)
    for device in snapshot.devices:
        yield from _array(device)
        yield from _firmware_raid(snapshot, device)
        yield from _resync_fills(snapshot, device)
        yield from _raid_volume(snapshot, device)
        yield from _zoned(device)
        yield from _usb(snapshot, device)
        yield from _unknown(device)
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
            remedy="give a directory on the drive, or the drive itself: ssdlab doctor /dev/NAME",
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
            costs="it takes part of each drive's throughput; a resync may write every block, so "
            "that trimmed blocks count as used again",
            remedy="cat /proc/mdstat; when it has finished: sudo fstrim -av",
            value=device.array_action,
        )


_FIRMWARE: Final = {"imsm": "Intel RST (IMSM)", "ddf": "DDF"}


def _firmware_raid(snapshot: Snapshot, device: Device) -> Iterator[Verdict]:
    name = _FIRMWARE.get(device.array_metadata or "")
    if device.layer == "dmraid":
        name = "BIOS"
    if name is None or device.array_level == "container":
        return
    level = device.array_level or "an array"
    assembled = "dmraid" if device.layer == "dmraid" else "mdadm"
    yield Verdict(
        code="firmware-raid",
        severity="note",
        where=device_label(device),
        says=f"This is a firmware RAID ({name}), {level} on {', '.join(device.below)}.",
        evidence=f"md/metadata_version is external, {device.array_metadata}"
        if assembled == "mdadm"
        else "its dm/uuid begins with DMRAID-",
        costs=f"here Linux ({assembled}) passes TRIM as for its own arrays; the same array under "
        "another system passes it only if that system's driver does for this level",
        remedy=f"sudo mdadm --detail {device.node}" if assembled == "mdadm" else "sudo dmraid -s",
        proof=f"sudo ssdlab run trim {experiment_target(snapshot)}",
        value=device.array_metadata or "dmraid",
    )


def _resync_fills(snapshot: Snapshot, device: Device) -> Iterator[Verdict]:
    """A resync writes whole members, also their unused blocks; only a TRIM undoes that.

    Seen with Linux 6.12 on twins: initialising RAID 1 wrote all of them, RAID 10 of trimmed drives
    nothing, because it compares first.
    """
    if device.array_level not in REDUNDANT or device.controller:
        return
    members = [lower for name in device.below if (lower := snapshot.device(name))]
    if members and all(is_rotating(member) for member in members):
        return
    passes = bool(device.discard_max_bytes)
    points = [mount.mount_point for mount in snapshot.mounts]
    trim = "; ".join(f"sudo fstrim -v {point}" for point in points) or "sudo fstrim -av"
    full = _counting_all_used(snapshot, device)
    counted = f"; {', '.join(full)} count all its blocks as used" if full else ""
    yield Verdict(
        code="resync-fills",
        severity="note" if passes else "warn",
        where=device_label(device),
        says="Initialising this array and replacing a member write every block of an SSD."
        if device.array_level == "raid1"
        else "Replacing a member writes every block of the new SSD, and initialising this array "
        "writes all blocks that do not match.",
        evidence=f"md/level is {device.array_level}; md copies unused blocks too{counted}",
        costs="after it the drive counts all blocks as in use, and garbage collection has only the "
        "hidden spare",
        remedy=f"after each resync: {trim}"
        if passes
        else f"the array passes no TRIM: leave space unused from the start: "
        f"ssdlab provision {device.node}",
        proof=f"sudo ssdlab run trim {experiment_target(snapshot)}",
        value=device.array_level or "",
    )


def _counting_all_used(snapshot: Snapshot, array: Device) -> list[str]:
    """The drives that count at least as many blocks as in use as the array has of them."""
    names = list(array.below)
    for device in snapshot.devices:
        if device.is_partition and device.name in array.below:
            names += device.below
    used = ((name, each.used_bytes) for name in names if (each := snapshot.device(name)))
    component = array.array_component_bytes
    return [name for name, size in used if component and size and size >= component]


def _raid_volume(snapshot: Snapshot, device: Device) -> Iterator[Verdict]:
    if device.controller is None:
        return
    members = [lower for name in device.below if (lower := snapshot.device(name))]
    names = ", ".join(f"{m.name} ({m.model})" if m.model else m.name for m in members)
    known = {
        "volume": f"on {names}",
        "controller": f"whose drives are among {names}",
    }.get(device.members_of, "whose drives are not visible")
    level = f"{device.array_level} " if device.array_level else ""
    smart = [f"sudo smartctl -x {m.smartctl_target}" for m in members if m.smart_type]
    yield Verdict(
        code="raid-volume",
        severity="note",
        where=device_label(device),
        says=f"This is a {level}volume of a RAID controller, {known}.",
        evidence=f"the driver of its SCSI host is {device.controller}",
        costs="the controller's cache answers writes first, so measurements show it and not the "
        "drives; the kernel sees neither the drives' alignment nor their health",
        remedy="\n".join(smart[:4]) or "sudo smartctl --scan-open",
        value=device.controller,
    )


def _zoned(device: Device) -> Iterator[Verdict]:
    if device.zoned is None or device.is_partition:
        return
    yield Verdict(
        code="zoned",
        severity="note",
        where=device_label(device),
        says=f"This is a {device.zoned} zoned drive.",
        evidence=f"queue/zoned is {device.zoned}",
        costs="it is written zone by zone, and the host resets zones: what ssdlab says about "
        "random writes and garbage collection does not apply to it",
        value=device.zoned,
    )


def _usb(snapshot: Snapshot, device: Device) -> Iterator[Verdict]:
    if device.usb_driver != "usb-storage" or not device.is_drive or is_rotating(device):
        return
    yield Verdict(
        code="usb-one-command",
        severity="note",
        where=device_label(device),
        says="The USB bridge takes one command at a time (bulk-only transport).",
        evidence="the interface's driver is usb-storage, not uas",
        costs="random reads cannot overlap: the drive's parallel dies are idle",
        remedy="use a bridge with UAS; if this one has it and Linux disabled it: "
        "dmesg | grep -i uas",
        proof=f"ssdlab run suite {experiment_target(snapshot)}",
        value="usb-storage",
    )


def _unknown(device: Device) -> Iterator[Verdict]:
    is_known = device.transport != "unknown" and device.layer != "device mapper"
    if is_known or (device.layer == "device mapper" and not device.below):
        return
    yield Verdict(
        code="layer-unknown",
        severity="note",
        where=device_label(device),
        says="ssdlab does not know this layer, and cannot say what it passes to the layer below.",
        evidence=f"its kind is {device.layer}, its transport {device.transport}",
        remedy=f"sudo dmsetup table {device.mapped_name}" if device.mapped_name else "",
        value=device.layer,
    )


def _paths(device: Device) -> Iterator[Verdict]:
    if device.is_multipath and len(device.below) < 2:
        yield Verdict(
            code="single-path",
            severity="warn",
            where=device_label(device),
            says="This drive has only one path left.",
            evidence=f"below it: {', '.join(device.below) or 'nothing'}",
            costs="half of the bandwidth, and the drive is lost when this path fails",
            remedy="sudo multipath -ll",
            value=len(device.below),
        )


def _loop(snapshot: Snapshot, device: Device) -> Iterator[Verdict]:
    if is_buffered_loop(device):
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
