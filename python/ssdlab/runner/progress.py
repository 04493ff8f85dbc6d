"""How far a run is and how long it will still take, from the rates seen so far."""

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
"""The kinds of work, each with a rate to start from: in bytes a second, of seconds one a second.

Writing in order, reading in order, single writes at random, many at once, trims: as of a SATA
drive. Once a run has seen one of them, the others are expected to be slower or faster than this
by its factor.
"""
TIMED: Final = frozenset({"timed", "rest"})


def expected_s(work: Mapping[str, float]) -> float:
    """Seconds that work by kind takes at the nominal rates."""
    return sum(each / NOMINAL[kind] for kind, each in work.items())


@dataclass(frozen=True)
class Report:
    """What a listener is told: the step's words, its share done, the run's seconds left."""

    label: str
    step_share: float
    run_share: float
    left_s: float | None


Listener = Callable[[Report], None]


@dataclass
class Forecast:
    """Work done and to do by kind, and the real time it took.

    Rests take their own time, on a twin none: there they are no work.
    """

    to_do: dict[str, float]
    listener: Listener
    _done: dict[str, float] = field(default_factory=lambda: dict.fromkeys(NOMINAL, 0.0))
    _took: dict[str, float] = field(default_factory=lambda: dict.fromkeys(NOMINAL, 0.0))

    def step(self, kind: str, work: float, label: str) -> Step:
        """Begins a step."""
        return Step(self, kind, work, label)

    def finish(self, kind: str, work: float, seconds: float) -> None:
        """Notes a finished step."""
        self.skip(kind, work)
        self._done[kind] += work
        self._took[kind] += seconds

    def skip(self, kind: str, work: float) -> None:
        """Notes that a step need not be done."""
        self.to_do[kind] = max(0.0, self.to_do.get(kind, 0.0) - work)

    def tell(self, step: Step, share: float, seconds: float) -> None:
        """Tells the listener how far a step is after `seconds`."""
        left = self._left(step.kind, step.work * share, seconds)
        elapsed = sum(self._took.values()) + seconds
        run_share = elapsed / (elapsed + left) if left is not None and elapsed + left > 0 else 0.0
        self.listener(Report(step.label, share, run_share, left))

    def _left(self, kind: str, done_now: float, seconds: float) -> float | None:
        left = 0.0
        for each, work in self.to_do.items():
            extra = (done_now, seconds) if each == kind else (0.0, 0.0)
            if work - extra[0] <= 0:
                continue
            rate = self._rate(each, *extra)
            if rate is None:
                return None
            left += (work - extra[0]) / rate
        return left

    def _rate(self, kind: str, done_now: float = 0.0, seconds: float = 0.0) -> float | None:
        done, took = self._done[kind] + done_now, self._took[kind] + seconds
        if done > 0 and took > 0:
            return done / took
        if kind in TIMED:
            return 1.0
        factor = self._factor()
        return None if factor is None else NOMINAL[kind] * factor

    def _factor(self) -> float | None:
        """How the drive compares with the nominal one, by all that it has done."""
        kinds = [kind for kind in NOMINAL if kind not in TIMED and self._took[kind] > 0]
        nominal_s = sum(self._done[kind] / NOMINAL[kind] for kind in kinds)
        took_s = sum(self._took[kind] for kind in kinds)
        return nominal_s / took_s if nominal_s > 0 else None


class Step:
    """One step in progress: a watcher for the drive."""

    def __init__(self, forecast: Forecast, kind: str, work: float, label: str) -> None:
        """Starts its stopwatch, which only the forecast uses."""
        self.kind, self.work, self.label = kind, work, label
        self._forecast = forecast
        self._started = time.monotonic()
        forecast.tell(self, 0.0, 0.0)

    def watch(self, done: int, total: int, _now_ns: int) -> None:
        """Is called by the drive a few times a second."""
        share = done / total if total else 1.0
        self._forecast.tell(self, share, time.monotonic() - self._started)

    def finish(self) -> None:
        """Ends the step."""
        seconds = time.monotonic() - self._started
        self._forecast.finish(self.kind, self.work, seconds)


def silent(_report: Report) -> None:
    """A listener that does nothing."""
