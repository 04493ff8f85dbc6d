"""SMART health: failing, worn or hot drives, errors, and write amplification."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ssdlab.doctor.checks.verdict import (
    Severity,
    Verdict,
    device_label,
    experiment_target,
    is_hardware,
)
from ssdlab.snapshot import Device, Health, Snapshot
from ssdlab.units import format_size

_BACKUP: Final = "Back up this drive now."
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
        reasons = "; ".join(health.warnings) or "the overall self-assessment failed"
        yield Verdict(
            code="failing",
            severity="bad",
            where=device_label(drive),
            says="The drive reports that it is failing.",
            evidence=f"{health.source}: {reasons}",
            costs="data may be lost or become read-only at any time",
            remedy=f"{_BACKUP}\nsudo smartctl -x {drive.smartctl_target}",
            value=reasons,
        )
    spare, least = health.spare_blocks, health.spare_blocks_least
    if spare is not None and least is not None and spare <= least + 5:
        yield Verdict(
            code="spare-blocks-low",
            severity="bad" if spare <= least else "warn",
            where=device_label(drive),
            says="The reserve for worn blocks is almost used up.",
            evidence=f"{health.source}: {spare:.0f} % left; the drive warns at {least:.0f} %",
            costs="when none are left, the drive becomes read-only",
            remedy=_BACKUP,
            value=spare,
            unit="%",
        )


def _worn(drive: Device, health: Health) -> Iterator[Verdict]:
    if health.worn is None:
        return
    severity: Severity = "good"
    says = "The drive has little wear."
    if health.worn >= WORN_BAD:
        severity, says = "bad", "The drive has reached its rated endurance."
    elif health.worn >= WORN_WARN:
        severity, says = "warn", "The drive is close to its rated endurance."
    hours = "" if health.power_on_hours is None else f", {health.power_on_hours} power-on hours"
    host = "" if not health.host_bytes else f", {format_size(health.host_bytes)} written by hosts"
    spare = "" if health.spare_blocks is None else f", spare blocks {health.spare_blocks:.0f} %"
    yield Verdict(
        code="worn",
        severity=severity,
        where=device_label(drive),
        says=says,
        evidence=f"{health.source}: {health.worn:.0f} % of its endurance used{spare}{hours}{host}",
        costs=""
        if severity == "good"
        else "worn flash needs read retries: reads slow down first, then fail",
        remedy="" if severity == "good" else "plan to replace it; keep a backup",
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
            where=device_label(drive),
            says="The drive could not read back stored data.",
            evidence=f"{health.source}: {', '.join(lost)}",
            costs="files are damaged; reads near the errors can take seconds",
            remedy=f"{_BACKUP}\nsudo smartctl -t long {drive.smartctl_target}",
            value=(health.media_errors or 0) + (health.pending or 0),
        )
    elif health.reallocated:
        yield Verdict(
            code="reallocated",
            severity="warn" if health.reallocated > 100 else "note",
            where=device_label(drive),
            says="The drive has replaced bad flash blocks with spare ones.",
            evidence=f"{health.source}: {health.reallocated} reallocated",
            costs="nothing, unless the number grows",
            remedy=f"sudo smartctl -x {drive.smartctl_target}   # again in a week: does it grow?",
            value=health.reallocated,
        )
    if health.link_errors:
        yield Verdict(
            code="link-errors",
            severity="warn" if health.link_errors > 100 else "note",
            where=device_label(drive),
            says="Transfers over the cable failed and were repeated.",
            evidence=f"{health.source}: {health.link_errors} CRC errors in the drive's life",
            costs="each error costs a retry; many lower the link speed",
            remedy="replace the SATA cable, then check whether the number still grows",
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
    evidence = [] if celsius is None else [f"{celsius:.0f} °C now"]
    evidence.append(f"limit {limit:.0f} °C{'' if drive.temperature_limit_c else ' (assumed)'}")
    evidence += [f"{minutes} minutes above its limit so far"] if minutes else []
    yield Verdict(
        code="hot",
        severity="warn" if hot else "note",
        where=device_label(drive),
        says="The drive is hot enough to throttle."
        if hot
        else "The drive has been hot enough to throttle.",
        evidence="; ".join(evidence),
        costs="a throttled drive delivers a fraction of its throughput",
        remedy="add airflow or a heat sink",
        proof="ssdlab run cache DIRECTORY: throughput falls as the drive warms up",
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
        where=device_label(drive),
        says=f"Write amplification over the drive's life: {ratio:.2f} bytes of flash per byte.",
        evidence=f"{health.source}: host {format_size(health.host_bytes)}, "
        f"flash {format_size(health.flash_bytes)}",
        costs=f"it wears {ratio:.1f} times as fast, and random writes are slower by that factor"
        if high
        else "",
        remedy=f"ssdlab provision {drive.node}" if high else "",
        proof=f"ssdlab run steady {experiment_target(snapshot)}" if high else "",
        value=round(ratio, 3),
        unit="x",
    )
