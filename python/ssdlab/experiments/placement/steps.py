"""A twin under trial: what is asked of it, and how its steps are named in the records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ssdlab.device import Drive, FlushEvery, Job, Listed
from ssdlab.experiments.placement.drives import Subject
from ssdlab.experiments.placement.plan import Plan
from ssdlab.experiments.placement.workloads import FILE, LONGEST, MIB, Listing, Pieces, Work
from ssdlab.runner.session import RunSession, Step

REST_S: Final = 0.1
_STATES: Final = ("erases_most", "erases_mean", "erases_least")
_COUNTS: Final = ("packing_moves", "displaced_writes", "nand_padding_writes")


@dataclass(frozen=True)
class Trial:
    """A drive, and the run and plan that it is part of."""

    session: RunSession
    plan: Plan
    subject: Subject

    @property
    def drive(self) -> Drive:
        """The twin."""
        return self.subject.drive

    @property
    def stage(self) -> int:
        """The number of its state."""
        return self.plan.states.index(self.subject.state)

    def run(self, phase: str, case: str, job: Job, repeat: int = 0, host_us: float = 0.0) -> None:
        """Runs a job as a step; `case` is the workload, "" for what belongs to none.

        `host_us` is what the host takes after it: the step's value.
        """
        named = f"{self.subject.placement}: {case}" if case else self.subject.placement
        label = f"{self.subject.state.name}, {named} ({phase})"
        kind = "read" if phase == "read" else "overwrite"
        step = Step(phase, label, kind, self.stage, repeat, named, host_us)
        self.session.run(step, job, self.drive)

    def counters(self) -> Mapping[str, Any]:
        """What the twin has counted in its life."""
        counters = self.drive.counters()
        assert counters is not None, "a twin counts"
        return counters

    def note(self, name: str, before: Mapping[str, Any]) -> None:
        """Notes what it counted since `before`: flash writes a host write, erases, moves."""
        after = self.counters()
        host = after["host_write_bytes"] - before["host_write_bytes"]
        where = f"{self.subject.state.name}|{self.subject.placement}: {name}"
        self.session.observe("placement_waf", (_flash(after) - _flash(before)) / host, where)
        for counter in _STATES:
            self.session.observe(counter, float(after[counter]), where)
        for counter in _COUNTS:
            self.session.observe(counter, float(after[counter] - before[counter]), where)


def write(trial: Trial, name: str, work: Work) -> None:
    """Writes what a workload asks for, each durable before the next."""
    before = trial.counters()
    if work.filled_first:
        start = work.pieces[0][0]
        _write(trial, name, [(start + at, MIB, "nothing") for at in range(0, FILE, MIB)])
    if work.writes:
        _write(trial, name, work.writes)
    trial.note(name, before)


def _write(trial: Trial, name: str, writes: Listing) -> None:
    told = trial.subject.told
    job = Job(
        op="write",
        pattern=Listed(tuple((at, size, said if told else "nothing") for at, size, said in writes)),
        length_bytes=trial.subject.size,
        block_bytes=max(length for _, length, _ in writes),
        amount_bytes=sum(length for _, length, _ in writes),
        sync=FlushEvery(1),
    )
    trial.run("write", name, job)


@dataclass(frozen=True)
class Reading:
    """How a file is read: so many bytes at a time, by so many readers side by side."""

    window: int = MIB
    readers: int = 1


BY_MIB: Final = Reading()


def read(trial: Trial, name: str, pieces: Pieces, repeat: int = 0, how: Reading = BY_MIB) -> None:
    """Reads a file by windows, all commands of one at once, the host's time between."""
    trial.drive.rest(REST_S)
    step = how.window * how.readers
    for window in range(0, sum(length for _, length in pieces), step):
        parts = commands(within(pieces, window, step))
        job = Job(
            op="read",
            pattern=Listed(tuple((at, length, "nothing") for at, length in parts)),
            length_bytes=trial.subject.size,
            block_bytes=max(length for _, length in parts),
            amount_bytes=sum(length for _, length in parts),
            queue_depth=len(parts),
        )
        host_us = trial.plan.host_us * how.window / MIB
        trial.run("read", name, job, repeat, host_us)
        trial.drive.rest(host_us / 1e6)


def within(pieces: Pieces, first: int, length: int) -> Pieces:
    """The parts of a file's pieces that hold `length` bytes from its byte `first` on."""
    found: Pieces = []
    start = 0
    for at, size in pieces:
        low, high = max(first, start), min(first + length, start + size)
        if low < high:
            found.append((at + low - start, high - low))
        start += size
    return found


def commands(pieces: Pieces) -> Pieces:
    """What a kernel asks for: neighbours joined, each no longer than 256 KiB."""
    joined: Pieces = []
    for at, length in pieces:
        if joined and sum(joined[-1]) == at:
            joined[-1] = (joined[-1][0], joined[-1][1] + length)
        else:
            joined.append((at, length))
    return [
        (at + part, min(LONGEST, length - part))
        for at, length in joined
        for part in range(0, length, LONGEST)
    ]


def _flash(counters: Mapping[str, Any]) -> float:
    return float(counters["host_write_bytes"] * (counters["waf"] or 0.0))
