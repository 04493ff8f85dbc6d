"""How ranges of a device are grouped, and that pages of zeros are skipped."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ssdlab.heal.device.windows import (
    PAGE_BYTES,
    WINDOW_BYTES,
    Window,
    complement,
    drop_zero_pages,
    measurable_pieces,
    split_into_windows,
)
from ssdlab.heal.pieces import Range, intersection, merge, split_at_grid, total_bytes

M = 1 << 20


def bytes_in(ranges: list[Range]) -> set[int]:
    return {at for each in ranges for at in range(each.offset, each.end)}


@st.composite
def sorted_ranges(draw: st.DrawFn) -> list[Range]:
    edges = sorted(draw(st.sets(st.integers(0, 60), max_size=12)))
    edges = edges[: len(edges) // 2 * 2]
    return merge(Range(a, b - a) for a, b in zip(edges[::2], edges[1::2], strict=True))


@given(sorted_ranges(), sorted_ranges())
def test_the_intersection_has_the_bytes_of_both(left: list[Range], right: list[Range]) -> None:
    assert bytes_in(intersection(left, right)) == bytes_in(left) & bytes_in(right)


@given(sorted_ranges())
def test_the_complement_has_all_other_bytes(ranges: list[Range]) -> None:
    assert bytes_in(complement(ranges, 50)) == set(range(50)) - bytes_in(ranges)


@given(sorted_ranges(), st.integers(1, 9))
def test_splitting_at_a_grid_keeps_every_byte(ranges: list[Range], step: int) -> None:
    parts = split_at_grid(ranges, step)
    assert bytes_in(parts) == bytes_in(ranges)
    assert all(part.offset // step == (part.end - 1) // step for part in parts)


def test_no_window_crosses_a_multiple_of_the_window_size() -> None:
    found = split_into_windows(
        [Range(WINDOW_BYTES - 8192, 3 * WINDOW_BYTES), Range(5 * WINDOW_BYTES, 4096)]
    )
    assert [each.length for each in found] == [
        8192,
        WINDOW_BYTES,
        WINDOW_BYTES,
        WINDOW_BYTES - 8192,
        4096,
    ]


def test_pieces_with_less_than_half_in_use_are_not_measured() -> None:
    used = [Range(0, M), Range(M, M // 2 - 4096), Range(2 * M, M // 2), Range(3 * M, M)]
    assert measurable_pieces(used, M, 4 * M - 1) == [Range(0, M), Range(2 * M, M)]


def test_pages_of_zeros_are_dropped_and_the_rest_keeps_its_order() -> None:
    one, other = b"a" * PAGE_BYTES, b"b" * 512
    window = Window((Range(0, 3 * PAGE_BYTES), Range(5 * PAGE_BYTES, 1024)))
    zeros = bytes(PAGE_BYTES)
    kept, content = drop_zero_pages(window, one + zeros + one + other + bytes(512))
    assert kept is not None
    assert [(each.offset // 512, each.length // 512) for each in kept.ranges] == [
        (0, 8), (16, 8), (40, 2),
    ]  # fmt: skip
    assert content == one + one + other + bytes(512)
    assert kept.length == total_bytes(kept.ranges) == len(content)
    assert drop_zero_pages(window, bytes(window.length)) == (None, b"")
