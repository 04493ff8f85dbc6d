"""Cuts the power under clients that reconnect at once, and counts what they find.

`run` starts the clients as processes, makes one cut after the other over the control socket, and
at times lets all clients pause while every unit is read twice.
"""

from __future__ import annotations

import multiprocessing
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from clients import UNITS_EACH, Client, Part
from drive_clients import Command, DriveClient, Kind, NbdClient, NvmeClient
from history import Twin, sequence_in
from shared import UNKNOWN, Board

from ssdlab.device import Control, Power
from ssdlab.errors import UsageError

CUT_TIMEOUT_S: Final = 30.0
PAUSE_TIMEOUT_S: Final = 30.0
RULES: Final = (
    "extra_cuts",
    "missing_cuts",
    "changed_reports",
    "lost_after_flush",
    "lost_on_one_connection",
    "ghosts",
    "changes_while_nobody_writes",
    "flushes_after_cut",
    "served_without_power",
    "corrupt",
    "timeouts",
    "clients_failed",
)
"""What must be 0. On a lying twin, `lost_after_flush` is what it lies about."""
WAYS: Final = ("after writes", "random", "after time", "now", "off and on", "planned off")


@dataclass(frozen=True)
class Target:
    """Where a twin is served, and which kind it is."""

    unix: Path
    control: str
    nvme: tuple[tuple[str, int], str]
    twin: Twin


@dataclass(frozen=True)
class Wish:
    """How many cuts and clients; how often all pause."""

    cuts: int
    clients: int = 8
    seed: int = 1
    pause_every: int = 5
    ways: tuple[str, ...] = WAYS


@dataclass
class Result:
    """Counts, and one line for each broken rule."""

    counts: Counter[str]
    broken_rules: list[str]

    @property
    def tally(self) -> dict[str, int]:
        """All counts, and the rules also where they are 0."""
        return {**dict.fromkeys(RULES, 0), **self.counts}


def run(target: Target, wish: Wish) -> Result:
    """Runs all cuts."""
    board = Board(wish.clients, wish.clients * UNITS_EACH)
    context = multiprocessing.get_context("fork")
    processes, results = [], []
    for number in range(wish.clients):
        part = Part(number, _connecting(target, number), target.control, target.twin, wish.seed)
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_client, args=(part, board, sender))
        process.start()
        sender.close()
        processes.append(process)
        results.append(receiver)
    director = _Director(target, wish, board)
    try:
        with Control(target.control) as control:
            director.make_all_cuts(control)
    finally:
        board.ending = True
        for receiver, process in zip(results, processes, strict=True):
            _collect(receiver, director.result)
            process.join(timeout=PAUSE_TIMEOUT_S)
            process.kill()
    return director.result


def _connecting(target: Target, number: int) -> Callable[[Sequence[Command]], DriveClient]:
    """Every other client speaks NVMe."""
    if number % 2:
        return lambda first: NvmeClient(*target.nvme, first)
    return lambda first: NbdClient(target.unix, first)


def _client(part: Part, board: Board, sender: Connection) -> None:
    """A client's process."""
    client = Client(part, board)
    client.run()
    sender.send((client.counts, client.history.broken_rules))


def _collect(receiver: Connection, result: Result) -> None:
    found: tuple[Counter[str], list[str]] | None = None
    if receiver.poll(PAUSE_TIMEOUT_S):
        try:
            found = receiver.recv()
        except EOFError:
            found = None
    if found is None:
        result.counts["clients_failed"] += 1
        return
    result.counts.update(found[0])
    result.broken_rules += found[1]


class _Director:
    """Makes the cuts."""

    _control: Control

    def __init__(self, target: Target, wish: Wish, board: Board) -> None:
        self.target, self.wish, self.board = target, wish, board
        self.result = Result(Counter(), [])
        self._random = random.Random(wish.seed)

    def make_all_cuts(self, control: Control) -> None:
        """One after the other."""
        self._control = control
        first = self.board.cuts = self._control.power().cuts
        time.sleep(0.05)
        for number in range(self.wish.cuts):
            if not self._cut_once(pauses=number % self.wish.pause_every == 0):
                break
        counts = self.result.counts
        counts["cuts_counted"] = self._control.power().cuts - first

    def _cut_once(self, *, pauses: bool) -> bool:
        before = self._powered().cuts
        way = self._random.choice(self.wish.ways)
        self._ask(way)
        self.result.counts["cuts_planned"] += 1
        power = self._wait_for_cut(way, before)
        if power is None:
            return False
        self.result.counts["units_reverted"] += power.last.lost_units if power.last else 0
        if way in {"off and on", "planned off"}:
            self._stay_off(power)
        if pauses:
            self._pause()
        end = time.monotonic() + self._random.uniform(0.002, 0.02)
        while time.monotonic() < end:
            self.board.cuts = self._control.power().cuts
            time.sleep(0.001)
        after = self._control.power()
        if extra := after.cuts - before - 1:
            self._complain("extra_cuts", f"{way}: one cut was asked for, {extra + 1} came", extra)
        if after.last != power.last:
            self._complain("changed_reports", f"{way}: {power.last} became {after.last}")
        return True

    def _stay_off(self, power: Power) -> None:
        if power.power == "on":
            self._complain("extra_cuts", "another cut came in place of the one that was asked for")
            return
        self.board.off += 1
        time.sleep(self._random.uniform(0, 0.005))
        self.board.off += 1
        self._control.power_on()

    def _powered(self) -> Power:
        """The power, which has to be on: a cut that nobody asked for may have taken it."""
        power = self._control.power()
        if power.power == "off":
            self._complain("extra_cuts", "the power is off, and was on")
            power = self._control.power_on()
        return power

    def _wait_for_cut(self, way: str, before: int) -> Power | None:
        """The power after the cut; `None` where none comes."""
        end = time.monotonic() + CUT_TIMEOUT_S
        while time.monotonic() < end:
            power = self._control.power()
            if power.cuts > before:
                self.board.cuts = power.cuts
                return power
            time.sleep(0.001)
        self._complain("missing_cuts", f"{way}: no cut within {CUT_TIMEOUT_S:g} s")
        return None

    def _ask(self, way: str) -> None:
        """Asks for one cut."""
        chance, control = self._random, self._control
        match way:
            case "now" | "off and on":
                self._cut_now(on=way == "now")
            case "after writes" | "planned off":
                control.plan_cut(after_writes=chance.randint(1, 200), on=way == "after writes")
            case "random":
                control.plan_cut(random=(chance.randrange(1 << 30), 200), on=True)
            case _:
                control.plan_cut(after_s=chance.uniform(0, 0.01), on=True)

    def _cut_now(self, *, on: bool) -> None:
        try:
            self._control.power_cut(on=on)
        except UsageError as error:  # an earlier cut came once more, and took the power
            self._complain("extra_cuts", str(error))
            self._powered()
            self._control.power_cut(on=on)

    def _pause(self) -> None:
        """Lets all clients stop writing, and reads all units twice, by either protocol."""
        self.board.pausing = True
        end = time.monotonic() + PAUSE_TIMEOUT_S
        while not all(self.board.paused_clients):
            if time.monotonic() > end:
                self._complain("timeouts", f"clients paused: {list(self.board.paused_clients)}")
                break
            self._powered()
            time.sleep(0.001)
        else:
            self.result.counts["pauses"] += 1
            self._compare_while_nobody_writes()
        self.board.pausing = False
        while any(self.board.paused_clients) and time.monotonic() < end:
            time.sleep(0.001)

    def _compare_while_nobody_writes(self) -> None:
        expected = list(self.board.current)
        first = self._read_all(NbdClient(self.target.unix))
        time.sleep(self._random.uniform(0.005, 0.02))
        second = self._read_all(NvmeClient(*self.target.nvme))
        for unit, (known, one, two) in enumerate(zip(expected, first, second, strict=True)):
            if one != two or known not in {UNKNOWN, one}:
                what = f"unit {unit}: a client read {known}, then {one}, then {two}"
                self._complain("changes_while_nobody_writes", what)

    def _read_all(self, drive: DriveClient) -> list[int | None]:
        found: dict[int, int | None] = {}
        try:
            for first in range(0, len(self.board.current), 64):
                units = range(first, min(first + 64, len(self.board.current)))
                batch = [Command(Kind.READ, range(unit, unit + 1)) for unit in units]

                def read(number: int, data: bytes, first: int = first) -> None:
                    found[first + number] = sequence_in(first + number, data)

                drive.send(batch)
                drive.receive(batch, read)
        finally:
            drive.close()
        return [found[unit] for unit in range(len(self.board.current))]

    def _complain(self, rule: str, what: str, count: int = 1) -> None:
        self.result.counts[rule] += count
        self.result.broken_rules.append(f"{rule}: {what}")


def verdict(result: Result, twin: Twin) -> dict[str, Any]:
    """The tally as JSON, and whether no rule is broken."""
    rules = [rule for rule in RULES if twin is not Twin.LYING or rule != "lost_after_flush"]
    broken = sum(result.tally[rule] for rule in rules)
    return {"twin": twin.value, **result.tally, "rules_broken": broken}
