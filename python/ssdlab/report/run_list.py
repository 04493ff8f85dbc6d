"""`RunList`: a table of the runs in a results folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ssdlab.records import Run
from ssdlab.view import Column, Picture, Table
from ssdlab.wording import plain


@dataclass(frozen=True)
class RunList:
    """A `GroupReport` that lists runs; `unreadable` says why some folders are not listed."""

    runs: Sequence[Run]
    unreadable: Sequence[str] = ()

    @property
    def title(self) -> str:
        """The number of runs, as the heading."""
        return f"{len(self.runs)} run{'' if len(self.runs) == 1 else 's'}"

    @property
    def table(self) -> Table:
        """A row for each run: start, experiment, target, verdict, and label if any run has one."""
        labelled = any(run.manifest.label for run in self.runs)
        names = ("Started", "Experiment", "Target", *(["Label"] if labelled else []), "Verdict")
        columns = tuple(Column(name, numeric=False, minor=name == "Label") for name in names)
        return Table(columns, tuple(_row(run, labelled=labelled) for run in self.runs))

    @property
    def tables(self) -> list[tuple[str, Table]]:
        """The table, without a heading."""
        return [("", self.table)]

    @property
    def verdicts(self) -> list[tuple[str, str]]:
        """Empty: each run's verdict is in the table."""
        return []

    @property
    def notes(self) -> list[tuple[str, str]]:
        """The folders that could not be read, each with the reason."""
        return [("left out", plain(reason)) for reason in self.unreadable]

    @property
    def pictures(self) -> list[Picture]:
        """Empty: a list of runs has no figures."""
        return []


def _row(run: Run, *, labelled: bool) -> tuple[str, ...]:
    manifest = run.manifest
    ended = "" if manifest.outcome == "complete" else f"({manifest.outcome}) "
    cells = (
        manifest.started[:16].replace("T", " "),
        manifest.experiment,
        manifest.target,
        *([manifest.label] if labelled else []),
        ended + run.result.verdict,
    )
    return tuple(plain(cell) for cell in cells)
