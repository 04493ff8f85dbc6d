"""Content of a checkup's report: lights, table, and sentences about its limits."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from ssdlab.checkup.lights import (
    MEMORY_ANSWERED,
    Light,
    lights,
    verdict,
    was_busy,
    why_not_the_drive,
)
from ssdlab.checkup.parts import USUAL_SIZES
from ssdlab.checkup.record import Checkup
from ssdlab.checkup.table import TableRow, table
from ssdlab.doctor.report import Report
from ssdlab.experiments.suite.analysis import CRYSTALDISKMARK
from ssdlab.records import Result
from ssdlab.report.identity import summary
from ssdlab.snapshot import Device
from ssdlab.units import format_duration, format_size
from ssdlab.wording import UNKNOWN, plain

UNSTEADY_PERCENT: Final = 15
"""A mean absolute deviation of a test's runs above which its mean says little."""


class Content(msgspec.Struct, frozen=True):
    """The JSON object of `ssdlab checkup`.

    `lights` has the worst first. `measures` is CrystalDiskMark's table; `table_warning` says why
    its numbers may not be the drive's, "" if they are. `doctor` is what `ssdlab
    doctor --json` prints, None for a twin; `runs` are the results of the experiments. `notes` say
    what limited the checkup.
    """

    ssdlab: str
    target: str
    virtual: bool
    drive: str
    started: str
    duration_s: float
    outcome: str
    verdict: str
    lights: list[Light]
    measures: list[TableRow]
    table_warning: str
    notes: list[str]
    folder: str
    doctor: Report | None
    runs: list[Result]

    @property
    def is_bad(self) -> bool:
        """Whether a light is red."""
        return any(light.colour == "red" for light in self.lights)


def content_of(checkup: Checkup) -> Content:
    """The report on a checkup, computed from what it stored."""
    found, record = lights(checkup), checkup.record
    return Content(
        ssdlab=record.ssdlab,
        target=record.target,
        virtual=record.virtual,
        drive=_drive(checkup),
        started=record.started,
        duration_s=record.duration_s,
        outcome=record.outcome,
        verdict=verdict(found, is_complete=checkup.is_complete),
        lights=found,
        measures=table(checkup),
        table_warning=_table_warning(checkup),
        notes=_notes(checkup),
        folder=str(checkup.folder),
        doctor=checkup.doctor,
        runs=[run.result for run in checkup.runs.values()],
    )


def _drive(checkup: Checkup) -> str:
    """Model and size of the drives, then the file system; of a twin as its runs describe it."""
    if checkup.doctor is None:
        return next((summary(run) for run in checkup.runs.values()), UNKNOWN)
    stack = checkup.doctor.stack
    names = [_describe(drive) for drive in stack.drives]
    return "; ".join([*names, *(plain(mount.fs_type) for mount in stack.mounts)]) or UNKNOWN


def _describe(drive: Device) -> str:
    """As in "Samsung SSD 970 EVO Plus 500GB, nvme, 465.8 GiB"."""
    model = " ".join(word for word in (drive.vendor, drive.model) if word)
    kind = [drive.transport] if model else []
    size = [] if drive.size_bytes is None else [format_size(drive.size_bytes)]
    return plain(", ".join([model or f"{drive.transport} disk", *kind, *size]))


def _table_warning(checkup: Checkup) -> str:
    run = checkup.runs.get("suite")
    if run is None or not run.result.measures:
        return ""
    if why_not_the_drive(run):
        return f"The table does not show the drive: {MEMORY_ANSWERED}."
    names = {(row["test"], row["op"]): row.get("error_percent") for row in run.result.measures}
    differ = [
        f"{name} {op} by {names[test, op]:.0f} %"
        for test, name in CRYSTALDISKMARK.items()
        for op in ("read", "write")
        if (names.get((test, op)) or 0) >= UNSTEADY_PERCENT
    ]
    return f"The table's runs differ from their mean: {', '.join(differ)}." if differ else ""


_AS_ROOT: Final = "Not run as root: health, and the proof that TRIM arrives, need it."


def _notes(checkup: Checkup) -> list[str]:
    record, notes = checkup.record, list[str]()
    if not checkup.is_complete:
        notes.append("Interrupted: the report covers only the parts that finished.")
    smaller = [
        f"{name} {format_size(size)} instead of {format_size(USUAL_SIZES[name])}"
        for name, size in record.sizes.items()
        if not record.virtual and name in checkup.runs and 0 < size < USUAL_SIZES[name]
    ]
    if smaller:
        room = format_size(record.room_bytes or 0)
        notes.append(
            f"Smaller test files than usual ({'; '.join(smaller)}), to fit the time and the {room} "
            "that may be used."
        )
    busy = [name for name, run in checkup.runs.items() if was_busy(run)]
    if busy:
        notes.append(
            f"Other programs used the processors during {', '.join(busy)}: on an idle machine the "
            "drive may be faster."
        )
    if record.virtual:
        notes.append(
            "A twin has no health data, files or storage stack; a checkup of a directory shows "
            "those too."
        )
    elif not record.as_root:
        notes.append(_AS_ROOT)
    return notes


def when(content: Content) -> str:
    """Start and duration: "2026-11-24 12:50 UTC, took 4 min 2 s"."""
    started = datetime.fromisoformat(content.started)
    return f"{started:%Y-%m-%d %H:%M} UTC, took {format_duration(content.duration_s)}"


def speed_text(value: float | None) -> str:
    """MB/s as CrystalDiskMark prints them: at most four digits."""
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"
