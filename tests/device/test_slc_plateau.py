"""The cliff behind an SLC cache, from a twin's intervals to the verdict on steadiness.

The twin is the XG5's at 1 GiB, with a link of 2370 MB/s and a cache of a quarter of that GiB (sizes
scale with the capacity, so the profile says 120 GiB). What is true of it is arithmetic: the cache
takes all that the link brings, and then sixteen dies program a page in each of two planes every 700
us.
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
INTERVAL_MS: Final = 1
BLOCK: Final = 256 << 10  # so small that intervals hold several
PLATEAU: Final = 2370e6
LASTING: Final = 16 * 2 * 16384 / 700e-6
SECONDS_WINDOW: Final = 10  # intervals: five windows are 50 ms, a plateau of this cache 113 ms


@dataclass(frozen=True)
class Trace:
    """A load's intervals, and the drive's own word on its sizes."""

    seconds: NDArray[np.float64]
    written: NDArray[np.float64]
    described: dict[str, Any]

    @property
    def spare(self) -> int:
        """Bytes hidden of the flash that is no cache."""
        share = float(self.described["spare"])
        return round(SCOPE * share / (1 - share))

    def looks(self, rule: Rule) -> list[Verdict]:
        """The verdicts after each round, whatever they say."""
        watch = SteadyMonitor(rule)
        columns = zip(self.seconds, self.written, strict=True)
        return [watch.verdict() for seconds, written in columns if watch.add(seconds, written)]


def _written_in_order(mode: str) -> Trace:
    """Five times over a new drive."""
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
        interval_ms=INTERVAL_MS,
    )
    outcome = run_job(open_twin("cached", text, SCOPE), job)
    columns = outcome.intervals
    ends = np.append(columns["start_ns"], np.uint64(outcome.end_ns))
    seconds = np.diff(ends).astype(np.float64) / 1e9
    described = describe_twin("cached", text, SCOPE)
    return Trace(seconds, columns["write_bytes"].astype(np.float64), described)


@pytest.fixture(scope="module", params=["static", "dynamic"])
def trace(request: pytest.FixtureRequest) -> Trace:
    """A trace of each kind of cache; the dynamic one gives its superblocks back under load."""
    return _written_in_order(request.param)


def _reported(verdict: Verdict) -> float:
    assert verdict.steady, str(verdict)
    assert verdict.mean is not None
    return verdict.mean


def test_the_trace_is_a_plateau_of_the_caches_size_and_a_cliff(trace: Trace) -> None:
    written, rates = np.cumsum(trace.written), trace.written / trace.seconds
    assert rates[written < 0.9 * CACHE].mean() == pytest.approx(PLATEAU, rel=0.02)
    cliff = written[np.argmax(rates < 0.5 * PLATEAU)]
    assert cliff == pytest.approx(CACHE, rel=0.1)
    assert rates[written > 3 * SCOPE].mean() == pytest.approx(LASTING, rel=0.01)


def test_with_the_right_floor_the_plateau_is_not_steady_and_the_lasting_rate_is(
    trace: Trace,
) -> None:
    rule = Rule.of_drive(SCOPE, trace.spare, CACHE)
    looks = trace.looks(rule)
    steady = [verdict for verdict in looks if verdict.steady]
    assert _reported(steady[0]) == pytest.approx(LASTING, rel=0.01)
    assert all(_reported(verdict) == pytest.approx(LASTING, rel=0.01) for verdict in steady)
    first = steady[0].from_round
    assert first == -(-rule.floor_bytes // rule.round_bytes), "as soon as the floor allows"


def test_rounds_that_fit_the_plateau_do_not_make_it_steady_while_the_floor_is_right(
    trace: Trace,
) -> None:
    """Only the floor refuses them: five rounds of a sixteenth of the cache agree within it."""
    floor = Rule.of_drive(SCOPE, trace.spare, CACHE).floor_bytes
    looks = trace.looks(Rule(CACHE // 16, floor))
    within = [verdict for verdict in looks if verdict.rounds * (CACHE // 16) <= CACHE]
    assert len(within) == 16
    assert not any(verdict.steady for verdict in within)
    assert {failure.code for failure in within[10].failures} == {"floor"}
    first = next(verdict for verdict in looks if verdict.steady)
    assert _reported(first) == pytest.approx(LASTING, rel=0.01)


def test_without_a_floor_the_plateau_passes_for_the_lasting_rate(trace: Trace) -> None:
    first = next(verdict for verdict in trace.looks(Rule(CACHE // 16, 0)) if verdict.steady)
    assert _reported(first) == pytest.approx(PLATEAU, rel=0.02)


def test_a_rule_by_seconds_reports_the_plateau_three_times_the_truth(trace: Trace) -> None:
    by_interval = stopped_by_seconds(trace.written, SECONDS_WINDOW)
    assert by_interval is not None
    by_seconds = by_interval / (INTERVAL_MS / 1e3)
    assert by_seconds == pytest.approx(PLATEAU, rel=0.02)
    rule = Rule.of_drive(SCOPE, trace.spare, CACHE)
    truth = _reported(next(verdict for verdict in trace.looks(rule) if verdict.steady))
    assert by_seconds / truth == pytest.approx(PLATEAU / LASTING, rel=0.03)  # 3.18 times
