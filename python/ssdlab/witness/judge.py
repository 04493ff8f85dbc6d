"""The judge: compares the sectors read from a drive with the ledger.

Kinds of failure of a request that was acknowledged as durable; the first that applies:

    unreadable      the read failed
    corrupt         a sector has a damaged stamp: the checksum is wrong
    misplaced       a sector holds another sector's stamp (a misdirected write)
    torn            only a part of the request is there (a shorn write)
    unserialisable  a later write of the same stream is there, which was issued only after the
                    flush of this one had been acknowledged
    lost            no stamp of the run is in its place
    stale           an older write of the run is in its place

A request that was not acknowledged may be there, partly there, or missing: that is not a failure.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ssdlab.errors import DeviceFailure
from ssdlab.witness.ledger import Ledger, first_generation
from ssdlab.witness.limits import SECTOR, SECTORS_MAX
from ssdlab.witness.stamps import STAMP, Sectors, State, decode, unreadable
from ssdlab.witness.target import Target

KINDS: Final = (*("unreadable", "corrupt", "misplaced", "torn", "unserialisable", "lost", "stale"),)
FAILURES_MAX: Final = 100
"""At most this many failures are listed one by one; all are counted."""
_NO_REQUEST: Final = -1
_KIND_OF_DAMAGE: Final = {
    State.BROKEN: "corrupt",
    State.ELSEWHERE: "misplaced",
    State.UNREADABLE: "unreadable",
}
"""Failures of sectors without an acknowledged write: counted by sector."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An acknowledged request with `bad_sectors` missing or damaged sectors.

    `age_s`: seconds from its acknowledgement to the last message; None if only stamps show that it
    was acknowledged.
    """

    kind: str
    generation: int
    stream: int
    sequence: int
    first: int
    sectors: int
    bad_sectors: int
    age_s: float | None


@dataclass(frozen=True, slots=True)
class InFlight:
    """Counts requests issued but not acknowledged, by how much of them is on the drive.

    Those missing wholly or in part are near misses: they were in the buffer at the cut.
    """

    whole: int = 0
    part: int = 0
    absent: int = 0

    @property
    def requests(self) -> int:
        """All requests in flight."""
        return self.whole + self.part + self.absent

    @property
    def near_misses(self) -> int:
        """Requests lost in the cut, wholly or in part."""
        return self.part + self.absent


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result of reading all sectors of a run's region; `kinds` counts requests."""

    requests: int
    durable: int
    sectors: int
    kinds: dict[str, int]
    failures: tuple[Failure, ...]
    in_flight: InFlight

    @property
    def is_clean(self) -> bool:
        """Whether every acknowledged write is there."""
        return not self.kinds

    def to_json(self) -> dict[str, Any]:
        """The judgement as a JSON object."""
        record = dataclasses.asdict(self)
        totals = {"requests": self.in_flight.requests, "near_misses": self.in_flight.near_misses}
        record["in_flight"] |= totals
        return record


@dataclass
class _Evidence:
    """Results of the windows read up to now; keys and indices are rows of the ledger."""

    present: NDArray[np.int64]
    """For each request, the number of sectors that hold it."""
    expected: NDArray[np.int64]
    """For each request, the number of sectors whose newest issued write it is."""
    bad: Counter[int] = field(default_factory=Counter)
    """For each acknowledged request, how many of its sectors hold neither it nor a newer one."""
    states: dict[int, set[int]] = field(default_factory=dict)
    """For each request in `bad`, the states of those sectors."""
    misplaced: set[int] = field(default_factory=set)
    """Requests whose stamp was found in another sector."""
    covered: dict[int, int] = field(default_factory=dict)
    """For each stream, the newest sequence that its stamps show to be acknowledged."""
    undecided: dict[int, tuple[int, int]] = field(default_factory=dict)
    """State and generation of sectors whose lower bound a stamp read later may raise."""
    damage: Counter[str] = field(default_factory=Counter)
    """Failed sectors without an acknowledged write, counted by kind of failure."""
    sectors: int = 0


class Judge:
    """Checks windows of sectors, in any order, each sector once; then gives the judgement."""

    def __init__(self, ledger: Ledger, since_generation: int = 0) -> None:
        """`since_generation` begins the judged round; only its requests count as in flight."""
        self._ledger, self._since = ledger, since_generation
        self._evidence = _Evidence(np.zeros(len(ledger), int), np.zeros(len(ledger), int))

    def check(self, first: int, window: Sectors) -> None:
        """Checks a window of sectors from `first` on."""
        generations = self._ledger.requests["generation"]
        lower, upper = self._ledger.bounds(first, len(window.states))
        ours = window.states == State.OURS
        oldest = np.where(lower >= 0, generations[lower] if len(generations) else 0, 0)
        damaged = np.isin(window.states, tuple(_KIND_OF_DAMAGE))
        kept = np.where(lower >= 0, ours & (window.stamps["generation"] >= oldest), ~damaged)
        self._evidence.sectors += len(window.states)
        self._count_present(window, upper)
        self._record_covered(window, ours)
        self._record_undecided(first, window, np.flatnonzero((upper != lower) & kept))
        self._record_bad(window, lower, np.flatnonzero(~kept))

    def judgement(self) -> Judgement:
        """The judgement, after all sectors were checked."""
        ledger, evidence = self._ledger, self._evidence
        by_stamps = ledger.durable_by_stamps(evidence.covered)
        for row in by_stamps:
            self._check_undecided(int(row))
        failures = [self._failure(row) for row in sorted(evidence.bad)]
        kinds = Counter(failure.kind for failure in failures) + evidence.damage
        return Judgement(
            requests=len(ledger),
            durable=int(ledger.durable.sum()) + len(by_stamps),
            sectors=evidence.sectors,
            kinds={kind: kinds[kind] for kind in KINDS if kinds[kind]},
            failures=tuple(failures[:FAILURES_MAX]),
            in_flight=self._in_flight(by_stamps),
        )

    def _count_present(self, window: Sectors, upper: NDArray[np.int64]) -> None:
        generations = self._ledger.requests["generation"]
        np.add.at(self._evidence.expected, upper[upper >= 0], 1)
        for state in (State.OURS, State.ELSEWHERE):
            stamps = window.stamps["generation"][window.states == state]
            rows = np.searchsorted(generations, stamps)
            known = rows < len(generations)
            known[known] = generations[rows[known]] == stamps[known]
            if state == State.OURS:
                np.add.at(self._evidence.present, rows[known], 1)
            else:
                self._evidence.misplaced.update(rows[known].tolist())

    def _record_covered(self, window: Sectors, ours: NDArray[np.bool_]) -> None:
        streams, covered = window.stamps["stream"][ours], window.stamps["covered"][ours]
        for stream in np.unique(streams):
            newest = int(covered[streams == stream].max())
            known = self._evidence.covered.get(int(stream), 0)
            self._evidence.covered[int(stream)] = max(known, newest)

    def _record_undecided(self, first: int, window: Sectors, where: NDArray[np.int64]) -> None:
        for at in where:
            self._evidence.undecided[int(first + at)] = (
                int(window.states[at]),
                int(window.stamps["generation"][at]),
            )

    def _record_bad(
        self, window: Sectors, lower: NDArray[np.int64], where: NDArray[np.int64]
    ) -> None:
        for at in where:
            row, state = int(lower[at]), int(window.states[at])
            if row == _NO_REQUEST:
                self._evidence.damage[_KIND_OF_DAMAGE[State(state)]] += 1
            else:
                self._evidence.bad[row] += 1
                self._evidence.states.setdefault(row, set()).add(state)

    def _check_undecided(self, row: int) -> None:
        """Checks a request that only stamps show to be durable: is it there, or a newer one?"""
        request = self._ledger.requests[row]
        for sector in range(int(request["first"]), int(request["first"] + request["sectors"])):
            state, generation = self._evidence.undecided.get(sector, (State.OURS, 1 << 63))
            if state != State.OURS or generation < request["generation"]:
                self._evidence.bad[row] += 1
                self._evidence.states.setdefault(row, set()).add(int(state))

    def _failure(self, row: int) -> Failure:
        request, since = self._ledger.requests[row], self._ledger.times_s[row]
        age = None if np.isnan(since) else max(0.0, self._ledger.last_message_s - float(since))
        return Failure(
            kind=self._kind(row),
            generation=int(request["generation"]),
            stream=int(request["stream"]),
            sequence=int(request["sequence"]),
            first=int(request["first"]),
            sectors=int(request["sectors"]),
            bad_sectors=self._evidence.bad[row],
            age_s=age,
        )

    def _kind(self, row: int) -> str:
        states, request = self._evidence.states[row], self._ledger.requests[row]
        if State.UNREADABLE in states:
            return "unreadable"
        if State.BROKEN in states:
            return "corrupt"
        if State.ELSEWHERE in states or row in self._evidence.misplaced:
            return "misplaced"
        if self._evidence.present[row]:
            return "torn"
        if self._evidence.covered.get(int(request["stream"]), 0) >= request["sequence"]:
            return "unserialisable"
        return "stale" if State.OURS in states else "lost"

    def _in_flight(self, by_stamps: NDArray[np.int64]) -> InFlight:
        ledger, evidence = self._ledger, self._evidence
        is_open = ~ledger.durable & (ledger.requests["generation"] >= self._since)
        is_open[by_stamps] = False
        rows = np.flatnonzero(is_open)
        present, expected = evidence.present[rows], evidence.expected[rows]
        whole = int((present >= expected).sum())
        absent = int(((present == 0) & (expected > 0)).sum())
        return InFlight(whole=whole, part=len(rows) - whole - absent, absent=absent)


def verify(
    target: Target,
    run: bytes,
    ledger: Ledger,
    round_number: int,
    on_progress: Callable[[float], None] = lambda _share: None,
) -> Judgement:
    """The judgement of the region after a round; `on_progress` gets the share read (0 to 1)."""
    judge = Judge(ledger, first_generation(round_number))
    sectors = target.size_bytes // SECTOR
    for first, window in read_windows(target, run):
        judge.check(first, window)
        on_progress((first + len(window.states)) / sectors)
    return judge.judgement()


def read_windows(target: Target, run: bytes) -> Iterator[tuple[int, Sectors]]:
    """All sectors of the target: first sector and content of each window of 1 MiB."""
    sectors = target.size_bytes // SECTOR
    for first in range(0, sectors, SECTORS_MAX):
        count = min(SECTORS_MAX, sectors - first)
        try:
            yield first, decode(run, first, target.read(first * SECTOR, count * SECTOR))
        except DeviceFailure:
            yield first, _read_by_block(target, run, first, count)


def _read_by_block(target: Target, run: bytes, first: int, count: int) -> Sectors:
    """Reads block by block where the read of a whole window failed."""
    step = target.block_bytes // SECTOR
    blocks = []
    for at in range(first, first + count, step):
        try:
            blocks.append(decode(run, at, bytes(target.read(at * SECTOR, step * SECTOR))))
        except DeviceFailure:
            blocks.append(unreadable(step))
    states = np.concatenate([block.states for block in blocks])
    return Sectors(states, np.concatenate([block.stamps for block in blocks]).astype(STAMP))
