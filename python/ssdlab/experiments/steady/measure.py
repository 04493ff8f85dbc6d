"""steady: at which rate can a write load continue, and what would more spare area change?

The region is trimmed if possible, written once in order and left idle. Then it is overwritten at
random in rounds of a fifth of it, until the rate is steady (`stats.steady`) or for a fixed number
of rounds. With `--spare` this repeats with a share of the region trimmed and unused. After the
first part the gauges (gauges.py) show what limits the writes.
Sources: SNIA Solid State Storage Performance Test Specification (rounds, window); published tests
of spare area.
"""

from __future__ import annotations

from ssdlab.device import Job, Outcome
from ssdlab.experiments.steady.gauges import fill, measure_gauges, measure_larger, trim
from ssdlab.experiments.steady.plan import MIB, Plan, interval_us, pattern_of, plan
from ssdlab.runner.session import RunSession, Step
from ssdlab.runner.slc_limit import slc_limit
from ssdlab.runner.write_counters import WriteCounters
from ssdlab.stats.steady import SteadyMonitor, Verdict
from ssdlab.units import format_size

__all__ = ["Plan", "measure", "plan"]


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
        verdict = _rounds(session, plan, stage, filled)
        has_gauges = stage == 0 and trims and plan.gauges
        if has_gauges:
            measure_larger(session, plan)
        session.flush(stage)
        if has_gauges:
            measure_gauges(session, plan, verdict)
        session.expect({**session.forecast.remaining, "random": _remaining_bytes(plan, stage)})


def _remaining_bytes(plan: Plan, stage: int) -> float:
    """The most bytes of random writes that the parts after this one can take."""
    return float(sum(plan.random_bytes(share) for share in plan.shares[stage + 1 :]))


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
    share = plan.shares[stage]
    if trims:
        trim(session, plan, stage)
    label = f"writing {format_size(plan.scope(share))} in order"
    outcome = session.run(Step("fill", label, "fill", stage, value=share), fill(plan, share))
    session.flush(stage)
    return outcome


def _rounds(session: RunSession, plan: Plan, stage: int, filled: Outcome) -> Verdict:
    """Writes rounds until the rate is steady."""
    share = plan.shares[stage]
    rule = plan.rule(share)
    watch, counters = SteadyMonitor(rule), WriteCounters(session)
    counters.read()
    seconds = filled.seconds * rule.round_bytes / max(1, filled.bytes)
    for number in range(plan.rounds_most(share)):
        job = _round(plan, stage, number, interval_us(seconds))
        rest_s = 0.0 if number else plan.settle_s
        label = f"writes at random, round {number}" + (f", {share:.0%} unused" if share else "")
        step = Step("round", label, "random", stage, number, value=share, rest_s=rest_s)
        outcome = session.run(step, job)
        counters.read()
        seconds = outcome.seconds
        for length, amount in zip(*outcome.columns(), strict=True):
            watch.add(length, amount)
        if plan.drive_writes is None and watch.verdict().steady:
            break
    return watch.verdict()


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
