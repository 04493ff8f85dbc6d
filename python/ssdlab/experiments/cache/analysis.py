"""Analysis of cache: sizes of write buffer and SLC cache, and the idle time that empties the cache.

The buffer drains while it fills. At the drop in speed it holds the bytes written, less those that
flash had programmed by then: at most the rate after the drop times the time, and less by the pages
that were being programmed. So its size is an interval. The SLC cache keeps its data: its size is
the bytes written before the last drop, less the buffer's.

A flush empties most buffers, and then takes as long as flash needs to program their data. If a
flush after writing is as fast as that of an idle drive, it empties nothing (capacitors protect the
buffer, or the drive ignores flushes). A single drop in speed is then ambiguous: a buffer, or an SLC
cache as fast as the link with a buffer of unknown size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

from ssdlab.analysis.evidence import ENDINGS, Conclusion, Evidence, qualified, seconds_of
from ssdlab.analysis.write_rounds import progress
from ssdlab.records import Finding
from ssdlab.stats.rate_drops import RateDrop, first_drop, last_drop
from ssdlab.stats.steady import Progress
from ssdlab.units import format_duration

MIB: Final = 1 << 20
RECOVERED: Final = 0.95
"""The cache has recovered when this share of its first capacity is free, as in the measurement."""
_EARLY: Final = 0.5  # an early drop must come before this share of the last drop's position
_LAG: Final = 0.05  # of the bytes: a drive that is this far behind its first rate has slowed down
_PROGRAM_MAX_S: Final = 0.003  # the longest usual program time of a page
_REQUESTS_MIN: Final = 3  # a drop after fewer requests is the ramp of the queue
_RATIO_MAX: Final = 1.5  # of upper and lower bound, for a size that counts as determined
_DRAIN_FACTOR: Final = 1.5  # a buffer drains within this multiple of the time to program it
_BUFFER_MAX: Final = 64 * MIB  # write buffers are rarely larger ...
_CACHE_MIN: Final = 32 * MIB  # ... and SLC caches rarely smaller
_SAME_RATE: Final = 0.1  # relative difference of two rates that count as equal
_POINTS: Final = 90  # rows per curve


@dataclass(frozen=True)
class WritePass:
    """One write of the region; `case` is first, flushed or rested, `rest_s` the idle time before.

    `last_drop` is the drop in speed to the sustained rate, `early_drop` a drop before that, when a
    buffer was full, and `middle_drop` one between them, after which the drive was slow but not at
    its slowest, as when it folds its cache while it takes writes; None if there is no such drop.
    """

    case: str
    rest_s: float | None
    block_bytes: int
    curve: Progress
    last_drop: RateDrop | None
    early_drop: RateDrop | None
    middle_drop: RateDrop | None

    @property
    def fast_bytes(self) -> float:
        """Bytes written before the last drop; all of them if the speed did not drop."""
        return self.curve.written if self.last_drop is None else self.last_drop.at

    def margin(self, drop: RateDrop) -> float:
        """By how many bytes the position of a drop is uncertain."""
        return max((drop.high - drop.low) / 2, self.block_bytes / 2)


@dataclass(frozen=True)
class _Size:
    """A size between `low` and `high` bytes, and how it was found."""

    low: float
    high: float
    why: str

    @property
    def is_determined(self) -> bool:
        return self.high <= _RATIO_MAX * self.low

    def finding(self, what: str) -> Finding:
        low, high = max(0.0, self.low / MIB), self.high / MIB
        if self.is_determined:
            return Finding((low + high) / 2, "MiB", low, high, self.why)
        bounds = f"between {low:.4g} and {high:.4g} MiB" if low > 0 else f"at most {high:.4g} MiB"
        return Finding(None, "MiB", low or None, high, f"{what} of {bounds}: {self.why}")


@dataclass(frozen=True)
class _Sizes:
    """The two sizes; None if unknown. A cache of 0 bytes is absent, for the reason in `why`."""

    buffer: _Size | None
    cache: _Size | None
    why: str = ""


def conclude(evidence: Evidence) -> Conclusion:
    """The curves of all passes as rows, the two sizes, and the idle time that empties the cache."""
    passes = write_passes(evidence)
    measures = [row for each in passes for row in _rows(each)]
    ended = ENDINGS[evidence.outcome]
    if not passes or passes[0].case != "first":
        return Conclusion(measures, {}, f"{ended} before anything was written: no result.")
    first = passes[0]
    if first.last_drop is None:
        why = f"no drop in speed within {first.curve.written / MIB:.4g} MiB; give a larger --size"
        names = {"buffer_mib": "MiB", "slc_mib": "MiB", "refill_s": "s"}
        findings = {name: Finding(None, unit, None, None, why) for name, unit in names.items()}
        sentence = f"{why[0].upper()}{why[1:]}."
        return Conclusion(measures, findings, qualified(sentence, evidence.warnings))
    if len(passes) < 2:
        return Conclusion(measures, {}, f"{ended} before the second write: no result.")
    findings = _findings(evidence, passes, first.last_drop)
    sentence = _sentence(findings, first.last_drop)
    if "virtual" in evidence.warnings:
        sentence = f"{sentence.rstrip('.')}; on a virtual disk the host may be the cause."
    return Conclusion(measures, findings, qualified(sentence, evidence.warnings))


def write_passes(evidence: Evidence) -> list[WritePass]:
    """The passes in the order of the run; the first pass may consist of two steps."""
    grouped: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for step in evidence.steps("write"):
        if step["bytes"]:
            grouped.setdefault((step["stage"], step["case"]), []).append(step)
    return [_write_pass(evidence, case, steps) for (_, case), steps in grouped.items()]


def _write_pass(evidence: Evidence, case: str, steps: Sequence[dict[str, Any]]) -> WritePass:
    curve, block = progress(evidence, steps), steps[0]["block_bytes"]
    last = last_drop(curve)
    early = middle = None
    if last is not None:
        early = first_drop(curve, _EARLY * last.at, _REQUESTS_MIN * block)
        before = 0.95 * last.low
        if early is not None and early.buffered > _BUFFER_MAX:
            before, early = early.high, None  # too much for a buffer
        middle = last_drop(curve, before)
        if middle is not None and (early is None or middle.at < early.at / _EARLY):
            middle = middle if early is None and middle.buffered > _BUFFER_MAX else None
    return WritePass(case, steps[0]["value"], block, curve, last, early, middle)


def _rows(write_pass: WritePass) -> list[dict[str, Any]]:
    """The write rate by position, in finer steps at the start because buffers are small."""
    total = write_pass.curve.written
    marks = np.unique(np.concatenate(([0.0], np.geomspace(total / 1024, total, _POINTS))))
    rows = []
    for start, stop in pairwise(float(mark) for mark in marks):
        seconds = float(write_pass.curve.between(start, stop, 1)[0])
        if seconds > 0:
            rows.append(
                {
                    "case": write_pass.case,
                    "rest_s": write_pass.rest_s,
                    "written_mib": stop / MIB,
                    "write_mib_per_s": (stop - start) / MIB / seconds,
                }
            )
    return rows


def _findings(
    evidence: Evidence, passes: Sequence[WritePass], last: RateDrop
) -> dict[str, Finding]:
    first, flushed = passes[:2]
    rested = [each for each in passes if each.case == "rested"]
    capacity = _comparable_bytes(first, flushed)
    refill = _refill(rested, capacity)
    sizes = _sizes(first, flushed, capacity, refill, _flush_wait_s(evidence))
    unknown = sizes.why or "it could not be distinguished from the SLC cache"
    cache = Finding(None, "MiB", None, None, sizes.why)
    if sizes.cache is not None and sizes.cache.high == 0:
        cache = Finding(0.0, "MiB", None, None, sizes.cache.why)
        refill = Finding(None, "s", None, None, "no SLC cache was found")
    elif sizes.cache is not None:
        cache = sizes.cache.finding("an SLC cache")
    return {
        "buffer_mib": Finding(None, "MiB", None, None, unknown)
        if sizes.buffer is None
        else sizes.buffer.finding("a buffer"),
        "slc_mib": cache,
        "refill_s": refill,
        "cached_mib_per_s": Finding(
            last.before / MIB, "MiB/s", None, None, "the rate before the last drop"
        ),
        "lasting_mib_per_s": Finding(
            last.after / MIB, "MiB/s", None, None, "the rate after the last drop"
        ),
    }


def _flush_wait_s(evidence: Evidence) -> float:
    """By how much the flush after the first pass took longer than one of the idle drive."""
    first_write = min(step["step"] for step in evidence.steps("write"))
    flushes = evidence.steps("flush")
    after = [seconds_of(step) for step in flushes if step["step"] > first_write]
    idle = [seconds_of(step) for step in flushes if step["step"] < first_write]
    return after[0] - sum(idle) if after else 0.0


def _comparable_bytes(first: WritePass, later: WritePass) -> float:
    """Bytes of `first` before its last drop, located as coarsely as in the shorter `later`."""
    drop = last_drop(first.curve, later.curve.written)
    return first.fast_bytes if drop is None else drop.at


def _sizes(
    first: WritePass, flushed: WritePass, capacity: float, refill: Finding, flush_wait_s: float
) -> _Sizes:
    """Divides the bytes of the first pass before its last drop into buffer and SLC cache.

    `flushed` is the pass right after a flush, which took `flush_wait_s` longer than an idle one.
    """
    last = first.last_drop
    assert last is not None, "without a drop there is nothing to divide"
    total = f"{last.at / MIB:.4g} MiB before the last drop"
    after = flushed.last_drop
    same_rate = after is not None and abs(after.after / last.after - 1) < _SAME_RATE
    if after is not None and flushed.fast_bytes >= RECOVERED * capacity:
        why = f"{total}, and as much again right after a flush: a write buffer"
        seen = [_buffered(first, last, why)]
        buffer = _narrower(*seen, *([_buffered(flushed, after, why)] if same_rate else []))
        return _Sizes(buffer, _Size(0, 0, f"{why}, not an SLC cache"))
    early = first.early_drop
    buffers = []
    if early is not None:
        buffers.append(_buffered(first, early, "written before the first drop"))
    if (
        after is not None
        and same_rate
        and after.at >= _REQUESTS_MIN * first.block_bytes
        and flush_wait_s > after.buffered / after.after / 2
    ):
        buffers.append(_buffered(flushed, after, "written before the drop after a flush"))
        if early is None and abs(after.before / last.before - 1) < _SAME_RATE:
            # Both passes filled the buffer at the same rates, the first one after the cache.
            why = f"{total}, less the {after.at / MIB:.4g} MiB right after a flush"
            margin = first.margin(last) + flushed.margin(after)
            size = last.at - after.at
            return _Sizes(_narrower(*buffers), _Size(size - margin, size + margin, why))
    if buffers:
        buffer = _narrower(*buffers)
        end = first.middle_drop or last
        low, high = end.at - buffer.high, last.at - buffer.low
        cache = _Size(
            low - first.margin(end), high + first.margin(last), f"{total}, less the buffer"
        )
        return _Sizes(buffer, cache)
    return _undivided(first, last, refill, total)


def _undivided(first: WritePass, last: RateDrop, refill: Finding, total: str) -> _Sizes:
    """The sizes if there is one drop only, and a flush frees nothing."""
    held = _buffered(first, last, total)
    program_s = last.at / last.after
    drains = isinstance(refill.value, float) and (
        refill.value <= _DRAIN_FACTOR * program_s or refill.low is None  # no shorter rest was tried
    )
    if drains and held.high <= _CACHE_MIN:
        why = f"{total}; a rest that is just long enough to program them makes room again"
        buffer = _Size(held.low, held.high, f"{why}: a buffer that a flush does not empty")
        return _Sizes(buffer, _Size(0, 0, f"{why}: a buffer, not an SLC cache"))
    if drains and held.low <= _BUFFER_MAX:
        return _Sizes(
            None,
            None,
            f"{total}: either a buffer of {held.low / MIB:.4g} to {held.high / MIB:.4g} MiB that "
            "a flush does not empty, or an SLC cache that is as fast as the link",
        )
    # The buffer fills after the cache, while the link brings more than flash programs.
    share = _BUFFER_MAX / (1 - last.after / last.before) + first.margin(last)
    why = f"{total}, of which a buffer of unknown size may have taken {_BUFFER_MAX / MIB:g} MiB"
    return _Sizes(None, _Size(last.at - share, last.at + first.margin(last), why))


def _buffered(write_pass: WritePass, drop: RateDrop, why: str) -> _Size:
    """What a buffer held at a drop.

    The lower bound takes flash to have programmed at its full rate from the start; the upper bound
    takes all pages that it programs in `_PROGRAM_MAX_S` to have been in progress, or nothing to
    have been programmed; one more request may be there in part. If the drive then stops for longer
    than it wrote, no page had been programmed.
    """
    block, curve = write_pass.block_bytes, write_pass.curve
    margin = write_pass.margin(drop)
    fresh = drop.at / 4 / float(curve.between(0.0, drop.at / 4, 1)[0])  # bytes per second
    slow = curve.behind(fresh, max(2 * block, _LAG * drop.at), 0.0)
    stop = curve.first_stop(_REQUESTS_MIN * block, slow)
    if stop is not None:
        return _Size(stop, stop + block, f"{why}; then the drive stopped for longer than it wrote")
    in_progress = drop.after * _PROGRAM_MAX_S * (1 + drop.after / drop.before) / 2
    low = max(0.0, drop.buffered - margin)
    high = min(slow, drop.buffered + in_progress + margin) + block
    if low > high:  # the two contradict each other: the rates vary
        low = 0.0
    return _Size(low, high, f"{why}, less what flash had programmed")


def _narrower(*sizes: _Size) -> _Size:
    return min(sizes, key=lambda size: size.high / max(1.0, size.low))


def _refill(rested: Sequence[WritePass], capacity: float) -> Finding:
    """The idle time that frees `capacity` bytes: between one too short and one long enough."""
    if not rested:
        return Finding(None, "s", None, None, "no rest was tried")
    enough_s = [
        each.rest_s for each in rested if each.rest_s and each.fast_bytes >= RECOVERED * capacity
    ]
    if not enough_s:
        best = max(rested, key=lambda each: each.fast_bytes)
        longest = max(each.rest_s or 0.0 for each in rested)
        why = (
            f"no rest up to {format_duration(longest)} was long enough: at most "
            f"{best.fast_bytes / capacity:.0%} was available again, after "
            f"{format_duration(best.rest_s or 0.0)}"
        )
        return Finding(None, "s", longest, None, why)
    high = min(enough_s)
    too_short_s = [
        each.rest_s
        for each in rested
        if each.rest_s and each.fast_bytes < RECOVERED * capacity and each.rest_s < high
    ]
    if not too_short_s:
        why = f"the shortest rest that was tried, {format_duration(high)}, was long enough"
        return Finding(high, "s", None, high, why)
    low = max(too_short_s)
    why = (
        f"{format_duration(low)} was too short and {format_duration(high)} long enough: known "
        f"within a factor of {high / low:.2f}"
    )
    return Finding((low * high) ** 0.5, "s", low, high, why)


def _sentence(findings: dict[str, Finding], last: RateDrop) -> str:
    buffer, cache, refill = (findings[name] for name in ("buffer_mib", "slc_mib", "refill_s"))
    fast = f"The first {last.at / MIB:.4g} MiB are written at {last.before / MIB:.4g} MiB/s"
    then = f"then {last.after / MIB:.4g} MiB/s"
    if buffer.value is None and cache.value is None and cache.low is None and buffer.low is None:
        return f"{fast}, {then}: not determined: {cache.why}."
    buffer_text = f"a buffer of {_bounds(buffer)}"
    if cache.value == 0:
        return f"{fast}, {then}: {buffer_text}, no SLC cache that makes writes faster."
    recovery = (
        f"idle time of about {format_duration(refill.value)} restores it"
        if isinstance(refill.value, float)
        else "idle time did not restore all of it"
    )
    return f"{fast}, {then}: {buffer_text} and an SLC cache of {_bounds(cache)}; {recovery}."


def _bounds(finding: Finding) -> str:
    """The size; what is known of it if it is not determined."""
    if isinstance(finding.value, float):
        return f"{finding.value:.4g} MiB"
    if finding.low is None:
        return "unknown size" if finding.high is None else f"at most {finding.high:.4g} MiB"
    return f"{finding.low:.4g} to {finding.high:.4g} MiB"
