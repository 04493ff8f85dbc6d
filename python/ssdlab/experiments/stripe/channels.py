"""Counts the dies behind a slow channel, by the reads that wait for programs.

Where data transfer takes longer than tR, reads cannot distinguish the dies of a channel. A program
occupies its die, though, and the channel only while its data is transferred. Writes elsewhere are
programmed by all dies in turn. Read between them one after the other, two addresses on one die wait
for the programs of one die, and two addresses on two dies for those of two.

A drive that suspends programs for reads hides this: all addresses of a channel then wait equally
long. So equal waits mean one die only if reads wait longer than any transfer takes.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace
from typing import Final

from ssdlab.experiments.stripe.probes import (
    GRAIN,
    MIB,
    RESULTS_MAX,
    Probe,
    ProbeLog,
    Procedure,
    Writes,
    repeat_probe,
)

WAYS_MAX: Final = 8
"""The most dies of a channel that are searched for."""
SHARES: Final = (256, 64, 16)
"""The searched part / the bytes written in a probe: more bytes if repeats do not agree. All probes
together write at most the part, so with most bytes there are only four pairs."""
READS: Final = (2, 8, 32)
"""Reads after each write: more if many of them wait, because the writes keep the dies busy."""
BUSY: Final = 0.1
"""The largest share of waiting reads of one address: with two, most reads must not wait."""
EVENTS: Final = 40
"""The fewest waiting reads of a probe, so that one more or less makes no difference."""
STEADY: Final = 1.03
"""Waits that differ by a smaller factor between repeats agree. An erase makes one longer."""
SAME: Final = 1.06
"""Two addresses on one die wait as long as one, up to this factor."""
MORE: Final = 1.1
"""On two dies they wait at least this factor longer: 1.11 with eight dies, if a page is transferred
and programmed in equal times."""
LONGER: Final = 1.25
"""Reads that wait longer than a transfer by this factor wait for programs."""
LONGER_TWICE: Final = 1.6
"""As LONGER, if reads may wait once for each transfer and again for every second program."""
FEW_READS: Final = 4.0
"""Of a shorter wait the program may end before the other address of a pair is read."""
SUSPEND_NS: Final = 100_000.0
"""No drive takes longer to suspend a program, so longer waits are not for that."""
CHANNELS_MAX: Final = 32
"""The most channels of a known drive: more units in a stripe are dies."""
SENSE_NS: Final = ((130.0, 10_000.0), (600.0, 6_000.0), (float("inf"), 2_800.0))
"""The shortest tR of dies behind channels of at most this rate in MiB/s: slow ones have a standard
that is older than fast flash (130: ONFI 2.0). The fastest flash takes 3 us (Z-NAND)."""
SENSE_SHARE: Final = 1 / 3
"""The shortest tR of hidden dies, as a share of a transfer."""
CACHED: Final = 0.1
"""A read served by the write buffer saves all but this share of the time on flash."""
READ_BACK: Final = 512 * GRAIN
"""Bytes that are written and read again."""


@dataclass(frozen=True)
class Channel:
    """Addresses that share a channel: multiples of `period` from the start of `part` on.

    `part` is the part of the region that is searched, as (start, length). There are `units` such
    channels, and each reads a mapping unit, of at most `unit_bytes`, in `unit_ns`. Sizes are in
    bytes.
    """

    period: int
    units: int
    unit_ns: float
    unit_bytes: int
    part: tuple[int, int]

    def probe(self, multiples: tuple[int, ...], load: Load) -> Probe:
        """Reads of these multiples in turn, between writes to the second quarter of the part."""
        # A write of less than a mapping unit fills one: no two dies begin to program at once.
        writes = Writes(self.writes_area, GRAIN, load.amount, load.reads)
        offsets = tuple(number * self.period for number in multiples)
        return Probe(self.period, offsets, depth=1, area=self.part, writes=writes)

    @property
    def writes_area(self) -> tuple[int, int]:
        """The second quarter of the part."""
        start, length = self.part
        quarter = length // 4 // MIB * MIB
        return start + quarter, quarter

    def amount(self, share: int) -> int:
        """Bytes written in a probe."""
        return self.part[1] // share // GRAIN * GRAIN

    @property
    def room(self) -> int:
        """The number of multiples before the writes."""
        return self.part[1] // 4 // MIB * MIB // self.period


@dataclass(frozen=True)
class Load:
    """Bytes written in a probe, and reads after each write; `ways_max`: for pairs so far apart."""

    amount: int
    reads: int
    ways_max: int = WAYS_MAX


def is_one_die(log: ProbeLog, channel: Channel) -> Procedure[bool]:
    """Whether the time of a single read shows that a unit is one die.

    A single read takes the time of command and link, tR, and a transfer. The first of these is that
    of a read that the write buffer serves. Of many reads each takes a transfer if the unit is a
    channel with several dies, so that the rest is tR. The rest is a transfer if the unit is a die
    that transfers while it senses, and nothing if it does not.
    """
    single = Probe(channel.period, depth=1, area=channel.part)
    back = replace(single, writes=Writes(channel.writes_area, GRAIN, READ_BACK, 1, reads_back=True))
    yield from repeat_probe(log, single, RESULTS_MAX)
    yield from repeat_probe(log, back, 1)
    single_ns = 1e9 * GRAIN / MIB / log.rate(single)
    rest_ns = single_ns - log.results(back)[0].read_ns - channel.unit_ns
    is_cached = rest_ns > -CACHED * channel.unit_ns
    is_short = rest_ns < min(_sense_ns(channel), SENSE_SHARE * channel.unit_ns)
    return is_cached and is_short


def _sense_ns(channel: Channel) -> float:
    """The shortest tR of dies behind such channels."""
    rate = 1e9 * channel.unit_bytes / MIB / channel.unit_ns
    return next(time_ns for most, time_ns in SENSE_NS if rate <= most)


def dies_of_channel(log: ProbeLog, channel: Channel) -> Procedure[int | None]:
    """The number of dies of a channel; None if the waits do not show it."""
    load = yield from _load(log, channel)
    if load is None:
        return None
    one = channel.probe((0,), load)
    ways = yield from _first_on_the_same_die(log, channel, load)
    if ways is None or (ways == 1 and not _waits_for_programs(log, one, channel)):
        return None
    checks = {(0, 2 * ways): True, (1, ways + 1): True}
    if ways > 1:
        checks |= {(0, ways + 1): False, (1, ways): False}
    for places, expected in checks.items():
        if (yield from _on_one_die(log, one, channel.probe(places, load))) is not expected:
            return None
    return ways


def _first_on_the_same_die(log: ProbeLog, channel: Channel, load: Load) -> Procedure[int | None]:
    """The smallest multiple of the period that is on the die of the first address."""
    one = channel.probe((0,), load)
    for ways in range(1, min(load.ways_max, (channel.room - 1) // 2) + 1):
        same = yield from _on_one_die(log, one, channel.probe((0, ways), load))
        if same is not False:
            return ways if same else None
    return None


def _load(log: ProbeLog, channel: Channel) -> Procedure[Load | None]:
    """A load with which the waits at one address are repeatable."""
    for reads in READS:
        probe = channel.probe((0,), Load(channel.amount(SHARES[0]), reads))
        yield from repeat_probe(log, probe, 1)
        if log.results(probe)[0].delayed <= BUSY:
            break
    else:
        return None
    for share in SHARES:
        load = Load(channel.amount(share), reads, WAYS_MAX if share > SHARES[-1] else 1)
        probe = channel.probe((0,), load)
        yield from repeat_probe(log, probe, 2)
        delayed = min(result.delayed for result in log.results(probe))
        if delayed * load.amount // GRAIN * load.reads >= EVENTS and _agree(log, probe):
            return load
    return None


def _on_one_die(log: ProbeLog, one: Probe, pair: Probe) -> Procedure[bool | None]:
    """Whether the addresses of `pair` wait for the same programs as that of `one`.

    None if they wait less: then something else delays reads.
    """
    yield from repeat_probe(log, pair, 2)
    if not _agree(log, pair):
        yield from repeat_probe(log, pair, 3)
    both, alone = (
        statistics.median(result.wait_ns for result in log.results(probe)) for probe in (pair, one)
    )
    if both >= MORE * alone:
        return False
    return True if alone / SAME <= both <= SAME * alone else None


def _agree(log: ProbeLog, probe: Probe) -> bool:
    waits = [result.wait_ns for result in log.results(probe)]
    return max(waits) <= STEADY * min(waits)


def _waits_for_programs(log: ProbeLog, one: Probe, channel: Channel) -> bool:
    """Whether reads wait longer than the data of a program can take on the channel.

    If reads waited for transfers only, there would be one wait for each page that the channel
    programs, so their number gives the mapping units of a page: one or more. But if programs end
    within a few reads, two dies may wait as long as one: each wait for a transfer, and that of the
    die that is read again until the program ends. Then there are up to 1.5 waits for a page.
    """
    assert one.writes is not None
    for result in log.results(one):
        units_of_page = 1 / (result.long_share * one.writes.reads * channel.units)
        is_short = result.long_ns < FEW_READS * result.read_ns
        longer = LONGER_TWICE if is_short else LONGER
        longest_ns = max(SUSPEND_NS, longer * units_of_page * channel.unit_ns)
        if units_of_page < 1 or result.long_ns <= longest_ns:
            return False
    return True
