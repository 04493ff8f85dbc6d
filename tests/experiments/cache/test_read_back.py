"""The size of a write buffer by reads at growing distances, on made-up and simulated drives."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from ssdlab.device import Job, Listed
from ssdlab.experiments.cache.buffers import MIB, Size
from ssdlab.experiments.cache.measure import _fill, read_back_job
from ssdlab.experiments.cache.read_back import (
    APART,
    CLOSE,
    FARTHEST,
    NEAREST,
    READ_BYTES,
    READS,
    WRITE_BYTES,
    Result,
    Search,
    depth_for,
)
from ssdlab.runner.session import RunSession, Step

RATE = 500e6
FAST, SLOW = 30_000.0, 400_000.0


def _result(fast_share: float, rate: float = RATE) -> Result:
    counts = np.array([round(100 * fast_share), 100 - round(100 * fast_share)])
    return Result(rate, np.array([FAST, SLOW]), counts)


def _found(buffer: int, rate: float = RATE, *, slow: float = 1.0) -> Size | None:
    """The size of a buffer; `slow` times the rate is that of writes whose reads are slow."""
    search = Search(depth_for(RATE), rate)
    while (distance := search.next()) is not None:
        is_fast = distance <= buffer
        search.add(distance, _result(float(is_fast), RATE if is_fast else slow * RATE))
    return search.size


@pytest.mark.parametrize("buffer", [MIB // 2, 3 * MIB, 64 * MIB])
def test_the_size_is_between_the_last_fast_and_the_first_slow_distance(buffer: int) -> None:
    found = _found(buffer)
    assert found is not None
    assert 0.85 * buffer - 4 * WRITE_BYTES < found.low <= buffer <= found.high < 1.11 * buffer


@pytest.mark.parametrize("blocks", range(16, 64))
def test_the_search_ends_if_no_block_is_between_the_distances(blocks: int) -> None:
    search, distances = Search(4, RATE), list[int]()
    while (distance := search.next()) is not None:
        assert distance not in distances
        distances.append(distance)
        search.add(distance, _result(float(distance <= blocks * READ_BYTES)))
    assert len(distances) < 20


def test_what_is_in_flight_may_not_be_in_the_buffer_yet() -> None:
    lows = []
    for depth in (4, 32):
        search = Search(depth, RATE)
        while (distance := search.next()) is not None:
            search.add(distance, _result(float(distance <= 4 * MIB)))
        found = search.size
        assert found is not None
        lows.append(found.low)
    assert lows[0] - lows[1] == 28 * WRITE_BYTES


def test_the_search_ends_at_once_if_far_reads_are_as_fast() -> None:
    search = Search(4, RATE)
    for expected in (NEAREST, FARTHEST):
        assert search.next() == expected
        search.add(expected, _result(1.0))
    assert search.next() is None


def _gradual(buffer: int, factor: float) -> Size:
    """The size if ever fewer reads are fast from `buffer` / `factor` to `buffer` * `factor`."""
    search = Search(4, RATE)
    while (distance := search.next()) is not None:
        share = 0.5 - 0.5 * np.log(distance / buffer) / np.log(factor)
        search.add(distance, _result(float(np.clip(share, 0.0, 1.0))))
    found = search.size
    assert found is not None
    return found


def test_if_data_leave_the_buffer_in_another_order_the_size_has_wide_bounds() -> None:
    found = _gradual(2 * MIB, factor=3.0)
    assert found.low < 1.5 * MIB
    assert found.high > 2.6 * MIB
    assert not found.is_determined


def test_where_the_order_is_unclear_a_distance_a_little_outside_is_tried() -> None:
    """Beyond 4 MiB, which is neither inside nor outside for sure, only 256 MiB was tried before."""
    search, distances = Search(4, RATE), list[int]()
    while (distance := search.next()) is not None:
        distances.append(distance)
        is_unclear = 3.9 * MIB < distance < 4.5 * MIB
        search.add(distance, _result(0.4 if is_unclear else float(distance < 4 * MIB)))
    assert distances[-1] == pytest.approx(1.2 * 4 * MIB, rel=0.01)
    found = search.size
    assert found is not None
    assert found.high == pytest.approx(1.08 * 4 * MIB)


@pytest.mark.parametrize(
    ("shares", "inside", "beyond"),
    [
        ({512: 1.0, 724: 0.2, 860: 0.5, 1448: 0.1}, 512, 1448),
        ({2048: 0.1, 1024: 0.9, 700: 0.5, 400: 1.0}, 400, 2048),
    ],
)
def test_a_distance_with_few_fast_reads_by_chance_is_not_beyond_for_sure(
    shares: dict[int, float], inside: int, beyond: int
) -> None:
    """A farther one has more; nor is one with many inside, if a nearer one has fewer."""
    search = Search(4, RATE)
    for distance, share in {NEAREST: 1.0, FARTHEST: 0.0}.items():
        search.add(distance, _result(share))
    for kib, share in shares.items():
        search.add(kib << 10, _result(share))
    found = search.size
    assert found is not None
    assert found.low == pytest.approx(0.92 * (inside << 10) - 4 * WRITE_BYTES)
    assert found.high == pytest.approx(1.08 * (beyond << 10))


def test_a_little_of_that_does_not_matter() -> None:
    found = _gradual(2 * MIB, factor=1.15)
    assert found.is_determined
    assert found.low < 2 * MIB < found.high
    assert found.high < 1.3 * found.low


class _Session:
    """Counts the fills; the first ones are fast, as the buffer is not full."""

    def __init__(self, fast: int) -> None:
        self.fast, self.places = fast, list[int]()

    def run(self, _step: Step, job: Job) -> SimpleNamespace:
        self.places.append(job.offset_bytes)
        rate = 3 * RATE if len(self.places) <= self.fast else RATE
        return SimpleNamespace(bytes=job.amount_bytes, seconds=job.amount_bytes / rate)


def test_a_fill_goes_on_until_the_buffer_is_full_and_the_distance_is_written() -> None:
    chunk, size = 8 * MIB, 1 << 30
    session = _Session(fast=3)
    assert _fill(cast(RunSession, session), None, size, RATE, 0, 1 * MIB) == 4 * chunk
    assert session.places == [0, chunk, 2 * chunk, 3 * chunk]
    session = _Session(fast=0)
    assert _fill(cast(RunSession, session), None, size, RATE, 0, 20 * MIB) == 3 * chunk
    session = _Session(fast=10**6)
    assert _fill(cast(RunSession, session), None, size, RATE, 0, 1 * MIB) == FARTHEST


@pytest.mark.parametrize("buffer", [3 * MIB, 30 * MIB])
def test_writes_that_are_faster_than_large_ones_do_not_fill_the_buffer(buffer: int) -> None:
    assert _found(buffer, rate=RATE / 1.2) is None


@pytest.mark.parametrize("buffer", [MIB // 2, 3 * MIB])
def test_a_small_buffer_may_share_its_place_with_relocated_data(buffer: int) -> None:
    """Then writes are slower than large ones, and the buffer may hold more than is read fast."""
    usual, shared = _found(buffer), _found(buffer, rate=1.2 * RATE)
    assert usual is not None
    assert shared is not None
    assert shared.low == usual.low
    assert shared.high == pytest.approx(usual.high * 1.15 / 1.08)


def test_the_upper_bound_is_that_of_the_rate_at_the_first_slow_distance() -> None:
    """The rate at nearer distances does not matter."""
    search = Search(4, RATE)
    for distance, rate in ((NEAREST, RATE), (8 * MIB, RATE), (2 * MIB, 0.7 * RATE)):
        search.add(distance, _result(float(distance <= 2 * MIB), rate))
    search.add(5 * MIB // 2, _result(0.0))
    found = search.size
    assert found is not None
    assert found.high == pytest.approx(1.08 * 2.5 * MIB)


@pytest.mark.parametrize(("share", "counts"), [(0.35, True), (0.25, False)])
def test_no_distance_counts_if_flash_takes_little_but_relocated_data(
    share: float, *, counts: bool
) -> None:
    assert (_found(MIB, rate=RATE / share) is not None) is counts


def test_a_large_buffer_may_hold_more_relocated_data_than_that() -> None:
    assert _found(4 * MIB, rate=1.2 * RATE) is None
    assert _found(30 * MIB, rate=1.2 * RATE) is None


@pytest.mark.parametrize(("latency", "is_fast"), [(1.2 * FAST, True), (1.4 * FAST, False)])
def test_reads_of_an_slc_cache_are_slower_than_those_of_the_buffer(
    latency: float, is_fast: bool
) -> None:
    search = Search(4, RATE)
    latencies = {NEAREST: FAST, FARTHEST: SLOW}
    while (distance := search.next()) is not None:
        result = Result(RATE, np.array([latencies.get(distance, latency)]), np.array([100]))
        search.add(distance, result)
    found = search.size
    assert found is not None
    assert (found.low > 100 * MIB) is is_fast
    assert (found.high < MIB) is not is_fast


def test_slow_reads_may_lower_the_rate_of_writes_but_a_collection_ends_the_search() -> None:
    waiting, collecting = _found(8 * MIB, slow=0.9), _found(8 * MIB, slow=0.5)
    assert waiting is not None
    assert collecting is not None
    assert waiting.high < 10 * MIB < FARTHEST < collecting.high


def test_a_distance_is_measured_again_if_writes_have_another_rate() -> None:
    search, distances = Search(4, RATE), list[int]()
    while (distance := search.next()) is not None:
        distances.append(distance)
        rate = 0.7 * RATE if len(distances) in {4, 5} else RATE
        search.add(distance, _result(float(distance <= 30 * MIB), rate))
    assert distances[3] == distances[4] == distances[5] != distances[6]
    assert search.size is not None
    assert search.size.is_determined
    search = Search(4, RATE)
    for number in range(10):
        distance = search.next()
        if distance is None:
            break
        search.add(distance, _result(float(distance <= 30 * MIB), RATE if number < 2 else RATE / 2))
    assert number == 6  # the nearest, the farthest, and four times the first between them
    assert search.size is None


def test_distances_that_do_not_count_show_no_size_in_the_analysis_either() -> None:
    """It does not know how much was written before the farthest one."""
    search = Search(4, RATE)
    for distance, rate in ((NEAREST, RATE), (190 * MIB, RATE), (8 * MIB, RATE / 2)):
        search.add(distance, _result(float(distance <= 3 * MIB), rate))
    found = search.size
    assert found is None
    search.add(8 * MIB, _result(0.0))
    found = search.size
    assert found is not None
    assert found.high < 10 * MIB


def test_a_drive_that_reads_all_at_the_same_speed_shows_no_size() -> None:
    search = Search(depth_for(RATE), RATE)
    while (distance := search.next()) is not None:
        search.add(distance, _result(1.0))
    assert search.size is None


def test_reads_follow_the_writes_at_the_distance_and_never_read_what_is_to_come() -> None:
    start, size, distance = 64 * MIB, 256 * MIB, 3 * MIB
    pattern = read_back_job(distance, start, size, 4).pattern
    assert isinstance(pattern, Listed)
    written, behind = start, list[int]()
    for offset, length, hint in pattern.list:
        if hint == "read":
            behind.append(written - offset)
        else:
            assert (offset, length) == (written, WRITE_BYTES)
            written += WRITE_BYTES
    assert len(behind) == READS
    assert distance / CLOSE < min(behind) < max(behind) <= distance
    assert len(set(behind)) > READS // 3  # not all in step with the programs of the dies
    assert written == start + READS * APART
    places = {offset % APART for offset, _, hint in pattern.list if hint == "read"}
    assert len(places) > READS // 3  # on different dies


@pytest.mark.parametrize(("rate", "depth"), [(1e6, 4), (1e9, 7), (1e12, 32)])
def test_faster_flash_needs_more_writes_in_flight(rate: float, depth: int) -> None:
    assert depth_for(rate) == depth
