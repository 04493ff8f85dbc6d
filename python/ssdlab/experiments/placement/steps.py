"""Steps on one twin of placement: writing and reading a workload, and recording its counters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ssdlab.device import Drive, FlushEvery, Job, Listed
from ssdlab.experiments.placement.drives import open_drive
from ssdlab.experiments.placement.plan import Plan, State
from ssdlab.experiments.placement.workloads import (
    COMMAND_MAX,
    FILE,
    MIB,
    Pieces,
    Workload,
    Writes,
)
from ssdlab.runner.session import RunSession, Step

REST_S: Final = 0.1
_WITH_HINTS: Final = frozenset({"hinted", "packed"})
_ERASES: Final = ("erases_most", "erases_mean", "erases_least")
_COUNTS: Final = ("packing_moves", "displaced_writes", "nand_padding_writes")


@dataclass(frozen=True)
class TwinRun:
    """A twin with one placement in one state, and the session that records its steps."""

    session: RunSession
    plan: Plan
    drive: Drive
    placement: str
    state: State

    @classmethod
    def open(cls, session: RunSession, plan: Plan, placement: str, state: State) -> TwinRun:
        """Opens a new twin; raises TargetError as `open_drive`."""
        drive = open_drive(session.target, plan, placement, state)
        return cls(session, plan, drive, placement, state)

    @property
    def sends_hints(self) -> bool:
        """Whether writes carry hints."""
        return self.placement in _WITH_HINTS

    @property
    def size(self) -> int:
        """Capacity of the twin in bytes."""
        return int(self.drive.capacity_bytes)

    @property
    def stage(self) -> int:
        """The number of the state, which identifies it in the records."""
        return self.plan.states.index(self.state)

    def run(self, phase: str, case: str, job: Job, repeat: int = 0, host_us: float = 0.0) -> None:
        """Runs a job as a step; `case` is the workload, or "" outside of one.

        `host_us`, the host's time after the job, is the step's value.
        """
        case = f"{self.placement}: {case}" if case else self.placement
        label = f"{self.state.name}, {case} ({phase})"
        kind = "read" if phase == "read" else "overwrite"
        step = Step(phase, label, kind, self.stage, repeat, case, host_us)
        self.session.run(step, job, self.drive)

    def counters(self) -> Mapping[str, Any]:
        """The twin's counters since it was opened."""
        counters = self.drive.counters()
        assert counters is not None, "a twin has counters"
        return counters

    def record_counters(self, name: str, before: Mapping[str, Any]) -> None:
        """Records WAF and moves since `before`, and the erases so far."""
        after = self.counters()
        host = after["host_write_bytes"] - before["host_write_bytes"]
        detail = f"{self.state.name}|{self.placement}: {name}"
        waf = (_flash_bytes(after) - _flash_bytes(before)) / host
        self.session.observe("placement_waf", waf, detail)
        for counter in _ERASES:
            self.session.observe(counter, float(after[counter]), detail)
        for counter in _COUNTS:
            self.session.observe(counter, float(after[counter] - before[counter]), detail)


def write(run: TwinRun, name: str, workload: Workload) -> None:
    """Performs the writes of a workload; each is durable before the next."""
    before = run.counters()
    if workload.filled_first:
        start = workload.pieces[0][0]
        _write(run, name, [(start + at, MIB, "nothing") for at in range(0, FILE, MIB)])
    if workload.writes:
        _write(run, name, workload.writes)
    run.record_counters(name, before)


def _write(run: TwinRun, name: str, writes: Writes) -> None:
    requests = writes
    if not run.sends_hints:
        requests = [(at, length, "nothing") for at, length, _ in writes]
    job = Job(
        op="write",
        pattern=Listed(tuple(requests)),
        length_bytes=run.size,
        block_bytes=max(length for _, length, _ in writes),
        amount_bytes=sum(length for _, length, _ in writes),
        sync=FlushEvery(1),
    )
    run.run("write", name, job)


@dataclass(frozen=True)
class ReadPattern:
    """How a file is read: bytes per read, and the number of parallel readers."""

    window: int = MIB
    readers: int = 1


BY_MIB: Final = ReadPattern()


def read(
    run: TwinRun, name: str, pieces: Pieces, repeat: int = 0, pattern: ReadPattern = BY_MIB
) -> None:
    """Reads a file in windows: a window's commands in parallel, host time between windows."""
    run.drive.rest(REST_S)
    step = pattern.window * pattern.readers
    for start in range(0, sum(length for _, length in pieces), step):
        requests = commands(within(pieces, start, step))
        job = Job(
            op="read",
            pattern=Listed(tuple((at, length, "nothing") for at, length in requests)),
            length_bytes=run.size,
            block_bytes=max(length for _, length in requests),
            amount_bytes=sum(length for _, length in requests),
            queue_depth=len(requests),
        )
        host_us = run.plan.host_us * pattern.window / MIB
        run.run("read", name, job, repeat, host_us)
        run.drive.rest(host_us / 1e6)


def within(pieces: Pieces, first: int, length: int) -> Pieces:
    """The parts of the pieces that hold bytes `first` to `first + length` of the file."""
    parts: Pieces = []
    start = 0
    for at, size in pieces:
        low, high = max(first, start), min(first + length, start + size)
        if low < high:
            parts.append((at + low - start, high - low))
        start += size
    return parts


def commands(pieces: Pieces) -> Pieces:
    """The commands that a kernel sends: adjacent pieces merged, at most 256 KiB each."""
    merged: Pieces = []
    for at, length in pieces:
        if merged and sum(merged[-1]) == at:
            merged[-1] = (merged[-1][0], merged[-1][1] + length)
        else:
            merged.append((at, length))
    return [
        (at + part, min(COMMAND_MAX, length - part))
        for at, length in merged
        for part in range(0, length, COMMAND_MAX)
    ]


def _flash_bytes(counters: Mapping[str, Any]) -> float:
    """Bytes written to flash."""
    return float(counters["host_write_bytes"] * (counters["waf"] or 0.0))
