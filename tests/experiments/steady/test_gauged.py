"""What the gauges show of the buffer, the cache and the mapping unit."""

from __future__ import annotations

import numpy as np
import pytest
from gauged_drive import drop

from ssdlab.analysis.evidence import Evidence
from ssdlab.experiments.steady import gauged
from ssdlab.experiments.steady.gauged import Gauged
from ssdlab.stats.steady import Progress

MIB = 2**20
REGION = 1000.0


@pytest.mark.parametrize(
    ("buffer", "unit", "cost"),
    [(0.0, 1, 4.0), (60.0, 1, 5.0), (60.0, 2, 4.0), (99.0, 1, 8.0), (500.0, 1, 8.0)],
)
def test_writes_before_collection_are_those_after_the_buffer_is_full(
    buffer: float, unit: int, cost: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They cost 1 up to 60 % of those before the fall, 5 up to three quarters, and then 8."""
    rounds = Progress([1.0] * 60 + [5.0] * 15 + [8.0] * 25 + [20.0] * 100, [1.0] * 200)
    for name, value in (("fall", drop(100.0)), ("buffer", buffer), ("unit", unit)):
        monkeypatch.setattr(Gauged, name, value)
    found = Gauged(Evidence({}, {}), REGION, rounds, 1.0).cost_before_collection
    assert found == pytest.approx(cost, rel=0.6 if cost != 8.0 else 0.01)


def test_what_a_new_drive_took_at_full_speed_is_held_by_a_buffer_or_a_borrowed_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gauged = Gauged(Evidence({}, {}), REGION, Progress([], []), 1.0)
    fresh = Progress([0.1] * 100 + [1.0] * 900, [1.0] * 1000)
    monkeypatch.setattr(Gauged, "fresh", fresh)
    assert gauged.held == pytest.approx(90.0, rel=0.02)  # 10 were programmed meanwhile
    monkeypatch.setattr(Gauged, "cache", 90.0)
    for own in (False, True):
        monkeypatch.setattr(Gauged, "has_own_flash", own)
        assert gauged.borrows is not own


@pytest.mark.parametrize(
    ("rates", "cached"),
    [
        ([(400, 4.0), (600, 2.0)], 350.0),  # 50 are in the buffer, 50 were programmed
        ([(100, 8.0), (300, 4.0), (600, 2.0)], 400.0),  # the buffer was full before
    ],
)
def test_a_cache_is_full_before_the_rate_falls_if_the_buffer_is_empty(
    rates: list[tuple[int, float]], cached: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = [1 / rate for count, rate in rates for _ in range(count)]
    monkeypatch.setattr(Gauged, "fresh", Progress(seconds, [float(MIB)] * len(seconds)))
    monkeypatch.setattr(Gauged, "buffer", 50.0 * MIB)
    found = Gauged(Evidence({}, {}), REGION, Progress([], []), 1.0).cached
    assert found.value == pytest.approx(cached * MIB, rel=0.02)
    assert found.value - found.low == pytest.approx(25 * MIB, rel=0.01)
    assert found.high == pytest.approx(min(400, cached + 25) * MIB, rel=0.02)


def test_the_cache_is_what_held_most_of_the_fill_and_not_a_buffer_that_seemed_smaller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rates = [(10, 16.0), (60, 3.0), (400, 1.0)]  # MiB/s of the buffer, the cache and the flash
    seconds = [1 / rate for count, rate in rates for _ in range(count)]
    monkeypatch.setattr(Gauged, "fresh", Progress(seconds, [float(MIB)] * len(seconds)))
    monkeypatch.setattr(Gauged, "buffer", 4.0 * MIB)
    gauged = Gauged(Evidence({}, {}), REGION, Progress([], []), 1.0)
    assert gauged.cache == pytest.approx(70 * MIB, rel=0.05)


@pytest.mark.parametrize(
    ("is_seen", "large", "may_hide"),
    [(None, 90.0, False), (None, 70.0, True), (False, 70.0, False), (True, 90.0, True)],
)
def test_behind_a_slow_link_reads_may_show_that_there_is_no_cache(
    is_seen: bool | None, large: float, may_hide: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large writes without a rest may use up the hidden flash earlier than the rounds."""
    values = {"cache": 0.0, "is_direct_limited": True, "is_rested": False, "unit": 1}
    for name, value in {**values, "fall": drop(100.0), "large_fall": drop(large)}.items():
        monkeypatch.setattr(Gauged, name, value)
    monkeypatch.setattr(Gauged, "rested_writes_cache", is_seen)
    gauged = Gauged(Evidence({}, {}), REGION, Progress([], []), 1.0)
    assert gauged.may_hide_cache is may_hide


@pytest.mark.parametrize(
    ("requests", "rate"),
    [
        ([20, 20, 20, 20], 100.0),  # 20 MiB in 0.2 s
        ([1, 2, 1, 2, 1, 1, 1], 6.25),  # a small buffer: 5 MiB in 0.8 s
        ([1, 1, 1, 1], 3.75),  # none
    ],
)
def test_the_burst_shows_what_the_link_takes_until_a_buffer_is_full(
    requests: list[int], rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = {"step": 0, "block_bytes": MIB, "job": '{"interval_us": 200000}'}
    amounts = np.array(requests, float) * MIB
    columns = np.full(len(requests), 0.2), amounts
    monkeypatch.setattr(gauged, "intervals", lambda _evidence, _step: columns)
    monkeypatch.setattr(Gauged, "_steps", lambda _self, _case: [step])
    found = Gauged(Evidence({}, {}), REGION, Progress([], []), 1.0)._burst
    assert found == pytest.approx(rate * MIB, rel=0.06)


@pytest.mark.parametrize(
    ("is_limited", "buffer", "unseen"),
    [(True, 127 << 10, 64 * MIB), (True, 128 << 10, 0), (False, 0, 0)],
)
def test_the_first_requests_of_a_slow_link_are_no_buffer(
    is_limited: bool, buffer: int, unseen: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Gauged, "buffer", float(buffer))
    monkeypatch.setattr(Gauged, "is_direct_limited", is_limited)
    found = Gauged(Evidence({}, {}), REGION, Progress([], []), 1.0)
    assert found.unseen_buffer == unseen


@pytest.mark.parametrize(("rate", "seconds"), [(20.0, 1 / 20), (0.0, 1 / 10)])
def test_random_reads_stand_for_large_ones_that_an_earlier_version_did_not_measure(
    rate: float, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    curves = {"large read": Progress([10.0], [10 * rate]), "read": Progress([10.0], [100.0])}
    monkeypatch.setattr(Gauged, "curve", lambda _self, case: curves[case])
    gauged = Gauged(Evidence({}, {}), REGION, Progress([], []), 1.0)
    assert gauged.large_read_s == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("is_limited", "has_reads", "written", "block", "unit"),
    [
        (False, True, 10.0, 4, 2),
        (True, True, 10.0, 4, None),
        (False, False, 10.0, 4, None),
        (False, True, 0.0, 4, None),
        (False, True, 0.0, 128, None),
        (False, True, 0.0, 256, 1),  # no part of a mapping unit
    ],
)
def test_rates_that_the_link_may_limit_do_not_show_the_mapping_unit(
    is_limited: bool,
    has_reads: bool,
    written: float,
    block: int,
    unit: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without single reads it is not known whether look-ups in a map take part."""
    rates = {"size 2": 20.0, "size 4": 20.0, "size 8": 20.0, "large": 20.0, "ordered": 10.0}
    rates["fill"] = 20.0
    curves = {case: Progress([1.0, 10.0], [rate, 10 * rate]) for case, rate in rates.items()}
    curves["size 8"] = Progress([10.0], [20.0 * written])
    evidence = Evidence({}, {"write_block_kib": block})
    monkeypatch.setattr(Gauged, "curve", lambda _self, case: curves[case])
    monkeypatch.setattr(Gauged, "cost_at_random", lambda _self, _unit: 2.0)
    monkeypatch.setattr(Gauged, "_steps", lambda _self, _case: [{"block_bytes": 65536}])
    monkeypatch.setattr(Gauged, "misses_map", False)
    monkeypatch.setattr(Gauged, "has_single_reads", has_reads)
    monkeypatch.setattr(Gauged, "is_steady_limited", is_limited)
    assert Gauged(evidence, REGION, curves["large"], 10.0).unit == unit


@pytest.mark.parametrize(("rate", "ordered"), [(16.0, 1.25), (18.0, None)])
def test_writes_in_order_that_the_link_may_limit_do_not_count(
    rate: float, ordered: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    curves = {"ordered": Progress([10.0], [10 * rate]), "fill": Progress([10.0], [200.0])}
    random = Progress([10.0], [200.0])
    monkeypatch.setattr(Gauged, "curve", lambda _self, case: curves.get(case, random))
    monkeypatch.setattr(Gauged, "cost_at_random", lambda _self, _unit: 2.0)
    monkeypatch.setattr(Gauged, "_steps", lambda _self, _case: [{"block_bytes": 65536}])
    monkeypatch.setattr(Gauged, "misses_map", False)
    monkeypatch.setattr(gauged, "likeliest_unit", lambda *args, **_options: args[3])
    found = Gauged(Evidence({}, {"write_block_kib": 4}), REGION, random, 10.0)
    assert found.unit == ordered
