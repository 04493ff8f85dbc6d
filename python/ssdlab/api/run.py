"""`Run`: a run that was kept, with what it found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from ssdlab import records
from ssdlab.api.shown import Shown, table_of
from ssdlab.errors import Interrupted, UsageError
from ssdlab.experiments.registry import EXPERIMENTS
from ssdlab.records import Finding
from ssdlab.report.several import Asked
from ssdlab.runner.progress import Listener, silent
from ssdlab.runner.run import RunObserver, SaveOptions, perform, resume_request
from ssdlab.target import parse_consent
from ssdlab.warning import MeasurementWarning

MEASURES = "measures"
"""The table of the rows that findings rest on."""


@dataclass(frozen=True, repr=False)
class Run(Shown):
    """One run: what was asked of which target, what was measured, what it comes to.

    A notebook shows it as `ssdlab report --html` does. `record` is all that its folder holds.
    """

    record: records.Run

    @property
    def experiment(self) -> str:
        """The experiment's name."""
        return self.record.manifest.experiment

    @property
    def target(self) -> str:
        """What was measured, as it was given."""
        return self.record.manifest.target

    @property
    def outcome(self) -> str:
        """complete, interrupted or failed."""
        return self.record.manifest.outcome

    @property
    def folder(self) -> Path:
        """Where it is kept."""
        return self.record.folder

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What was asked, names ending in their units."""
        return self.record.result.parameters

    @property
    def findings(self) -> Mapping[str, Finding]:
        """What follows, by name: value, unit, low and high (95 %), and why."""
        return self.record.result.findings

    @property
    def verdict(self) -> str:
        """One sentence."""
        return self.record.result.verdict

    @property
    def warnings(self) -> list[MeasurementWarning]:
        """Reasons to distrust it: a code for scripts and a sentence for people each."""
        return self.record.result.warnings

    def table(self, name: str = MEASURES) -> pa.Table:
        """A table of the run: its measures, or `steps`, `intervals`, `latency`, ... as recorded.

        Columns are named with their units. `.to_pandas()` and polars' `from_arrow` take it.

        Raises:
            UsageError: there is no such table.
        """
        if name == MEASURES:
            return table_of(self.record.result.measures)
        if name not in self.record.tables:
            allowed = ", ".join([MEASURES, *self.record.tables])
            raise UsageError(f"a run has no table {name!r}; it may be one of {allowed}")
        return self.record.tables[name]

    def as_json(self) -> str:
        """What `ssdlab run --json` prints."""
        return records.encode_json(self.record.result)

    def __repr__(self) -> str:
        return f"<{self.experiment} {self.target}: {self.verdict or self.outcome}>"

    def _reported(self) -> tuple[list[records.Run], Asked | None]:
        return [self.record], None


def open_run(folder: Path | str) -> Run:
    """The run that a folder holds.

    Raises:
        UsageError: it holds no finished run.
    """
    return Run(records.read_run(Path(folder)))


def resume(
    folder: Path | str, *, destroy_data: bool | str | Path = False, listener: Listener = silent
) -> Run:
    """Goes on with a run that was interrupted or killed, in its folder.

    What it measured is kept. Of a block device give `destroy_data` again.

    Raises:
        UsageError: it is complete, or not to be gone on with.
        TargetError, DeviceFailure, Interrupted: as `Target.run`.
    """
    task = resume_request(Path(folder), parse_consent(destroy_data), EXPERIMENTS)
    return ended(perform(task, SaveOptions(), RunObserver(listener)))


def ended(record: records.Run) -> Run:
    """A run that came to its end.

    Raises:
        Interrupted: Ctrl-C broke it off; the message says where it is kept.
    """
    if record.manifest.outcome == "interrupted":
        raise Interrupted(
            f"interrupted; what was measured is in {record.folder}: go on with ssdlab.resume, or "
            "look at it with ssdlab.open_run"
        )
    return Run(record)
