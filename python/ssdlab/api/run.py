"""`Run`: a recorded run with its findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from ssdlab import records
from ssdlab.api.reportable import Reportable, table_of
from ssdlab.errors import Interrupted, UsageError
from ssdlab.experiments.registry import EXPERIMENTS
from ssdlab.records import Finding
from ssdlab.report.group import GroupReport
from ssdlab.runner.progress import Listener, silent
from ssdlab.runner.run import RunObserver, SaveOptions, perform, resume_request
from ssdlab.target import parse_consent
from ssdlab.warning import MeasurementWarning

MEASURES = "measures"
"""The name of the table of measures."""


@dataclass(frozen=True, repr=False)
class Run(Reportable):
    """One run: experiment, target, measures, findings, verdict.

    A notebook shows its report, as `ssdlab report --html` does. `record` has the contents of its
    folder.
    """

    record: records.Run

    @property
    def experiment(self) -> str:
        """The experiment's name."""
        return self.record.manifest.experiment

    @property
    def target(self) -> str:
        """The target, as given to the run."""
        return self.record.manifest.target

    @property
    def outcome(self) -> str:
        """complete, interrupted or failed."""
        return self.record.manifest.outcome

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.record.folder

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The parameters; names end in their units."""
        return self.record.result.parameters

    @property
    def findings(self) -> Mapping[str, Finding]:
        """The findings by name: value, unit, 95 % interval, and evidence."""
        return self.record.result.findings

    @property
    def verdict(self) -> str:
        """One sentence."""
        return self.record.result.verdict

    @property
    def warnings(self) -> list[MeasurementWarning]:
        """Reasons to doubt the numbers: a code for scripts and a sentence."""
        return self.record.result.warnings

    def table(self, name: str = MEASURES) -> pa.Table:
        """The measures, or a recorded table: `steps`, `intervals`, `latency`, ...

        Column names end in their units. Use `.to_pandas()`, or `from_arrow` of polars.

        Raises:
            UsageError: there is no such table.
        """
        if name == MEASURES:
            return table_of(self.record.result.measures)
        if name not in self.record.tables:
            allowed = ", ".join([MEASURES, *self.record.tables])
            raise UsageError(f"a run has no table {name!r}; give one of {allowed}")
        return self.record.tables[name]

    def as_json(self) -> str:
        """The JSON that `ssdlab run --json` prints."""
        return records.encode_json(self.record.result)

    def __repr__(self) -> str:
        return f"<{self.experiment} {self.target}: {self.verdict or self.outcome}>"

    def _report_content(self) -> tuple[list[records.Run], GroupReport | None]:
        return [self.record], None


def open_run(folder: Path | str) -> Run:
    """The run in a run folder.

    Raises:
        UsageError: the folder has no finished run.
    """
    return Run(records.read_run(Path(folder)))


def resume(
    folder: Path | str, *, destroy_data: bool | str | Path = False, listener: Listener = silent
) -> Run:
    """Resume a run that was interrupted or killed, in its folder.

    Steps that were measured are kept. For a block device, pass `destroy_data` again.

    Raises:
        UsageError: the run is complete, or cannot be resumed.
        TargetError, DeviceFailure, Interrupted: as `Target.run`.
    """
    request = resume_request(Path(folder), parse_consent(destroy_data), EXPERIMENTS)
    return completed(perform(request, SaveOptions(), RunObserver(listener)))


def completed(record: records.Run) -> Run:
    """The record as a `Run`.

    Raises:
        Interrupted: Ctrl-C stopped the run; the message names its folder.
    """
    if record.manifest.outcome == "interrupted":
        raise Interrupted(
            f"interrupted; the results so far are in {record.folder}: continue with ssdlab.resume, "
            "or read them with ssdlab.open_run"
        )
    return Run(record)
