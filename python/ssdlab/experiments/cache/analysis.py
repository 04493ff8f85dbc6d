"""How much a drive takes before its speed falls, what takes it, and how long it rests from that.

What a buffer holds is what was taken beyond the rate behind the fall, for it moves on meanwhile. An
SLC cache keeps what it took: its size is the place of the fall less the buffer. A flush tells them
apart, for it empties a buffer and no cache; where it empties nothing (a buffer with capacitors),
the first kink does.
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
BACK: Final = 0.95
"""As in the experiment: a rest gave everything back if so much is taken again."""
_BEFORE: Final = 0.9  # of the last fall's place: where a first one is looked for
_DRAINS: Final = 1.5  # times as long as flash takes to program it: a buffer, no cache
_BUFFER_MOST: Final = 128 * MIB  # more memory than this for writes no drive is known to have
_SHOWS: Final = 0.02  # of what was held at first: less right after a flush is no buffer
_POINTS: Final = 90  # of a curve


@dataclass(frozen=True)
class Writing:
    """A writing of the run: its case (first, flushed, rested), the rest before it, its curve.

    `last` is the fall behind which the lasting rate begins, `first` one before that; None where
    there is none.
    """

    case: str
    rest_s: float | None
    curve: Progress
    last: RateDrop | None
    first: RateDrop | None

    @property
    def taken(self) -> float:
        """Bytes before the lasting rate; all that was written where it did not fall."""
        return self.curve.written if self.last is None else self.last.at

    @property
    def held(self) -> float:
        """Bytes that a buffer took, as far as this writing shows one."""
        fall = self.first or self.last
        return 0.0 if fall is None else fall.buffered


@dataclass(frozen=True)
class _Sizes:
    """Buffer and cache in bytes, the cache None where there is none; why, of each."""

    buffer: float
    cache: float | None
    why_buffer: str
    why_cache: str


def conclude(evidence: Evidence) -> Conclusion:
    """Rows of all curves, the sizes and the rest that gives them back."""
    written = writings(evidence)
    measures = [row for writing in written for row in _rows(writing)]
    if not written or written[0].case != "first":
        ended = ENDINGS[evidence.outcome]
        return Conclusion(measures, {}, f"{ended} before anything was written: nothing to tell.")
    first = written[0]
    if first.last is None:
        found, sentence = _none(first)
        return Conclusion(measures, found, qualified(sentence, evidence.warnings))
    if len(written) < 2:
        ended = ENDINGS[evidence.outcome]
        return Conclusion(measures, {}, f"{ended} before it was written again: too little to tell.")
    found = _findings(written, first.last)
    sentence = _sentence(found, first.last)
    if "virtual" in evidence.warnings:
        sentence = f"{sentence.rstrip('.')}; of a virtual disk this may be the host's doing."
    return Conclusion(measures, found, qualified(sentence, evidence.warnings))


def writings(evidence: Evidence) -> list[Writing]:
    """The writings in the order of the run; the steps of the first one belong together."""
    grouped: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for step in evidence.steps("write"):
        if step["bytes"]:
            grouped.setdefault((step["stage"], step["case"]), []).append(step)
    return [_writing(evidence, case, steps) for (_, case), steps in grouped.items()]


def _writing(evidence: Evidence, case: str, steps: Sequence[dict[str, Any]]) -> Writing:
    curve = progress(evidence, steps)
    last = last_drop(curve)
    first = None if last is None else first_drop(curve, _BEFORE * last.at)
    return Writing(case, steps[0]["value"], curve, last, first)


def _rows(writing: Writing) -> list[dict[str, Any]]:
    """Rates between places that are finer at the beginning: a buffer is small beside a cache."""
    whole = writing.curve.written
    marks = np.unique(np.concatenate(([0.0], np.geomspace(whole / 1024, whole, _POINTS))))
    rows = []
    for start, stop in pairwise(float(mark) for mark in marks):
        seconds = float(writing.curve.between(start, stop, 1)[0])
        if seconds > 0:
            rows.append(
                {
                    "case": writing.case,
                    "rest_s": writing.rest_s,
                    "written_mib": stop / MIB,
                    "write_mib_per_s": (stop - start) / MIB / seconds,
                }
            )
    return rows


def _none(first: Writing) -> tuple[dict[str, Finding], str]:
    why = f"the speed did not fall within {first.curve.written / MIB:.4g} MiB: give a larger --size"
    names = {"buffer_mib": "MiB", "slc_mib": "MiB", "refill_s": "s"}
    found = {name: Finding(None, unit, None, None, why) for name, unit in names.items()}
    return found, f"No fall was seen: {why}."


def _findings(written: Sequence[Writing], last: RateDrop) -> dict[str, Finding]:
    rested = [each for each in written if each.case == "rested"]
    shown = _refill(rested, _taken(written[0], written[1]))
    sizes = _sizes(written[0], written[1], shown)
    margin = (last.high - last.low) / 2 / MIB
    found = {
        "buffer_mib": _buffer(written, sizes),
        "slc_mib": Finding(None, "MiB", None, None, sizes.why_cache),
        "refill_s": Finding(None, "s", None, None, "there is no cache that rest would give back"),
        "lasting_mib_per_s": Finding(
            last.after / MIB, "MiB/s", None, None, "the rate behind the last fall"
        ),
    }
    if sizes.cache is not None:
        size = sizes.cache / MIB
        found["slc_mib"] = Finding(size, "MiB", size - margin, size + margin, sizes.why_cache)
        found["refill_s"] = shown
    return found


def _taken(first: Writing, later: Writing) -> float:
    """What was taken at first, looked at as closely as a later and shorter writing is."""
    fall = last_drop(first.curve, later.curve.written)
    return first.taken if fall is None else fall.at


def _sizes(first: Writing, flushed: Writing, refill: Finding) -> _Sizes:
    """What took it: `first` fell, `flushed` is the same right after a flush."""
    assert first.last is not None, "without a fall there is nothing to divide"
    at = f"{first.taken / MIB:.4g} MiB were taken before the last fall"
    if flushed.last is not None and flushed.taken >= BACK * _taken(first, flushed):
        why = f"{at}, and again right after a flush: a buffer's work"
        return _Sizes(flushed.held, None, why, f"{why}, and no cache's")
    unmoved = flushed.held < _SHOWS * first.last.buffered
    if unmoved and first.first is None and _drains(first.last, refill):
        why = f"{at}; a rest no longer than programming them takes gives them back"
        return _Sizes(first.last.buffered, None, f"{why}: a buffer that a flush leaves full", why)
    known = first.first.buffered if first.first is not None else 0.0
    honest = flushed.held >= known / 2 and flushed.held > 0
    buffer = flushed.held if honest else known
    seen = "right after a flush" if honest else "before the first kink (a flush leaves it full)"
    why = f"{buffer / MIB:.4g} MiB went in beyond the flash's rate {seen}"
    return _Sizes(buffer, first.taken - buffer, why, f"{at}, of which the buffer had its part")


def _drains(fall: RateDrop, refill: Finding) -> bool:
    soon = isinstance(refill.value, float) and refill.value <= _DRAINS * fall.at / fall.after
    return soon and fall.buffered <= _BUFFER_MOST


def _buffer(written: Sequence[Writing], sizes: _Sizes) -> Finding:
    """Bounded by what the first writing and the one after a flush show of it."""
    if sizes.buffer <= 0:
        why = "no buffer was told from what lies behind it"
        return Finding(None, "MiB", None, None, why)
    near = [each.held for each in written[:2] if 0.5 < each.held / sizes.buffer < 2]
    low, high = min(near, default=sizes.buffer), max(near, default=sizes.buffer)
    margin = min((_margin(each) for each in written[:2]), default=0.0)
    bounds = ((min(low, sizes.buffer) - margin) / MIB, (max(high, sizes.buffer) + margin) / MIB)
    return Finding(sizes.buffer / MIB, "MiB", *bounds, sizes.why_buffer)


def _margin(writing: Writing) -> float:
    """Bytes by which the place of the fall that shows the buffer may be off."""
    fall = writing.first or writing.last
    return float("inf") if fall is None else (fall.high - fall.low) / 2


def _refill(rested: Sequence[Writing], taken: float) -> Finding:
    """The shortest rest that gives everything back: between one too short and one long enough."""
    short = [each for each in rested if each.taken < BACK * taken]
    enough = [each.rest_s for each in rested if each.taken >= BACK * taken and each.rest_s]
    if not enough:
        if not rested:
            return Finding(None, "s", None, None, "no rest was tried")
        most = max(rested, key=lambda each: each.taken)
        longest = max(each.rest_s or 0.0 for each in rested)
        why = (
            f"not all of it came back within {format_duration(longest)}: at most "
            f"{most.taken / taken:.0%}, after {format_duration(most.rest_s or 0.0)}"
        )
        return Finding(None, "s", longest, None, why)
    high = min(enough)
    below = [each.rest_s for each in short if each.rest_s and each.rest_s < high]
    if not below:
        why = f"the shortest rest that was tried, {format_duration(high)}, gave everything back"
        return Finding(high, "s", None, high, why)
    low = max(below)
    why = (
        f"{format_duration(low)} are too short and {format_duration(high)} long enough: within a "
        f"factor of {high / low:.2f}"
    )
    return Finding((low * high) ** 0.5, "s", low, high, why)


def _sentence(found: dict[str, Finding], last: RateDrop) -> str:
    buffer, cache, refill = (found[name].value for name in ("buffer_mib", "slc_mib", "refill_s"))
    behind = f"{last.after / MIB:.4g} MiB/s behind it"
    said = f"a buffer of {buffer:.4g} MiB" if isinstance(buffer, float) else "no buffer told apart"
    if not isinstance(cache, float):
        return f"The drive takes {last.at / MIB:.4g} MiB at speed: {said}, no SLC cache; {behind}."
    back = (
        f"a rest of about {format_duration(refill)} gives it back"
        if isinstance(refill, float)
        else "rest did not give all of it back"
    )
    return (
        f"The drive takes {last.at / MIB:.4g} MiB at {last.before / MIB:.4g} MiB/s: {said} and an "
        f"SLC cache of {cache:.4g} MiB; {behind}; {back}."
    )
