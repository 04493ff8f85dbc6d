"""`Runs`: a results folder as a dataset with a row for each run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from ssdlab import records
from ssdlab.api.reportable import Reportable
from ssdlab.api.run import Run
from ssdlab.errors import UsageError
from ssdlab.report import RunList, html_part
from ssdlab.report.group import GroupReport
from ssdlab.target import RESULTS

_FINDING: Final = "finding."


@dataclass(frozen=True)
class Runs(Reportable):
    """A sequence of runs, oldest first; `unreadable` has the reasons why others are missing."""

    members: tuple[Run, ...]
    unreadable: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.members)

    def __getitem__(self, at: int) -> Run:
        return self.members[at]

    def table(self) -> pa.Table:
        """A row for each run: target, start, verdict, ..., and a column `finding.NAME` for each.

        Numbers and truth values (1, 0) are float64; a finding that is text in any run is text.
        """
        return table_of([run.record for run in self.members])

    def _repr_html_(self) -> str:
        """The list of runs, without their reports."""
        return html_part([], RunList([run.record for run in self.members], self.unreadable))

    def _report_content(self) -> tuple[list[records.Run], GroupReport | None]:
        return [run.record for run in self.members], None


def open_runs(folder: Path | str = RESULTS) -> Runs:
    """All finished runs of a results folder, oldest first, including those measured in turns.

    Raises:
        UsageError: the folder has none.
    """
    results = [_read(path) for path in _folders(Path(folder))]
    members = tuple(Run(result) for result in results if isinstance(result, records.Run))
    return Runs(members, tuple(result for result in results if isinstance(result, str)))


def _folders(path: Path) -> list[Path]:
    """As `records.find_runs`, and one level deeper: sides measured in turns, runs of a what-if."""
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
    """A run, or the reason why it cannot be read."""
    try:
        return records.read_run(path)
    except UsageError as error:
        return str(error)


def table_of(runs: Sequence[records.Run]) -> pa.Table:
    """As `Runs.table`."""
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
