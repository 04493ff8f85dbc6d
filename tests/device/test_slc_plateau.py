"""The cliff after an SLC cache, from a twin's intervals to the verdict on steady state.

The twin is an XG5 scaled to 1 GiB, with a link of 2370 MB/s and an SLC cache of 256 MiB (sizes
scale with the capacity, so the profile has 120 GiB). The true rates are known: the cache takes the
full rate of the link, and then sixteen dies program a page in each of two planes every 700 us.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from plots.traces import stopped_by_seconds
from ssdlab import profiles
from ssdlab.device import Job, describe_twin, open_twin, run_job
from ssdlab.stats.steady import Rule, SteadyMonitor, Verdict

SCOPE: Final = 1 << 30
CACHE: Final = SCOPE // 4
INTERVAL_US: Final = 1000
BLOCK: Final = 256 << 10  # several per interval
PLATEAU: Final = 2370e6
SUSTAINED: Final = 16 * 2 * 16384 / 700e-6
SECONDS_WINDOW: Final = 10  # intervals: five windows are 50 ms, a plateau of this cache 113 ms


@dataclass(frozen=True)
class Trace:
    """The intervals of a job, and the description of the twin."""

    seconds: NDArray[np.float64]
    written: NDArray[np.float64]
    described: dict[str, Any]

    @property
    def spare(self) -> int:
        """Hidden bytes of flash, without the cache."""
        share = float(self.described["spare"])
        return round(SCOPE * share / (1 - share))

    def verdicts(self, rule: Rule) -> list[Verdict]:
        """The verdict after each round."""
        watch = SteadyMonitor(rule)
        columns = zip(self.seconds, self.written, strict=True)
        return [watch.verdict() for seconds, written in columns if watch.add(seconds, written)]


def _write_sequentially(mode: str) -> Trace:
    """Writes a new drive five times in order."""
    cache = f'[slc]\nsize = "120 GiB"\nprogram = "100 us"\nmode = "{mode}"\n'
    link = f'bandwidth = "{PLATEAU / 1e6:g} MB/s"'
    drive = re.sub(r"(?m)^bandwidth = .*$", link, profiles.load("toshiba-xg5"))
    text = f"{drive}\n{cache}"
    job = Job(
        op="write",
        length_bytes=SCOPE,
        block_bytes=BLOCK,
        amount_bytes=5 * SCOPE,
        queue_depth=8,
        interval_us=INTERVAL_US,
    )
    outcome = run_job(open_twin("cached", text, SCOPE), job)
    columns = outcome.intervals
    ends = np.append(columns["start_ns"], np.uint64(outcome.end_ns))
    seconds = np.diff(ends).astype(np.float64) / 1e9
    described = describe_twin("cached", text, SCOPE)
    return Trace(seconds, columns["write_bytes"].astype(np.float64), described)


@pytest.fixture(scope="module", params=["static", "dynamic"])
def trace(request: pytest.FixtureRequest) -> Trace:
    """A trace with each kind of cache; the dynamic one returns its superblocks under load."""
    return _write_sequentially(request.param)


def _reported(verdict: Verdict) -> float:
    assert verdict.steady, str(verdict)
    assert verdict.mean is not None
    return verdict.mean


def test_the_trace_has_a_plateau_of_the_caches_size_and_a_cliff(trace: Trace) -> None:
    written, rates = np.cumsum(trace.written), trace.written / trace.seconds
    assert rates[written < 0.9 * CACHE].mean() == pytest.approx(PLATEAU, rel=0.02)
    cliff = written[np.argmax(rates < 0.5 * PLATEAU)]
    assert cliff == pytest.approx(CACHE, rel=0.1)
    assert rates[written > 3 * SCOPE].mean() == pytest.approx(SUSTAINED, rel=0.01)


def test_with_the_right_floor_the_sustained_rate_is_steady_and_the_plateau_is_not(
    trace: Trace,
) -> None:
    rule = Rule.of_drive(SCOPE, trace.spare, CACHE)
    verdicts = trace.verdicts(rule)
    steady = [verdict for verdict in verdicts if verdict.steady]
    assert _reported(steady[0]) == pytest.approx(SUSTAINED, rel=0.01)
    assert all(_reported(verdict) == pytest.approx(SUSTAINED, rel=0.01) for verdict in steady)
    first = steady[0].from_round
    assert first == -(-rule.floor_bytes // rule.round_bytes), "the first that the floor allows"


def test_rounds_within_the_plateau_do_not_make_it_steady_with_the_right_floor(
    trace: Trace,
) -> None:
    """Rounds of a sixteenth of the cache agree with each other: only the floor excludes them."""
    floor = Rule.of_drive(SCOPE, trace.spare, CACHE).floor_bytes
    verdicts = trace.verdicts(Rule(CACHE // 16, floor))
    within = [verdict for verdict in verdicts if verdict.rounds * (CACHE // 16) <= CACHE]
    assert len(within) == 16
    assert not any(verdict.steady for verdict in within)
    assert {failure.code for failure in within[10].failures} == {"floor"}
    first = next(verdict for verdict in verdicts if verdict.steady)
    assert _reported(first) == pytest.approx(SUSTAINED, rel=0.01)


def test_without_a_floor_the_plateau_is_taken_for_the_sustained_rate(trace: Trace) -> None:
    first = next(verdict for verdict in trace.verdicts(Rule(CACHE // 16, 0)) if verdict.steady)
    assert _reported(first) == pytest.approx(PLATEAU, rel=0.02)


def test_a_rule_by_seconds_reports_the_plateau_which_is_three_times_too_high(trace: Trace) -> None:
    by_interval = stopped_by_seconds(trace.written, SECONDS_WINDOW)
    assert by_interval is not None
    by_seconds = by_interval / (INTERVAL_US / 1e6)
    assert by_seconds == pytest.approx(PLATEAU, rel=0.02)
    rule = Rule.of_drive(SCOPE, trace.spare, CACHE)
    truth = _reported(next(verdict for verdict in trace.verdicts(rule) if verdict.steady))
    assert by_seconds / truth == pytest.approx(PLATEAU / SUSTAINED, rel=0.03)  # 3.18 times
