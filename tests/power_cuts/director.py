"""Cuts the power of a served twin under clients that reconnect at once, and counts violations.

`run` starts the clients as processes, makes one cut after another over the control socket, and
regularly pauses all clients to read every unit twice.
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
"""Counts that must be 0, except `lost_after_flush` on a lying twin."""
METHODS: Final = ("after writes", "random", "after time", "now", "off and on", "planned off")


@dataclass(frozen=True)
class Target:
    """The addresses of a served twin, and its kind."""

    unix: Path
    control: str
    nvme: tuple[tuple[str, int], str]
    twin: Twin


@dataclass(frozen=True)
class CutOptions:
    """Number of cuts and clients; all clients pause after every `pause_every` cuts."""

    cuts: int
    clients: int = 8
    seed: int = 1
    pause_every: int = 5
    methods: tuple[str, ...] = METHODS


@dataclass
class Result:
    """Counts, and one line for each violation."""

    counts: Counter[str]
    broken_rules: list[str]

    @property
    def tally(self) -> dict[str, int]:
        """All counts, including the rules with 0 violations."""
        return {**dict.fromkeys(RULES, 0), **self.counts}


def run(target: Target, options: CutOptions) -> Result:
    """Starts the clients and makes all cuts."""
    board = Board(options.clients, options.clients * UNITS_EACH)
    context = multiprocessing.get_context("fork")
    processes, results = [], []
    for number in range(options.clients):
        part = Part(number, _connector(target, number), target.control, target.twin, options.seed)
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_client, args=(part, board, sender))
        process.start()
        sender.close()
        processes.append(process)
        results.append(receiver)
    director = _Director(target, options, board)
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


def _connector(target: Target, number: int) -> Callable[[Sequence[Command]], DriveClient]:
    """Clients use NBD and NVMe alternately."""
    if number % 2:
        return lambda first: NvmeClient(*target.nvme, first)
    return lambda first: NbdClient(target.unix, first)


def _client(part: Part, board: Board, sender: Connection) -> None:
    """The main function of a client's process."""
    client = Client(part, board)
    client.run()
    sender.send((client.counts, client.history.broken_rules))


def _collect(receiver: Connection, result: Result) -> None:
    received: tuple[Counter[str], list[str]] | None = None
    if receiver.poll(PAUSE_TIMEOUT_S):
        try:
            received = receiver.recv()
        except EOFError:
            received = None
    if received is None:
        result.counts["clients_failed"] += 1
        return
    result.counts.update(received[0])
    result.broken_rules += received[1]


class _Director:
    """Makes the cuts."""

    _control: Control

    def __init__(self, target: Target, options: CutOptions, board: Board) -> None:
        self.target, self.options, self.board = target, options, board
        self.result = Result(Counter(), [])
        self._random = random.Random(options.seed)

    def make_all_cuts(self, control: Control) -> None:
        """Makes the cuts one after another."""
        self._control = control
        first = self.board.cuts = self._control.power().cuts
        time.sleep(0.05)
        for number in range(self.options.cuts):
            if not self._cut_once(pauses=number % self.options.pause_every == 0):
                break
        counts = self.result.counts
        counts["cuts_counted"] = self._control.power().cuts - first

    def _cut_once(self, *, pauses: bool) -> bool:
        before = self._require_power().cuts
        method = self._random.choice(self.options.methods)
        self._start_cut(method)
        self.result.counts["cuts_planned"] += 1
        power = self._wait_for_cut(method, before)
        if power is None:
            return False
        self.result.counts["units_reverted"] += power.last.lost_units if power.last else 0
        if method in {"off and on", "planned off"}:
            self._stay_off(power)
        if pauses:
            self._pause()
        end = time.monotonic() + self._random.uniform(0.002, 0.02)
        while time.monotonic() < end:
            self.board.cuts = self._control.power().cuts
            time.sleep(0.001)
        after = self._control.power()
        if extra := after.cuts - before - 1:
            self._record_violation(
                "extra_cuts", f"{method}: {extra + 1} cuts came instead of one", extra
            )
        if after.last != power.last:
            self._record_violation("changed_reports", f"{method}: {power.last} became {after.last}")
        return True

    def _stay_off(self, power: Power) -> None:
        if power.power == "on":
            self._record_violation("extra_cuts", "another cut came instead of the planned one")
            return
        self.board.off += 1
        time.sleep(self._random.uniform(0, 0.005))
        self.board.off += 1
        self._control.power_on()

    def _require_power(self) -> Power:
        """The state of the power; turns it on if an unplanned cut has turned it off."""
        power = self._control.power()
        if power.power == "off":
            self._record_violation("extra_cuts", "the power is off, and was on")
            power = self._control.power_on()
        return power

    def _wait_for_cut(self, method: str, before: int) -> Power | None:
        """The state of the power after the cut; None if no cut comes."""
        end = time.monotonic() + CUT_TIMEOUT_S
        while time.monotonic() < end:
            power = self._control.power()
            if power.cuts > before:
                self.board.cuts = power.cuts
                return power
            time.sleep(0.001)
        self._record_violation("missing_cuts", f"{method}: no cut within {CUT_TIMEOUT_S:g} s")
        return None

    def _start_cut(self, method: str) -> None:
        """Makes or plans one cut."""
        rng, control = self._random, self._control
        match method:
            case "now" | "off and on":
                self._cut_now(on=method == "now")
            case "after writes" | "planned off":
                control.plan_cut(after_writes=rng.randint(1, 200), on=method == "after writes")
            case "random":
                control.plan_cut(random=(rng.randrange(1 << 30), 200), on=True)
            case _:
                control.plan_cut(after_s=rng.uniform(0, 0.01), on=True)

    def _cut_now(self, *, on: bool) -> None:
        try:
            self._control.power_cut(on=on)
        except UsageError as error:  # an earlier cut was repeated, and the power is off
            self._record_violation("extra_cuts", str(error))
            self._require_power()
            self._control.power_cut(on=on)

    def _pause(self) -> None:
        """Pauses all clients, and reads all units twice, by NBD and by NVMe."""
        self.board.pausing = True
        end = time.monotonic() + PAUSE_TIMEOUT_S
        while not all(self.board.paused_clients):
            if time.monotonic() > end:
                self._record_violation(
                    "timeouts", f"clients paused: {list(self.board.paused_clients)}"
                )
                break
            self._require_power()
            time.sleep(0.001)
        else:
            self.result.counts["pauses"] += 1
            self._compare_during_pause()
        self.board.pausing = False
        while any(self.board.paused_clients) and time.monotonic() < end:
            time.sleep(0.001)

    def _compare_during_pause(self) -> None:
        expected = list(self.board.current)
        first = self._read_all(NbdClient(self.target.unix))
        time.sleep(self._random.uniform(0.005, 0.02))
        second = self._read_all(NvmeClient(*self.target.nvme))
        for unit, (known, one, two) in enumerate(zip(expected, first, second, strict=True)):
            if one != two or known not in {UNKNOWN, one}:
                reads = f"unit {unit}: a client read {known}, then {one}, then {two}"
                self._record_violation("changes_while_nobody_writes", reads)

    def _read_all(self, drive: DriveClient) -> list[int | None]:
        sequences: dict[int, int | None] = {}
        try:
            for first in range(0, len(self.board.current), 64):
                units = range(first, min(first + 64, len(self.board.current)))
                batch = [Command(Kind.READ, range(unit, unit + 1)) for unit in units]

                def read(number: int, data: bytes, first: int = first) -> None:
                    sequences[first + number] = sequence_in(first + number, data)

                drive.send(batch)
                drive.receive(batch, read)
        finally:
            drive.close()
        return [sequences[unit] for unit in range(len(self.board.current))]

    def _record_violation(self, rule: str, detail: str, count: int = 1) -> None:
        self.result.counts[rule] += count
        self.result.broken_rules.append(f"{rule}: {detail}")


def verdict(result: Result, twin: Twin) -> dict[str, Any]:
    """The tally as JSON, with the number of violations."""
    rules = [rule for rule in RULES if twin is not Twin.LYING or rule != "lost_after_flush"]
    broken = sum(result.tally[rule] for rule in rules)
    return {"twin": twin.value, **result.tally, "rules_broken": broken}
