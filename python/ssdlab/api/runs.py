"""`Runs`: a results folder as a dataset, a row a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from ssdlab import records
from ssdlab.api.run import Run
from ssdlab.api.shown import Shown
from ssdlab.errors import UsageError
from ssdlab.report import RunList, html_part
from ssdlab.report.several import Asked
from ssdlab.target import RESULTS

_FINDING: Final = "finding."


@dataclass(frozen=True)
class Runs(Shown):
    """Runs in the order of their starts, and why others could not be read.

    It is iterated over and indexed as a list is.
    """

    members: tuple[Run, ...]
    unreadable: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.members)

    def __getitem__(self, at: int) -> Run:
        return self.members[at]

    def table(self) -> pa.Table:
        """A row a run: who, when, what it came to, and a column `finding.NAME` for each finding.

        Numbers, and truth as 1 and 0, are float64; a finding that is words anywhere is words.
        """
        return table_of([run.record for run in self.members])

    def _repr_html_(self) -> str:
        """The list, not each run's report."""
        return html_part([], RunList([run.record for run in self.members], self.unreadable))

    def _reported(self) -> tuple[list[records.Run], Asked | None]:
        return [run.record for run in self.members], None


def open_runs(folder: Path | str = RESULTS) -> Runs:
    """All finished runs of a results folder, oldest first, those in turns with others too.

    Raises:
        UsageError: it holds none.
    """
    found = [_read(path) for path in _folders(Path(folder))]
    members = tuple(Run(each) for each in found if isinstance(each, records.Run))
    return Runs(members, tuple(each for each in found if isinstance(each, str)))


def _folders(path: Path) -> list[Path]:
    """As `records.find_runs`, and those a folder deeper: sides in turns, runs of a what-if."""
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
    """A run; of one that cannot be read the reason: it must not hide the others."""
    try:
        return records.read_run(path)
    except UsageError as error:
        return str(error)


def table_of(kept: Sequence[records.Run]) -> pa.Table:
    """As `Runs.table`."""
    rows = [_row(run) for run in kept]
    names = dict.fromkeys(name for row in rows for name in row)
    columns: dict[str, Any] = {}
    for name in names:
        values = [row.get(name) for row in rows]
        words = any(isinstance(value, str) for value in values)
        if not name.startswith(_FINDING):
            columns[name] = values
        elif words:
            columns[name] = pa.array([None if v is None else str(v) for v in values], pa.string())
        else:
            columns[name] = pa.array([None if v is None else float(v) for v in values])
    return pa.table(columns)


def _row(run: records.Run) -> dict[str, Any]:
    manifest, result = run.manifest, run.result
    names = ("run", "started", "experiment", "target", "label", "virtual", "seed", "outcome")
    found = {name: getattr(manifest, name) for name in names}
    found |= {"verdict": result.verdict, "folder": str(run.folder), "ssdlab": manifest.ssdlab}
    return {**found, **{_FINDING + name: each.value for name, each in result.findings.items()}}
