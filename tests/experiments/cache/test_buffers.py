"""Intervals of a buffer's size, alone and combined."""

from __future__ import annotations

import pytest

from ssdlab.experiments.cache.buffers import (
    SLC_PROGRAM_MAX_S,
    Programs,
    Size,
    WritePass,
    agreed,
    buffered,
    combined,
    flushed_bytes,
    typical,
)
from ssdlab.experiments.cache.sizes import _before_cache, _Later
from ssdlab.stats.rate_drops import RateDrop
from ssdlab.stats.steady import Progress

MIB = 2**20


Bounds = tuple[float, float]


def _combined(*sure: Bounds, flushed: Bounds | None = None, written: Bounds | None = None) -> Size:
    known, *later = [
        [None if each is None else Size(*each, str(each)) for each in group]
        for group in (sure, [flushed], [written])
    ]
    return combined([size for size in known if size is not None], later[0][0], later[1][0])


def _bounds(found: Size) -> Bounds:
    return found.low, found.high


def test_sure_intervals_that_determine_a_size_are_narrowed_by_flushes_only() -> None:
    sure = ((9.0, 12.0), (8.0, 11.0))
    assert _bounds(_combined(*sure, written=(10.5, 12.0))) == (9.0, 11.0)
    assert _bounds(_combined(*sure, flushed=(10.5, 12.0))) == (10.5, 11.0)
    assert _bounds(_combined(*sure, written=(14.0, 15.0))) == (9.0, 11.0)
    assert _bounds(_combined(*sure, flushed=(14.0, 15.0))) == (9.0, 11.0)


def test_others_narrow_a_size_that_is_not_determined_if_all_agree() -> None:
    open_ = (4.0, 12.0)
    assert _bounds(_combined(open_, flushed=(8.0, 9.0), written=(8.5, 13.0))) == (8.5, 9.0)
    assert _bounds(_combined(open_, flushed=(8.0, 9.0), written=(14.0, 15.0))) == open_
    assert _bounds(_combined(flushed=(8.0, 10.0), written=(9.0, 11.0))) == (9.0, 10.0)
    assert _bounds(_combined(written=(9.0, 11.0))) == (9.0, 11.0)


def test_intervals_that_have_only_their_ends_in_common_do_not_narrow_each_other() -> None:
    assert _bounds(_combined((9.0, 12.0), flushed=(11.0, 15.0))) == (11.0, 12.0)
    assert _bounds(_combined((9.0, 12.0), flushed=(11.2, 15.0))) == (9.0, 12.0)
    assert _bounds(_combined((4.0, 12.0), written=(3.0, 4.4))) == (4.0, 12.0)
    assert agreed([Size(4.0, 6.0, ""), Size(5.9, 8.0, "")]) is None


@pytest.mark.parametrize(
    ("sure", "flushed", "written"),
    [
        ([(9.0, 10.0), (11.0, 12.0)], None, None),
        ([(9.0, 10.01), (10.0, 12.0)], None, None),  # they hardly touch
        ([(9.0, 10.0)], (11.0, 12.0), (11.5, 12.0)),
        ([], (9.0, 10.0), (11.0, 12.0)),
    ],
)
def test_intervals_that_contradict_each_other_show_the_range_of_all(
    sure: list[Bounds], flushed: Bounds | None, written: Bounds | None
) -> None:
    found = _combined(*sure, flushed=flushed, written=written)
    assert _bounds(found) == (9.0, 12.0)
    assert "contradict each other" in found.why


def test_one_of_several_measurements_that_is_far_off_does_not_count() -> None:
    found = typical([Size(low, low + 1, "") for low in (8.0, 8.2, 3.0)])
    assert _bounds(found) == (8.0, 9.0)


def _write(before: float, after: float, held: float) -> tuple[WritePass, RateDrop]:
    """A write that fills a buffer of `held` bytes, and its drop; the rates are in bytes/s."""
    at = held / (1 - after / before)
    step = at / 400
    curve = Progress([step / before] * 400 + [step / after] * 1200, [step] * 1600)
    drop = RateDrop(at, at, at, before, after, 0.0, at / before)
    return WritePass("first", None, 4096, curve, drop, drop, None), drop


def test_pages_in_progress_count_as_long_as_a_program_may_last() -> None:
    write_pass, drop = _write(4000.0 * MIB, 1000.0 * MIB, 8.0 * MIB)
    slow, fast = (
        buffered(write_pass, drop, "", Programs(longest_s=longest_s))
        for longest_s in (0.003, SLC_PROGRAM_MAX_S)
    )
    assert slow.low == fast.low == pytest.approx(8 * MIB, rel=1e-3)
    in_progress = 1000 * MIB * (0.003 - SLC_PROGRAM_MAX_S) * 1.25 / 2
    assert slow.high - fast.high == pytest.approx(in_progress)


def test_an_slc_cache_may_have_taken_a_part_of_what_was_written() -> None:
    write_pass, drop = _write(4000.0 * MIB, 1000.0 * MIB, 8.0 * MIB)
    found = buffered(write_pass, drop, "", Programs(cached=2000.0 * MIB))
    assert found.low == pytest.approx(drop.at / 2, rel=1e-3)
    assert found.high == buffered(write_pass, drop, "").high


def test_a_flush_takes_as_long_as_programming_the_buffer_with_a_page_of_each_die() -> None:
    found = flushed_bytes([0.010, 0.011, 0.090], 1000.0 * MIB, 0.001)
    assert found.low == pytest.approx((11 * (1 - 0.06 / 3**0.5) - 1) / 1.06 * MIB)
    assert found.high == pytest.approx((11 * (1 + 0.06 / 3**0.5) + 0.5) * 1.06 * MIB)


def test_pages_of_an_slc_cache_are_programmed_sooner_than_others() -> None:
    write_pass, early = _write(4000.0 * MIB, 1000.0 * MIB, 8.0 * MIB)
    spreads = []
    for lasting in (400.0 * MIB, 600.0 * MIB):  # the rate is above or below twice that
        last = _write(1000.0 * MIB, lasting, 200.0 * MIB)[1]
        found = _before_cache(write_pass, early, last)
        spreads.append(found.high - found.low)
    assert spreads[0] < 0.5 * spreads[1]


@pytest.mark.parametrize(
    ("held", "sure", "bounds"),
    [
        (8.0, [], (4.0, 10.0)),  # a cache may have taken a part, so that flushes decide
        (8.0, [(2.0, 20.0)], (8.0, 10.0)),
        (16.0, [], (4.0, 16.1)),  # they contradict each other
        (16.0, [(2.0, 20.0)], (2.0, 20.0)),
    ],
)
def test_later_writes_and_flushes_count_if_they_agree(
    held: float, sure: list[Bounds], bounds: Bounds
) -> None:
    write = _write(4000.0 * MIB, 1000.0 * MIB, held * MIB)
    flushed = Size(4.0 * MIB, 10.0 * MIB, "flushed")
    later = _Later(flushed, [write], 0.0, 3000.0 * MIB)
    found = later.combined_with([Size(low * MIB, high * MIB, "sure") for low, high in sure])
    assert (found.low / MIB, found.high / MIB) == pytest.approx(bounds, rel=0.12)
