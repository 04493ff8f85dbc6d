"""The folder of a checkup: a folder for each run, `doctor.json` and `checkup.json`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from ssdlab.checkup.parts import RESERVED_S
from ssdlab.doctor.examine import make_report, read_recorded
from ssdlab.doctor.report import Report
from ssdlab.errors import UsageError
from ssdlab.input_files import read_bytes
from ssdlab.records import CHECKUP_FILE as FILE
from ssdlab.records import Run, encode_json, read_run, write_whole

DOCTOR_FILE: Final = "doctor.json"


class Record(msgspec.Struct, frozen=True):
    """`checkup.json`.

    `place` is the target by an absolute path. `sizes` are the bytes of the test files by
    experiment, `why_not` the reasons of parts that were not (or not fully) measured, and `failed`
    those of parts in which the drive failed.
    """

    ssdlab: str
    target: str
    place: str
    virtual: bool
    capacity_bytes: int | None
    seed: int
    started: str  # UTC, ISO 8601
    duration_s: float
    as_root: bool
    outcome: str = "interrupted"
    room_bytes: int | None = None
    doctor_s: float = 0.0
    sizes: dict[str, int] = {}
    why_not: dict[str, str] = {}
    failed: dict[str, str] = {}


@dataclass(frozen=True)
class Checkup:
    """A checkup as it was stored; `runs` has a run of each experiment, by name.

    Of several runs of an experiment, which resuming makes, it is a complete one, or the latest.
    """

    folder: Path
    record: Record
    doctor: Report | None = None
    runs: dict[str, Run] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether no part was interrupted by Ctrl-C."""
        return self.record.outcome == "complete"


def write_record(folder: Path, record: Record) -> None:
    """Writes `checkup.json`.

    Raises:
        UsageError: the folder cannot be written.
    """
    _write(folder / FILE, encode_json(record))


def write_doctor(folder: Path, report: Report) -> None:
    """Writes `doctor.json`: what `ssdlab doctor --json` prints.

    Raises:
        UsageError: the folder cannot be written.
    """
    _write(folder / DOCTOR_FILE, encode_json(report))


def _write(path: Path, text: str) -> None:
    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be written ({error.strerror}); free some space, or give --out "
            "another directory"
        ) from error


def read_checkup(folder: Path) -> Checkup:
    """Reads a checkup, finished or not.

    Raises:
        UsageError: the folder has no checkup, or one in another format.
    """
    path = folder / FILE
    if not path.is_file():
        raise UsageError(
            f"{folder} is not the folder of a checkup (no {FILE}); give one that `ssdlab checkup` "
            "created: ssdlab-runs/...-checkup-..."
        )
    try:
        record = msgspec.json.decode(read_bytes(path), type=Record)
    except (OSError, msgspec.MsgspecError) as error:
        raise UsageError(f"{path} cannot be read ({error}); make a new checkup") from error
    doctor = None
    if (folder / DOCTOR_FILE).is_file():
        doctor = make_report(read_recorded(folder / DOCTOR_FILE), record.doctor_s)
    found = [read_run(result.parent) for result in sorted(folder.glob("*/result.json"))]
    found.sort(key=lambda run: (run.manifest.outcome == "complete", run.manifest.started))
    runs = {run.manifest.experiment: run for run in found}  # the last one counts
    in_order = {name: runs[name] for name in RESERVED_S if name in runs}
    return Checkup(folder, record, doctor, in_order)
