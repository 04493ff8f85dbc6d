"""The idle time that restores a cache: which rests were long enough, and which too short."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import pytest

from ssdlab.device import Job
from ssdlab.experiments.cache import analysis, rests
from ssdlab.experiments.cache.buffers import MIB, WritePass
from ssdlab.experiments.cache.refill import refill_time
from ssdlab.experiments.cache.rests import Parts, RestSearch
from ssdlab.records import Finding
from ssdlab.runner.session import RunSession, Step
from ssdlab.stats.rate_drops import RateDrop, last_drop
from ssdlab.stats.steady import Progress

CACHED, DIRECT, SIZE = 2000.0 * MIB, 500.0 * MIB, 100.0 * MIB
FIRST = RateDrop(SIZE, 0.99 * SIZE, 1.01 * SIZE, CACHED, DIRECT, ahead=0.0, seconds=SIZE / CACHED)


def _curve(fast: float, total: float = 1.4 * SIZE) -> Progress:
    """A write of which the first `fast` bytes go to the cache."""
    step = total / 2000
    rates = [CACHED if (n + 1) * step <= fast else DIRECT for n in range(2000)]
    return Progress([step / rate for rate in rates], [step] * 2000)


def _passes(shares: dict[float, float]) -> list[WritePass]:
    """Passes after these rests, in which this share of the cache was available."""
    found = []
    for rest_s, share in shares.items():
        curve = _curve(share * SIZE)
        found.append(WritePass("rested", rest_s, 128 << 10, curve, last_drop(curve), None, None))
    return found


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ({1.0: 0.3, 4.0: 1.0, 2.0: 0.6, 2.83: 0.8}, (3.36, 2.83, 4.0)),
        ({1.0: 0.0, 4.0: 0.0, 16.0: 1.0, 8.0: 0.0, 11.3: 0.0}, (13.4, 11.3, 16.0)),
        ({1.0: 1.0, 0.25: 1.0}, (0.25, None, 0.25)),
        # Free flash ran out: later and longer rests make less available than shorter ones did.
        ({1.0: 0.3, 4.0: 0.9, 16.0: 1.0, 8.0: 0.85, 11.3: 0.6}, (None, 4.0, 16.0)),
        ({1.0: 0.3, 4.0: 0.9, 16.0: 0.5, 64.0: 0.2}, (None, 4.0, None)),
        ({1.0: 0.3, 4.0: 0.5, 16.0: 0.7, 64.0: 0.9}, (None, 64.0, None)),
        # Rests make no difference.
        ({1.0: 0.1, 4.0: 0.1, 16.0: 0.1}, (None, 1.0, None)),
    ],
)
def test_a_rest_was_too_short_unless_a_shorter_one_made_more_available(
    shares: dict[float, float], expected: tuple[float | None, ...]
) -> None:
    found = refill_time(_passes(shares), FIRST, SIZE)
    assert (found.value, found.low, found.high) == pytest.approx(expected, rel=0.01)


def test_the_reason_says_that_longer_rests_did_not_help() -> None:
    why = refill_time(_passes({1.0: 0.3, 4.0: 0.9, 16.0: 0.5}), FIRST, SIZE).why
    assert "no rest up to 16 s was long enough" in why
    assert "90% was available again, after 4 s" in why
    assert "longer rests than 4 s did not increase it" in why
    why = refill_time(_passes({1.0: 0.9, 4.0: 1.0, 2.0: 0.5}), FIRST, SIZE).why
    assert "less was available after 2 s than after a shorter rest" in why


@pytest.mark.parametrize(
    ("refill", "expected"),
    [
        (Finding(3.4, "s", 2.83, 4.0, ""), "idle time of about 3.4 s restores it"),
        (Finding(0.25, "s", None, 0.25, ""), "idle time of at most 250 ms restores it"),
        (Finding(None, "s", 4.0, 16.0, ""), "idle time of at most 16 s restores it"),
        (Finding(None, "s", 64.0, None, ""), "idle time did not restore all of it"),
    ],
)
def test_the_verdict_claims_no_more_than_the_rests_show(refill: Finding, expected: str) -> None:
    buffer = Finding(8.0, "MiB", 7.0, 9.0, "")
    cache = Finding(92.0, "MiB", 91.0, 93.0, "")
    findings = {"buffer_mib": buffer, "slc_mib": cache, "refill_s": refill}
    verdict = analysis._sentence(findings, FIRST)
    assert verdict.endswith(f"a buffer of 8 MiB and an SLC cache of 92 MiB; {expected}.")


def test_a_cache_that_may_not_exist_is_not_taken_for_granted() -> None:
    buffer = Finding(8.0, "MiB", 7.0, 9.0, "")
    cache = Finding(None, "MiB", None, None, "it may have taken all")
    refill = Finding(0.25, "s", None, 0.25, "")
    findings = {"buffer_mib": buffer, "slc_mib": cache, "refill_s": refill}
    verdict = analysis._sentence(findings, FIRST)
    assert verdict.endswith("8 MiB, and perhaps an SLC cache: it may have taken all.")


@dataclass
class _Session:
    """Keeps the idle times of the steps."""

    rests: list[float] = field(default_factory=list)

    def flush(self, stage: int) -> None: ...


def test_a_write_that_is_slow_from_the_start_shows_no_recovery(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has no drop in speed, just as one that the cache takes as a whole."""
    session = _Session()

    def write(_session: RunSession, step: Step, _job: Job) -> Progress:
        session.rests.append(step.rest_s)
        return _curve(1.4 * SIZE if step.rest_s >= 3.0 else 0.0)

    monkeypatch.setattr(rests, "write", write)
    parts = Parts(1000 * MIB, 140 * MIB)
    RestSearch(cast("RunSession", session), parts, FIRST, 1.4, 16.0).run()
    assert session.rests == pytest.approx([1.0, 4.0, 2.0, 8.0**0.5])
