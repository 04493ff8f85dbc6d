"""A client that writes, flushes and reads, and reconnects at once after a lost connection."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from drive_clients import UNIT_BYTES, Command, CommandError, DriveClient, Kind, NotServedError
from history import History, Twin, sequence_in
from shared import UNKNOWN, Board

from ssdlab.device import Control

UNITS_EACH: Final = 96
"""Units that a client writes; it reads the units of all clients."""
_READ_UNITS: Final = 8
_FLOOD: Final = 0.15
"""Share of batches that write most of a client's units, so that requests queue in the server."""
_EAGER_TRIES: Final = 5
_PAUSE_S: Final = 0.0003
"""Pause between attempts to reconnect, after the first few."""
_BREAKS = (OSError, CommandError, EOFError)


@dataclass(frozen=True)
class Part:
    """Options of one client: its number, how it connects, and the kind of drive."""

    number: int
    connect: Callable[[Sequence[Command]], DriveClient]
    control: str
    twin: Twin
    seed: int

    @property
    def units(self) -> range:
        """The units that this client writes."""
        return range(self.number * UNITS_EACH, (self.number + 1) * UNITS_EACH)


class Client:
    """Runs until `board.ending`; `counts` and `history.broken_rules` have the results."""

    def __init__(self, part: Part, board: Board) -> None:
        self.part, self.board = part, board
        self.counts: Counter[str] = Counter()
        self.history = History(part.units, part.twin, self.counts)
        self._random = random.Random(part.seed * 1000 + part.number)
        self._drive: DriveClient | None = None
        self._control = Control(part.control)
        self._cuts_at_connect = 0
        self._cuts_at_last_write = 0

    def run(self) -> None:
        """Does random steps until the run ends."""
        tries = 0
        while not self.board.ending:
            try:
                if self._drive is None:
                    self._connect()
                self._work()
                tries = 0
            except _BREAKS as error:
                self._lose(error)
                tries += 1
                if tries > _EAGER_TRIES:
                    time.sleep(_PAUSE_S)
        self._drop()

    def _work(self) -> None:
        """Does one step, chosen at random."""
        off = self.board.off
        if self.board.cuts > self._cuts_at_connect:
            self._survived_a_cut()
        elif self.board.pausing:
            self._pause()
        else:
            steps = (self._write, self._flush, self._read_own, self._read_others)
            self._random.choices(steps, (45, 20, 25, 10))[0]()
        if off % 2 and self.board.off == off:
            self._record_violation(
                "served_without_power", "a command succeeded while the power was off"
            )

    def _connect(self) -> None:
        earlier_writes = self._cuts_at_last_write
        written: set[int] = set()
        if self._random.random() < 0.7:
            # Early writes may arrive between the disconnection of the clients and the cut.
            self._cuts_at_connect = -1
            batch = self._writes(durable=0)
            written = {unit for command in batch for unit in command.units}
            self._drive = self.part.connect(batch)
            self._drive.receive(batch, self._acknowledging(batch))
            time.sleep(self._random.choice((0, 0.001, 0.004)))
            self._flush()
        else:
            self._drive = self.part.connect([])
        self._cuts_at_connect = self._control.power().cuts
        if written:
            self._cuts_at_last_write = self._cuts_at_connect
        after_cut = self._cuts_at_connect > earlier_writes

        def read(unit: int, data: bytes) -> None:
            if unit in written:
                self.history.later_read(unit, data)
            else:
                self.history.first_read(unit, data, after_cut=after_cut)
            self._publish(unit)

        self._read(list(self.part.units), read)
        self.counts["connections"] += 1
        # Requests of the old connection may take effect late: give them time.
        if after_cut and self._random.random() < 0.3:
            time.sleep(self._random.uniform(0, 0.002))
            self._read_own()

    def _lose(self, error: Exception) -> None:
        if isinstance(error, CommandError):
            self.counts["error_replies"] += 1
        elif isinstance(error, TimeoutError):
            self._record_violation("timeouts", "the server did not answer")
        served = not isinstance(error, NotServedError)
        if self._cuts_at_connect < 0 and served:  # it wrote, before or after a cut
            self._cuts_at_last_write = self._cuts_at_connect = self._control.power().cuts
        self._drop(served=served)

    def _drop(self, *, served: bool = True) -> None:
        if self._drive is not None:
            with suppress(OSError):
                self._drive.close()
        self._drive = None
        self.history.connection_lost(served=served)
        for unit in self.part.units:
            self._publish(unit)

    def _survived_a_cut(self) -> None:
        """A cut has ended, but the connection from before it is open: a flush must fail."""
        self._flush()
        self._record_violation(
            "flushes_after_cut", "a flush succeeded on a connection older than a cut"
        )
        self._read_own()
        self._drop()

    def _write(self) -> None:
        batch = self._writes(durable=0.1)
        self._cuts_at_last_write = max(self._cuts_at_last_write, self._cuts_at_connect)
        self._do(batch, self._acknowledging(batch))

    def _acknowledging(self, batch: list[Command]) -> Callable[[int, bytes], None]:
        def acknowledged(number: int, _data: bytes) -> None:
            command = batch[number]
            self.history.acknowledge(command.units, durable=command.durable)
            for unit in command.units:
                self._publish(unit)

        return acknowledged

    def _writes(self, durable: float) -> list[Command]:
        """Writes to distinct random units; `durable` is the share with FUA."""
        writable = self.history.writable()
        most = len(writable) if self._random.random() < _FLOOD else min(len(writable), 8)
        batch: list[Command] = []
        taken: set[int] = set()
        for first in self._random.sample(writable, most):
            units = range(first, min(first + self._random.choice((1, 1, 2, 3)), writable[-1] + 1))
            if taken.isdisjoint(units) and self.history.are_decided(units):
                taken.update(units)
                data = b"".join(map(self.history.issue, units))
                for unit in units:
                    self.board.issued[unit] = self.history.units[unit].last_issued
                batch.append(Command(Kind.WRITE, units, data, self._random.random() < durable))
        return batch

    def _flush(self) -> None:
        promised = self.history.flushing()
        self._do([Command(Kind.FLUSH)], lambda *_: None)
        self.history.flushed(promised)
        self.counts["flushes"] += 1
        for unit in promised:
            self._publish(unit)

    def _read_own(self) -> None:
        def read(unit: int, data: bytes) -> None:
            self.history.later_read(unit, data)
            self._publish(unit)

        self._read(self.history.writable(), read)

    def _read_others(self) -> None:
        units = self._random.sample(range(len(self.board.issued)), 4)
        others = [unit for unit in units if unit not in self.part.units]
        before = {unit: (self.board.durable[unit], self.board.decided[unit]) for unit in others}

        def read(unit: int, data: bytes) -> None:
            durable, decided = before[unit]
            found = sequence_in(unit, data)
            settled, issued_before = decided & 0xFFFFFFFF, decided >> 32
            self.counts["reads_of_others"] += 1
            if found is None or found > self.board.issued[unit]:
                self._record_violation(
                    "corrupt", f"unit {unit} of another client: {data[:32].hex()}"
                )
            elif settled < found <= issued_before:
                self._record_violation(
                    "ghosts", f"unit {unit} of another client: {found}, {settled}"
                )
            elif found < durable:
                self._record_violation(
                    "lost_after_flush", f"unit {unit} of another: {found}, {durable}"
                )

        self._read(others, read)

    def _pause(self) -> None:
        """Waits until the director has read everything; no client writes during the pause."""
        self._read_own()
        self.board.paused_clients[self.part.number] = 1
        while self.board.pausing and not self.board.ending:
            time.sleep(0.001)
        self.board.paused_clients[self.part.number] = 0
        self._read_own()

    def _read(self, units: list[int], check: Callable[[int, bytes], None]) -> None:
        batch = [Command(Kind.READ, run) for run in _runs(units)]

        def read(number: int, data: bytes) -> None:
            for place, unit in enumerate(batch[number].units):
                check(unit, data[place * UNIT_BYTES : (place + 1) * UNIT_BYTES])

        self._do(batch, read)

    def _do(self, batch: list[Command], answered: Callable[[int, bytes], None]) -> None:
        assert self._drive is not None
        if batch:
            self._drive.send(batch)
            self._drive.receive(batch, answered)

    def _publish(self, unit: int) -> None:
        history, board = self.history.units[unit], self.board
        board.durable[unit] = history.durable
        board.current[unit] = UNKNOWN if history.undecided else history.current
        board.decided[unit] = history.issued_before_cut << 32 | history.found_after_cut

    def _record_violation(self, rule: str, detail: str) -> None:
        self.counts[rule] += 1
        self.history.broken_rules.append(f"client {self.part.number}: {rule}: {detail}")


def _runs(units: list[int]) -> Iterator[range]:
    """Sorted units as ranges of up to `_READ_UNITS`."""
    first = 0
    for place in range(1, len(units) + 1):
        ends = place == len(units) or units[place] != units[place - 1] + 1
        if ends or place - first == _READ_UNITS:
            yield range(units[first], units[place - 1] + 1)
            first = place
