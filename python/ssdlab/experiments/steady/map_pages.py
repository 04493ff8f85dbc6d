"""How much of the region a map page covers, by single reads of a block in each MiB, in order.

The first of them in each map page loads it, unless it is in memory. Random reads before have left
random pages of the map in memory. Each load evicts a page that was not used for long, which is one
that is still to be read: strictly (LRU), or nearly always (CLOCK).
"""

from __future__ import annotations

import math
from typing import Final

from ssdlab.analysis.write_amplification import Bracket
from ssdlab.experiments.steady.gauged import Gauged

MAP_ENTRY_BYTES: Final = 4
"""For each mapping unit, in the model and in most drives."""
_SURE: Final = 2.0  # standard deviations
_EACH: Final = 0.8
"""Loads of a read / those of a map page, from which on each read may be in a page of its own."""
_RARER: Final = 1 / 3
"""How much fewer loads CLOCK needs than LRU: times the square of the share of pages not loaded. It
is off by less than a hundredth on simulated memories for a half to seven eighths of the map."""


def map_page_span(gauged: Gauged) -> Bracket | None:
    """Bytes of the region that a map page covers; None if the reads do not show it."""
    reads, misses = gauged.strided_reads, gauged.map_misses
    if reads is None or misses is None or misses.low <= 0:
        return None
    scanned = min(1.0, reads.size / gauged.region)
    loads = Bracket(*(_loads_of_page(share, scanned) for share in misses))
    rarer = _RARER * scanned * (1 - loads.value) ** 2
    value, least, most = (1 - rarer / 2) * loads.value, (1 - rarer) * loads.low, loads.high
    slow, others = reads.number * reads.slow, reads.number * reads.slow_near
    error = _SURE * math.sqrt(slow * max(0.0, 1 - least) + others + 1)
    pages = Bracket(slow / value, (slow - others - error) / most, (slow + error) / least)
    if pages.low <= 0:
        return None
    low = 0.0 if reads.slow > _EACH * value else reads.size / pages.high
    return Bracket(reads.size / pages.value, low, reads.size / pages.low)


def _loads_of_page(misses: float, scanned: float) -> float:
    """Loads for each map page of the part of the region that is read in order.

    `misses` is the share of map pages that are not in memory before. Of the pages in memory that
    are still to be read, each load evicts one, until none is left (LRU).
    """
    if scanned <= 1 - misses:
        return -misses * math.log(1 - scanned) / scanned
    return (scanned - (1 - misses) - misses * math.log(misses)) / scanned


def map_writes(gauged: Gauged) -> Bracket:
    """What map pages add to WAF: each one that a write loads evicts a page that has changed.

    An entry is taken to have four bytes, and a map page to have at least a mapping unit.
    """
    misses, span = gauged.map_misses, map_page_span(gauged)
    if misses is None or span is None:
        low = 0.0 if misses is None else max(0.0, misses.low) * min(gauged.units)
        return Bracket(low, low, math.inf)
    entries = [size / gauged.block for size in span]
    pages = [MAP_ENTRY_BYTES * each / gauged.block for each in entries]
    low = misses.low * max(min(gauged.units), pages[1] / max(gauged.units))
    high = misses.high * pages[2] / min(gauged.units)
    return Bracket(math.sqrt(low * high), low, high)
