"""The size of a write buffer by reads at growing distances, on made-up and simulated drives."""

from __future__ import annotations

import numpy as np
import pytest

from ssdlab.device import Listed
from ssdlab.experiments.cache.buffers import MIB, Size
from ssdlab.experiments.cache.measure import read_back_job
from ssdlab.experiments.cache.read_back import (
    APART,
    FARTHEST,
    READS,
    WRITE_BYTES,
    Result,
    Search,
    depth_for,
)

RATE = 500e6
FAST, SLOW = 30_000.0, 400_000.0


def _result(fast_share: float, rate: float = RATE) -> Result:
    counts = np.array([round(100 * fast_share), 100 - round(100 * fast_share)])
    return Result(rate, np.array([FAST, SLOW]), counts)


def _found(buffer: int, rate: float = RATE, *, slow: float = 1.0) -> Size | None:
    """The size of a buffer; `slow` times the rate is that of writes whose reads are slow."""
    search = Search(depth_for(RATE))
    while (distance := search.next()) is not None:
        is_fast = distance <= buffer
        search.add(distance, _result(float(is_fast), RATE if is_fast else slow * RATE))
    return search.size(rate)


@pytest.mark.parametrize("buffer", [MIB // 2, 3 * MIB, 64 * MIB])
def test_the_size_is_between_the_last_fast_and_the_first_slow_distance(buffer: int) -> None:
    found = _found(buffer)
    assert found is not None
    assert found.low <= buffer <= found.high < 1.2 * buffer
    # The blocks in flight are not in the buffer yet.
    assert found.low < buffer - depth_for(RATE) * WRITE_BYTES


def test_writes_at_another_rate_than_large_ones_show_no_size() -> None:
    assert _found(4 * MIB, rate=1.2 * RATE) is None
    assert _found(4 * MIB, rate=RATE / 1.2) is None


def test_slow_reads_may_lower_the_rate_of_writes_but_a_collection_ends_the_search() -> None:
    waiting, collecting = _found(4 * MIB, slow=0.9), _found(4 * MIB, slow=0.5)
    assert waiting is not None
    assert collecting is not None
    assert waiting.high < 5 * MIB < FARTHEST < collecting.high


def test_a_drive_that_reads_all_at_the_same_speed_shows_no_size() -> None:
    search = Search(depth_for(RATE))
    while (distance := search.next()) is not None:
        search.add(distance, _result(1.0))
    assert search.size(RATE) is None


def test_reads_follow_the_writes_at_the_distance_and_never_read_what_is_to_come() -> None:
    start, size, distance = 64 * MIB, 256 * MIB, 3 * MIB
    pattern = read_back_job(distance, start, size, 4).pattern
    assert isinstance(pattern, Listed)
    written, reads = start, 0
    for offset, length, hint in pattern.list:
        if hint == "read":
            assert offset == written - distance
            reads += 1
        else:
            assert (offset, length) == (written, WRITE_BYTES)
            written += WRITE_BYTES
    assert reads == READS
    assert written == start + READS * APART
    places = {offset % APART for offset, _, hint in pattern.list if hint == "read"}
    assert len(places) > READS // 3  # on different dies


@pytest.mark.parametrize(("rate", "depth"), [(1e6, 4), (1e9, 7), (1e12, 32)])
def test_faster_flash_needs_more_writes_in_flight(rate: float, depth: int) -> None:
    assert depth_for(rate) == depth
