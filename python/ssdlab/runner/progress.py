"""Progress of a run and its remaining time, forecast from the rates measured so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

_MIB: Final = float(1 << 20)
NOMINAL: Final = {
    "fill": 400 * _MIB,
    "read": 400 * _MIB,
    "overwrite": 20 * _MIB,
    "random": 40 * _MIB,
    "trim": 20_000 * _MIB,
    "timed": 1.0,
    "rest": 1.0,
}
"""Kinds of work, each with the rate of a SATA drive in bytes/s; 1 for work measured in seconds.

fill: sequential writes; read: sequential reads; overwrite: random writes at queue depth 1; random:
random requests at high queue depth. A run scales the rates that it has not measured yet by the
mean ratio of measured to nominal rates.
"""
LEARNING_S: Final = 5.0
"""The first step must have run for this time before its rate forecasts the run."""
_PRIOR: Final = 0.5
"""Share of timed work that is assumed to take its full time, in addition to measured work."""
TIMED: Final = frozenset({"timed", "rest"})
"""Kinds of work that are measured in seconds."""


def expected_s(work: Mapping[str, float]) -> float:
    """Seconds that work by kind takes at the nominal rates."""
    return sum(amount / NOMINAL[kind] for kind, amount in work.items())


@dataclass(frozen=True)
class Report:
    """A progress report: label of the step, shares done (0 to 1), seconds left if known.

    `bytes_per_s` is the step's rate so far; None if its work is measured in seconds. `done` is what
    the step has done so far, in bytes or, if it rests, in seconds; None if unknown. `is_virtual`:
    on a twin, so that the rate is that of the simulation.
    """

    label: str
    step_share: float
    run_share: float
    left_s: float | None
    bytes_per_s: float | None = None
    done: float | None = None
    is_virtual: bool = False


Listener = Callable[[Report], None]


@dataclass
class Forecast:
    """Work done and remaining by kind, and the seconds of real time that it took.

    Work is in bytes, or in seconds for `TIMED` kinds.
    """

    remaining: dict[str, float]
    listener: Listener
    is_virtual: bool = False
    _done: dict[str, float] = field(default_factory=lambda: dict.fromkeys(NOMINAL, 0.0))
    _elapsed_s: dict[str, float] = field(default_factory=lambda: dict.fromkeys(NOMINAL, 0.0))

    def step(self, kind: str, work: float, label: str) -> Step:
        """Starts a step."""
        return Step(self, kind, work, label)

    def finish(self, kind: str, work: float, seconds: float) -> None:
        """Counts a finished step."""
        self.skip(kind, work)
        self._done[kind] += work
        self._elapsed_s[kind] += seconds

    def skip(self, kind: str, work: float) -> None:
        """Subtracts the work of a step that a resumed run does not repeat."""
        self.remaining[kind] = max(0.0, self.remaining.get(kind, 0.0) - work)

    def report(self, step: Step, share: float, seconds: float) -> None:
        """Sends a report: the step has run for `seconds`, `share` of its work is done."""
        left_s = self._left_s(step.kind, step.work * share, seconds)
        total_s = sum(self._elapsed_s.values()) + seconds
        run_share = 0.0
        if left_s is not None and total_s + left_s > 0:
            run_share = total_s / (total_s + left_s)
        has_rate = step.kind not in TIMED and seconds > 0
        bytes_per_s = step.work * share / seconds if has_rate else None
        done = None if step.kind == "timed" else step.work * share
        self.listener(
            Report(step.label, share, run_share, left_s, bytes_per_s, done, self.is_virtual)
        )

    def _left_s(self, kind: str, done_now: float, seconds: float) -> float | None:
        measured = any(self._elapsed_s[other] > 0 for other in NOMINAL if other not in TIMED)
        if not (measured or kind in TIMED or seconds >= LEARNING_S):
            return None  # a step's first moments say little: a cache may take its first writes
        left_s = 0.0
        for other, work in self.remaining.items():
            extra = (done_now, seconds) if other == kind else (0.0, 0.0)
            if work - extra[0] <= 0:
                continue
            rate = self._rate(other, *extra)
            if rate is None:
                return None
            left_s += (work - extra[0]) / rate
        return left_s

    def _rate(self, kind: str, done_now: float = 0.0, seconds: float = 0.0) -> float | None:
        done, elapsed_s = self._done[kind] + done_now, self._elapsed_s[kind] + seconds
        if kind in TIMED:
            # Steps that end before their time, at different shares of it, must not make the
            # forecast jump: it starts at the full time and follows what is measured.
            prior = _PRIOR * (done + self.remaining.get(kind, 0.0))
            return (done + prior) / (elapsed_s + prior) if done + prior > 0 else 1.0
        if done > 0 and elapsed_s > 0:
            return done / elapsed_s
        factor = self._factor()
        return None if factor is None else NOMINAL[kind] * factor

    def _factor(self) -> float | None:
        """The speed of the drive relative to the nominal rates, over all work done."""
        kinds = [kind for kind in NOMINAL if kind not in TIMED and self._elapsed_s[kind] > 0]
        nominal_s = sum(self._done[kind] / NOMINAL[kind] for kind in kinds)
        elapsed_s = sum(self._elapsed_s[kind] for kind in kinds)
        return nominal_s / elapsed_s if nominal_s > 0 else None


class Step:
    """One step in progress; `watch` is the progress callback of a drive."""

    def __init__(self, forecast: Forecast, kind: str, work: float, label: str) -> None:
        """Starts the step's clock and reports the start."""
        self.kind, self.work, self.label = kind, work, label
        self._forecast = forecast
        self._started = time.monotonic()
        forecast.report(self, 0.0, 0.0)

    def watch(self, done: int, total: int, _now_ns: int) -> None:
        """Reports progress; the drive calls it a few times a second."""
        share = done / total if total else 1.0
        self._forecast.report(self, share, time.monotonic() - self._started)

    def finish(self) -> None:
        """Counts the step as finished."""
        seconds = time.monotonic() - self._started
        self._forecast.finish(self.kind, self.work, seconds)


def silent(_report: Report) -> None:
    """Ignores the report."""
