"""Steps that an interrupted run recorded: a resumed run does not repeat them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ssdlab.device import Job, Outcome
from ssdlab.records import StepRow

if TYPE_CHECKING:
    from ssdlab.runner.session import Step

_IDENTITY: Final = ("phase", "stage", "repeat", "case", "value", "rest_s")
"""Columns that identify a step within a run."""
_TABLES: Final = ("intervals", "interval_latency", "latency")


@dataclass(frozen=True)
class RecordedStep:
    """A step as it was recorded, and its outcome as far as the records contain it."""

    row: StepRow
    outcome: Outcome


@dataclass
class ResumeState:
    """The tables of the interrupted run.

    `keeps_state` is True for a block device that has not been written to since: steps that wrote
    are not repeated either. A test file is removed when its run ends, so its writes are repeated
    and only recorded reads are reused.
    """

    tables: Mapping[str, pa.Table]
    keeps_state: bool
    _steps: list[dict[str, Any]] = field(init=False)

    def __post_init__(self) -> None:
        """Lists the recorded steps; `take` removes each one that it returns."""
        self._steps = self.tables["steps"].to_pylist()

    def take(self, step: Step, job: Job) -> RecordedStep | None:
        """Removes and returns the recorded step; None if the step must be run."""
        reads_only = job.op == "read" and job.trim_share == 0 and job.sync == "none"
        if not (self.keeps_state or reads_only):
            return None
        identity = [getattr(step, name) for name in _IDENTITY]
        for index, row in enumerate(self._steps):
            if [row.get(name) for name in _IDENTITY] == identity and _is_complete(row, job):
                return self._recorded(self._steps.pop(index))
        return None

    def _recorded(self, row: dict[str, Any]) -> RecordedStep:
        tables: dict[str, dict[str, Any]] = {}
        for name in _TABLES:
            own_rows = self.tables[name].filter(pc.equal(self.tables[name]["step"], row["step"]))
            columns = own_rows.drop_columns("step")
            # NumPy would make NaN of null; a column that is left out is recorded as null again.
            known = [key for key in columns.column_names if not columns[key].null_count]
            tables[name] = {key: columns[key].to_numpy() for key in known}
        values = {key: value for key, value in row.items() if key != "step"}
        columns = (tables["intervals"], tables["latency"], tables["interval_latency"])
        return RecordedStep(StepRow(values, *columns), _outcome(row, tables))


def _is_complete(row: Mapping[str, Any], job: Job) -> bool:
    """Whether a recorded step ran to its end: by its time if that limits the job, else by bytes."""
    if row["errors"]:
        return False
    if job.seconds is not None:
        return bool(row["end_ns"] - row["start_ns"] >= 0.99 * job.seconds * 1e9)
    return bool(row["bytes"] >= job.amount_bytes)


def _outcome(row: Mapping[str, Any], tables: Mapping[str, dict[str, Any]]) -> Outcome:
    latency = {name: np.asarray(column) for name, column in tables["interval_latency"].items()}
    return Outcome(
        start_ns=row["start_ns"],
        end_ns=row["end_ns"],
        requests=row["requests"],
        bytes=row["bytes"],
        errors=0,
        first_errno=None,
        unserved=0,
        stopped=False,
        failure=None,
        engine=row.get("engine") or "recorded",
        intervals=tables["intervals"],
        interval_latency=latency,
        host=None,
    )
