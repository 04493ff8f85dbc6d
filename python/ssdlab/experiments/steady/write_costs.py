"""Bounds of WAF by what a steady write costs: programs, and reads of the units that are relocated.

A write costs WAF programs, and at most a read for each unit that is not the host's. Large writes in
order show what a program costs, if neither link nor buffer limits them; known garbage shows what
both cost together. Random reads of single blocks show what a read costs, at most; and as collection
reads each page of a victim once, large reads show what its reads cost for each program, at most. So
these bounds hold whatever the choice of victims. If victims are chosen at random, some of them are
full even on trimmed flash, so that large writes may cost more than a program: then the first fill
counts, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from ssdlab.analysis.write_amplification import Bracket
from ssdlab.experiments.steady.garbage import AT_RANDOM, Garbage
from ssdlab.experiments.steady.gauged import LIMITED, Gauged
from ssdlab.experiments.steady.rates import settled

_BLOCK: Final = 4096  # bytes of a read
_LEAST: Final = 1.05  # factor of the lower bound
_MOST: Final = 1.02  # factor of the upper bound, if large writes show what a program costs
_MOST_BY_GARBAGE: Final = 1.07
"""The same if known garbage does, whose victims may have been emptier; or if large writes may have
gone to a cache, which is faster."""
_DIRECT: Final = (0.8, 1.02)
"""The cost of a program by known garbage / that by large writes: victims and dies are not equal."""
_CLEAR: Final = 3.0
"""WAF of known garbage that decides alone: with less, newer superblocks are collected, too."""
FIRST: Final = 5.0  # WAF of known garbage in the first part, at least
_SLOWEST_S: Final = 0.003  # of a program
"""A buffer that holds less than is written in that time may not keep all dies busy."""
_SUSPENDING: Final = 4.0  # time of a read that suspends a program / of another one, at most
_BUFFERS: Final = 3.0  # what is written before collection / the buffer, at least
_BUFFERS_OF_MAP: Final = 1.8  # the same, if look-ups cost more than programs
_EARLIEST: Final = 0.01
"""Of the region: where the rate falls earlier, a buffer was full, as drives hide more flash."""
_FASTER: Final = 1.5
"""Rate of writes before collection / of large ones, if a cache takes them; a buffer takes some."""
_FREE: Final = 0.85  # of what writes before collection cost more than a program, at least
CACHED: Final = 0.8  # of the writes go to a cache that held the last ones, at least


def waf_by_costs(gauged: Gauged) -> Bracket | None:
    """WAF without writes of the map; None if the gauges do not show what a program costs."""
    bounds = [each for unit in gauged.units for each in _of_unit(gauged, unit)]
    if not bounds:
        return None
    low = max(1.0, min(low for low, _ in bounds) / _LEAST)
    is_exact = not (gauged.borrows or isinstance(gauged.garbage, Garbage))
    high = max(high for _, high in bounds) * (_MOST if is_exact else _MOST_BY_GARBAGE)
    if gauged.writes_cache:
        low += CACHED * min(gauged.units)
    if gauged.may_write_cache:
        high += max(gauged.units)
    return Bracket(math.sqrt(low * high), low, high) if low <= high else None


def is_clear(gauged: Gauged) -> bool:
    """Whether known garbage of the first part shows WAF by costs, whatever else the run shows."""
    garbage = gauged.garbage
    return isinstance(garbage, Garbage) and garbage.waf > FIRST and not gauged.may_write_cache


def least_program_s(gauged: Gauged) -> float | None:
    """Seconds per byte of a program by known garbage, at least; None if that does not show it.

    The reads of what is relocated take as long as random reads, at most.
    """
    garbage, misses = gauged.garbage, gauged.map_misses
    if not isinstance(garbage, Garbage) or misses is None:
        return None
    reads = (1 - garbage.trimmed) * _read_s(gauged, misses.value) / min(gauged.units)
    least = garbage.trimmed / garbage.rate - reads
    return least if least > 0 else None


def _read_s(gauged: Gauged, misses: float) -> float:
    """Seconds per byte of the rounds for the random read of a block, at most."""
    return _BLOCK / gauged.block / settled(gauged.curve("read")) / (1 + misses)


def _of_unit(gauged: Gauged, unit: int) -> Iterator[tuple[float, float]]:
    """The bounds for each pair of what a program and the read of a relocated unit may cost."""
    misses = gauged.map_misses
    if misses is None or (gauged.misses_map and not _is_long(gauged)):
        return
    steady = 1 / gauged.steady
    read = _read_s(gauged, misses.value)
    rest = _SUSPENDING * read if unit > 1 else 0.0  # reads of the rest of a unit
    for program, relocated in _costs(gauged, read / unit):
        least, most = _of_map(gauged, unit * program) if gauged.misses_map else (0.0, 0.0)
        least = least if unit == 1 else 0.0  # the host may wait for the rest of a unit instead
        both = program + relocated
        alone = steady - max(most, rest)
        yield (
            max((alone + unit * relocated) / both, alone / (program + gauged.large_read_s)),
            (steady + unit * relocated - least) / both,
        )


def _of_map(gauged: Gauged, program: float) -> tuple[float, float]:
    """What look-ups in a map add to a write that takes this long to program.

    A cache may take less time than that to program.
    """
    before = gauged.cost_before_collection
    if not shows_map(gauged):
        return 0.0, before
    most = max(0.0, before - program)
    is_free = before * gauged.fastest * LIMITED > 1  # neither link nor host limits them
    return (_FREE * most if is_free else 0.0), most


def shows_map(gauged: Gauged) -> bool:
    """Whether neither buffer nor cache took the writes before collection, so that they show it."""
    is_seen = gauged.writes_cache is not None and not gauged.may_write_cache
    return is_seen and _is_long(gauged)


def _is_long(gauged: Gauged) -> bool:
    """Whether the buffer was full for some time before collection."""
    buffer = (gauged.buffer + gauged.unseen_buffer) / min(gauged.units)
    least = max(_BUFFERS_OF_MAP * buffer, _EARLIEST * gauged.region / max(gauged.units))
    return gauged.fall is not None and gauged.fall.at > least


def _is_cached(gauged: Gauged) -> bool:
    """Whether a cache took the writes before collection: they were faster than large ones."""
    if gauged.fall is None or gauged.fall.at < _BUFFERS * gauged.buffer:
        return False
    return gauged.direct * gauged.cost_before_collection * _FASTER < min(gauged.units)


def _costs(gauged: Gauged, read: float) -> list[tuple[float, float]]:
    """Seconds per byte of a program and of the read of what is relocated, at most `read`."""
    direct, garbage = 1 / gauged.direct, gauged.garbage
    shows_program = not (
        gauged.is_direct_limited
        or _is_cached(gauged)
        or gauged.may_write_cache
        or gauged.buffer < gauged.direct * _SLOWEST_S
    )
    if not isinstance(garbage, Garbage):
        is_slower = garbage == AT_RANDOM or gauged.borrows
        programs = {direct, 1 / gauged.erased} if is_slower else {direct}
        return [(each, at) for each in programs for at in (0.0, read)] if shows_program else []
    cost, waf = 1 / garbage.rate, garbage.waf
    reads = min((waf - 1) * read, waf * gauged.large_read_s)
    least, most = (cost - reads) / waf, cost / waf
    if not gauged.is_direct_limited:
        least, most = (min(max(factor * direct, least), most) for factor in _DIRECT)
    found = [(each, (cost - waf * each) / (waf - 1)) for each in (least, most)]
    if shows_program and direct > most:  # victims were emptier than known garbage
        found.append((direct, 0.0))
    if waf < _CLEAR and not gauged.is_direct_limited:
        found += [(direct, 0.0), (direct, read)]
    return [pair for pair in found if pair[0] > 0]
