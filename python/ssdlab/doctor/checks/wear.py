"""What a drive says of its own health: failing, worn, hot, and what its writing costs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ssdlab.doctor.checks.verdict import Severity, Verdict, is_hardware, named, place
from ssdlab.snapshot import Device, Health, Snapshot
from ssdlab.units import format_size

_BACKUP: Final = "Copy what matters off this drive now."
WORN_BAD, WORN_WARN = 100, 80
AMPLIFIED: Final = 3.0


def judge(snapshot: Snapshot) -> Iterator[Verdict]:
    """Codes: failing, media-errors, spare-blocks-low, worn, reallocated, link-errors, hot, ..."""
    for drive in snapshot.drives:
        if not is_hardware(drive) and drive.health is None:
            continue
        yield from _temperature(drive)
        if drive.health is not None:
            yield from _failing(drive, drive.health)
            yield from _worn(drive, drive.health)
            yield from _errors(drive, drive.health)
            yield from _amplified(snapshot, drive, drive.health)


def _failing(drive: Device, health: Health) -> Iterator[Verdict]:
    if health.passed is False or health.warnings:
        told = "; ".join(health.warnings) or "the overall self-assessment failed"
        yield Verdict(
            code="failing",
            severity="bad",
            where=named(drive),
            says="The drive says that it is failing.",
            evidence=f"{health.source}: {told}",
            costs="data may be lost or become read-only at any time",
            remedy=f"{_BACKUP}\nsudo smartctl -x {drive.node}",
            value=told,
        )
    spare, least = health.spare_blocks, health.spare_blocks_least
    if spare is not None and least is not None and spare <= least + 5:
        yield Verdict(
            code="spare-blocks-low",
            severity="bad" if spare <= least else "warn",
            where=named(drive),
            says="The reserve for worn blocks is almost used up.",
            evidence=f"{health.source}: {spare:.0f} % left, the drive warns at {least:.0f} %",
            costs="when it is gone the drive becomes read-only",
            remedy=_BACKUP,
            value=spare,
            unit="%",
        )


def _worn(drive: Device, health: Health) -> Iterator[Verdict]:
    if health.worn is None:
        return
    severity: Severity = "good"
    says = "The drive is little worn."
    if health.worn >= WORN_BAD:
        severity, says = "bad", "The drive has used up what it is rated for."
    elif health.worn >= WORN_WARN:
        severity, says = "warn", "The drive is near the end of what it is rated for."
    hours = "" if health.power_on_hours is None else f", {health.power_on_hours} hours on"
    host = "" if not health.host_bytes else f", {format_size(health.host_bytes)} written by hosts"
    spare = "" if health.spare_blocks is None else f", spare blocks {health.spare_blocks:.0f} %"
    yield Verdict(
        code="worn",
        severity=severity,
        where=named(drive),
        says=says,
        evidence=f"{health.source}: {health.worn:.0f} % of its endurance used{spare}{hours}{host}",
        costs=""
        if severity == "good"
        else "worn flash is read again and again: reads slow down first, then fail",
        remedy="" if severity == "good" else "plan its replacement; keep a copy",
        value=health.worn,
        unit="%",
    )


def _errors(drive: Device, health: Health) -> Iterator[Verdict]:
    lost = [
        f"{count} {words}"
        for count, words in (
            (health.media_errors, "uncorrectable errors"),
            (health.pending, "sectors waiting to be reallocated"),
        )
        if count
    ]
    if lost:
        yield Verdict(
            code="media-errors",
            severity="bad",
            where=named(drive),
            says="The drive could not read back what was stored in it.",
            evidence=f"{health.source}: {', '.join(lost)}",
            costs="files are damaged; reads near such places take seconds",
            remedy=f"{_BACKUP}\nsudo smartctl -t long {drive.node}",
            value=(health.media_errors or 0) + (health.pending or 0),
        )
    elif health.reallocated:
        yield Verdict(
            code="reallocated",
            severity="warn" if health.reallocated > 100 else "note",
            where=named(drive),
            says="Blocks of flash were replaced by spare ones.",
            evidence=f"{health.source}: {health.reallocated} reallocated",
            costs="nothing while the number stands still",
            remedy=f"sudo smartctl -x {drive.node}   # again in a week: does it grow?",
            value=health.reallocated,
        )
    if health.link_errors:
        yield Verdict(
            code="link-errors",
            severity="warn" if health.link_errors > 100 else "note",
            where=named(drive),
            says="Transfers over the cable failed and were repeated.",
            evidence=f"{health.source}: {health.link_errors} CRC errors since the drive was made",
            costs="each one costs a retry; many lower the link's speed",
            remedy="replace the SATA cable, then look whether the number still grows",
            value=health.link_errors,
        )


def _temperature(drive: Device) -> Iterator[Verdict]:
    health = drive.health
    celsius = drive.temperature_c
    if celsius is None and health is not None:
        celsius = health.temperature_c
    limit = drive.temperature_limit_c or 70.0
    hot = celsius is not None and celsius >= limit - 5
    minutes = 0 if health is None else health.hot_minutes or 0
    if not hot and not minutes:
        return
    told = [] if celsius is None else [f"{celsius:.0f} °C now"]
    told.append(f"limit {limit:.0f} °C{'' if drive.temperature_limit_c else ' (assumed)'}")
    told += [f"{minutes} minutes above its limit so far"] if minutes else []
    yield Verdict(
        code="hot",
        severity="warn" if hot else "note",
        where=named(drive),
        says="The drive is hot enough to slow itself down."
        if hot
        else "The drive was hot enough to slow itself down.",
        evidence="; ".join(told),
        costs="a drive that protects itself from heat does a fraction of its work",
        remedy="give it air or a heat sink",
        proof="ssdlab run cache DIRECTORY: the throughput over time falls as it warms",
        value=celsius,
        unit="°C",
    )


def _amplified(snapshot: Snapshot, drive: Device, health: Health) -> Iterator[Verdict]:
    if not health.host_bytes or health.flash_bytes is None:
        return
    ratio = health.flash_bytes / health.host_bytes
    high = ratio >= AMPLIFIED
    yield Verdict(
        code="amplification",
        severity="warn" if high else "good",
        where=named(drive),
        says=f"Each byte written cost {ratio:.2f} bytes of flash over the drive's life.",
        evidence=f"{health.source}: host {format_size(health.host_bytes)}, "
        f"flash {format_size(health.flash_bytes)}",
        costs=f"it wears {ratio:.1f} times as fast, and random writes are as much slower"
        if high
        else "",
        remedy=f"ssdlab provision {drive.node}" if high else "",
        proof=f"ssdlab run steady {place(snapshot)}" if high else "",
        value=round(ratio, 3),
        unit="x",
    )
