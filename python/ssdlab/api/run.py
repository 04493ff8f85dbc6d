"""`Run`: a saved run with its findings; `Runs`: the runs of a results folder as a dataset."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from ssdlab import records
from ssdlab.errors import Interrupted, UsageError
from ssdlab.experiments.registry import EXPERIMENTS
from ssdlab.records import Finding
from ssdlab.report import RunList, html_part, write_html
from ssdlab.report.group import GroupReport
from ssdlab.runner.progress import Listener, silent
from ssdlab.runner.run import RunObserver, SaveOptions, perform, resume_request
from ssdlab.target import RESULTS, parse_consent
from ssdlab.warning import MeasurementWarning

MEASURES = "measures"
"""The name of the table of measures."""
_FINDING: Final = "finding."


class Reportable(ABC):
    """An object with a report, for a notebook or an HTML file."""

    @abstractmethod
    def _report_content(self) -> tuple[list[records.Run], GroupReport | None]:
        """The runs to report on, and the report on all of them together, if any."""

    def _repr_html_(self) -> str:
        """The report for a notebook, with the same content as the HTML file."""
        return html_part(*self._report_content())

    def save_html(self, path: Path | str) -> Path:
        """Write the report as one self-contained HTML file; returns its path.

        Raises:
            UsageError: the file cannot be written.
        """
        runs, group = self._report_content()
        write_html(runs, Path(path), group)
        return Path(path)


def table_of(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """A table with a column for each name in any row; missing values are null.

    Integers and floats together become float; other mixed types become strings.
    """
    listed = list(rows)
    names = dict.fromkeys(name for row in listed for name in row)
    return pa.table({name: _column([row.get(name) for row in listed]) for name in names})


def _column(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None else str(value) for value in values], pa.string())


@dataclass(frozen=True, repr=False)
class Run(Reportable):
    """One run: experiment, target, measures, findings, verdict.

    A notebook shows the report that `ssdlab report --html` writes. `record` has the contents of the
    run folder.
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
        """How the run ended: complete, interrupted or failed."""
        return self.record.manifest.outcome

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.record.folder

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The parameters by name; a name ends in the unit."""
        return self.record.result.parameters

    @property
    def findings(self) -> Mapping[str, Finding]:
        """The findings by name: value, unit, 95 % interval, and evidence."""
        return self.record.result.findings

    @property
    def verdict(self) -> str:
        """The result of the run in one sentence."""
        return self.record.result.verdict

    @property
    def warnings(self) -> list[MeasurementWarning]:
        """Reasons to doubt the numbers, each with a code for scripts and a sentence."""
        return self.record.result.warnings

    def table(self, name: str = MEASURES) -> pa.Table:
        """The measures, or a recorded table: `steps`, `intervals`, `latency`, ...

        Column names end in the unit. Convert with `.to_pandas()`, or `polars.from_arrow`.

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

    Completed steps are not repeated. For a block device, pass `destroy_data` again.

    Raises:
        UsageError: the run is complete, or cannot be resumed.
        TargetError, DeviceFailure, Interrupted: as `Target.run`.
    """
    request = resume_request(Path(folder), parse_consent(destroy_data), EXPERIMENTS)
    return completed(perform(request, SaveOptions(), RunObserver(listener)))


def completed(record: records.Run) -> Run:
    """A `Run` from the record of a run that was not interrupted.

    Raises:
        Interrupted: Ctrl-C stopped the run; the message names its folder.
    """
    if record.manifest.outcome == "interrupted":
        raise Interrupted(
            f"interrupted; the results so far are in {record.folder}: continue with ssdlab.resume, "
            "or read them with ssdlab.open_run"
        )
    return Run(record)


@dataclass(frozen=True)
class Runs(Reportable):
    """A sequence of runs, oldest first; `unreadable` says why some folders are not in it."""

    members: tuple[Run, ...]
    unreadable: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.members)

    def __getitem__(self, at: int) -> Run:
        return self.members[at]

    def table(self) -> pa.Table:
        """A row for each run: target, start, verdict, ..., and `finding.NAME` for each finding.

        Numbers and truth values (1, 0) are float64; a finding that is text in any run is text.
        """
        return runs_table([run.record for run in self.members])

    def _repr_html_(self) -> str:
        """The list of runs, without their reports."""
        return html_part([], RunList([run.record for run in self.members], self.unreadable))

    def _report_content(self) -> tuple[list[records.Run], GroupReport | None]:
        return [run.record for run in self.members], None


def open_runs(folder: Path | str = RESULTS) -> Runs:
    """All finished runs of a results folder, oldest first, including those measured in turns.

    Raises:
        UsageError: the folder has no finished runs.
    """
    results = [_read(path) for path in _folders(Path(folder))]
    members = tuple(Run(result) for result in results if isinstance(result, records.Run))
    return Runs(members, tuple(result for result in results if isinstance(result, str)))


def _folders(path: Path) -> list[Path]:
    """As `records.find_runs`, but also one level deeper: runs in turns, and what-if runs."""
    if (path / "manifest.json").is_file():
        return [path]
    try:
        deeper = [result.parent for result in path.glob("*/*/result.json")]
    except OSError:
        deeper = []
    sides = [folder for folder in deeper if not (folder.parent / "manifest.json").is_file()]
    if not sides:
        return records.find_runs(path)
    return sorted([*(result.parent for result in path.glob("*/result.json")), *sides])


def _read(path: Path) -> records.Run | str:
    try:
        return records.read_run(path)
    except UsageError as error:
        return str(error)


def runs_table(runs: Sequence[records.Run]) -> pa.Table:
    """The table that `Runs.table` returns."""
    rows = [_row(run) for run in runs]
    names = dict.fromkeys(name for row in rows for name in row)
    columns: dict[str, Any] = {}
    for name in names:
        values = [row.get(name) for row in rows]
        is_text = any(isinstance(value, str) for value in values)
        if not name.startswith(_FINDING):
            columns[name] = values
        elif is_text:
            columns[name] = pa.array([None if v is None else str(v) for v in values], pa.string())
        else:
            columns[name] = pa.array([None if v is None else float(v) for v in values])
    return pa.table(columns)


def _row(run: records.Run) -> dict[str, Any]:
    manifest, result = run.manifest, run.result
    names = ("run", "started", "experiment", "target", "label", "virtual", "seed", "outcome")
    row = {name: getattr(manifest, name) for name in names}
    row |= {"verdict": result.verdict, "folder": str(run.folder), "ssdlab": manifest.ssdlab}
    return row | {_FINDING + name: finding.value for name, finding in result.findings.items()}
