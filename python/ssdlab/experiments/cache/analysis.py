"""Analysis of cache: sizes of write buffer and SLC cache, and the idle time that empties the cache.

The buffer drains while it fills, so its size is an interval (`buffers`). The SLC cache takes the
rest of the bytes before the last drop (`sizes`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from ssdlab.analysis.evidence import ENDINGS, Conclusion, Evidence, qualified
from ssdlab.analysis.write_rounds import progress
from ssdlab.experiments.cache.buffers import (
    BUFFER_MAX,
    EARLY,
    MIB,
    RAMP,
    REQUESTS_MIN,
    WritePass,
)
from ssdlab.experiments.cache.refill import refill_time
from ssdlab.experiments.cache.sizes import find_sizes
from ssdlab.experiments.cache.whole import KEEPS_UP, whole_drive
from ssdlab.records import Finding
from ssdlab.stats.rate_drops import (
    STEEP_FACTOR,
    RateDrop,
    first_drop,
    last_drop,
    rate_after,
    steepness,
)
from ssdlab.units import format_duration

_SMALL: Final = ("emptied", "paused")  # passes of their own, by small requests
_HIDDEN: Final = (*_SMALL, "again")  # passes whose curves are not shown
_POINTS: Final = 90  # rows per curve


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
    first = next(iter(grouped.values()))
    steep = steepness(progress(evidence, first), RAMP * first[0]["block_bytes"])
    return [_write_pass(evidence, case, steps, steep) for (_, case, _), steps in grouped.items()]


def _write_pass(
    evidence: Evidence, case: str, steps: Sequence[dict[str, Any]], steep: float
) -> WritePass:
    curve, block = progress(evidence, steps), steps[0]["block_bytes"]
    last = last_drop(curve, steep=steep, least=RAMP * block)
    if case in _SMALL:
        first = first_drop(curve, curve.written, REQUESTS_MIN * block)
        return WritePass(case, steps[0]["value"], block, curve, last, first, None)
    early = middle = None
    if last is not None:
        early = first_drop(curve, EARLY * last.at, REQUESTS_MIN * block)
        before = 0.95 * last.low
        if early is not None and early.buffered > BUFFER_MAX:
            before, early = early.high, None  # too much for a buffer
        middle = last_drop(curve, before)
        if middle is not None and (early is None or middle.at < early.at / EARLY):
            middle = middle if early is None and middle.buffered > BUFFER_MAX else None
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
    sizes = find_sizes(evidence, passes, last, capacity, refill)
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
        "buffered_mib_per_s": _buffered(first),
        "cached_mib_per_s": Finding(
            last.before / MIB, "MiB/s", None, None, "the rate before the last drop"
        ),
        "lasting_mib_per_s": Finding(
            _lasting(first, last) / MIB, "MiB/s", None, None, "the mean rate after the last drop"
        ),
    }


def _buffered(first: WritePass) -> Finding:
    """The rate until a buffer in front of an SLC cache is full: that of the link, or the host."""
    if first.early_drop is None:
        why = "the rate dropped only once"
        return Finding(None, "MiB/s", None, None, why)
    rate, why = first.early_drop.before / MIB, "the rate before the first drop"
    return Finding(rate, "MiB/s", None, None, why)


def _lasting(first: WritePass, last: RateDrop) -> float:
    """The mean rate after the drop: that of the first programs alone may be far lower."""
    mean = rate_after([(first.curve, last)])
    return last.after if mean is None else mean


def _comparable_bytes(first: WritePass, later: WritePass) -> float:
    """Bytes of `first` before its last drop, located as coarsely as in the shorter `later`."""
    last = first.last_drop
    steep = STEEP_FACTOR if last is None else min(STEEP_FACTOR, last.before / last.after)
    drop = last_drop(first.curve, later.curve.written, steep)
    return first.fast_bytes if drop is None else drop.at


def _sentence(findings: dict[str, Finding], last: RateDrop) -> str:
    buffer, cache, refill = (findings[name] for name in ("buffer_mib", "slc_mib", "refill_s"))
    fast = f"The first {last.at / MIB:.4g} MiB are written at {last.before / MIB:.4g} MiB/s"
    then = f"then {last.after / MIB:.4g} MiB/s"
    if buffer.value is None and cache.value is None and cache.low is None and buffer.low is None:
        return f"{fast}, {then}: not determined: {cache.why}."
    buffer_text = f"a buffer of {_bounds(buffer)}"
    if cache.value == 0:
        return f"{fast}, {then}: {buffer_text}, no SLC cache that makes writes faster."
    if cache.value is None and cache.low is None:
        return f"{fast}, {then}: {buffer_text}, and perhaps an SLC cache: {cache.why}."
    of_cache = f"an SLC cache of {_bounds(cache)}"
    return f"{fast}, {then}: {buffer_text} and {of_cache}; {_recovery(refill)}."


def _recovery(refill: Finding) -> str:
    if refill.high is None:
        return "idle time did not restore all of it"
    if isinstance(refill.value, float) and refill.low is not None:
        return f"idle time of about {format_duration(refill.value)} restores it"
    return f"idle time of at most {format_duration(refill.high)} restores it"


def _bounds(finding: Finding) -> str:
    """The size; what is known of it if it is not determined."""
    if isinstance(finding.value, float):
        return f"{finding.value:.4g} MiB"
    if finding.low is None:
        return "unknown size" if finding.high is None else f"at most {finding.high:.4g} MiB"
    return f"{finding.low:.4g} to {finding.high:.4g} MiB"
