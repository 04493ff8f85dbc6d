"""How the bytes before a drop are divided into buffer and SLC cache."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ssdlab.analysis.evidence import Evidence
from ssdlab.experiments.cache import sizes
from ssdlab.experiments.cache.buffers import MIB, Freed, Size, WritePass
from ssdlab.experiments.cache.refill import buffer_limit
from ssdlab.experiments.cache.sizes import (
    Sizes,
    _difference,
    _is_confirmed,
    _unless_borrowed,
    find_sizes,
)
from ssdlab.records import Finding
from ssdlab.stats.rate_drops import RateDrop
from ssdlab.stats.steady import Progress


@pytest.mark.parametrize("slower", [1.3, 4.0])
def test_reads_show_the_buffer_before_a_cache_also_if_the_drop_is_gentle(
    slower: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flush empties nothing, and the cache is as fast as the link: there is one drop only."""
    fast, at = 1000.0 * MIB, 140.0 * MIB
    drop = RateDrop(at, 0.99 * at, 1.01 * at, fast, fast / slower, ahead=0.0, seconds=at / fast)
    curve = Progress([0.01] * 100, [10.0 * MIB] * 100)
    first = WritePass("first", None, 32 << 10, curve, drop, None, None)
    flushed = WritePass("flushed", None, 32 << 10, curve, None, None, None)
    monkeypatch.setattr(sizes, "_flushes", lambda _evidence: sizes._Flushes([0.0, 0.0], None))
    monkeypatch.setattr(
        sizes, "read_back_size", lambda _evidence, _rate: Size(1.8 * MIB, 2.2 * MIB, "by reads")
    )
    unknown = Finding(None, "s", None, None, "not measured")
    rested = WritePass("rested", 1.0, 32 << 10, curve, replace(drop, at=2 * MIB), None, None)
    found = find_sizes(Evidence({}, {}), [first, flushed, rested], drop, at, unknown)
    assert found.buffer is not None
    assert (found.buffer.low, found.buffer.high) == (1.8 * MIB, 2.2 * MIB)
    assert found.cache is not None
    assert found.cache.high == pytest.approx(at - 1.8 * MIB, rel=0.02)


LINK, DIRECT = 3000.0 * MIB, 800.0 * MIB


def _pass(
    case: str, at: float, rest_s: float | None = None, rates: tuple[float, float] = (LINK, DIRECT)
) -> WritePass:
    """A write that slows down after `at` bytes."""
    before, after = rates
    drop = RateDrop(at, 0.995 * at, 1.005 * at, before, after, ahead=0.0, seconds=at / before)
    step = at / 2000
    curve = Progress([step / before] * 2000 + [step / after] * 2000, [step] * 4000)
    return WritePass(case, rest_s, 128 << 10, curve, drop, None, None)


def _buffer_at(held: float) -> float:
    """Bytes that are written until a buffer of this size is full."""
    return held / (1 - DIRECT / LINK)


@pytest.mark.parametrize("cached", [0.7 * LINK, 0.8 * LINK, LINK])
def test_the_buffer_may_fill_while_a_cache_slower_than_the_link_takes_data(cached: float) -> None:
    """It outlasts the cache, so that there is one drop only."""
    buffer, cache = 37.0 * MIB, 59.0 * MIB
    assert buffer > cache * (LINK / cached - 1)
    first = _pass("first", _buffer_at(buffer + cache * (1 - DIRECT / cached)))
    if cached == LINK:  # the cache takes all before
        first = _pass("first", cache + _buffer_at(buffer))
    found = _difference(first, _pass("flushed", _buffer_at(buffer)), "")
    assert found.low < cache < found.high
    assert found.is_determined


def _found(
    passes: list[WritePass], monkeypatch: pytest.MonkeyPatch, back: Size | None = None
) -> Sizes:
    """The sizes of a drive whose flush empties nothing."""
    monkeypatch.setattr(sizes, "_flushes", lambda _evidence: sizes._Flushes([0.0, 0.0], None))
    monkeypatch.setattr(sizes, "read_back_size", lambda _evidence, _rate: back)
    last = passes[0].last_drop
    assert last is not None
    flushed = WritePass("flushed", None, 128 << 10, passes[0].curve, None, None, None)
    unknown = Finding(None, "s", None, None, "not measured")
    passes = [passes[0], flushed, *passes[1:]]
    return find_sizes(Evidence({}, {}), passes, last, last.at, unknown)


def test_a_large_buffer_is_not_reported_as_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rest frees what flash programs in that time, up to all that the buffer holds."""
    held = 300.0 * MIB
    first, full = _pass("first", _buffer_at(held)), _pass("rested", _buffer_at(held), 1.0)
    short = _pass("rested", _buffer_at(0.1 * DIRECT), 0.1)
    for rested in ([], [short], [short, full]):
        found = _found([first, *rested], monkeypatch)
        assert found.buffer is None
        assert found.cache is None
        assert "either a buffer" in found.why
    # Neither do reads count that show a far smaller buffer: it may program in another order.
    found = _found([first, short, full], monkeypatch, Size(15.0 * MIB, 18.0 * MIB, "by reads"))
    assert (found.buffer, found.cache) == (None, None)


@pytest.mark.parametrize(("read", "least"), [((42.0, 56.0), 0.0), ((42.0, 46.0), 20.0)])
def test_one_drop_shows_a_cache_only_if_it_took_more_than_the_sizes_are_uncertain(
    read: tuple[float, float], least: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizes, "_is_confirmed", lambda *_: True)
    back = Size(read[0] * MIB, read[1] * MIB, "by reads")
    first = _pass("first", _buffer_at(62.0 * MIB))
    found = _found([first], monkeypatch, back)
    assert found.cache is not None
    assert found.cache.low == pytest.approx(least * MIB, rel=0.1)
    assert found.cache.high > 40 * MIB
    two = replace(first, early_drop=first.last_drop)
    assert sizes._cache_of_rest(two, back).low > 5 * MIB


def test_pauses_that_free_what_reads_show_confirm_it() -> None:
    last = _pass("first", 80.0 * MIB).last_drop
    assert last is not None
    held, back = Size(55.0, 60.0, ""), Size(0.9, 1.1, "")
    assert not _is_confirmed(back, held, last, None, None)
    assert _is_confirmed(back, held, last, Freed(Size(0.8, 1.0, ""), 1.5, is_steady=True), None)
    assert not _is_confirmed(back, held, last, Freed(held, 80.0, is_steady=True), None)


def test_rests_that_free_less_than_flash_programs_show_a_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, rested = _pass("first", 300.0 * MIB), _pass("rested", 20.0 * MIB, 1.0)
    found = _found([first, rested], monkeypatch)
    assert found.cache is not None
    assert found.cache.is_determined
    assert found.cache.low < 280 * MIB < found.cache.high
    reads = Size(13.0 * MIB, 15.0 * MIB, "by reads")
    found = _found([first, rested], monkeypatch, reads)
    assert found.buffer == reads


def test_the_limit_of_a_buffer_is_what_the_least_rest_freed_that_emptied_it() -> None:
    emptied = [_pass("rested", _buffer_at(held), 1.0) for held in (60.0 * MIB, 50.0 * MIB)]
    part = _pass("rested", _buffer_at(0.01 * DIRECT), 0.01)
    limit = buffer_limit([part, *emptied], DIRECT)
    assert limit == pytest.approx(1.25 * 50 * MIB, rel=0.01)
    assert buffer_limit([part], DIRECT) is None


@pytest.mark.parametrize(
    ("before", "after", "shows"),
    [
        (LINK, 0.45 * LINK, True),
        (LINK, 0.55 * LINK, False),
        (1.5 * DIRECT, 1.15 * DIRECT, True),
        (1.5 * DIRECT, 1.25 * DIRECT, False),
    ],
)
def test_a_gentle_drop_to_the_rate_of_a_cache_shows_no_limit(
    before: float, after: float, *, shows: bool
) -> None:
    """The buffer need not have been full."""
    rested = _pass("rested", 20.0 * MIB, 1.0, rates=(before, after))
    assert (buffer_limit([rested], DIRECT) is not None) is shows


@pytest.mark.parametrize("rest_s", [None, 1.0])
def test_a_small_buffer_that_holds_more_than_rests_freed_is_none(
    rest_s: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pauses freed as much as was written, as they also make room in an SLC cache."""
    first = _pass("first", 60.0 * MIB, rates=(2 * DIRECT, DIRECT))
    assert first.last_drop is not None
    freed = Freed(Size(0.0, 50.0 * MIB, "by pauses"), first.last_drop.at, is_steady=False)
    monkeypatch.setattr(sizes, "plateau", lambda *_: freed)
    rested = [] if rest_s is None else [_pass("rested", 20.0 * MIB, rest_s)]
    found = _found([first, *rested], monkeypatch)
    assert (found.buffer is None) is bool(rested)
    assert found.cache is not None
    assert (found.cache.high > 0) is bool(rested)


@pytest.mark.parametrize(
    ("slower", "rest_s", "limit"),
    [(0.85, 0.1, 50.0), (0.75, 0.1, None), (0.75, 0.13, None), (0.75, 0.14, 50.0)],
)
def test_a_rest_before_a_slow_write_shows_no_limit_unless_it_is_long(
    slower: float, rest_s: float, limit: float | None
) -> None:
    """The drive does other work then, which may have taken the rest, too."""
    rested = _pass("rested", _buffer_at(40.0 * MIB), rest_s)
    assert rested.curve.written == pytest.approx(0.136 * DIRECT, rel=0.01)
    assert rested.last_drop is not None
    rested = replace(rested, last_drop=replace(rested.last_drop, after=slower * DIRECT))
    found = buffer_limit([rested], DIRECT)
    assert limit is None or found is not None
    assert found == (limit and pytest.approx(limit * MIB, rel=0.1))


@pytest.mark.parametrize(
    ("buffer", "low", "high"),
    [((25.0, 38.0), 64.0, 78.0), ((2.0, 38.0), 0.0, 101.0), ((12.0, 20.0), 15.5, 31.0)],
)
def test_a_later_fall_of_the_rate_is_the_end_of_a_cache_that_is_little_faster_than_flash(
    buffer: tuple[float, float], low: float, high: float
) -> None:
    """Whether the buffer alone was full at the steep drop, after 43 MiB, or a cache, too."""
    first, slow_at = _pass("first", 43.0 * MIB), 103.0 * MIB
    step, rates = MIB / 10, (LINK, DIRECT, 0.74 * DIRECT)
    counts = (430, 600, 1500)
    seconds = [step / rate for rate, count in zip(rates, counts, strict=True) for _ in range(count)]
    first = replace(first, curve=Progress(seconds, [step] * len(seconds)))
    cache = sizes._cache_of_rest(first, Size(buffer[0] * MIB, buffer[1] * MIB, "by a flush"))
    assert slow_at == pytest.approx(step * sum(counts[:2]))
    assert cache.low == pytest.approx(low * MIB, abs=2 * MIB)
    assert cache.high == pytest.approx(high * MIB, abs=2 * MIB)


def test_without_a_later_fall_a_small_rest_of_one_drop_may_be_a_cache() -> None:
    buffer = Size(25.0 * MIB, 38.0 * MIB, "by a flush")
    cache = sizes._cache_of_rest(_pass("first", 43.0 * MIB), buffer)
    assert cache.low == 0
    assert cache.high == pytest.approx(18 * MIB, rel=0.1)


@pytest.mark.parametrize(("after", "most"), [(DIRECT, 50.0), (DIRECT / 2, 50.0), (2 * DIRECT, 100)])
def test_a_flush_programs_no_faster_than_flash_does_after_the_drop(
    after: float, most: float
) -> None:
    """Right after the drop the rate may differ from the mean, which is `DIRECT`."""
    first = _pass("first", 80.0 * MIB)
    assert first.last_drop is not None
    first = replace(first, last_drop=replace(first.last_drop, after=after))
    assert first.last_drop is not None
    flushes = sizes._Flushes([50.0 * MIB / DIRECT], 0.0)
    found = sizes._flushed(first, flushes, 1)
    assert found is not None
    assert found.low == pytest.approx(50 * MIB * after / DIRECT, rel=0.12)
    assert found.high == pytest.approx(most * MIB * 1.06**2, rel=0.01)
    # If the rate fell twice, the drive folds a cache while it writes, and so may the flush, or not.
    for middle in (DIRECT / 4, 3 * DIRECT):
        fall = replace(first.last_drop, after=middle)
        twice = sizes._flushed(replace(first, middle_drop=fall), flushes, 1)
        assert twice is not None
        assert twice.low == 0
        fastest = max(after, DIRECT, middle)
        assert twice.high == pytest.approx(50 * MIB * fastest / DIRECT * 1.06**2, rel=0.01)


@pytest.mark.parametrize("faster", [1.08, 1.3])
def test_reads_do_not_count_if_small_writes_may_not_fill_the_buffer(
    faster: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = _pass("first", 30.0 * MIB, rates=(faster * DIRECT, DIRECT))
    rested = _pass("rested", 3.0 * MIB, 1.0, rates=(faster * DIRECT, DIRECT))
    found = _found([first, rested], monkeypatch, Size(1.6 * MIB, 2.0 * MIB, "by reads"))
    assert (found.buffer is not None) is (faster > 1.1)


@pytest.mark.parametrize(
    ("drive", "restored", "is_certain"),
    [(250.0, 0.1, False), (250.0, 0.8, True), (400.0, 0.1, True), (0.0, 0.1, True)],
)
def test_a_cache_of_more_than_a_third_of_the_drive_may_have_borrowed_flash(
    drive: float, restored: float, *, is_certain: bool
) -> None:
    last = _pass("first", 100.0 * MIB).last_drop
    assert last is not None
    known = Sizes(None, Size(97.0 * MIB, 99.0 * MIB, ""))
    found = _unless_borrowed(known, last, drive * MIB, restored).cache
    assert found is not None
    assert found.high == 99 * MIB
    assert found.is_determined is is_certain
    assert ("borrowed flash" in found.why) is not is_certain
