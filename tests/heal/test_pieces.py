"""Which pieces a file has, which are slow, and what is rewritten: numbers alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ssdlab.heal.pieces import (
    Piece,
    Range,
    aligned,
    brought_gain,
    chunks,
    cut,
    fastest,
    joined,
    overall,
    slow,
    total,
    within,
    without,
    written_ranges,
)
from ssdlab.storage_stack.extents import Extent, ExtentFlag

K, M = 1 << 10, 1 << 20
ranges = st.lists(
    st.tuples(st.integers(0, 200), st.integers(1, 40)).map(lambda pair: Range(*pair)), max_size=6
)


def bytes_of(found: list[Range]) -> set[int]:
    return {at for each in found for at in range(each.offset, each.end)}


def test_what_is_written_is_joined_over_its_places_and_cut_at_the_end() -> None:
    nothing = ExtentFlag(0)
    extents = [
        Extent(0, 900 * M, M, nothing),
        Extent(M, 5 * M, M, nothing),
        Extent(2 * M, 7 * M, M, ExtentFlag.UNWRITTEN),
        Extent(4 * M, 9 * M, 8 * M, ExtentFlag.LAST),
    ]
    assert written_ranges(extents, 5 * M + 1, 4 * K) == [Range(0, 2 * M), Range(4 * M, M + 4 * K)]


def test_pieces_begin_at_multiples_and_a_short_rest_joins_the_piece_before() -> None:
    assert cut([Range(512 * K, 2 * M)], M) == [
        Range(512 * K, 512 * K),
        Range(M, M),
        Range(2 * M, 512 * K),
    ]
    assert cut([Range(0, M + 100 * K)], M) == [Range(0, M + 100 * K)]
    assert cut([Range(0, 100 * K)], M) == [Range(0, 100 * K)]


@given(ranges, st.sampled_from([1, 8, 64]))
def test_pieces_cover_what_was_cut_exactly_once(given_ranges: list[Range], piece: int) -> None:
    whole = joined(given_ranges)
    found = cut(whole, piece)
    assert joined(found) == whole
    assert total(found) == total(whole)
    assert all(each.length < 2 * piece for each in found)
    assert joined(chunks(whole, piece)) == whole
    assert all(each.length <= piece for each in chunks(whole, piece))


@given(ranges, ranges)
def test_ranges_behave_as_sets_of_bytes(one: list[Range], other: list[Range]) -> None:
    assert bytes_of(joined(one)) == bytes_of(one)
    assert bytes_of(within(joined(one), other)) == bytes_of(one) & bytes_of(other)
    assert bytes_of(without(joined(one), other)) == bytes_of(one) - bytes_of(other)
    assert bytes_of(aligned(one, 16)) >= bytes_of(one)
    assert all(each.offset % 16 == 0 and each.length % 16 == 0 for each in aligned(one, 16))


def test_the_fastest_tenth_stands_for_the_fresh_speed() -> None:
    pieces = [Piece(Range(at * M, M), 100.0) for at in range(90)]
    pieces += [Piece(Range(at * M, M), 300.0 + at) for at in range(90, 100)]
    assert fastest(pieces) == 394.5
    assert fastest([Piece(Range(0, M))]) is None


def test_slow_pieces_are_those_below_the_share_and_neighbours_are_one_range() -> None:
    speeds = [500.0, 100.0, 120.0, 399.0, 401.0, None, 90.0]
    pieces = [Piece(Range(at * M, M), speed) for at, speed in enumerate(speeds)]
    assert slow(pieces, 500.0, 0.8) == [Range(M, 3 * M), Range(6 * M, M)]


def test_the_speed_over_all_pieces_is_bytes_by_seconds() -> None:
    pieces = [Piece(Range(0, 300), 100.0), Piece(Range(300, 300), 300.0), Piece(Range(600, 9))]
    assert overall(pieces) == 150.0
    assert overall([]) is None


def test_a_rewrite_goes_on_only_where_it_brought_a_twentieth() -> None:
    was = [Piece(Range(0, M), 100.0)]
    assert not brought_gain(was, [Piece(Range(0, M), 104.0)])
    assert brought_gain(was, [Piece(Range(0, M), 106.0)])
    assert brought_gain(was, []), "where nothing can be said, the plan holds"
