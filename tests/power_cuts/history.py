"""What a client has done to its units, and what a read of them may return.

Each unit has one writer, and each value names the unit and a number that rises with each write.
The rules that an honest drive keeps:

- A write that was acknowledged is what a read on the same connection returns.
- After a power cut a unit holds the last value that was durable before the cut or one that was
  written after it, acknowledged or not. Durable is what a flush or FUA acknowledged; on a
  protected drive, all that was acknowledged.
- After the first read that follows a cut, no value from before the cut appears again (a ghost).
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from drive_clients import UNIT_BYTES

_STAMP: Final = struct.Struct("<QQQQ")
_MAGIC: Final = 0x5353444C41424355
_REPEATED: Final = UNIT_BYTES // _STAMP.size
_ZEROS: Final = bytes(UNIT_BYTES)


class Twin(Enum):
    """What acknowledgements of a drive mean."""

    VOLATILE = "volatile"
    PROTECTED = "protected"
    LYING = "lying"


def content(unit: int, sequence: int) -> bytes:
    """What a write of a unit writes."""
    return _STAMP.pack(_MAGIC, unit, sequence, ~sequence & (1 << 64) - 1) * _REPEATED


def sequence_in(unit: int, data: bytes) -> int | None:
    """Which write of a unit these bytes are, 0 for none; `None` where they are of no write."""
    if data == _ZEROS:
        return 0
    magic, of_unit, sequence, inverse = _STAMP.unpack_from(data)
    is_whole = data == data[: _STAMP.size] * _REPEATED
    is_stamp = (magic, of_unit, inverse) == (_MAGIC, unit, ~sequence & (1 << 64) - 1)
    return sequence if is_whole and is_stamp else None


@dataclass
class UnitHistory:
    """The writes of one unit, by their numbers; 0 is the empty unit."""

    last_issued: int = 0
    promised: int = 0
    """The last that a flush or FUA acknowledged, on whatever drive."""
    durable: int = 0
    """The last that has to be there after a cut."""
    candidates: list[int] = field(default_factory=lambda: [0])
    """All that may be there after a cut."""
    current: int = 0
    """What a read on this connection returns."""
    in_flight: int | None = None
    undecided: bool = False
    """A write of an earlier connection was not answered, and no cut has ended it."""
    found_after_cut: int = 0
    issued_before_cut: int = 0
    """Values after `found_after_cut` up to this one must never appear again."""

    def settle(self, sequence: int) -> None:
        """All earlier writes are decided: this one is there."""
        self.current = self.found_after_cut = self.durable = self.promised = sequence
        self.candidates = [sequence]
        self.issued_before_cut = self.last_issued
        self.undecided = False

    def is_ghost(self, sequence: int) -> bool:
        """Whether it was written before the last cut, and was not there after it."""
        return self.found_after_cut < sequence <= self.issued_before_cut


class History:
    """The units of one client over all its connections; counts what breaks the rules."""

    def __init__(self, units: range, twin: Twin, counts: Counter[str]) -> None:
        self.units = {unit: UnitHistory() for unit in units}
        self.twin = twin
        self.counts = counts
        self.broken_rules: list[str] = []
        self._unflushed: set[int] = set()

    def writable(self) -> list[int]:
        """Units whose content is known on this connection."""
        return [unit for unit, history in self.units.items() if not history.undecided]

    def are_decided(self, units: range) -> bool:
        """Whether these are units of its own with a known content."""
        return all(not self.units[unit].undecided for unit in units)

    def issue(self, unit: int) -> bytes:
        """A write is about to be sent; returns its bytes."""
        history = self.units[unit]
        history.last_issued += 1
        history.in_flight = history.last_issued
        history.candidates.append(history.last_issued)
        self.counts["units_written"] += 1
        return content(unit, history.last_issued)

    def acknowledge(self, units: Iterable[int], *, durable: bool) -> None:
        """A write of units was acknowledged."""
        for unit in units:
            history = self.units[unit]
            assert history.in_flight is not None
            history.current, history.in_flight = history.in_flight, None
            self.counts["units_acknowledged"] += 1
            if durable or self.twin is Twin.PROTECTED:
                self._promise(unit, history.current)
            else:
                self._unflushed.add(unit)

    def flushing(self) -> dict[int, int]:
        """A flush is about to be sent: what its acknowledgement promises."""
        return {unit: self.units[unit].current for unit in self._unflushed}

    def flushed(self, promised: dict[int, int]) -> None:
        """A flush was acknowledged."""
        for unit, sequence in promised.items():
            self._promise(unit, sequence)
        self._unflushed.difference_update(promised)

    def connection_lost(self, *, served: bool = True) -> None:
        """Writes that were not answered may be there or not; if it was not served, they are not."""
        for history in self.units.values():
            if history.in_flight is not None and served:
                history.undecided = True
            elif history.in_flight is not None:
                history.candidates.remove(history.in_flight)
            history.in_flight = None
        self._unflushed.clear()

    def first_read(self, unit: int, data: bytes, *, after_cut: bool) -> None:
        """The first read of a unit on a connection, and whether a cut ended the earlier writes."""
        history = self.units[unit]
        if history.undecided and not after_cut:
            return
        found = sequence_in(unit, data)
        if found not in history.candidates:
            found = self._complain(unit, found, "after reconnecting")
        elif after_cut and found < history.promised:
            self.counts["lost_after_flush"] += 1  # as a drive does that lies about flushes
        history.current = found
        if after_cut:
            history.settle(found)

    def later_read(self, unit: int, data: bytes) -> None:
        """A read of a unit that nobody wrote since it was last read or acknowledged."""
        history = self.units[unit]
        found = sequence_in(unit, data)
        if found == history.current or history.undecided:
            return
        history.settle(self._complain(unit, found, "on one connection"))

    def _promise(self, unit: int, sequence: int) -> None:
        history = self.units[unit]
        self.counts["units_flushed"] += 1
        history.promised = max(history.promised, sequence)
        if self.twin is not Twin.LYING:
            history.durable = max(history.durable, sequence)
            history.candidates = [each for each in history.candidates if each >= sequence]

    def _complain(self, unit: int, found: int | None, when: str) -> int:
        """Counts a value that must not be there; returns what to go on from."""
        history = self.units[unit]
        if found is None or found > history.last_issued:
            rule = "corrupt"
        elif history.is_ghost(found):
            rule = "ghosts"
        elif found < history.promised:
            rule = "lost_after_flush"
        else:
            rule = "lost_on_one_connection"
        self.counts[rule] += 1
        self.broken_rules.append(
            f"unit {unit} {when}: {rule}: found {found}, expected {history.current}, flushed "
            f"{history.promised}, possible {history.candidates}, issued {history.last_issued}"
        )
        return history.last_issued if found is None else found
