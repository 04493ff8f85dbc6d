"""How much of the region a map page covers, and what its programs add to WAF."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
from gauged_drive import drive

from ssdlab.analysis.write_amplification import Bracket
from ssdlab.experiments.steady.map_pages import map_page_span, map_writes
from ssdlab.experiments.steady.single_reads import StridedReads

MIB = 1 << 20
BLOCK = 4096


def _misses(share: float, error: float = 0.0) -> Bracket:
    return Bracket(share, share - error, share + error)


def _drive(reads: StridedReads | None, **values: Any) -> Any:
    usual = {"region": 2048 * MIB, "map_misses": _misses(1.0), "block": BLOCK}
    return drive(strided_reads=reads, **usual | values)


def _loads(pages: int, in_memory: int, scanned: int, is_clock: bool) -> tuple[float, float]:
    """The share of random reads that load a page, and the mean loads of reads of pages in order."""
    generator = np.random.default_rng(1)
    misses, loads = [], []
    for _ in range(20):
        memory = OrderedDict[int, bool]()  # whether each page was used since the hand passed it
        accesses = [
            *generator.integers(0, pages, 8000).tolist(),
            *np.repeat(np.arange(scanned), 16),
        ]
        missed = []
        for page in accesses:
            missed.append(page not in memory)
            if page in memory and is_clock:
                memory[page] = True
                continue
            while is_clock and len(memory) == in_memory and next(iter(memory.values())):
                passed, _ = memory.popitem(last=False)
                memory[passed] = False
            if page not in memory and len(memory) == in_memory:
                memory.popitem(last=False)
            memory[page] = True
            memory.move_to_end(page)
        misses.append(np.mean(missed[4000:8000]))
        loads.append(sum(missed[8000:]))
    return float(np.mean(misses)), float(np.mean(loads))


@pytest.mark.parametrize("is_clock", [False, True])
@pytest.mark.parametrize(
    ("in_memory", "region_pages"), [(20, 128), (64, 128), (100, 128), (111, 128), (400, 512)]
)
def test_the_loads_of_reads_in_order_show_how_many_map_pages_there_are(
    in_memory: int, region_pages: int, is_clock: bool
) -> None:
    """Each covers 16 MiB; of the larger region only the first 2 GiB are read."""
    share, loads = _loads(region_pages, in_memory, 128, is_clock)
    reads = StridedReads(2048, 2048 * MIB, loads / 2048, 0.0)
    gauged = _drive(reads, region=region_pages * 16 * MIB, map_misses=_misses(share))
    span = map_page_span(gauged)
    assert span is not None
    assert span.value / MIB == pytest.approx(16, rel=0.09)
    assert span.low < 16 * MIB < span.high < 2.2 * span.low


def test_slow_reads_that_load_nothing_widen_the_span() -> None:
    plain, noisy = (
        map_page_span(_drive(StridedReads(2048, 2048 * MIB, 140 / 2048, others)))
        for others in (0.0, 12 / 2048)
    )
    assert plain is not None
    assert noisy is not None
    assert noisy.value == plain.value == pytest.approx(2048 / 140 * MIB)
    assert plain.high < 2048 / 128 * MIB < noisy.high
    assert noisy.low < plain.low


def test_a_map_page_that_each_read_loads_may_be_of_any_smaller_size() -> None:
    span = map_page_span(_drive(StridedReads(2048, 2048 * MIB, 1.0, 0.0)))
    assert span is not None
    assert span.low == 0.0
    assert MIB <= span.high < 1.1 * MIB
    assert map_writes(_drive(StridedReads(2048, 2048 * MIB, 1.0, 0.0))).low == 1.0, "a unit"


@pytest.mark.parametrize(
    ("reads", "misses"),
    [
        (None, _misses(0.5)),  # an earlier version
        (StridedReads(2048, 2048 * MIB, 0.06, 0.0), None),
        (StridedReads(2048, 2048 * MIB, 0.06, 0.0), _misses(0.01, 0.02)),
        (StridedReads(2048, 2048 * MIB, 0.001, 0.0), _misses(0.5)),  # too few to tell
    ],
)
def test_without_loads_or_their_share_the_span_is_not_known(
    reads: StridedReads | None, misses: Bracket | None
) -> None:
    assert map_page_span(_drive(reads, map_misses=misses)) is None


@pytest.mark.parametrize("unit", [1, 2])
def test_a_write_that_loads_a_map_page_programs_another(unit: int) -> None:
    """Pages that cover 32 MiB have 32 KiB in units of 4 KiB, and 16 KiB in units of 8 KiB."""
    reads = StridedReads(2048, 2048 * MIB, 64 / 2048, 0.0)
    added = map_writes(_drive(reads, unit=unit))
    assert added.low < 8 / unit < added.high
    assert added.high < 1.4 * added.low
    unclear = map_writes(_drive(reads, unit=None, units=(1, 2)))
    assert unclear.low == map_writes(_drive(reads, unit=2)).low
    assert unclear.high == map_writes(_drive(reads, unit=1)).high


def test_a_map_page_of_unknown_size_has_at_least_a_mapping_unit() -> None:
    assert map_writes(_drive(None, unit=2, map_misses=_misses(0.5, 0.1))) == pytest.approx(
        (0.8, 0.8, float("inf"))
    )
    assert map_writes(_drive(None, map_misses=None)).low == 0.0
