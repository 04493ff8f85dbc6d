"""Where pieces lie: by arithmetic, and as the extents of a file show it."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssdlab.experiments.fragments.layout import (
    GRAIN,
    WINDOW,
    Layout,
    gaps_between,
    in_order,
    seen,
    stays_whole,
)
from ssdlab.experiments.fragments.parameters import Gap
from ssdlab.storage_stack.extents import Extent, ExtentFlag

KIB, MIB = 1 << 10, 1 << 20


def _extent(logical: int, physical: int, length: int) -> Extent:
    return Extent(logical, physical, length, ExtentFlag(0))


@given(
    gap=st.sampled_from(["worst", "random"]),
    degree=st.sampled_from([2, 8, 64, 256]),
    draw=st.integers(0, 1000),
    seed=st.integers(0, 3),
)
def test_each_piece_lies_in_a_stretch_of_its_own(
    gap: Gap, degree: int, draw: int, seed: int
) -> None:
    layout = Layout(gap, degree, 8 * MIB)
    pieces = layout.pieces(seed, draw)
    assert len(pieces) == degree
    assert sum(length for _, length in pieces) == WINDOW
    for number, (offset, length) in enumerate(pieces):
        assert number * 8 * MIB <= offset
        assert offset + length <= (number + 1) * 8 * MIB
        assert offset % GRAIN == 0


def test_even_gaps_put_all_pieces_at_one_place_of_their_stretches() -> None:
    places = {offset % (8 * MIB) for offset, _ in Layout("worst", 64, 8 * MIB).pieces(0, 5)}
    assert places == {5 * 128 * KIB}


def test_random_gaps_differ_by_draw_and_seed_and_come_again() -> None:
    layout = Layout("random", 64, 8 * MIB)
    draws = [layout.pieces(seed, draw) for seed, draw in ((0, 0), (0, 1), (1, 0))]
    assert len(set(draws)) == 3
    assert layout.pieces(0, 1) == draws[1]


@given(
    degree=st.sampled_from([2, 16, 256]), draw=st.integers(0, 99), gap=st.sampled_from(["worst"])
)
def test_pieces_and_the_gaps_between_them_are_the_whole(degree: int, draw: int, gap: Gap) -> None:
    layout = Layout(gap, degree, 8 * MIB)
    pieces = layout.pieces(0, draw)
    gaps = gaps_between(pieces, layout.span)
    together = sorted([*pieces, *gaps])
    assert [offset for offset, _ in gaps] == sorted((offset for offset, _ in gaps), reverse=True)
    assert together[0][0] == 0
    assert sum(together[-1]) == layout.span
    assert all(a + length == b for (a, length), (b, _) in itertools.pairwise(together))


def test_a_window_in_order_is_visited_backwards() -> None:
    assert in_order(4, WINDOW) == tuple(
        (WINDOW + number * WINDOW // 4, WINDOW // 4) for number in (3, 2, 1, 0)
    )


PIECES = ((0, 8), (100, 8))


@pytest.mark.parametrize(
    ("extents", "whole"),
    [
        ([_extent(0, 1000, 200)], True),
        ([_extent(0, 1000, 50), _extent(50, 5000, 150)], True),
        ([_extent(0, 1000, 104), _extent(104, 5000, 96)], False),  # divides the second
        ([_extent(0, 1000, 50)], False),  # does not cover it
        ([_extent(0, 1000, 50), _extent(100, 1008, 100)], False),  # the pieces touch on the drive
        ([_extent(0, 1000, 50), _extent(104, 2000, 96)], False),  # a hole
    ],
)
def test_a_place_counts_where_extents_divide_and_join_no_piece(
    extents: list[Extent], *, whole: bool
) -> None:
    assert stays_whole(PIECES, extents) is whole


def test_what_a_file_became_is_held_against_what_was_asked() -> None:
    places = (1000, 1100, 900, 1050)
    extents = [_extent(8 * number, place, 8) for number, place in enumerate(places)]
    found = seen(extents, ((0, 8), (100, 8), (200, 8), (350, 8)))
    assert (found.pieces, found.jumps_back, found.distances_met) == (4, 1, 2)
    assert found.lengths == (8, 8, 8, 8)
