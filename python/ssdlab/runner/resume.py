"""What an earlier part of a run recorded: measurements that need not be made again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ssdlab.device import HostLoad, Job, Outcome
from ssdlab.records import StepRow

if TYPE_CHECKING:
    from ssdlab.runner.session import Step

_SAME: Final = ("phase", "stage", "repeat", "case", "value", "rest_s")
_COLUMNS: Final = ("intervals", "interval_latency", "latency")


@dataclass(frozen=True)
class Known:
    """A step as it was recorded, and its outcome as far as the records tell it."""

    row: StepRow
    outcome: Outcome


@dataclass
class ResumeState:
    """The tables of the part of a run that is to be gone on with.

    `keeps_state` says that the drive is as that part left it (a block device, that nobody wrote
    to since): then what it wrote need not be written again. A test file was removed: what
    prepares it is done again, and only reads are spared.
    """

    tables: Mapping[str, pa.Table]
    keeps_state: bool
    _steps: list[dict[str, Any]] = field(init=False)

    def __post_init__(self) -> None:
        """Nothing is taken yet."""
        self._steps = self.tables["steps"].to_pylist()

    def take(self, step: Step, job: Job) -> Known | None:
        """The step as recorded, or None where it must be run. A step is taken once."""
        reads_only = job.op == "read" and job.trim_share == 0 and job.sync == "none"
        if not (self.keeps_state or reads_only):
            return None
        asked = [getattr(step, name) for name in _SAME]
        for place, row in enumerate(self._steps):
            if [row.get(name) for name in _SAME] == asked and _whole(row, job):
                return self._known(self._steps.pop(place))
        return None

    def _known(self, row: dict[str, Any]) -> Known:
        found: dict[str, dict[str, Any]] = {}
        for name in _COLUMNS:
            chosen = self.tables[name].filter(pc.equal(self.tables[name]["step"], row["step"]))
            columns = chosen.drop_columns("step")
            found[name] = {key: columns[key].to_numpy() for key in columns.column_names}
        values = {key: value for key, value in row.items() if key != "step"}
        parts = (found["intervals"], found["latency"], found["interval_latency"])
        return Known(StepRow(values, *parts), _outcome(row, found))


def _whole(row: Mapping[str, Any], job: Job) -> bool:
    """Whether a recorded step ran to its end: by its bytes, or by its time where that ends it."""
    if row["errors"]:
        return False
    if job.seconds is not None:
        return bool(row["end_ns"] - row["start_ns"] >= 0.99 * job.seconds * 1e9)
    return bool(row["bytes"] >= job.amount_bytes)


def _outcome(row: Mapping[str, Any], found: Mapping[str, dict[str, Any]]) -> Outcome:
    fine = {name: np.asarray(each) for name, each in found["interval_latency"].items()}
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
        intervals=found["intervals"],
        interval_latency=fine,
        host=HostLoad(
            wall_s=(row["end_ns"] - row["start_ns"]) / 1e9,
            own_user_s=row["own_user_s"] or 0.0,
            own_system_s=row["own_system_s"] or 0.0,
            foreign_cpu_s=row["foreign_cpu_s"],
            stolen_cpu_s=row["stolen_cpu_s"],
        ),
    )
