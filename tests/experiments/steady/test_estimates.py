"""Estimates of hidden spare and WAF from what the gauges show."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ssdlab.experiments.steady.estimates import Estimate, hidden_flash, waf
from ssdlab.stats.rate_drops import RateDrop
from ssdlab.stats.steady import Progress

REGION = 1000.0
UNKNOWN = Estimate(None, "not measured")


def _drop(at: float) -> RateDrop:
    return RateDrop(at, 0.99 * at, 1.01 * at, before=1.0, after=0.2, ahead=0.0, seconds=at)


def _gauged(**values: Any) -> Any:
    """Gauges of a drive with units of one block, a large buffer and no cache."""
    usual = {
        "region": REGION,
        "fall": _drop(100.0),
        "large_fall": _drop(100.0),
        "unit": 1,
        "cache": 0.0,
        "has_own_flash": None,
        "may_hide_cache": False,
        "folds_while_writing": False,
        "buffer": 1.0,
        "direct": 1.0,
        "steady": 1 / 8,
        "read": 0.2,
        "is_complete": True,
        "is_steady_limited": False,
        "is_direct_limited": False,
        "spares_new_data": True,
        "reads_first": False,
        "cost_at_random": lambda _unit: 1.0,
    }
    return SimpleNamespace(**usual | values)


def test_hidden_flash_is_written_before_the_rate_falls_less_the_buffer() -> None:
    estimate = hidden_flash(_gauged())
    assert estimate.bracket is not None
    assert estimate.bracket.value == 99.0


def test_a_cache_that_may_have_flash_of_its_own_or_not_leaves_spare_undetermined() -> None:
    estimate = hidden_flash(_gauged(cache=20.0, has_own_flash=None))
    assert estimate.bracket is None
    assert "SLC cache" in estimate.why


def test_a_cache_that_is_folded_while_the_host_writes_may_raise_waf() -> None:
    """A new drive writes 1.3 times as fast; a write to the cache as well counts as one."""
    fresh = Progress([1.0] * 100, [1.3] * 100)
    cache = {"cache": 1.0, "has_own_flash": False}
    plain = waf(_gauged(read=0.01, fresh=fresh), UNKNOWN).bracket
    borrowed = waf(_gauged(read=0.01, fresh=fresh, **cache), UNKNOWN).bracket
    folded = waf(
        _gauged(read=0.01, fresh=fresh, folds_while_writing=True, **cache), UNKNOWN
    ).bracket
    assert plain is not None
    assert borrowed is not None
    assert folded is not None
    assert plain.value == borrowed.value
    assert plain.low == borrowed.low == folded.low
    assert borrowed.high == folded.high == pytest.approx(1 + 1.3 * plain.high)
    assert folded.value == pytest.approx((folded.low * folded.high) ** 0.5)


def test_a_read_that_costs_over_half_a_write_may_be_limited_by_the_channel() -> None:
    """Then no unit of a page is read for free, so that WAF may be lower."""
    cheap = waf(_gauged(read=0.2), UNKNOWN).bracket
    assert cheap is not None
    assert cheap.low <= 8.0 <= 1.001 * cheap.high
    dear = waf(_gauged(read=0.6), UNKNOWN).bracket
    assert dear is not None
    assert dear.low == pytest.approx(8.6 / 1.6)  # each relocated unit is read: w + 0.6 (w - 1) = 8
