"""Write caches, flushes and the scheduler: the cost of fsync, and whether data survives it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ssdlab.doctor.checks.drives import is_protected
from ssdlab.doctor.checks.verdict import Verdict, device_label, experiment_target, is_hardware
from ssdlab.snapshot import Device, Snapshot

_SATA: Final = frozenset({"sata", "sas", "scsi"})


def judge(snapshot: Snapshot) -> Iterator[Verdict]:
    """Codes: write-cache-before-protected, flush-off, no-barrier, write-cache-volatile, scheduler.

    Others are write-cache-through and member-cache-volatile.
    """
    for drive in snapshot.drives:
        if drive.smart_type:
            yield from _behind_controller(snapshot, drive)
        elif is_hardware(drive):
            yield from _cache(snapshot, drive)
            yield from _scheduler(drive)
    for device in snapshot.devices:
        if not device.is_drive and not device.is_partition and not device.controller:
            yield from _dropped_flushes(snapshot, device)
    yield from _barrier(snapshot)


def _dropped_flushes(snapshot: Snapshot, device: Device) -> Iterator[Verdict]:
    """A layer set to "write through" drops flushes; drives with a volatile cache need them."""
    below = [drive for drive in _drives_below(snapshot, device) if is_hardware(drive)]
    volatile = [drive for drive in below if _is_on(drive) and not is_protected(drive.model)]
    if device.write_cache != "write through" or not volatile:
        return
    yield Verdict(
        code="flush-off",
        severity="bad",
        where=device_label(device),
        says=f"The layer {device.name} drops flushes that the drive below it needs.",
        evidence=f"queue/write_cache of {device.name} is 'write through', and the cache of "
        f"{', '.join(device_label(drive) for drive in volatile)} is on",
        costs="a power cut loses data that fsync had confirmed",
        remedy=f"echo 'write back' | sudo tee /sys/block/{device.name}/queue/write_cache",
        proof="ssdlab witness write: see docs/experiments/witness.md",
        value="write through",
    )


def _drives_below(snapshot: Snapshot, device: Device) -> Iterator[Device]:
    for name in device.below:
        lower = snapshot.device(name)
        if lower is not None:
            yield from [lower] if lower.is_drive else _drives_below(snapshot, lower)


def _cache(snapshot: Snapshot, drive: Device) -> Iterator[Verdict]:
    is_on = _is_on(drive)
    protected = is_protected(drive.model) or _has_capacitor(drive)
    if drive.transport in _SATA and protected and is_on:
        yield _before_protected(snapshot, drive)
    elif drive.write_cache == "write through" and _reports_on(drive) and not protected:
        yield _flush_off(drive)
    elif is_on:
        yield _volatile(snapshot, drive, protected=protected)
    elif is_on is False:
        yield _through(drive)


_CACHE_OFF: Final = {
    "hpsa": "ssacli ctrl slot=SLOT modify dwc=disable",
    "cciss": "ssacli ctrl slot=SLOT modify dwc=disable",
    "smartpqi": "ssacli ctrl slot=SLOT modify dwc=disable",
    "aacraid": "arcconf SETCACHE 1 DEVICE CHANNEL ID wt",
}
_STORCLI: Final = "storcli /cALL/vALL set pdcache=off"


def _behind_controller(snapshot: Snapshot, drive: Device) -> Iterator[Verdict]:
    """A RAID controller's battery protects its own cache, not those of its drives."""
    on = drive.health is not None and drive.health.cache_on
    if not on or is_protected(drive.model) or _has_capacitor(drive):
        return
    above = (d.controller for d in snapshot.devices if d.controller and drive.name in d.below)
    command = _CACHE_OFF.get(next(above, ""), _STORCLI)
    yield Verdict(
        code="member-cache-volatile",
        severity="warn",
        where=device_label(drive),
        says="The volatile write cache of a drive behind the RAID controller is on.",
        evidence=f"smartctl -x {drive.smartctl_target}: the write cache is enabled, and "
        "the model is not known to have power-loss protection",
        costs="a power cut may lose data that fsync had confirmed: the controller's battery "
        "protects only the controller's own cache",
        remedy=f"switch the drives' cache off in the controller's program, such as {command}",
        proof="ssdlab witness write: see docs/experiments/witness.md",
        value=True,
    )


def _has_capacitor(drive: Device) -> bool:
    return drive.health is not None and drive.health.capacitor_tested


def _reports_on(drive: Device) -> bool:
    """Whether the drive itself, not the kernel, reports that its volatile cache is on."""
    if drive.health is not None and drive.health.cache_on is not None:
        return drive.health.cache_on
    return (drive.cache_type or "").startswith("write back")


def _is_on(drive: Device) -> bool | None:
    """Whether the write cache is on, by the drive's report, else the kernel's; None if unknown."""
    if drive.health is not None and drive.health.cache_on is not None:
        return drive.health.cache_on
    mode = drive.cache_type or drive.write_cache
    return None if mode is None else mode.startswith("write back")


def _evidence(drive: Device) -> str:
    parts = [f"queue/write_cache is {drive.write_cache!r}"] if drive.write_cache else []
    parts += [f"cache_type is {drive.cache_type!r}"] if drive.cache_type else []
    if drive.health is not None and drive.health.cache_on is not None:
        parts.append(f"{drive.health.source}: cache {'on' if drive.health.cache_on else 'off'}")
    if drive.fua is not None:
        parts.append(f"FUA {'yes' if drive.fua else 'no'}")
    return "; ".join(parts)


def _before_protected(snapshot: Snapshot, drive: Device) -> Verdict:
    how = "its model" if is_protected(drive.model) else "its SMART capacitor test"
    return Verdict(
        code="write-cache-before-protected",
        severity="bad",
        where=device_label(drive),
        says="The volatile write cache is on, but this drive's capacitors make it unnecessary.",
        evidence=f"{_evidence(drive)}; protected against power loss, known by {how} "
        f"({drive.model})",
        costs="each fsync waits for a flush: on two such drives turning the cache off made small "
        "writes with fsync 36 to 228 times faster (published; with O_SYNC one of them gained "
        "nothing)",
        remedy=f"sudo hdparm -W 0 {drive.node}\n"
        "to keep it off after a restart: write_cache = off in /etc/hdparm.conf",
        risk="sequential writes may be slightly slower on some models: measure both",
        proof=f"ssdlab run fsync {experiment_target(snapshot)}",
        value="write back",
    )


def _flush_off(drive: Device) -> Verdict:
    return Verdict(
        code="flush-off",
        severity="bad",
        where=device_label(drive),
        says="The kernel sends no flush, although the drive's cache is volatile.",
        evidence=_evidence(drive),
        costs="a power cut loses data that fsync had confirmed",
        remedy=f"echo 'write back' | sudo tee /sys/block/{drive.name}/queue/write_cache",
        proof="ssdlab witness write: see docs/experiments/witness.md",
        value="write through",
    )


def _volatile(snapshot: Snapshot, drive: Device, *, protected: bool) -> Verdict:
    kind = "its model has power-loss protection" if protected else "no known power-loss protection"
    return Verdict(
        code="write-cache-volatile",
        severity="note",
        where=device_label(drive),
        says="The write cache is on: each fsync costs a flush.",
        evidence=f"{_evidence(drive)}; {kind}",
        costs="a program that syncs each write runs at the speed of the flash, not of the cache",
        proof=f"ssdlab run fsync {experiment_target(snapshot)}",
        value="write back",
    )


def _through(drive: Device) -> Verdict:
    return Verdict(
        code="write-cache-through",
        severity="good",
        where=device_label(drive),
        says="No volatile write cache: a completed write needs no flush.",
        evidence=_evidence(drive),
        value="write through",
    )


def _barrier(snapshot: Snapshot) -> Iterator[Verdict]:
    for mount in snapshot.mounts:
        sentence = mount.warnings.get("no-barrier")
        if sentence is None:
            continue
        safe = [is_protected(drive.model) or _is_on(drive) is False for drive in snapshot.drives]
        yield Verdict(
            code="no-barrier",
            severity="note" if safe and all(safe) else "bad",
            where=f"{mount.mount_point} ({mount.fs_type})",
            says=sentence,
            evidence=f"options of {mount.mount_point}: "
            + ", ".join(o for o in mount.options if "barrier" in o),
            costs="a power cut can corrupt the file system itself",
            remedy=f"sudo mount -o remount,barrier=1 {mount.mount_point}",
            proof="ssdlab witness write: see docs/experiments/witness.md",
            value=False,
        )


def _scheduler(drive: Device) -> Iterator[Verdict]:
    slow = {"bfq", "cfq"} if drive.transport != "nvme" else {"bfq", "cfq", "mq-deadline"}
    if drive.scheduler not in slow:
        return
    better = "none" if drive.transport == "nvme" else "mq-deadline"
    yield Verdict(
        code="scheduler",
        severity="note",
        where=device_label(drive),
        says=f"The scheduler {drive.scheduler} costs CPU time; this drive needs no scheduler.",
        evidence=f"queue/scheduler is {drive.scheduler}",
        costs="fewer requests/s when one CPU is the limit; keep it if you need its fairness",
        remedy=f"echo {better} | sudo tee /sys/block/{drive.name}/queue/scheduler",
        proof="ssdlab run --fio job.fio, once with each scheduler",
        value=drive.scheduler,
    )
