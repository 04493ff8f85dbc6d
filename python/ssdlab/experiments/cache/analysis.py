"""Analysis of cache: sizes of write buffer and SLC cache, and the idle time that empties the cache.

The buffer drains while it fills, so its size is an interval (`buffers`). The SLC cache keeps its
data: its size is the bytes written before the last drop, less the buffer's.

A flush empties most buffers. If a flush after writing is as fast as that of an idle drive, it
empties nothing (capacitors protect the buffer, or the drive ignores flushes). Then pauses of
growing length show what the buffer holds: until it is empty, each frees what flash programs in that
time. An SLC cache that is emptied at once and as fast can hide this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

from ssdlab.analysis.evidence import ENDINGS, Conclusion, Evidence, qualified, seconds_of
from ssdlab.analysis.write_rounds import progress
from ssdlab.experiments.cache.buffers import (
    MIB,
    REQUESTS_MIN,
    Freed,
    Size,
    WritePass,
    buffered,
    common,
    flushed_bytes,
    plateau,
)
from ssdlab.experiments.cache.read_back import read_back_size
from ssdlab.experiments.cache.refill import RECOVERED, refill_time, refilled
from ssdlab.experiments.cache.whole import KEEPS_UP, whole_drive
from ssdlab.records import Finding
from ssdlab.stats.rate_drops import (
    STEEP_FACTOR,
    RateDrop,
    first_drop,
    last_drop,
    rate_after,
    rate_drops,
    steepness,
)
from ssdlab.units import format_duration

_EARLY: Final = 0.5  # an early drop must come before this share of the last drop's position
_DRAIN_FACTOR: Final = 1.5  # a buffer drains within this multiple of the time to program it
_BUFFER_MAX: Final = 64 * MIB  # write buffers are rarely larger ...
_CACHE_MIN: Final = 40 * MIB  # ... and SLC caches rarely smaller
_CACHE_LEAST: Final = 10 * MIB
"""What is left for an SLC cache below this is an error of the sizes: caches hold far more."""
_SAME_RATE: Final = 0.1  # relative difference of two rates that count as equal
_SLOWER: Final = 2.0  # times the rate of the next write: an SLC cache may have made the difference
_IN_PART: Final = 4  # requests in flight that a buffer may hold in part
_SHARED: Final = 0.8  # of the capacity: a buffer that holds less shares it with an SLC cache
_SMALL: Final = ("emptied", "paused")  # passes of their own, by small requests
_SURE_BELOW: Final = 16 * MIB  # above it, a part of an SLC cache may be what pauses free
_HIDDEN: Final = (*_SMALL, "again")  # passes whose curves are not shown
_POINTS: Final = 90  # rows per curve


@dataclass(frozen=True)
class _Sizes:
    """The two sizes; None if unknown. A cache of 0 bytes is absent, for the reason in `why`."""

    buffer: Size | None
    cache: Size | None
    why: str = ""


@dataclass(frozen=True)
class _Flushes:
    """By how much flushes after writes took longer than one of the idle drive, in order.

    `program_s` is the time of a flush with one small write; None if a flush does not wait.
    """

    waits_s: list[float]
    program_s: float | None


def conclude(evidence: Evidence) -> Conclusion:
    """The curves of all passes as rows, the two sizes, and the idle time that empties the cache."""
    passes = write_passes(evidence)
    measures = [row for each in passes if each.case not in _HIDDEN for row in _rows(each)]
    ended = ENDINGS[evidence.outcome]
    if not passes or passes[0].case != "first":
        return Conclusion(measures, {}, f"{ended} before anything was written: no result.")
    first = passes[0]
    if first.last_drop is None and len(passes) > 1 and passes[1].case == "rest":
        return whole_drive(evidence, measures)
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
    grouped: dict[tuple[int, str, int], list[dict[str, Any]]] = {}
    for step in evidence.steps("write"):
        if step["bytes"]:
            pause = step["repeat"] if step["case"] in _SMALL else 0
            grouped.setdefault((step["stage"], step["case"], pause), []).append(step)
    if not grouped:
        return []
    steep = steepness(progress(evidence, next(iter(grouped.values()))))
    return [_write_pass(evidence, case, steps, steep) for (_, case, _), steps in grouped.items()]


def _write_pass(
    evidence: Evidence, case: str, steps: Sequence[dict[str, Any]], steep: float
) -> WritePass:
    curve, block = progress(evidence, steps), steps[0]["block_bytes"]
    last = last_drop(curve, steep=steep)
    if case in _SMALL:
        first = first_drop(curve, curve.written, REQUESTS_MIN * block)
        return WritePass(case, steps[0]["value"], block, curve, last, first, None)
    early = middle = None
    if last is not None:
        early = first_drop(curve, _EARLY * last.at, REQUESTS_MIN * block)
        before = 0.95 * last.low
        if early is not None and early.buffered > _BUFFER_MAX:
            before, early = early.high, None  # too much for a buffer
        middle = last_drop(curve, before)
        if middle is not None and (early is None or middle.at < early.at / _EARLY):
            middle = middle if early is None and middle.buffered > _BUFFER_MAX else None
        if middle is not None and early is not None and middle.after > KEEPS_UP * early.after:
            middle = None  # the early drop once more, at a lower resolution
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
    refill = refill_time(rested, last, capacity)
    # A gentle drop is located too coarsely to compare pauses.
    is_steep = last.before > STEEP_FACTOR * last.after
    pauses = [each for each in passes if is_steep and each.case == "paused"]
    freed = plateau(pauses, last.after, last.before)
    if freed is not None and freed.size.high > _SURE_BELOW and not freed.is_steady:
        freed = None if freed.position < _SHARED * capacity else freed
    back = read_back_size(evidence, last.after) if is_steep else None
    sizes = _sizes(passes, capacity, _flushes(evidence), freed, back)
    if sizes is None:
        sizes = _unflushed(first, freed, refill, capacity)
    most = last.at + first.margin(last) + _IN_PART * first.block_bytes
    sizes = _bounded(sizes, last.at, most)
    sizes = _unless_slower(sizes, last, flushed.last_drop)
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
            _lasting(first, last) / MIB, "MiB/s", None, None, "the mean rate after the last drop"
        ),
    }


def _lasting(first: WritePass, last: RateDrop) -> float:
    """The mean rate after the drop: that of the first programs alone may be far lower."""
    mean = rate_after([(first.curve, last)])
    return last.after if mean is None else mean


def _bounded(sizes: _Sizes, written: float, most: float) -> _Sizes:
    """The sizes, if the buffer holds at most the bytes `written` before the last drop.

    `most` is the latest position of that drop.
    """
    buffer = sizes.buffer
    if buffer is None or buffer.high <= most:
        return sizes
    if buffer.low <= most:
        return _Sizes(Size(buffer.low, most, buffer.why), sizes.cache, sizes.why)
    why = (
        f"flushes took as long as programming {buffer.low / MIB:.4g} MiB, but only "
        f"{written / MIB:.4g} MiB were written before the drop: something other than a write "
        "buffer delays them, such as a page cache or another program's writes"
    )
    return _Sizes(None, None, why)


def _unless_slower(sizes: _Sizes, last: RateDrop, after: RateDrop | None) -> _Sizes:
    """The sizes, but an absent cache only if the next write was not far slower when it had slowed.

    An SLC cache may have taken all of the first one.
    """
    if sizes.cache is None or sizes.cache.high > 0 or after is None:
        return sizes
    if last.after <= _SLOWER * after.after:
        return sizes
    why = (
        f"the first write fell to {last.after / MIB:.4g} MiB/s, the next one to "
        f"{after.after / MIB:.4g}: an SLC cache may have taken all of the first; give a larger "
        "--size"
    )
    return _Sizes(sizes.buffer, None, why)


def _flushes(evidence: Evidence) -> _Flushes:
    """How long flushes waited for flash."""
    idle_s, waits_s, before = 0.0, list[float](), None
    for step in evidence.steps():
        if step["phase"] == "flush" and before is None:
            idle_s += seconds_of(step)
        elif step["phase"] == "flush" and before in {"first", "flushed", "emptied"}:
            waits_s.append(seconds_of(step) - idle_s)
        if step["phase"] == "write" or before is not None:
            before = step["case"]
    program = evidence.steps("program")
    program_s = 2 * seconds_of(program[0]) / program[0]["requests"] - idle_s if program else None
    return _Flushes(waits_s, program_s)


def _comparable_bytes(first: WritePass, later: WritePass) -> float:
    """Bytes of `first` before its last drop, located as coarsely as in the shorter `later`."""
    last = first.last_drop
    steep = STEEP_FACTOR if last is None else min(STEEP_FACTOR, last.before / last.after)
    drop = last_drop(first.curve, later.curve.written, steep)
    return first.fast_bytes if drop is None else drop.at


def _sizes(
    passes: Sequence[WritePass],
    capacity: float,
    flushes: _Flushes,
    freed: Freed | None,
    back: Size | None,
) -> _Sizes | None:
    """Divides the bytes of the first pass before its last drop into buffer and SLC cache.

    `freed` is what pauses freed, `back` the size of the buffer by reads. None if only pauses can
    divide them.
    """
    first, flushed = passes[:2]
    last = first.last_drop
    assert last is not None, "without a drop there is nothing to divide"
    total = f"{last.at / MIB:.4g} MiB before the last drop"
    after = flushed.last_drop
    program_s = flushes.program_s
    same_rate = after is not None and abs(after.after / last.after - 1) < _SAME_RATE
    is_small = after is not None and after.at < _SURE_BELOW
    early, buffers = first.early_drop, [] if back is None else [back]
    if program_s is not None:
        # Later writes filled the buffer again for sure only if it is small.
        count = 1 if not same_rate else len(flushes.waits_s) if is_small else 2
        waits_s = flushes.waits_s[:count]
        falls = _later_falls(first)
        rate = falls[-1].after if falls else last.after  # at the first flush
        buffers.append(flushed_bytes(waits_s, rate, program_s))
    buffers += [
        buffered(each, each.early_drop, "written before the drop after a flush", program_s)
        for each in passes
        if each.case == "emptied" and each.early_drop is not None and is_small
    ]
    if after is not None and refilled(flushed, last) >= RECOVERED * capacity:
        why = f"{total}, and as much again right after a flush: a write buffer"
        buffers.append(buffered(first, last, why, program_s))
        if same_rate:
            buffers.append(buffered(flushed, after, why, program_s))
        buffer = common(buffers)
        return _Sizes(buffer, _gentle_cache(first, buffer, f"{why}, not an SLC cache"))
    if early is not None:
        buffers.append(buffered(first, early, "written before the first drop"))
        buffers += [] if freed is None else [freed.size]
    if (
        after is not None
        and same_rate
        and after.at >= REQUESTS_MIN * first.block_bytes
        and flushes.waits_s[0] > after.buffered / after.after / 2
    ):
        why = "written before the drop after a flush"
        buffers.append(buffered(flushed, after, why, program_s))
        if early is None and abs(after.before / last.before - 1) < _SAME_RATE:
            # Both passes filled the buffer at the same rates, the first one after the cache.
            why = f"{total}, less the {after.at / MIB:.4g} MiB right after a flush"
            margin = first.margin(last) + flushed.margin(after)
            size = last.at - after.at
            if size + margin > _CACHE_LEAST:
                return _Sizes(common(buffers), Size(size - margin, size + margin, why))
    if not buffers:
        return None
    if back is not None and _rest(first, common(buffers)).high < _CACHE_MIN:
        buffers.append(buffered(first, last, total))
    buffer = common(buffers)
    rest = _rest(first, buffer)
    return _Sizes(buffer, rest if rest.high >= _CACHE_LEAST else _too_little(first, buffer, rest))


def _too_little(first: WritePass, buffer: Size, rest: Size) -> Size:
    """The size of an SLC cache if the buffer leaves hardly anything for one."""
    why = f"{rest.why}, leaves at most {rest.high / MIB:.3g} MiB: too little for an SLC cache"
    return _gentle_cache(first, buffer, why)


def _later_falls(first: WritePass) -> list[RateDrop]:
    """Falls of the rate after the last steep drop."""
    assert first.last_drop is not None
    return [drop for drop in rate_drops(first.curve) if drop.at > first.last_drop.at / _EARLY]


def _gentle_cache(first: WritePass, buffer: Size, otherwise: str) -> Size:
    """The size of an SLC cache that is little faster than direct writes, if the rate falls again.

    None is seen otherwise, for the reason `otherwise`.
    """
    falls = _later_falls(first)
    if not falls:
        return Size(0, 0, otherwise)
    end = falls[-1]
    why = (
        f"{end.at / MIB:.4g} MiB before the rate falls once more, from {end.before / MIB:.4g} to "
        f"{end.after / MIB:.4g} MiB/s, less the buffer"
    )
    margin = first.margin(end)
    return Size(end.at - buffer.high - margin, end.at - buffer.low + margin, why)


def _rest(first: WritePass, buffer: Size) -> Size:
    """The size of the SLC cache: the bytes before the last drop, less the buffer."""
    last = first.last_drop
    assert last is not None
    end = first.middle_drop or last
    why = f"{last.at / MIB:.4g} MiB before the last drop, less the buffer"
    low, high = end.at - buffer.high, last.at - buffer.low
    if end is last:  # the buffer fills last, while the link brings more than flash programs
        low -= buffer.high * max(0.0, last.before / (last.before - last.after) - 1)
    return Size(low - first.margin(end), high + first.margin(last), why)


def _unflushed(first: WritePass, freed: Freed | None, refill: Finding, capacity: float) -> _Sizes:
    """The sizes if there is one drop only, and a flush frees nothing."""
    last = first.last_drop
    assert last is not None
    total = f"{last.at / MIB:.4g} MiB before the last drop"
    held = buffered(first, last, total)
    if freed is not None:
        buffer = freed.size
        if freed.position < _SHARED * capacity:
            return _Sizes(buffer, _rest(first, buffer))
        if held.high <= _CACHE_MIN or (held.low <= _BUFFER_MAX and freed.is_steady):
            why = f"{total}, and as much again after a pause that lets flash program them"
            whole = common([held, buffer])
            found_size = Size(whole.low, whole.high, f"{why}: a buffer that a flush does not empty")
            why = f"{why}: a buffer, not an SLC cache"
            return _Sizes(found_size, _gentle_cache(first, found_size, why))
    return _undivided(first, last, refill, held)


def _undivided(first: WritePass, last: RateDrop, refill: Finding, held: Size) -> _Sizes:
    """The sizes if pauses do not tell a buffer from an SLC cache."""
    total = f"{last.at / MIB:.4g} MiB before the last drop"
    program_s = last.at / last.after
    drains = isinstance(refill.value, float) and (
        refill.value <= _DRAIN_FACTOR * program_s or refill.low is None  # no shorter rest was tried
    )
    if drains and last.at + first.margin(last) <= _CACHE_MIN:
        why = f"{total}; a rest that is just long enough to program them makes room again"
        buffer = Size(held.low, held.high, f"{why}: a buffer that a flush does not empty")
        why = f"{why}: a buffer, not an SLC cache"
        return _Sizes(buffer, _gentle_cache(first, buffer, why))
    if drains and held.low <= _BUFFER_MAX:
        return _Sizes(
            None,
            None,
            f"{total}: either a buffer of {held.low / MIB:.4g} to {held.high / MIB:.4g} MiB that "
            "a flush does not empty, or an SLC cache that is as fast as the link",
        )
    end = first.middle_drop or last
    share = _BUFFER_MAX / (1 - end.after / end.before) + first.margin(end)
    why = f"{total}, of which a buffer of unknown size may have taken {_BUFFER_MAX / MIB:g} MiB"
    return _Sizes(None, Size(end.at - share, last.at + first.margin(last), why))


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
