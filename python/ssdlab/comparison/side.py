"""`Side`: one or several equal runs to compare, and the pairing of runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ssdlab.records import Run

TURNS: Final = "turns"
"""The experiment of runs that were measured in turns; their measures have a row per turn."""


@dataclass(frozen=True)
class Side:
    """A name, and at least one run, oldest first."""

    name: str
    runs: tuple[Run, ...]

    @property
    def virtual(self) -> bool:
        """Whether it was measured in virtual time."""
        return self.runs[0].manifest.virtual

    @property
    def seeds(self) -> list[int]:
        """The seed of each run."""
        return [run.manifest.seed for run in self.runs]

    @property
    def session(self) -> str | None:
        """The ID shared by all sides measured in the same turns; None if measured alone."""
        parameters = self.runs[0].manifest.parameters
        return str(parameters.get("session")) if parameters.get("session") else None


def make_side(name: str, runs: Sequence[Run]) -> Side:
    """A side with its runs sorted by start time."""
    return Side(name, tuple(sorted(runs, key=lambda run: run.manifest.started)))


def pair_runs(one: Side, other: Side) -> tuple[list[Run], list[Run]] | None:
    """The runs of both sides, sorted so that equal positions form pairs; None if not paired.

    Runs of twins are pairs if both sides have the same seeds, each once. On a real clock they are
    pairs if the sides alternated: one run of each in the first two, in the next two, and so on.
    """
    if one.virtual and other.virtual:
        seeds = sorted(one.seeds)
        if seeds != sorted(other.seeds) or len(set(seeds)) < len(seeds):
            return None
        first, second = (sorted(s.runs, key=lambda run: run.manifest.seed) for s in (one, other))
        return first, second
    starts = [(run.manifest.started, at) for at, s in enumerate((one, other)) for run in s.runs]
    order = [at for _, at in sorted(starts)]
    pairs = [order[at : at + 2] for at in range(0, len(order), 2)]
    if len(one.runs) != len(other.runs) or any(sorted(pair) != [0, 1] for pair in pairs):
        return None
    return list(one.runs), list(other.runs)
