"""Analysis of cache: sizes of write buffer and SLC cache, and the idle time that empties the cache.

The buffer drains while it fills, so its size is the data written before the drop in speed, minus
what flash could program in that time (at the rate after the drop). The SLC cache keeps its data:
its size is the data written before the last drop minus the buffer. A flush empties a buffer but not
an SLC cache. If a flush empties nothing (a buffer with capacitors), the first drop shows the
buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

from ssdlab.analysis.evidence import ENDINGS, Conclusion, Evidence, qualified
from ssdlab.analysis.write_rounds import progress
from ssdlab.records import Finding
from ssdlab.stats.rate_drops import RateDrop, first_drop, last_drop
from ssdlab.stats.steady import Progress
from ssdlab.units import format_duration

MIB: Final = 1 << 20
RECOVERED: Final = 0.95
"""The cache has recovered when this share of its first capacity is free, as in the measurement."""
_EARLY: Final = 0.9  # an early drop must come before this share of the last drop's position
_DRAIN_FACTOR: Final = 1.5  # a buffer drains within this multiple of the time to program it
_BUFFER_MAX: Final = 128 * MIB  # no drive is known to have a larger write buffer
_BUFFER_SHARE_MIN: Final = 0.02  # if a flush frees a smaller share, that is noise
_POINTS: Final = 90  # rows per curve


@dataclass(frozen=True)
class WritePass:
    """One write of the region; `case` is first, flushed or rested, `rest_s` the idle time before.

    `last_drop` is the drop in speed to the sustained rate, `early_drop` a drop before that; None
    if there is no such drop.
    """

    case: str
    rest_s: float | None
    curve: Progress
    last_drop: RateDrop | None
    early_drop: RateDrop | None

    @property
    def fast_bytes(self) -> float:
        """Bytes written before the last drop; all of them if the speed did not drop."""
        return self.curve.written if self.last_drop is None else self.last_drop.at

    @property
    def buffered_bytes(self) -> float:
        """Bytes that a buffer held at the first drop of this pass; 0 without a drop."""
        drop = self.early_drop or self.last_drop
        return 0.0 if drop is None else drop.buffered


@dataclass(frozen=True)
class _Sizes:
    """Sizes in bytes, and how each was found. `cache` is None if there is no SLC cache."""

    buffer: float
    cache: float | None
    why_buffer: str
    why_cache: str


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
    findings = _findings(passes, first.last_drop)
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
    curve = progress(evidence, steps)
    last = last_drop(curve)
    early = None if last is None else first_drop(curve, _EARLY * last.at)
    return WritePass(case, steps[0]["value"], curve, last, early)


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


def _findings(passes: Sequence[WritePass], last: RateDrop) -> dict[str, Finding]:
    first, flushed = passes[:2]
    rested = [each for each in passes if each.case == "rested"]
    capacity = _comparable_bytes(first, flushed)
    refill = _refill(rested, capacity)
    sizes = _sizes(first, flushed, capacity, refill)
    findings = {
        "buffer_mib": _buffer(first, flushed, sizes),
        "slc_mib": Finding(None, "MiB", None, None, sizes.why_cache),
        "refill_s": Finding(None, "s", None, None, "no SLC cache was found"),
        "lasting_mib_per_s": Finding(
            last.after / MIB, "MiB/s", None, None, "the rate after the last drop"
        ),
    }
    if sizes.cache is not None:
        size, margin = sizes.cache / MIB, (last.high - last.low) / 2 / MIB
        findings["slc_mib"] = Finding(size, "MiB", size - margin, size + margin, sizes.why_cache)
        findings["refill_s"] = refill
    return findings


def _comparable_bytes(first: WritePass, later: WritePass) -> float:
    """Bytes of `first` before its last drop, located as coarsely as in the shorter `later`."""
    drop = last_drop(first.curve, later.curve.written)
    return first.fast_bytes if drop is None else drop.at


def _sizes(first: WritePass, flushed: WritePass, capacity: float, refill: Finding) -> _Sizes:
    """Divides the bytes of the first pass before its last drop into buffer and SLC cache.

    `flushed` is the pass right after a flush.
    """
    assert first.last_drop is not None, "without a drop there is nothing to divide"
    total = f"{first.fast_bytes / MIB:.4g} MiB before the last drop"
    if flushed.last_drop is not None and flushed.fast_bytes >= RECOVERED * capacity:
        why = f"{total}, and as much again right after a flush: a write buffer"
        return _Sizes(flushed.buffered_bytes, None, why, f"{why}, not an SLC cache")
    flush_empties_nothing = flushed.buffered_bytes < _BUFFER_SHARE_MIN * first.last_drop.buffered
    if flush_empties_nothing and first.early_drop is None and _drains(first.last_drop, refill):
        why = f"{total}; a rest that is just long enough to program them makes room again"
        return _Sizes(
            first.last_drop.buffered,
            None,
            f"{why}: a buffer that a flush does not empty",
            f"{why}: a buffer, not an SLC cache",
        )
    early_bytes = first.early_drop.buffered if first.early_drop is not None else 0.0
    if flushed.buffered_bytes > 0 and flushed.buffered_bytes >= early_bytes / 2:
        buffer, when = flushed.buffered_bytes, "right after a flush"
    else:
        buffer, when = early_bytes, "before the first drop (a flush does not empty the buffer)"
    why = f"{buffer / MIB:.4g} MiB more than flash could program {when}"
    return _Sizes(buffer, first.fast_bytes - buffer, why, f"{total}, less the buffer")


def _drains(drop: RateDrop, refill: Finding) -> bool:
    """Whether the bytes before the drop are few and soon programmed, as with a buffer."""
    program_s = drop.at / drop.after
    fast = isinstance(refill.value, float) and refill.value <= _DRAIN_FACTOR * program_s
    return fast and drop.buffered <= _BUFFER_MAX


def _buffer(first: WritePass, flushed: WritePass, sizes: _Sizes) -> Finding:
    """The buffer's size; its interval covers the first pass and the one after a flush."""
    if sizes.buffer <= 0:
        why = "a write buffer could not be distinguished from the SLC cache"
        return Finding(None, "MiB", None, None, why)
    passes = first, flushed
    estimates = [
        each.buffered_bytes for each in passes if 0.5 < each.buffered_bytes / sizes.buffer < 2
    ]
    low, high = min([sizes.buffer, *estimates]), max([sizes.buffer, *estimates])
    margin = min(_margin(each) for each in passes)
    return Finding(
        sizes.buffer / MIB, "MiB", (low - margin) / MIB, (high + margin) / MIB, sizes.why_buffer
    )


def _margin(write_pass: WritePass) -> float:
    """By how many bytes the position of the drop that shows the buffer is uncertain."""
    drop = write_pass.early_drop or write_pass.last_drop
    return float("inf") if drop is None else (drop.high - drop.low) / 2


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
    buffer, cache, refill = (findings[name].value for name in ("buffer_mib", "slc_mib", "refill_s"))
    fast = f"The first {last.at / MIB:.4g} MiB are written at {last.before / MIB:.4g} MiB/s"
    then = f"then {last.after / MIB:.4g} MiB/s"
    buffer_text = (
        f"a buffer of {buffer:.4g} MiB" if isinstance(buffer, float) else "a buffer of unknown size"
    )
    if not isinstance(cache, float):
        return f"{fast}, {then}: {buffer_text}, no SLC cache."
    recovery = (
        f"idle time of about {format_duration(refill)} restores it"
        if isinstance(refill, float)
        else "idle time did not restore all of it"
    )
    return f"{fast}, {then}: {buffer_text} and an SLC cache of {cache:.4g} MiB; {recovery}."
