"""Converts the steps of a run to a fio job file."""

from __future__ import annotations

import re
from typing import Any, Final, cast

import msgspec

from ssdlab.device import Engine, FioJob, Job, RealOptions, decode, to_fio
from ssdlab.errors import UsageError
from ssdlab.records import Run
from ssdlab.units import format_duration
from ssdlab.wording import plain

FILE: Final = "ssdlab-test.tmp"
"""The file that the jobs access; never the run's target, so that its data is safe."""
_HEAD: Final = """\
; The steps of {run} ({experiment} on {target}).
; They use the file {file}: to run them on a drive, replace it with the drive's path.
"""


def as_fio(run: Run) -> str:
    """A job file with one job per step, run one after another (stonewall).

    A step that fio cannot express becomes a comment with the reason.

    Raises:
        UsageError: fio measured the run.
    """
    if "fio" in run.manifest.versions:
        raise UsageError(f"{run.folder}: fio measured this, so its own job file says more")
    head = {"run": run.manifest.run, "experiment": run.manifest.experiment}
    head = {name: plain(text) for name, text in {**head, "target": run.manifest.target}.items()}
    parts = [_HEAD.format(**head, file=FILE)]
    first = True
    for row in run.tables["steps"].to_pylist():
        if row["rest_s"]:
            parts.append(f"; the run paused for {format_duration(row['rest_s'])} here\n")
        text = _section(row, first=first)
        first = first and not text.startswith("[")
        parts.append(text)
    return "\n".join(parts)


def _section(row: dict[str, Any], *, first: bool) -> str:
    name = _name(row)
    if row.get("job") is None:
        return f"; {name}: its job was not recorded\n"
    try:
        step = _step(row, name)
        if step.job.op == "flush":
            return f"; {name}: fio has no job for one flush; use end_fsync=1 in the job before\n"
        return to_fio(msgspec.structs.replace(step, stonewall=not first))
    except UsageError as error:
        return f"; {name}: fio cannot express this: {plain(error)}\n"
    except msgspec.MsgspecError as error:
        return f"; {name}: recorded by an incompatible version: {plain(error)}\n"


def _name(row: dict[str, Any]) -> str:
    """The step's number, phase and case: "3-read", "4-job randread"."""
    words = f"{row['step']}-{row['phase']} {row['case'] or ''}".strip()
    return re.sub(r"[^\w ./+=-]", "_", words)[:200]


def _step(row: dict[str, Any], name: str) -> FioJob:
    job = decode(row["job"], Job)
    opened = row.get("opened")
    options = RealOptions() if opened is None else decode(opened, RealOptions)
    engine: Engine = "io_uring"
    if opened is not None:
        engine = cast("Engine", msgspec.json.decode(opened)["engine"])
    if options.registered_buffers is None:
        done = "registered_buffers" in (row.get("engine") or "")
        options = msgspec.structs.replace(options, registered_buffers=done)
    return FioJob(name, job, options, engine, FILE)
