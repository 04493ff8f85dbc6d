"""Layouts: offsets of pieces, and comparison with a file's extents."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssdlab.experiments.fragments.layout import (
    ALIGNMENT,
    WINDOW,
    Layout,
    actual_layout,
    contiguous,
    fits_extents,
    gaps_between,
    spread,
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
def test_each_piece_is_in_its_own_slot(gap: Gap, degree: int, draw: int, seed: int) -> None:
    layout = Layout(gap, degree, 8 * MIB)
    pieces = layout.pieces(seed, draw)
    assert len(pieces) == degree
    assert sum(length for _, length in pieces) == WINDOW
    for number, (offset, length) in enumerate(pieces):
        assert number * 8 * MIB <= offset
        assert offset + length <= (number + 1) * 8 * MIB
        assert offset % ALIGNMENT == 0


def test_even_gaps_put_all_pieces_at_the_same_offset_in_their_slots() -> None:
    offsets = {offset % (8 * MIB) for offset, _ in Layout("worst", 64, 8 * MIB).pieces(0, 5)}
    assert offsets == {spread(5, 64) * 128 * KIB}


@pytest.mark.parametrize("count", [64, 129])
def test_ten_draws_cover_the_region_evenly(count: int) -> None:
    places = sorted(spread(draw, count) for draw in range(10))
    gaps = [after - before for before, after in itertools.pairwise([*places, count])]
    assert places[0] == 0
    assert max(gaps) < 2.5 * count / 10


def test_draws_do_not_stay_in_every_second_row_of_dies() -> None:
    # 128 places in rows of 8 dies. Eight of ten multiples of the golden ratio are in odd rows.
    assert 3 <= sum(spread(draw, 128) // 8 % 2 for draw in range(10)) <= 7


def test_random_gaps_depend_on_draw_and_seed_only() -> None:
    layout = Layout("random", 64, 8 * MIB)
    draws = [layout.pieces(seed, draw) for seed, draw in ((0, 0), (0, 1), (1, 0))]
    assert len(set(draws)) == 3
    assert layout.pieces(0, 1) == draws[1]


@given(
    degree=st.sampled_from([2, 16, 256]), draw=st.integers(0, 99), gap=st.sampled_from(["worst"])
)
def test_pieces_and_gaps_cover_the_whole_file(degree: int, draw: int, gap: Gap) -> None:
    layout = Layout(gap, degree, 8 * MIB)
    pieces = layout.pieces(0, draw)
    gaps = gaps_between(pieces, layout.span)
    parts = sorted([*pieces, *gaps])
    assert [offset for offset, _ in gaps] == sorted((offset for offset, _ in gaps), reverse=True)
    assert parts[0][0] == 0
    assert sum(parts[-1]) == layout.span
    assert all(a + length == b for (a, length), (b, _) in itertools.pairwise(parts))


def test_a_contiguous_window_is_read_from_the_end() -> None:
    assert contiguous(4, WINDOW) == tuple(
        (WINDOW + number * WINDOW // 4, WINDOW // 4) for number in (3, 2, 1, 0)
    )


PIECES = ((0, 8), (100, 8))


@pytest.mark.parametrize(
    ("extents", "fits"),
    [
        ([_extent(0, 1000, 200)], True),
        ([_extent(0, 1000, 50), _extent(50, 5000, 150)], True),
        ([_extent(0, 1000, 104), _extent(104, 5000, 96)], False),  # splits the second piece
        ([_extent(0, 1000, 50)], False),  # does not cover the second piece
        ([_extent(0, 1000, 50), _extent(100, 1008, 100)], False),  # the pieces touch on the drive
        ([_extent(0, 1000, 50), _extent(104, 2000, 96)], False),  # a hole
    ],
)
def test_pieces_must_not_cross_extents_or_touch_on_the_drive(
    extents: list[Extent], *, fits: bool
) -> None:
    assert fits_extents(PIECES, extents) is fits


def test_the_actual_layout_is_compared_with_the_planned_one() -> None:
    starts = (1000, 1100, 900, 1050)
    extents = [_extent(8 * number, start, 8) for number, start in enumerate(starts)]
    actual = actual_layout(extents, ((0, 8), (100, 8), (200, 8), (350, 8)))
    assert (actual.pieces, actual.jumps_back, actual.distances_met) == (4, 1, 2)
    assert actual.lengths == (8, 8, 8, 8)
