"""A run's steps as a fio job file: what fio would have to do for the same."""

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
"""What the jobs are done on. Never the run's own target: to paste them must destroy nothing."""
_HEAD: Final = """\
; The steps of {run} ({experiment} on {target}).
; They go through the file {file}: to repeat them on a drive, put its path there.
"""


def as_fio(run: Run) -> str:
    """The text of a job file with a job a step, which wait for one another.

    A step that fio cannot do stands there as a comment with the reason: never silently left out.
    """
    head = {"run": run.manifest.run, "experiment": run.manifest.experiment}
    head = {name: plain(text) for name, text in {**head, "target": run.manifest.target}.items()}
    parts = [_HEAD.format(**head, file=FILE)]
    first = True
    for row in run.tables["steps"].to_pylist():
        if row["rest_s"]:
            parts.append(f"; here it rested for {format_duration(row['rest_s'])}\n")
        text = _section(row, first=first)
        first = first and not text.startswith("[")
        parts.append(text)
    return "\n".join(parts)


def _section(row: dict[str, Any], *, first: bool) -> str:
    name = _name(row)
    if row.get("job") is None:
        return f"; {name}: what was asked of the drive was not recorded\n"
    try:
        step = _step(row, name)
        if step.job.op == "flush":
            return f"; {name}: fio has no job of one flush; end_fsync=1 in the job before is one\n"
        return to_fio(msgspec.structs.replace(step, stonewall=not first))
    except UsageError as error:
        return f"; {name}: fio cannot say this: {plain(error)}\n"
    except msgspec.MsgspecError as error:
        return f"; {name}: made by another version: {plain(error)}\n"


def _name(row: dict[str, Any]) -> str:
    """The step's number, its phase and its case: "3-read", "4-job randread"."""
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
