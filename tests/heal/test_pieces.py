"""Range arithmetic, and which pieces are slow."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ssdlab.heal.pieces import (
    Piece,
    Range,
    align,
    average_speed,
    fastest_speed,
    intersection,
    is_faster,
    merge,
    slow_ranges,
    split_into_chunks,
    split_into_pieces,
    subtract,
    total_bytes,
    written_ranges,
)
from ssdlab.storage_stack.extents import Extent, ExtentFlag

K, M = 1 << 10, 1 << 20
ranges = st.lists(
    st.tuples(st.integers(0, 200), st.integers(1, 40)).map(lambda pair: Range(*pair)), max_size=6
)


def bytes_of(ranges: list[Range]) -> set[int]:
    return {at for each in ranges for at in range(each.offset, each.end)}


def test_written_ranges_are_merged_and_end_at_the_block_of_the_last_byte() -> None:
    nothing = ExtentFlag(0)
    extents = [
        Extent(0, 900 * M, M, nothing),
        Extent(M, 5 * M, M, nothing),
        Extent(2 * M, 7 * M, M, ExtentFlag.UNWRITTEN),
        Extent(4 * M, 9 * M, 8 * M, ExtentFlag.LAST),
    ]
    assert written_ranges(extents, 5 * M + 1, 4 * K) == [Range(0, 2 * M), Range(4 * M, M + 4 * K)]


def test_pieces_begin_at_multiples_and_a_short_remainder_joins_the_previous_piece() -> None:
    assert split_into_pieces([Range(512 * K, 2 * M)], M) == [
        Range(512 * K, 512 * K),
        Range(M, M),
        Range(2 * M, 512 * K),
    ]
    assert split_into_pieces([Range(0, M + 100 * K)], M) == [Range(0, M + 100 * K)]
    assert split_into_pieces([Range(0, 100 * K)], M) == [Range(0, 100 * K)]


@given(ranges, st.sampled_from([1, 8, 64]))
def test_pieces_and_chunks_cover_each_byte_exactly_once(
    given_ranges: list[Range], piece: int
) -> None:
    whole = merge(given_ranges)
    pieces = split_into_pieces(whole, piece)
    assert merge(pieces) == whole
    assert total_bytes(pieces) == total_bytes(whole)
    assert all(each.length < 2 * piece for each in pieces)
    assert merge(split_into_chunks(whole, piece)) == whole
    assert all(each.length <= piece for each in split_into_chunks(whole, piece))


@given(ranges, ranges)
def test_range_operations_match_sets_of_bytes(one: list[Range], other: list[Range]) -> None:
    assert bytes_of(merge(one)) == bytes_of(one)
    assert bytes_of(intersection(merge(one), merge(other))) == bytes_of(one) & bytes_of(other)
    assert bytes_of(subtract(merge(one), other)) == bytes_of(one) - bytes_of(other)
    assert bytes_of(align(one, 16)) >= bytes_of(one)
    assert all(each.offset % 16 == 0 and each.length % 16 == 0 for each in align(one, 16))


def test_the_fastest_speed_is_the_median_of_the_fastest_tenth() -> None:
    pieces = [Piece(Range(at * M, M), 100.0) for at in range(90)]
    pieces += [Piece(Range(at * M, M), 300.0 + at) for at in range(90, 100)]
    assert fastest_speed(pieces) == 394.5
    assert fastest_speed([Piece(Range(0, M))]) is None


def test_pieces_below_the_limit_are_slow_and_adjacent_ones_are_merged() -> None:
    speeds = [500.0, 100.0, 120.0, 399.0, 401.0, None, 90.0]
    pieces = [Piece(Range(at * M, M), speed) for at, speed in enumerate(speeds)]
    assert slow_ranges(pieces, 500.0, 0.8) == [Range(M, 3 * M), Range(6 * M, M)]


def test_the_average_speed_is_total_bytes_by_total_seconds() -> None:
    pieces = [Piece(Range(0, 300), 100.0), Piece(Range(300, 300), 300.0), Piece(Range(600, 9))]
    assert average_speed(pieces) == 150.0
    assert average_speed([]) is None


def test_a_rewrite_continues_only_after_a_gain_of_5_percent() -> None:
    old = [Piece(Range(0, M), 100.0)]
    assert not is_faster(old, [Piece(Range(0, M), 104.0)])
    assert is_faster(old, [Piece(Range(0, M), 106.0)])
    assert is_faster(old, []), "an unknown speed does not stop a rewrite"
