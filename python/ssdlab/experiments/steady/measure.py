"""steady: at which rate does a write load last, and what would more spare area make of it?

The region is trimmed where that can be had, written in order once and left alone. Then writes at
random go over it, round after round, each a fifth of it, until the engine's rule says steady
(`stats.steady`) or as often as asked. With shares of spare the same follows on what is left of the
region when that share stays trimmed. At the end of the first part two gauges tell what the drive's
work costs where nothing has to be moved: reads at random, and, on the trimmed region, the same
writes with no block twice. Sources: SNIA Solid State Storage Performance Test Specification
(rounds, window); the published tests of spare area that users rest their choices on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ssdlab.device import Job, Outcome, Zipf
from ssdlab.device.kinds import Pattern
from ssdlab.errors import UsageError
from ssdlab.experiments.steady.parameters import DEPTH, REGION_MIN, Steady
from ssdlab.runner.session import RunSession, Step
from ssdlab.runner.write_counters import WriteCounters
from ssdlab.stats.steady import WINDOW, Rule, SteadyMonitor
from ssdlab.target import Target
from ssdlab.units import format_size

KIB: Final = 1 << 10
MIB: Final = 1 << 20
REGION: Final = 4096 * MIB
"""Of a directory; of a twin or a block device it is all of it."""
QUICK_REGION: Final = 512 * MIB
BLOCK: Final = 4 * KIB
BLOCK_MAX: Final = MIB
DEPTH_MAX: Final = 1024
FILL_BLOCK: Final = MIB
FILL_DEPTH: Final = 4
SETTLE_S: Final = 30.0
"""The drive is left alone so long after it was filled: its buffer empties, its cache is folded."""
QUICK_SETTLE_S: Final = 3.0
SPARE_GUESS: Final = 0.28
CACHE_GUESS: Final = 0.12
"""Hidden flash and write caches as shares of the region, rather too much: the rule's floor."""
QUICK_GUESSES: Final = (0.08, 0.02)
MOST_ROUNDS: Final = 30
"""Six times the region. Whoever is not steady then is called so."""
DRIVE_WRITES_MAX: Final = 100.0
SPARES_MAX: Final = 8
SPARE_MAX: Final = 0.9
GAUGE: Final = 0.5
"""Of the region; its beginning is left out for what caches take. With more of it, drives that
choose victims by chance would come upon what the gauge itself wrote."""
GAUGE_READS: Final = 0.05
GAUGE_READ_DEPTH: Final = 256
_FINE: Final = 512  # intervals that a round is cut into, about
_PATTERNS: Final = "random, sequential or zipf:THETA"


@dataclass(frozen=True)
class Plan:
    """What a run does; sizes in bytes. `drive` is the whole drive's size, None in a directory."""

    region: int = REGION
    drive: int | None = None
    spares: tuple[float, ...] = ()
    pattern: str = "random"
    block: int = BLOCK
    depth: int = DEPTH
    drive_writes: float | None = None
    settle_s: float = SETTLE_S
    guesses: tuple[float, float] = (SPARE_GUESS, CACHE_GUESS)
    seed: int = 0

    @property
    def size(self) -> int:
        """The region."""
        return self.region

    @property
    def request_bytes_max(self) -> int:
        """A write of the fill."""
        return max(FILL_BLOCK, self.block)

    @property
    def shares(self) -> tuple[float, ...]:
        """Of the region that stay unused, a part of the run each: none, then those asked for."""
        return (0.0, *self.spares)

    def scope(self, share: float) -> int:
        """Bytes in use when that share of the region stays unused: whole MiB."""
        return round(self.region * (1 - share)) // MIB * MIB

    def rule(self, share: float) -> Rule:
        """The rule of steadiness for such a part; its rounds are whole requests."""
        scope = self.scope(share)
        spare, cache = (round(guess * self.region) for guess in self.guesses)
        fifth = scope // WINDOW // self.block * self.block
        floor = Rule.of_drive(scope, spare + self.region - scope, cache).floor_bytes
        return Rule(fifth, floor)

    @property
    def rounds_most(self) -> int:
        """Of each part."""
        if self.drive_writes is None:
            return MOST_ROUNDS
        return max(1, round(WINDOW * self.drive_writes))

    @property
    def gauges(self) -> bool:
        """Whether the gauge of writes says anything: it is about writes at random."""
        return self.pattern == "random" and self.drive is not None

    @property
    def write_bytes(self) -> int:
        """Fills, rounds and the gauge, at most."""
        rounds = sum(self.rule(share).round_bytes for share in self.shares) * self.rounds_most
        gauge = round(GAUGE * self.region) if self.gauges else 0
        return sum(self.scope(share) for share in self.shares) + rounds + gauge

    def parameters(self) -> dict[str, Any]:
        """For the manifest and the result; rounds and floors are those of each part in order."""
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
            "rounds_mib": [rule.round_bytes / MIB for rule in rules],
            "floors_mib": [rule.floor_bytes / MIB for rule in rules],
        }

    def work(self) -> dict[str, float]:
        """Work to do by kind, for the forecast; at most."""
        fill = float(sum(self.scope(share) for share in self.shares))
        return {
            "fill": fill,
            "random": float(self.write_bytes) - fill,
            "trim": fill + self.region,
            "rest": self.settle_s * (len(self.shares) + self.gauges),
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
            seed=seed,
        )
    )


def check(plan: Plan) -> Plan:
    """The plan itself, if it can be run.

    Raises:
        UsageError: an option that is out of its range: which, and what it may be.
    """
    pattern_of(plan.pattern)
    if plan.block < 512 or plan.block > BLOCK_MAX or plan.block & (plan.block - 1):
        raise UsageError(
            f"--block-size is {format_size(plan.block)}; it may be a power of two from 512 B to "
            f"{format_size(BLOCK_MAX)}"
        )
    if not 1 <= plan.depth <= DEPTH_MAX:
        raise UsageError(f"--depth is {plan.depth}; it may be 1 to {DEPTH_MAX}")
    if plan.drive_writes is not None and not 1 <= plan.drive_writes <= DRIVE_WRITES_MAX:
        raise UsageError(
            f"--drive-writes is {plan.drive_writes:g}; it may be 1 to {DRIVE_WRITES_MAX:g} (a "
            "verdict takes five rounds of a fifth of the region)"
        )
    rising = all(low < high for low, high in zip(plan.shares, plan.spares, strict=False))
    if not rising or len(plan.spares) > SPARES_MAX or any(x > SPARE_MAX for x in plan.spares):
        given = ",".join(f"{share:.4g}" for share in plan.spares)
        raise UsageError(
            f"--spare is {given} as shares; it may be up to {SPARES_MAX} shares that rise, above "
            f"0 % and up to {SPARE_MAX:.0%}: 7%,15%,28%"
        )
    if plan.scope(plan.shares[-1]) < REGION_MIN:
        raise UsageError(
            f"--spare leaves {format_size(plan.scope(plan.shares[-1]))} of the region, "
            f"{format_size(REGION_MIN)} are needed; give smaller shares or a larger --region"
        )
    return plan


def pattern_of(text: str) -> Pattern:
    """What a job calls the pattern of that name.

    Raises:
        UsageError: no such pattern.
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
    raise UsageError(f"--pattern is {text!r}; it may be {_PATTERNS} (THETA above 0, such as 1.1)")


def measure(session: RunSession, plan: Plan) -> None:
    """Each part, and behind the first one the gauges.

    Raises:
        Interrupted, DeviceFailure, TargetError: as `RunSession.run_plan`.
    """
    trims = _can_trim(session, plan)
    for stage in range(len(plan.shares)):
        filled = _fill(session, plan, stage, trims=trims)
        _rounds(session, plan, stage, filled)
        session.flush(stage)
        if stage == 0 and trims and plan.gauges:
            _gauge_reads(session, plan)
            _gauge_writes(session, plan)
        session.expect({**session.forecast.remaining, "random": _ahead(plan, stage)})


def _ahead(plan: Plan, stage: int) -> float:
    rounds = (plan.rule(share).round_bytes for share in plan.shares[stage + 1 :])
    return float(sum(rounds) * plan.rounds_most)


def _can_trim(session: RunSession, plan: Plan) -> bool:
    """Whether the region can be given back to the drive; a warning where spare needs it."""
    opened = session.target
    if opened.is_virtual:
        return True
    drives = opened.identity.get("drives", ())
    if opened.identity.get("kind") == "block device":
        if drives and all(drive.get("discard_max_bytes") for drive in drives):
            return True
        opened.warn(
            "no-trim",
            "The drive takes no trims here, so its state before the fill is not known.",
        )
    if plan.spares:
        opened.warn(
            "spare-not-trimmed",
            "What stays unused could not be trimmed, so the drive may hold old data there and "
            "gain nothing by it: use a block device that takes trims.",
        )
    return False


def _fill(session: RunSession, plan: Plan, stage: int, *, trims: bool) -> Outcome:
    scope = plan.scope(plan.shares[stage])
    if trims:
        _trim(session, plan, stage)
    words = f"writing {format_size(scope)} in order"
    job = Job(
        op="write",
        length_bytes=scope,
        block_bytes=FILL_BLOCK,
        amount_bytes=scope,
        queue_depth=FILL_DEPTH,
    )
    filled = session.run(Step("fill", words, "fill", stage, value=plan.shares[stage]), job)
    session.flush(stage)
    return filled


def _trim(session: RunSession, plan: Plan, stage: int, case: str = "") -> None:
    job = Job(
        op="trim",
        length_bytes=plan.region,
        block_bytes=FILL_BLOCK,
        amount_bytes=plan.region,
        queue_depth=FILL_DEPTH,
    )
    session.run(Step("trim", "trimming the region", "trim", stage, case=case), job)


def _rounds(session: RunSession, plan: Plan, stage: int, filled: Outcome) -> None:
    share = plan.shares[stage]
    rule, watch, odometer = (
        plan.rule(share),
        SteadyMonitor(plan.rule(share)),
        WriteCounters(session),
    )
    odometer.read()
    seconds = filled.seconds * rule.round_bytes / max(1, filled.bytes)
    for number in range(plan.rounds_most):
        job = _round(plan, stage, number, _interval_ms(seconds))
        rest_s = 0.0 if number else plan.settle_s
        label = f"writes at random, round {number}" + (f", {share:.0%} unused" if share else "")
        step = Step("round", label, "random", stage, number, value=share, rest_s=rest_s)
        outcome = session.run(step, job)
        odometer.read()
        seconds = outcome.seconds
        for length, amount in zip(*outcome.columns(), strict=True):
            watch.add(length, amount)
        if plan.drive_writes is None and watch.verdict().steady:
            return


def _round(plan: Plan, stage: int, number: int, interval_ms: int) -> Job:
    share = plan.shares[stage]
    return Job(
        op="write",
        pattern=pattern_of(plan.pattern),
        length_bytes=plan.scope(share),
        block_bytes=plan.block,
        amount_bytes=plan.rule(share).round_bytes,
        queue_depth=plan.depth,
        seed=plan.seed * 1000 + (101 * stage + number) % 1000,
        interval_ms=interval_ms,
    )


def _interval_ms(seconds: float) -> int:
    """Of a round that will take about so long: fine enough for a kink, coarse enough to keep."""
    return min(5000, max(1, round(1000 * seconds / _FINE)))


def _gauge_reads(session: RunSession, plan: Plan) -> None:
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
    session.run(Step("gauge", "reads at random, as a gauge", "read", case="read"), job)
    session.target.check_uncached()


def _gauge_writes(session: RunSession, plan: Plan) -> None:
    _trim(session, plan, 0, "gauge")
    rule = plan.rule(0.0)
    job = Job(
        op="write",
        pattern="random_once",
        length_bytes=plan.region,
        block_bytes=plan.block,
        amount_bytes=round(GAUGE * plan.region) // plan.block * plan.block,
        queue_depth=plan.depth,
        seed=plan.seed,
        interval_ms=_interval_ms(rule.round_bytes / 400e6),
    )
    label = "the same writes on trimmed flash, as a gauge"
    step = Step("gauge", label, "random", case="write", rest_s=plan.settle_s)
    session.run(step, job)
    session.flush(0)
