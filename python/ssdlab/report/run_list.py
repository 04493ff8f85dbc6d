"""`RunList`: the runs of a results folder, a line each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ssdlab.records import Run
from ssdlab.view import Column, Picture, Table
from ssdlab.wording import plain


@dataclass(frozen=True)
class RunList:
    """Which runs there are, and why others could not be read."""

    runs: Sequence[Run]
    unreadable: Sequence[str] = ()

    @property
    def title(self) -> str:
        """How many."""
        return f"{len(self.runs)} run{'' if len(self.runs) == 1 else 's'}"

    @property
    def table(self) -> Table:
        """When each began, what was asked of which target, and its verdict."""
        labelled = any(run.manifest.label for run in self.runs)
        names = ("Started", "Experiment", "Target", *(["Label"] if labelled else []), "Verdict")
        columns = tuple(Column(name, numeric=False) for name in names)
        return Table(columns, tuple(_row(run, labelled=labelled) for run in self.runs))

    @property
    def tables(self) -> list[tuple[str, Table]]:
        """The one."""
        return [("", self.table)]

    @property
    def verdicts(self) -> list[tuple[str, str]]:
        """None of them all."""
        return []

    @property
    def notes(self) -> list[tuple[str, str]]:
        """What could not be read."""
        return [("left out", plain(reason)) for reason in self.unreadable]

    @property
    def pictures(self) -> list[Picture]:
        """None."""
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
