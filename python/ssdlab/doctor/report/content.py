"""Content of the doctor's report, as text: the layers of the stack, files, read maps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from ssdlab.doctor.checks import Verdict
from ssdlab.doctor.checks.files import SLOW
from ssdlab.doctor.history import Changes
from ssdlab.records import Finding
from ssdlab.snapshot import Device, File, Mounted, Snapshot, TrimLayer
from ssdlab.units import format_size
from ssdlab.warning import MeasurementWarning
from ssdlab.wording import plain


class Report(msgspec.Struct, frozen=True):
    """The JSON object of `ssdlab doctor`.

    `measures` has a row for each layer. `findings` are the verdicts by name, `verdicts` the same
    with all details, the worst first. `warnings` lists what could not be read; `stack` is the
    snapshot that was read. `history` is there with `--remember`: a row for each drive.
    """

    ssdlab: str
    target: str
    duration_s: float
    measures: list[dict[str, Any]]
    findings: dict[str, Finding]
    verdict: str
    verdicts: list[Verdict]
    warnings: list[MeasurementWarning]
    stack: Snapshot
    history: list[Changes] | msgspec.UnsetType = msgspec.UNSET

    @property
    def changes(self) -> list[Changes]:
        """The history; empty without `--remember`."""
        return [] if self.history is msgspec.UNSET else self.history

    @property
    def is_bad(self) -> bool:
        """Whether a problem is bad, or something has become worse."""
        worse = any(changes.regressions for changes in self.changes)
        return worse or any(verdict.severity == "bad" for verdict in self.verdicts)


_HEIGHTS: Final = "▁▂▃▄▅▆▇█"
MIB: Final = 1 << 20


@dataclass(frozen=True)
class Column:
    """One bar: `sign` is a block character, or a blank if nothing was read (`mib_per_s` None)."""

    sign: str
    is_slow: bool
    mib_per_s: float | None


def columns(file: File, reference: float, width: int) -> list[Column]:
    """At most `width` bars in the order of the file; full height is `reference` (MiB/s)."""
    count = max(1, min(width, len(file.pieces)))
    mib, seconds = [0.0] * count, [0.0] * count
    for number, piece in enumerate(file.pieces):
        at = number * count // len(file.pieces)
        mib[at] += piece.length / MIB
        seconds[at] += piece.seconds
    return [_column(m, s, reference) for m, s in zip(mib, seconds, strict=True)]


def _column(mib: float, seconds: float, reference: float) -> Column:
    if not mib or not seconds:
        return Column(" ", is_slow=False, mib_per_s=None)
    speed = mib / seconds
    height = min(len(_HEIGHTS) - 1, int(speed / reference * len(_HEIGHTS)))
    return Column(_HEIGHTS[height], speed < SLOW * reference, speed)


SEVERITY_WORDS: Final = {"bad": "BAD", "warn": "WARN", "note": "note", "good": "good"}
_SHOWN_OPTIONS: Final = frozenset(
    {"ro", "discard", "nodiscard", "discard=async", "discard=sync", "noatime", "relatime", "sync"}
    | {"nobarrier", "barrier=0", "data=journal", "data=writeback", "nodatacow", "dax"}
)


@dataclass(frozen=True)
class Row:
    """One layer as text; `trim` is "passes", "STOPS", "not known" or ""."""

    layer: str
    device: str
    what: str
    trim: str


def rows(snapshot: Snapshot) -> list[Row]:
    """The layers from the top down, without control characters."""
    table: list[Row] = []
    for mount in snapshot.mounts:
        layers = {row.device: row for row in mount.layers if row.layer != "schedule"}
        table.append(_mount_row(mount, layers.pop(mount.mount_point, None)))
        table += _device_rows(snapshot, mount.devices, layers)
    if not snapshot.mounts:
        layers = {row.device: row for row in snapshot.layers}
        table += _device_rows(snapshot, [d.name for d in snapshot.devices if not d.depth], layers)
    return [Row(*(plain(text) for text in (r.layer, r.device, r.what, r.trim))) for r in table]


def schedule(snapshot: Snapshot) -> list[str]:
    """A line for each mount: what issues TRIM, and when."""
    return [
        plain(f"{mount.mount_point}: {row.why}")
        for mount in snapshot.mounts
        for row in mount.layers
        if row.layer == "schedule" and not row.below_file
    ]


def _mount_row(mount: Mounted, row: TrimLayer | None) -> Row:
    parts = [f"{mount.fs_type} on {mount.source}"]
    parts += [", ".join(option for option in mount.options if option in _SHOWN_OPTIONS)]
    if mount.total_bytes and mount.free_bytes is not None:
        free, total = format_size(mount.free_bytes), format_size(mount.total_bytes)
        parts.append(f"{free} of {total} free")
    what = "; ".join(part for part in parts if part)
    return Row("file system", mount.mount_point, what, _trim(row))


def _device_rows(
    snapshot: Snapshot, tops: tuple[str, ...] | list[str], layers: dict[str, TrimLayer]
) -> Iterator[Row]:
    seen: set[str] = set()
    pending = list(tops)
    while pending:
        device = snapshot.device(pending.pop(0))
        if device is None or device.name in seen:
            continue
        seen.add(device.name)
        pending = [*device.below, *pending]
        name = f"{'  ' * min(device.depth, 6)}{device.name}"
        yield Row(device.layer, name, _description(device), _trim(layers.get(device.name)))


def _trim(row: TrimLayer | None) -> str:
    if row is None:
        return ""
    if row.passes == "no":
        return "none below" if row.of_below else "STOPS"
    return {"yes": "passes", "unknown": "not known"}[row.passes]


def _description(device: Device) -> str:
    parts = []
    if device.mapped_name:
        parts.append(device.mapped_name)
    elif device.model and not device.is_partition:
        parts.append(" ".join(word for word in (device.vendor, device.model) if word))
    if device.is_partition and device.start_bytes is not None:
        parts.append(f"starts at {format_size(device.start_bytes)}")
    parts += [device.array_level] if device.array_level else []
    parts += [f"file {device.backing_file}"] if device.backing_file else []
    parts += [format_size(device.size_bytes)] if device.size_bytes else []
    if device.is_drive:
        parts += list(_drive_facts(device))
    return ", ".join(parts)


def _drive_facts(device: Device) -> Iterator[str]:
    yield device.transport
    if device.write_cache:
        yield device.write_cache
    if device.fua is not None:
        yield "FUA" if device.fua else "no FUA"
    if device.scheduler:
        yield f"scheduler {device.scheduler}"
    health = device.health
    if health is not None and health.worn is not None:
        yield f"{health.worn:.0f} % worn"
    celsius = device.temperature_c
    if celsius is None and health is not None:
        celsius = health.temperature_c
    if celsius is not None:
        yield f"{celsius:.0f} °C"


def file_line(file: File) -> str:
    """A file's size, layout and age."""
    parts = [format_size(file.size_bytes)]
    if file.extents is not None:
        parts.append(f"{file.extents} extents (ideal {file.ideal_extents})")
    if file.written_days is not None:
        parts.append(f"written {age(file.written_days)} ago")
    parts += [", ".join(file.flags)] if file.flags else []
    parts += [f"not read: {file.not_read}"] if file.not_read else []
    return plain(", ".join(parts))


def age(days: float) -> str:
    """An age in days as text: "12 hours", "3 days", "2.2 years"."""
    if days < 2:
        hours = round(days * 24)
        return "1 hour" if hours == 1 else f"{hours} hours"
    return f"{days:.0f} days" if days < 730 else f"{days / 365:.1f} years"
