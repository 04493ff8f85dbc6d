"""steady: at which rate can a write load continue, and what would more spare area change?

The region is trimmed if possible, written once in order and left idle. Then it is overwritten at
random in rounds of a fifth of it, until the rate is steady (`stats.steady`) or for a fixed number
of rounds. With `--spare` this repeats with a share of the region trimmed and unused. After the
first part three gauges measure the cost of requests without relocation: random reads, and on the
trimmed region the same writes with each block written once, and writes of that size in order.
Sources: SNIA Solid State Storage Performance Test Specification (rounds, window); published tests
of spare area.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from ssdlab.device import Job, Outcome, Zipf
from ssdlab.device.kinds import Pattern
from ssdlab.errors import UsageError
from ssdlab.experiments.steady.parameters import DEPTH, REGION_MIN, Steady
from ssdlab.runner.session import RunSession, Step
from ssdlab.runner.slc_limit import slc_limit
from ssdlab.runner.write_counters import WriteCounters
from ssdlab.stats.steady import WINDOW, Rule, SteadyMonitor
from ssdlab.target import Target, Twin
from ssdlab.units import format_size

KIB: Final = 1 << 10
MIB: Final = 1 << 20
REGION: Final = 4096 * MIB
"""The default region in a directory. On a twin or block device it is the whole capacity."""
QUICK_REGION: Final = 512 * MIB
BLOCK: Final = 4 * KIB
BLOCK_MAX: Final = MIB
DEPTH_MAX: Final = 1024
FILL_BLOCK: Final = MIB
FILL_DEPTH: Final = 4
SETTLE_S: Final = 30.0
"""Idle time after the fill, in which the drive empties its buffer and folds its SLC cache."""
QUICK_SETTLE_S: Final = 3.0
SPARE_GUESS: Final = 0.28
CACHE_GUESS: Final = 0.12
"""The most hidden flash and write cache to expect, as shares of the region. They determine how
much must be written before the rate can count as steady."""
QUICK_GUESSES: Final = (0.08, 0.02)
MOST_ROUNDS: Final = 30
"""Six times the region; a drive that is not steady by then is reported as not steady."""
ROUNDS_LIMIT: Final = 500
"""The largest number of rounds, if an SLC cache is so large that more than six are needed."""
DRIVE_WRITES_MAX: Final = 100.0
SPARES_MAX: Final = 8
SPARE_MAX: Final = 0.9
GAUGE: Final = 0.5
"""Share of the region that the write gauge writes. With a larger share, drives that choose victims
at random would collect blocks that the gauge itself wrote."""
GAUGE_READS: Final = 0.05
GAUGE_READ_DEPTH: Final = 256
GAUGE_ORDERED: Final = 0.25  # as GAUGE, of writes in order
_INTERVALS: Final = 512  # per round, approximately
_FILL_RATE: Final = 10e9  # bytes per second: faster than any fill, so that its intervals are enough
_PATTERNS: Final = "random, sequential or zipf:THETA"


@dataclass(frozen=True)
class Plan:
    """The plan of a run; sizes in bytes. `drive` is the drive's capacity, None in a directory.

    `spares` are shares of the region that stay unused. `guesses` are `SPARE_GUESS, CACHE_GUESS`.
    `slc_cache` is the most that the drive's SLC cache holds, None if unknown. `extends`: a large
    SLC cache makes the run longer; otherwise there may be no verdict.
    """

    region: int = REGION
    drive: int | None = None
    spares: tuple[float, ...] = ()
    pattern: str = "random"
    block: int = BLOCK
    depth: int = DEPTH
    drive_writes: float | None = None
    settle_s: float = SETTLE_S
    guesses: tuple[float, float] = (SPARE_GUESS, CACHE_GUESS)
    slc_cache: int | None = None
    extends: bool = True
    seed: int = 0

    @property
    def size(self) -> int:
        """The region."""
        return self.region

    @property
    def request_bytes_max(self) -> int:
        """The larger of the request sizes of the fill and the rounds."""
        return max(FILL_BLOCK, self.block)

    @property
    def shares(self) -> tuple[float, ...]:
        """The unused share of the region in each part of the run: 0, then `spares`."""
        return (0.0, *self.spares)

    def scope(self, share: float) -> int:
        """Bytes in use if this share of the region stays unused; a multiple of 1 MiB."""
        return round(self.region * (1 - share)) // MIB * MIB

    def rule(self, share: float) -> Rule:
        """The steady-state rule of a part; a round consists of whole requests."""
        scope = self.scope(share)
        spare, cache = (round(guess * self.region) for guess in self.guesses)
        cache = max(cache, self.slc_cache or 0)
        fifth = scope // WINDOW // self.block * self.block
        floor = Rule.of_drive(scope, spare + self.region - scope, cache).floor_bytes
        return Rule(fifth, floor)

    @property
    def rounds_most(self) -> int:
        """The largest number of rounds of a part."""
        if self.drive_writes is not None:
            return max(1, round(WINDOW * self.drive_writes))
        if not self.extends:
            return MOST_ROUNDS
        rules = (self.rule(share) for share in self.shares)
        needed = max(rule.floor_bytes // rule.round_bytes for rule in rules) + 2 * WINDOW
        return min(ROUNDS_LIMIT, max(MOST_ROUNDS, needed))

    @property
    def gauges(self) -> bool:
        """Whether the write gauge is measured: only for random writes to a whole drive."""
        return self.pattern == "random" and self.drive is not None

    @property
    def write_bytes(self) -> int:
        """The most bytes that fills, rounds and the write gauge write."""
        rounds = sum(self.rule(share).round_bytes for share in self.shares) * self.rounds_most
        gauge = round((GAUGE + GAUGE_ORDERED) * self.region) if self.gauges else 0
        return sum(self.scope(share) for share in self.shares) + rounds + gauge

    def parameters(self) -> dict[str, Any]:
        """The parameters for the manifest and result, with round size and minimum bytes by part."""
        rules = [self.rule(share) for share in self.shares]
        return {
            "region_mib": self.region / MIB,
            "drive_mib": None if self.drive is None else self.drive / MIB,
            "spare_percent": [round(100 * share, 6) for share in self.spares],
            "pattern": self.pattern,
            "write_block_kib": self.block / KIB,
            "write_queue_depth": self.depth,
            "drive_writes": self.drive_writes,
            "settle_s": self.settle_s,
            "slc_cache_mib": None if self.slc_cache is None else self.slc_cache / MIB,
            "rounds_mib": [rule.round_bytes / MIB for rule in rules],
            "floors_mib": [rule.floor_bytes / MIB for rule in rules],
        }

    def work(self) -> dict[str, float]:
        """Bytes or seconds of each kind of work, at most."""
        fill = float(sum(self.scope(share) for share in self.shares))
        return {
            "fill": fill,
            "random": float(self.write_bytes) - fill,
            "trim": fill + self.region,
            "rest": self.settle_s * (len(self.shares) + 2 * self.gauges),
        }


def plan(parameters: Steady, target: Target, seed: int) -> Plan:
    """The plan for these parameters.

    Raises:
        UsageError: a parameter is out of range.
    """
    quick, drive = parameters.quick, target.capacity_bytes
    region = (QUICK_REGION if quick else REGION) if drive is None else drive // MIB * MIB
    region = parameters.size_bytes(region, "region", most=drive, why_most=", the drive's size")
    return check(
        Plan(
            region=region,
            drive=drive,
            spares=parameters.spare,
            pattern=parameters.pattern,
            block=parameters.size_bytes(BLOCK, "block_size"),
            depth=parameters.depth,
            drive_writes=parameters.drive_writes,
            settle_s=QUICK_SETTLE_S if quick else SETTLE_S,
            guesses=QUICK_GUESSES if quick else (SPARE_GUESS, CACHE_GUESS),
            slc_cache=_slc_cache(parameters, target),
            extends=not quick,
            seed=seed,
        )
    )


def _slc_cache(parameters: Steady, target: Target) -> int | None:
    """The size of the SLC cache that the user gave, or of a twin; None if unknown."""
    if parameters.slc_cache is None and isinstance(target, Twin):
        return int(target.description["slc_bytes"])
    return None if parameters.slc_cache is None else parameters.size_bytes(0, "slc_cache")


def check(plan: Plan) -> Plan:
    """Returns the plan.

    Raises:
        UsageError: an option is out of range.
    """
    pattern_of(plan.pattern)
    if plan.block < 512 or plan.block > BLOCK_MAX or plan.block & (plan.block - 1):
        raise UsageError(
            f"--block-size is {format_size(plan.block)}; it must be a power of two from 512 B to "
            f"{format_size(BLOCK_MAX)}"
        )
    if not 1 <= plan.depth <= DEPTH_MAX:
        raise UsageError(f"--depth is {plan.depth}; it must be 1 to {DEPTH_MAX}")
    if plan.drive_writes is not None and not 1 <= plan.drive_writes <= DRIVE_WRITES_MAX:
        raise UsageError(
            f"--drive-writes is {plan.drive_writes:g}; it must be 1 to {DRIVE_WRITES_MAX:g} (a "
            "verdict needs five rounds of a fifth of the region)"
        )
    rising = all(low < high for low, high in zip(plan.shares, plan.spares, strict=False))
    if not rising or len(plan.spares) > SPARES_MAX or any(x > SPARE_MAX for x in plan.spares):
        shares = ",".join(f"{100 * share:.4g}%" for share in plan.spares)
        raise UsageError(
            f"--spare is {shares}; it must be up to {SPARES_MAX} percentages in ascending order, "
            f"above 0% and at most {SPARE_MAX:.0%}: 7%,15%,28%"
        )
    if plan.scope(plan.shares[-1]) < REGION_MIN:
        raise UsageError(
            f"--spare leaves {format_size(plan.scope(plan.shares[-1]))} of the region, "
            f"{format_size(REGION_MIN)} are needed; give smaller shares or a larger --region"
        )
    return plan


def pattern_of(text: str) -> Pattern:
    """The pattern with this name on the command line.

    Raises:
        UsageError: there is no such pattern.
    """
    if text == "random":
        return "random"
    if text == "sequential":
        return "sequential"
    name, _, theta = text.partition(":")
    try:
        if name == "zipf" and 0 < float(theta) < 10:
            return Zipf(float(theta))
    except ValueError:
        pass
    raise UsageError(f"--pattern is {text!r}; it must be {_PATTERNS} (THETA above 0, such as 1.1)")


def measure(session: RunSession, plan: Plan) -> None:
    """Runs the parts; the gauges follow the first part.

    Raises:
        Interrupted, DeviceFailure, TargetError: as `RunSession.run_plan`.
    """
    limit = slc_limit(session.target)
    session.observe("slc_limit_mib", None if limit.size is None else limit.size / MIB, limit.source)
    trims = _can_trim(session, plan)
    for stage in range(len(plan.shares)):
        filled = _fill(session, plan, stage, trims=trims)
        _rounds(session, plan, stage, filled)
        session.flush(stage)
        if stage == 0 and trims and plan.gauges:
            _gauge_reads(session, plan)
            _gauge_writes(session, plan, "random_once", GAUGE)
            _gauge_writes(session, plan, "sequential", GAUGE_ORDERED)
        session.expect({**session.forecast.remaining, "random": _remaining_bytes(plan, stage)})


def _remaining_bytes(plan: Plan, stage: int) -> float:
    """The most bytes of random writes that the parts after this one can take."""
    rounds = (plan.rule(share).round_bytes for share in plan.shares[stage + 1 :])
    return float(sum(rounds) * plan.rounds_most)


def _can_trim(session: RunSession, plan: Plan) -> bool:
    """Whether the region can be trimmed; adds warnings if not."""
    target = session.target
    if target.is_virtual:
        return True
    drives = target.identity.get("drives", ())
    if target.identity.get("kind") == "block device":
        if drives and all(drive.get("discard_max_bytes") for drive in drives):
            return True
        target.warn(
            "no-trim",
            "The drive does not support trim here, so its state before the fill is unknown: use a "
            "new or securely erased drive, or --drive-writes for a longer run.",
        )
    if plan.spares:
        target.warn(
            "spare-not-trimmed",
            "The unused part of the region could not be trimmed, so the drive may keep old data "
            "there and gain no spare: use a block device that supports trim.",
        )
    return False


def _fill(session: RunSession, plan: Plan, stage: int, *, trims: bool) -> Outcome:
    scope = plan.scope(plan.shares[stage])
    if trims:
        _trim(session, plan, stage)
    label = f"writing {format_size(scope)} in order"
    job = Job(
        op="write",
        length_bytes=scope,
        block_bytes=FILL_BLOCK,
        amount_bytes=scope,
        queue_depth=FILL_DEPTH,
        interval_us=_interval_us(scope / _FILL_RATE),
    )
    outcome = session.run(Step("fill", label, "fill", stage, value=plan.shares[stage]), job)
    session.flush(stage)
    return outcome


def _trim(session: RunSession, plan: Plan, stage: int, case: str = "") -> None:
    size, block = plan.region, FILL_BLOCK
    job = Job(
        op="trim", length_bytes=size, block_bytes=block, amount_bytes=size, queue_depth=FILL_DEPTH
    )
    session.run(Step("trim", "trimming the region", "trim", stage, case=case), job)


def _rounds(session: RunSession, plan: Plan, stage: int, filled: Outcome) -> None:
    share = plan.shares[stage]
    rule = plan.rule(share)
    watch, counters = SteadyMonitor(rule), WriteCounters(session)
    counters.read()
    seconds = filled.seconds * rule.round_bytes / max(1, filled.bytes)
    for number in range(plan.rounds_most):
        job = _round(plan, stage, number, _interval_us(seconds))
        rest_s = 0.0 if number else plan.settle_s
        label = f"writes at random, round {number}" + (f", {share:.0%} unused" if share else "")
        step = Step("round", label, "random", stage, number, value=share, rest_s=rest_s)
        outcome = session.run(step, job)
        counters.read()
        seconds = outcome.seconds
        for length, amount in zip(*outcome.columns(), strict=True):
            watch.add(length, amount)
        if plan.drive_writes is None and watch.verdict().steady:
            return


def _round(plan: Plan, stage: int, number: int, interval_us: int) -> Job:
    share = plan.shares[stage]
    return Job(
        op="write",
        pattern=pattern_of(plan.pattern),
        length_bytes=plan.scope(share),
        block_bytes=plan.block,
        amount_bytes=plan.rule(share).round_bytes,
        queue_depth=plan.depth,
        seed=plan.seed * 1000 + (101 * stage + number) % 1000,
        interval_us=interval_us,
    )


def _interval_us(seconds: float) -> int:
    """The recording interval of a round that takes about this many seconds."""
    return min(5_000_000, max(1000, round(1e6 * seconds / _INTERVALS)))


def _gauge_reads(session: RunSession, plan: Plan) -> None:
    """Random reads; like the write gauge, they show the cost of requests without relocation."""
    amount = max(MIB, round(GAUGE_READS * plan.region) // MIB * MIB)
    job = Job(
        op="read",
        pattern="random",
        length_bytes=plan.region,
        block_bytes=BLOCK,
        amount_bytes=amount,
        queue_depth=GAUGE_READ_DEPTH,
        seed=plan.seed,
    )
    session.run(Step("gauge", "gauge: random reads", "read", case="read"), job)
    session.target.check_uncached()


def _gauge_writes(
    session: RunSession, plan: Plan, pattern: Literal["random_once", "sequential"], share: float
) -> None:
    """Writes requests of a round's size on a trimmed region, each once: nothing is relocated."""
    _trim(session, plan, 0, "gauge")
    job = Job(
        op="write",
        pattern=pattern,
        length_bytes=plan.region,
        block_bytes=plan.block,
        amount_bytes=round(share * plan.region) // plan.block * plan.block,
        queue_depth=plan.depth,
        seed=plan.seed,
        interval_us=_interval_us(plan.rule(0.0).round_bytes / 400e6),
    )
    case = "write" if pattern == "random_once" else "write in order"
    label = f"gauge: {case} on trimmed flash"
    session.run(Step("gauge", label, "random", case=case, rest_s=plan.settle_s), job)
    session.flush(0)
