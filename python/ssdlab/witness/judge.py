"""The judge: what was found on a drive against the ledger, as kinds of failure.

Kinds of a request that was acknowledged as durable, the first that fits:

    unreadable      the drive answers with an error
    corrupt         a sector bears marks of the run, and its checksum is wrong
    misplaced       a sector lies where another belongs (a flying write)
    torn            a part of the request is there, a part is not (a shorn write)
    unserialisable  a later write of the same stream is there, which was issued only after this
                    one's flush was acknowledged
    lost            nothing of the run is in its place
    stale           an older write of the run is in its place

A request that was not acknowledged may be there, not be there, or be there in part: no alarm.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ssdlab.witness.ledger import Ledger
from ssdlab.witness.stamps import Sectors, State

KINDS: Final = (*("unreadable", "corrupt", "misplaced", "torn", "unserialisable", "lost", "stale"),)
SHOWN_MAX: Final = 100
"""So many failures are told one by one; all are counted."""
_NOBODY: Final = -1
_LOOSE: Final = {
    State.BROKEN: "corrupt",
    State.ELSEWHERE: "misplaced",
    State.UNREADABLE: "unreadable",
}
"""Failures of sectors that nothing acknowledged: each sector counts."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A request that was not kept: `bad_sectors` of it, and its age at the witness's last message.

    `age_s` is None where only stamps prove that it had been acknowledged.
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
    """Requests that were issued and not acknowledged: how many of them are there.

    Those absent or there in part are near misses: they were in the buffer at the cut.
    """

    whole: int = 0
    part: int = 0
    absent: int = 0

    @property
    def requests(self) -> int:
        """All of them."""
        return self.whole + self.part + self.absent

    @property
    def near_misses(self) -> int:
        """Those that the cut took, wholly or in part."""
        return self.part + self.absent


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a look at all sectors of a run's region gave; `kinds` counts requests."""

    requests: int
    durable: int
    sectors: int
    kinds: dict[str, int]
    failures: tuple[Failure, ...]
    in_flight: InFlight

    @property
    def is_clean(self) -> bool:
        """Whether all that was acknowledged is there."""
        return not self.kinds


@dataclass
class _Seen:
    """What the looks at windows of sectors left behind, by row of the ledger."""

    bad: Counter[int] = field(default_factory=Counter)
    states: dict[int, set[int]] = field(default_factory=dict)
    stray: set[int] = field(default_factory=set)
    proven: dict[int, int] = field(default_factory=dict)
    open_found: dict[int, tuple[int, int]] = field(default_factory=dict)
    present: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    expected: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    loose: Counter[str] = field(default_factory=Counter)
    sectors: int = 0


class Judge:
    """Looks at windows of sectors, in any order, each sector once; then concludes."""

    def __init__(self, ledger: Ledger, since_generation: int = 0) -> None:
        """`since_generation`: where the round that is judged begins, for what was in flight."""
        self._ledger, self._since = ledger, since_generation
        self._seen = _Seen(present=np.zeros(len(ledger), int), expected=np.zeros(len(ledger), int))

    def look(self, first: int, found: Sectors) -> None:
        """Takes a window of sectors from `first` on."""
        generations = self._ledger.requests["generation"]
        lower, upper = self._ledger.bounds(first, len(found.states))
        ours = found.states == State.OURS
        floor = np.where(lower >= 0, generations[lower] if len(generations) else 0, 0)
        broken = np.isin(found.states, (State.BROKEN, State.ELSEWHERE, State.UNREADABLE))
        kept = np.where(lower >= 0, ours & (found.stamps["generation"] >= floor), ~broken)
        self._seen.sectors += len(found.states)
        self._count_present(found, upper)
        self._note_proofs(found, ours)
        self._note_open(first, found, np.flatnonzero((upper != lower) & kept))
        self._note_bad(found, lower, np.flatnonzero(~kept))

    def conclude(self) -> Judgement:
        """The judgement, once all sectors were looked at."""
        ledger, seen = self._ledger, self._seen
        proven = ledger.raise_by(seen.proven)
        for row in proven:
            self._judge_open(int(row))
        failures = [self._failure(row) for row in sorted(seen.bad)]
        kinds = Counter(failure.kind for failure in failures) + seen.loose
        return Judgement(
            requests=len(ledger),
            durable=int(ledger.durable.sum()) + len(proven),
            sectors=seen.sectors,
            kinds={kind: kinds[kind] for kind in KINDS if kinds[kind]},
            failures=tuple(failures[:SHOWN_MAX]),
            in_flight=self._in_flight(proven),
        )

    def _count_present(self, found: Sectors, upper: NDArray[np.int64]) -> None:
        """Counts the sectors of each request that are there, and those that might be."""
        generations = self._ledger.requests["generation"]
        np.add.at(self._seen.expected, upper[upper >= 0], 1)
        for state, counts in ((State.OURS, True), (State.ELSEWHERE, False)):
            stamps = found.stamps["generation"][found.states == state]
            rows = np.searchsorted(generations, stamps)
            known = rows < len(generations)
            known[known] = generations[rows[known]] == stamps[known]
            if counts:
                np.add.at(self._seen.present, rows[known], 1)
            else:
                self._seen.stray.update(rows[known].tolist())

    def _note_proofs(self, found: Sectors, ours: NDArray[np.bool_]) -> None:
        streams, covered = found.stamps["stream"][ours], found.stamps["covered"][ours]
        for stream in np.unique(streams):
            newest = int(covered[streams == stream].max())
            known = self._seen.proven.get(int(stream), 0)
            self._seen.proven[int(stream)] = max(known, newest)

    def _note_open(self, first: int, found: Sectors, where: NDArray[np.int64]) -> None:
        """Keeps what was found between the bounds: stamps elsewhere may yet raise the lower."""
        for at in where:
            self._seen.open_found[int(first + at)] = (
                int(found.states[at]),
                int(found.stamps["generation"][at]),
            )

    def _note_bad(self, found: Sectors, lower: NDArray[np.int64], where: NDArray[np.int64]) -> None:
        for at in where:
            row, state = int(lower[at]), int(found.states[at])
            if row == _NOBODY:
                self._seen.loose[_LOOSE[State(state)]] += 1
            else:
                self._seen.bad[row] += 1
                self._seen.states.setdefault(row, set()).add(state)

    def _judge_open(self, row: int) -> None:
        """A request that only stamps prove to be durable: are its sectors there, or newer?"""
        request = self._ledger.requests[row]
        for sector in range(int(request["first"]), int(request["first"] + request["sectors"])):
            state, generation = self._seen.open_found.get(sector, (State.OURS, 1 << 63))
            if state != State.OURS or generation < request["generation"]:
                self._seen.bad[row] += 1
                self._seen.states.setdefault(row, set()).add(int(state))

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
            bad_sectors=self._seen.bad[row],
            age_s=age,
        )

    def _kind(self, row: int) -> str:
        states, request = self._seen.states[row], self._ledger.requests[row]
        if State.UNREADABLE in states:
            return "unreadable"
        if State.BROKEN in states:
            return "corrupt"
        if State.ELSEWHERE in states or row in self._seen.stray:
            return "misplaced"
        if self._seen.present[row]:
            return "torn"
        if self._seen.proven.get(int(request["stream"]), 0) >= request["sequence"]:
            return "unserialisable"
        return "stale" if State.OURS in states else "lost"

    def _in_flight(self, proven: NDArray[np.int64]) -> InFlight:
        ledger, seen = self._ledger, self._seen
        is_open = ~ledger.durable & (ledger.requests["generation"] >= self._since)
        is_open[proven] = False
        rows = np.flatnonzero(is_open)
        present, expected = seen.present[rows], seen.expected[rows]
        whole = int((present >= expected).sum())
        absent = int(((present == 0) & (expected > 0)).sum())
        return InFlight(whole=whole, part=len(rows) - whole - absent, absent=absent)


def judge(ledger: Ledger, windows: Iterable[tuple[int, Sectors]], since: int = 0) -> Judgement:
    """The judgement of all windows (first sector, what it holds)."""
    judging = Judge(ledger, since)
    for first, found in windows:
        judging.look(first, found)
    return judging.conclude()


def as_record(judgement: Judgement) -> dict[str, Any]:
    """The judgement as JSON has it."""
    record = dataclasses.asdict(judgement)
    in_flight = judgement.in_flight
    record["in_flight"] |= {"requests": in_flight.requests, "near_misses": in_flight.near_misses}
    return record
