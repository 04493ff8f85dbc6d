"""The writes of a client to its units, and the values that a read may return.

Each unit has one writer, and each value holds the unit and a sequence number that rises with each
write. The rules for an honest drive:

- A read returns the last write acknowledged on the same connection.
- After a power cut a unit holds the last value that was durable before the cut or a later one,
  acknowledged or not. A write is durable when a flush or FUA was acknowledged; on a protected
  drive, when the write was acknowledged.
- Once a read after a cut has returned a value, no other value from before the cut may appear (a
  ghost).
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
    """The guarantee behind a drive's acknowledgements."""

    VOLATILE = "volatile"
    PROTECTED = "protected"
    LYING = "lying"


def content(unit: int, sequence: int) -> bytes:
    """The data of a write to a unit."""
    return _STAMP.pack(_MAGIC, unit, sequence, ~sequence & (1 << 64) - 1) * _REPEATED


def sequence_in(unit: int, data: bytes) -> int | None:
    """The sequence number of a unit's data, 0 for zeros; None if no write has written it."""
    if data == _ZEROS:
        return 0
    magic, of_unit, sequence, inverse = _STAMP.unpack_from(data)
    is_whole = data == data[: _STAMP.size] * _REPEATED
    is_stamp = (magic, of_unit, inverse) == (_MAGIC, unit, ~sequence & (1 << 64) - 1)
    return sequence if is_whole and is_stamp else None


@dataclass
class UnitHistory:
    """The writes of one unit, by sequence number; 0 is the empty unit."""

    last_issued: int = 0
    promised: int = 0
    """The last write covered by an acknowledged flush or FUA, on any kind of drive."""
    durable: int = 0
    """The oldest write that may be there after a cut."""
    candidates: list[int] = field(default_factory=lambda: [0])
    """All writes that may be there after a cut."""
    current: int = 0
    """The write that a read on this connection returns."""
    in_flight: int | None = None
    undecided: bool = False
    """A write of an earlier connection is unanswered, and no cut has ended it."""
    found_after_cut: int = 0
    issued_before_cut: int = 0
    """Values above `found_after_cut` up to this one must never appear again."""

    def settle(self, sequence: int) -> None:
        """Records that this write is on the drive, and that no earlier one is pending."""
        self.current = self.found_after_cut = self.durable = self.promised = sequence
        self.candidates = [sequence]
        self.issued_before_cut = self.last_issued
        self.undecided = False

    def is_ghost(self, sequence: int) -> bool:
        """Whether it was written before the last cut but was not there after it."""
        return self.found_after_cut < sequence <= self.issued_before_cut


class History:
    """The units of one client over all its connections; counts violations of the rules."""

    def __init__(self, units: range, twin: Twin, counts: Counter[str]) -> None:
        self.units = {unit: UnitHistory() for unit in units}
        self.twin = twin
        self.counts = counts
        self.broken_rules: list[str] = []
        self._unflushed: set[int] = set()

    def writable(self) -> list[int]:
        """The units whose content is known on this connection."""
        return [unit for unit, history in self.units.items() if not history.undecided]

    def are_decided(self, units: range) -> bool:
        """Whether the content of all these units is known."""
        return all(not self.units[unit].undecided for unit in units)

    def issue(self, unit: int) -> bytes:
        """Records a write about to be sent; returns its data."""
        history = self.units[unit]
        history.last_issued += 1
        history.in_flight = history.last_issued
        history.candidates.append(history.last_issued)
        self.counts["units_written"] += 1
        return content(unit, history.last_issued)

    def acknowledge(self, units: Iterable[int], *, durable: bool) -> None:
        """Records the acknowledgement of a write."""
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
        """The writes that a flush sent now will cover, by unit."""
        return {unit: self.units[unit].current for unit in self._unflushed}

    def flushed(self, promised: dict[int, int]) -> None:
        """Records the acknowledgement of a flush."""
        for unit, sequence in promised.items():
            self._promise(unit, sequence)
        self._unflushed.difference_update(promised)

    def connection_lost(self, *, served: bool = True) -> None:
        """Marks unanswered writes as undecided; if the connection was not served, drops them."""
        for history in self.units.values():
            if history.in_flight is not None and served:
                history.undecided = True
            elif history.in_flight is not None:
                history.candidates.remove(history.in_flight)
            history.in_flight = None
        self._unflushed.clear()

    def first_read(self, unit: int, data: bytes, *, after_cut: bool) -> None:
        """Checks the first read of a unit on a connection; `after_cut`: a cut ended old writes."""
        history = self.units[unit]
        if history.undecided and not after_cut:
            return
        found = sequence_in(unit, data)
        if found not in history.candidates:
            found = self._record_violation(unit, found, "after reconnecting")
        elif after_cut and found < history.promised:
            self.counts["lost_after_flush"] += 1  # allowed for a drive that lies about flushes
        history.current = found
        if after_cut:
            history.settle(found)

    def later_read(self, unit: int, data: bytes) -> None:
        """Checks a read of a unit that was not written since its last read or acknowledgement."""
        history = self.units[unit]
        found = sequence_in(unit, data)
        if found == history.current or history.undecided:
            return
        history.settle(self._record_violation(unit, found, "on one connection"))

    def _promise(self, unit: int, sequence: int) -> None:
        history = self.units[unit]
        self.counts["units_flushed"] += 1
        history.promised = max(history.promised, sequence)
        if self.twin is not Twin.LYING:
            history.durable = max(history.durable, sequence)
            history.candidates = [each for each in history.candidates if each >= sequence]

    def _record_violation(self, unit: int, found: int | None, when: str) -> int:
        """Counts a value that must not be there; returns the value to continue with."""
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
