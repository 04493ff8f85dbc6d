"""Ranges on the device's grid: what is measured, what is rewritten together, what is left."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ssdlab.heal.device.windows import (
    PAGE_BYTES,
    WINDOW_BYTES,
    Window,
    complement,
    gridded,
    measurable,
    overlap,
    windows,
    without_zeros,
)
from ssdlab.heal.pieces import Range, joined, total

M = 1 << 20


def bytes_in(ranges: list[Range]) -> set[int]:
    return {at for each in ranges for at in range(each.offset, each.end)}


@st.composite
def sorted_ranges(draw: st.DrawFn) -> list[Range]:
    edges = sorted(draw(st.sets(st.integers(0, 60), max_size=12)))
    edges = edges[: len(edges) // 2 * 2]
    return joined(Range(a, b - a) for a, b in zip(edges[::2], edges[1::2], strict=True))


@given(sorted_ranges(), sorted_ranges())
def test_overlap_is_what_both_have(left: list[Range], right: list[Range]) -> None:
    assert bytes_in(overlap(left, right)) == bytes_in(left) & bytes_in(right)


@given(sorted_ranges())
def test_the_complement_is_all_the_rest(ranges: list[Range]) -> None:
    assert bytes_in(complement(ranges, 50)) == set(range(50)) - bytes_in(ranges)


@given(sorted_ranges(), st.integers(1, 9))
def test_a_grid_cuts_and_loses_nothing(ranges: list[Range], step: int) -> None:
    parts = gridded(ranges, step)
    assert bytes_in(parts) == bytes_in(ranges)
    assert all(part.offset // step == (part.end - 1) // step for part in parts)


def test_a_window_never_reaches_over_the_devices_grid() -> None:
    found = windows([Range(WINDOW_BYTES - 8192, 3 * WINDOW_BYTES), Range(5 * WINDOW_BYTES, 4096)])
    assert [each.length for each in found] == [
        8192,
        WINDOW_BYTES,
        WINDOW_BYTES,
        WINDOW_BYTES - 8192,
        4096,
    ]


def test_pieces_of_which_less_than_half_is_in_use_are_not_compared() -> None:
    used = [Range(0, M), Range(M, M // 2 - 4096), Range(2 * M, M // 2), Range(3 * M, M)]
    assert measurable(used, M, 4 * M - 1) == [Range(0, M), Range(2 * M, M)]


def test_pages_of_zeros_are_left_and_the_rest_keeps_its_order() -> None:
    one, other = b"a" * PAGE_BYTES, b"b" * 512
    window = Window((Range(0, 3 * PAGE_BYTES), Range(5 * PAGE_BYTES, 1024)))
    zeros = bytes(PAGE_BYTES)
    kept, content = without_zeros(window, one + zeros + one + other + bytes(512))
    assert kept is not None
    assert [(each.offset // 512, each.length // 512) for each in kept.ranges] == [
        (0, 8), (16, 8), (40, 2),
    ]  # fmt: skip
    assert content == one + one + other + bytes(512)
    assert kept.length == total(kept.ranges) == len(content)
    assert without_zeros(window, bytes(window.length)) == (None, b"")
