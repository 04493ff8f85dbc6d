"""Rates of a curve."""

from __future__ import annotations

import pytest

from ssdlab.experiments.steady.rates import fastest_of
from ssdlab.stats.steady import Progress


def test_a_first_request_recorded_an_interval_early_does_not_exceed_the_links_rate() -> None:
    """1 MiB each 4 ms, of which the first is recorded after 3 ms."""
    curve = Progress([0.003] + [0.004] * 2047, [1.0] * 2048)
    assert fastest_of(curve) == pytest.approx(250.0, rel=0.01)


def test_a_buffer_that_takes_the_first_bytes_is_the_fastest() -> None:
    curve = Progress([0.001] * 64 + [0.01] * 1984, [1.0] * 2048)
    assert fastest_of(curve) == pytest.approx(1000.0, rel=0.05)
    assert fastest_of(Progress([], [])) == 0.0
