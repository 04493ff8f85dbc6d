"""`Side`: one of those compared, a run or several equal ones, and which runs are pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ssdlab.records import Run

TURNS: Final = "turns"
"""The experiment whose runs were measured in turns with others, and hold a value a turn."""


@dataclass(frozen=True)
class Side:
    """What it is called, and its runs, oldest first; at least one."""

    name: str
    runs: tuple[Run, ...]

    @property
    def virtual(self) -> bool:
        """Whether its clocks are a twin's."""
        return self.runs[0].manifest.virtual

    @property
    def seeds(self) -> list[int]:
        """Of its runs."""
        return [run.manifest.seed for run in self.runs]

    @property
    def session(self) -> str | None:
        """Names the turns that it shared with others; None where it was measured alone."""
        parameters = self.runs[0].manifest.parameters
        return str(parameters.get("session")) if parameters.get("session") else None


def sides(given: Sequence[tuple[str, Sequence[Run]]]) -> list[Side]:
    """The sides by their names, each with its runs in the order of their starts."""
    return [
        Side(name, tuple(sorted(runs, key=lambda run: run.manifest.started)))
        for name, runs in given
    ]


def in_pairs(one: Side, other: Side) -> tuple[list[Run], list[Run]] | None:
    """The runs of both in an order in which they are pairs; None where they are none.

    Runs of twins are pairs where both sides have the same seeds, each once; on a real clock where
    the sides took turns: one of each in the first two, in the next two, and so on.
    """
    if one.virtual and other.virtual:
        seeds = sorted(one.seeds)
        if seeds != sorted(other.seeds) or len(set(seeds)) < len(seeds):
            return None
        first, second = (sorted(s.runs, key=lambda run: run.manifest.seed) for s in (one, other))
        return first, second
    every = [(run.manifest.started, at) for at, s in enumerate((one, other)) for run in s.runs]
    order = [at for _, at in sorted(every)]
    turns = [order[at : at + 2] for at in range(0, len(order), 2)]
    if len(one.runs) != len(other.runs) or any(sorted(turn) != [0, 1] for turn in turns):
        return None
    return list(one.runs), list(other.runs)
