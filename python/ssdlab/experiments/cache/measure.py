"""cache: how much does a drive take before its speed falls, and how long must it rest after that?

A region is written in order, fast enough to fill any cache; where the rate falls, something is
full. A flush and the same again at once tells the buffer from an SLC cache: a flush empties the
buffer, only idle time folds the cache. Then rests of other lengths before the same writes look for
the one that gives everything back: by factors of four, and halved twice between the last that is
too short and the first that is long enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ssdlab.device import Job
from ssdlab.experiments.cache.parameters import Cache
from ssdlab.runner.session import RunSession, Step
from ssdlab.stats.rate_drops import last_drop
from ssdlab.stats.steady import Progress
from ssdlab.target import Target

KIB: Final = 1 << 10
MIB: Final = 1 << 20
SIZE: Final = 16 << 30
"""Of a directory; of a twin or block device it is a half."""
QUICK_SIZE: Final = 1 << 30
OF_DRIVE: Final = 2
QUICK_OF_DRIVE: Final = 8
SIZE_MIN: Final = 16 * MIB
BLOCK: Final = 128 * KIB
DEPTH: Final = 16
SETTLE_S: Final = 60.0
QUICK_SETTLE_S: Final = 5.0
FINE: Final = 1 << 30
"""So much of the first writing is recorded by the millisecond: buffers are small."""
REST_FIRST_S: Final = 1.0
REST_LEAST_S: Final = 1 / 256
REST_MOST_S: Final = 1024.0
QUICK_REST_MOST_S: Final = 16.0
FACTOR: Final = 4.0
HALVINGS: Final = 2
AGAIN: Final = 1.4
"""After a rest so much of what was taken at first is written: to the fall and beyond it."""
BACK: Final = 0.95
"""A rest gave everything back if the drive takes this share again."""
_INTERVALS: Final = 2000


@dataclass(frozen=True)
class Plan:
    """What a run does; sizes in bytes, times in seconds of the drive's clock."""

    size: int = SIZE
    trims: bool = False
    settle_s: float = SETTLE_S
    rest_most_s: float = REST_MOST_S
    seed: int = 0

    @property
    def request_bytes_max(self) -> int:
        """Of a write."""
        return BLOCK

    @property
    def write_bytes(self) -> int:
        """The region once, and the same for each rest at most."""
        return self.size * (2 + self._rests)

    @property
    def _rests(self) -> int:
        steps = 0
        rest_s = REST_FIRST_S
        while rest_s < self.rest_most_s:
            rest_s, steps = rest_s * FACTOR, steps + 1
        return steps + 1 + HALVINGS

    def parameters(self) -> dict[str, Any]:
        """For the manifest and the result."""
        return {
            "size_mib": self.size / MIB,
            "write_block_kib": BLOCK / KIB,
            "write_queue_depth": DEPTH,
            "settle_s": self.settle_s,
            "rest_most_s": self.rest_most_s,
        }

    def work(self) -> dict[str, float]:
        """Work to do by kind, for the forecast; at most."""
        trimmed = float(self.size) if self.trims else 0.0
        rest_s = self.settle_s + 2 * self.rest_most_s
        return {"fill": float(self.write_bytes), "trim": trimmed, "rest": rest_s}


def plan(parameters: Cache, target: Target, seed: int) -> Plan:
    """The plan for these parameters.

    Raises:
        UsageError: the size is out of range, or larger than the drive.
    """
    return plan_for(parameters, target.capacity_bytes, seed)


def plan_for(parameters: Cache, drive: int | None, seed: int) -> Plan:
    """As `plan`, for a drive of `drive` bytes; None for a directory."""
    quick = parameters.quick
    size = QUICK_SIZE if quick else SIZE
    if drive is not None:
        size = max(SIZE_MIN, drive // (QUICK_OF_DRIVE if quick else OF_DRIVE) // MIB * MIB)
    size = parameters.size_bytes(size, most=drive, why_most=", the drive's size")
    settle_s = QUICK_SETTLE_S if quick else SETTLE_S
    rest_most_s = QUICK_REST_MOST_S if quick else REST_MOST_S
    return Plan(size, drive is not None, settle_s, rest_most_s, seed)


def measure(session: RunSession, plan: Plan) -> None:
    """The first writing, the same after a flush, and after rests.

    Raises:
        Interrupted, DeviceFailure, TargetError: as `RunSession.run_plan`.
    """
    if plan.trims and _takes_trims(session):
        session.run(Step("trim", "trimming the region", "trim"), _job("trim", plan.size))
    first = _first(session, plan)
    session.flush()
    fall = last_drop(first)
    if fall is None:
        session.expect({})
        return
    places = _Places(plan.size, min(plan.size, max(SIZE_MIN, round(AGAIN * fall.at) // MIB * MIB)))
    # Of as many bytes as are written later: small sizes depend on how closely they are looked at.
    fall = last_drop(first, float(places.length)) or fall
    session.expect({"fill": float(places.length * (plan.write_bytes // plan.size - 1))})
    flushed = Step("write", "writing again right after a flush", "fill", 1, case="flushed")
    soon = last_drop(Progress(*session.run(flushed, places.job(1)).columns()))
    session.flush(1)
    if soon is None or soon.high < BACK * fall.low:
        if places.count < 2:
            session.target.warn(
                "cache-overwritten",
                "The region has no room to write elsewhere after a rest: what the cache holds is "
                "overwritten and need not be folded, so it may be back too soon; give more --size.",
            )
        _rests(session, plan, fall.at, places)
    session.expect({})


@dataclass(frozen=True)
class _Places:
    """Where each of the later writings goes: not over what the one before left in the cache."""

    size: int
    length: int

    @property
    def count(self) -> int:
        """Places side by side in the region."""
        return self.size // self.length

    def job(self, stage: int) -> Job:
        """The writing of a stage."""
        return _job("write", self.length, offset=stage % self.count * self.length)


def _takes_trims(session: RunSession) -> bool:
    drives = session.target.identity.get("drives", ())
    if session.target.is_virtual or (drives and all(d.get("discard_max_bytes") for d in drives)):
        return True
    session.target.warn(
        "no-trim", "The drive takes no trims here: what it held before is there yet."
    )
    return False


def _job(op: str, amount: int, *, offset: int = 0, interval_ms: int = 1) -> Job:
    assert op in {"write", "trim"}, op
    return Job(
        op="write" if op == "write" else "trim",
        offset_bytes=offset,
        length_bytes=amount,
        block_bytes=BLOCK,
        amount_bytes=amount,
        queue_depth=DEPTH,
        interval_ms=interval_ms,
    )


def _first(session: RunSession, plan: Plan) -> Progress:
    """The first writing, its beginning by the millisecond."""
    fine = min(plan.size, FINE)
    step = Step("write", "writing in order", "fill", case="first", rest_s=plan.settle_s)
    begun = session.run(step, _job("write", fine))
    outcomes = [begun]
    if fine < plan.size:
        rest = plan.size - fine
        expected_s = begun.seconds * rest / fine
        job = _job(
            "write", rest, offset=fine, interval_ms=max(1, round(1000 * expected_s / _INTERVALS))
        )
        outcomes.append(session.run(Step("write", step.label, "fill", repeat=1, case="first"), job))
    columns = [outcome.columns() for outcome in outcomes]
    seconds = [length for lengths, _ in columns for length in lengths]
    return Progress(seconds, [amount for _, amounts in columns for amount in amounts])


def _rests(session: RunSession, plan: Plan, taken: float, places: _Places) -> None:
    """Looks for the shortest rest after which the drive takes as much as at first."""
    short, enough = 0.0, float("inf")
    rest_s, stage, halvings = REST_FIRST_S, 2, 0
    while REST_LEAST_S <= rest_s <= plan.rest_most_s:
        step = Step(
            "write",
            f"writing again after a rest of {rest_s:g} s",
            "fill",
            stage,
            case="rested",
            value=rest_s,
            rest_s=rest_s,
        )
        fall = last_drop(Progress(*session.run(step, places.job(stage)).columns()))
        session.flush(stage)
        if fall is None or fall.at >= BACK * taken:
            enough = min(enough, rest_s)
        else:
            short = max(short, rest_s)
        if short > 0 and enough < float("inf"):
            if halvings == HALVINGS:
                return
            halvings += 1
            rest_s = (short * enough) ** 0.5
        else:
            rest_s = rest_s / FACTOR if enough < float("inf") else rest_s * FACTOR
        stage += 1
