"""What a file in pieces costs to read, and whether splitting or conflicts inside the drive do it.

Of the time that a file in many pieces takes beyond one in a single piece, the part that the same
commands also take in order is the price of splitting: more commands, each with its way to the drive
and back. The rest is the drive's: pieces that lie on few dies wait for each other.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ssdlab.analysis.cells import Columns
from ssdlab.analysis.evidence import ENDINGS, Conclusion, Evidence, qualified, seconds_of
from ssdlab.records import Finding
from ssdlab.stats.interval import median_ratio_interval, ratio_interval

COLUMNS: Final = Columns(("degree", "queue_depth"), ("read_ms",), {"read_ms": "read_ms_all"})
"""The cells of `measures` that runs have in common."""
CHEAP: Final = 1.1
"""Below this ratio pieces are called free: repeats scatter by a few per cent."""
CONFLICTS: Final = "die conflicts"
SPLITTING: Final = "request splitting"
NONE: Final = "none"
_IN_ORDER: Final = "in order"
_MEMORY: Final = "memory"

_NOT_THE_DRIVE: Final = frozenset({"virtual", "busy-host", "stolen-time", "composed", "network"})
"""Warnings after which something else than dies may be what conflicts."""


@dataclass(frozen=True)
class _Place:
    """What was read: gap, degree and depth; `part` is what a read of it was for.

    "pieces", or what was read in turn with them: "commands", the same commands in order, and
    "whole", the file in one piece. "memory" has no gap.
    """

    part: str
    gap: str
    degree: int
    depth: int


Times = dict[_Place, list[float]]
"""Milliseconds of each repeat."""


@dataclass(frozen=True)
class _Slow:
    """What a layout took at a depth, beside the file in one piece: milliseconds of each repeat.

    `host` is the part of the excess that the host alone takes, or None.
    """

    gap: str
    degree: int
    depth: int
    pieces: list[float]
    commands: list[float]
    whole: list[float]
    host: float | None

    @property
    def ratio(self) -> float:
        return statistics.median(self.pieces) / statistics.median(self.whole)

    @property
    def bounds(self) -> tuple[float, float] | None:
        return _bounds(self.pieces, self.whole)

    @property
    def excess(self) -> float:
        return statistics.median(self.pieces) - statistics.median(self.whole)

    @property
    def by_splitting(self) -> float:
        return statistics.median(self.commands) - statistics.median(self.whole)

    @property
    def cause(self) -> str:
        """Of a file that is surely slower; conflicts, where it surely is beyond its commands."""
        if self.ratio < CHEAP or not _surely_longer(self.pieces, self.whole):
            return NONE
        mostly = self.excess - self.by_splitting > self.by_splitting
        return CONFLICTS if mostly and _surely_longer(self.pieces, self.commands) else SPLITTING


def _bounds(above: list[float], below: list[float]) -> tuple[float, float] | None:
    """By ranks, for a busy host makes single reads ten times as long; of few repeats, by means."""
    return median_ratio_interval(above, below) or ratio_interval(above, below)


def _surely_longer(above: list[float], below: list[float]) -> bool:
    """Whether the bounds of the ratio say so; a twin's repeats need none."""
    bounds = _bounds(above, below)
    return bounds is None or bounds[0] > 1.0


def conclude(evidence: Evidence) -> Conclusion:
    """A row a gap, degree and depth; slowdowns and causes are those of the largest degree.

    `cause` is that at the largest depth where the file is slower at all: one at a time no two
    commands are there to conflict, so what is seen then is always splitting.
    """
    times = _times(evidence)
    gaps = [gap for gap in evidence.parameters["gaps"] if any(at.gap == gap for at in times)]
    rows = _rows(times, gaps, evidence)
    found = [
        slow
        for gap in gaps
        for depth in evidence.parameters["queue_depths"]
        if (slow := _slow(times, (gap, depth), evidence)) is not None
    ]
    if not found:
        ended = ENDINGS[evidence.outcome]
        return Conclusion(rows, {}, f"{ended} before enough was read: too little to tell.")
    main = [slow for slow in found if slow.gap == found[0].gap]
    others = [slow for slow in found if slow.gap != found[0].gap]
    findings = _findings(main, others, _host_source(evidence))
    verdict = _verdict(main, others, evidence.warnings)
    if evidence.outcome != "complete":
        verdict = f"{ENDINGS[evidence.outcome]} before all was read. {verdict}"
    return Conclusion(rows, findings, verdict)


def _times(evidence: Evidence) -> Times:
    gaps = evidence.parameters["gaps"]
    steps = evidence.steps()
    stages = {step["stage"]: step for step in steps if step["phase"] in gaps}
    found: Times = {}
    for step in steps:
        place = _place_of(step, stages.get(step["stage"]))
        if place is not None:
            found.setdefault(place, []).append(_milliseconds(step, evidence))
    return found


def _place_of(step: Mapping[str, Any], pieces: Mapping[str, Any] | None) -> _Place | None:
    """Where a step belongs; `pieces` is a read of the layout that its stage was for."""
    depth = step["queue_depth"]
    if step["phase"] == _MEMORY:
        return _Place("memory", "", int(step["value"]), depth)
    if pieces is None:
        return None
    gap, degree = pieces["phase"], int(pieces["value"])
    if step["phase"] == gap:
        return _Place("pieces", gap, degree, depth)
    if step["phase"] == _IN_ORDER:
        return _Place("whole" if step["value"] == 1 else "commands", gap, degree, depth)
    return None


def _milliseconds(step: Mapping[str, Any], evidence: Evidence) -> float:
    """What a read took; on a twin, with the time of a host that reads from it."""
    drive = 1000 * seconds_of(step)
    if not evidence.virtual:
        return drive
    host = _twin_host(evidence, step["requests"], step["bytes"], step["queue_depth"])
    if step["queue_depth"] == 1:
        return drive + host
    first = float(evidence.parameters["twin_host_deep_first_us"]) / 1000
    return max(drive + first, host)


def _twin_host(evidence: Evidence, commands: int, amount: int, depth: int) -> float:
    """Milliseconds of the host that a plan gives a twin: in turn with the drive, or beside it."""
    asked, kib = evidence.parameters, amount / 1024
    if depth > 1:
        return float(kib * asked["twin_host_deep_per_kib_us"] / 1000)
    each = commands * asked["twin_host_per_command_us"]
    return float((each + kib * asked["twin_host_per_kib_us"]) / 1000)


def _rows(times: Times, gaps: Sequence[str], evidence: Evidence) -> list[dict[str, Any]]:
    """By gap, then depth, then degree; the file in one piece stands first for each."""
    found = []
    for gap in gaps:
        places = {(at.depth, at.degree) for at in times if at.gap == gap and at.part == "pieces"}
        for depth in sorted({depth for depth, _ in places}):
            degrees = sorted(degree for at, degree in places if at == depth)
            found.append(_whole_row(times, (gap, depth), evidence))
            found += [_row(times, _Place("pieces", gap, each, depth), evidence) for each in degrees]
    return [row for row in found if row is not None]


def _whole_row(times: Times, place: tuple[str, int], evidence: Evidence) -> dict[str, Any] | None:
    """The file in one piece, from all the times that it was read in turn with a gap's layouts."""
    gap, depth = place
    each = [
        value
        for at, values in times.items()
        if (at.part, at.gap, at.depth) == ("whole", gap, depth)
        for value in values
    ]
    if not each:
        return None
    median = statistics.median(each)
    return {
        "degree": 1,
        "queue_depth": depth,
        "gap": gap,
        "read_ms": median,
        "in_order_ms": median,
        "whole_ms": median,
        "host_ms": _host_ms(times, (1, depth), evidence),
        "read_ms_all": each,
    }


def _row(times: Times, place: _Place, evidence: Evidence) -> dict[str, Any]:
    each = times[place]
    return {
        "degree": place.degree,
        "queue_depth": place.depth,
        "gap": place.gap,
        "read_ms": statistics.median(each),
        "in_order_ms": _median(times.get(replace(place, part="commands"))),
        "whole_ms": _median(times.get(replace(place, part="whole"))),
        "host_ms": _host_ms(times, (place.degree, place.depth), evidence),
        "read_ms_all": each,
    }


def _median(values: Sequence[float] | None) -> float | None:
    return statistics.median(values) if values else None


def _host_ms(times: Times, place: tuple[int, int], evidence: Evidence) -> float | None:
    """What the host alone takes for a degree at a depth: of a drive in memory, or by the plan."""
    degree, depth = place
    if not evidence.virtual:
        return _median(times.get(_Place("memory", "", degree, depth)))
    window = int(evidence.parameters["window_mib"] * 1024 * 1024)
    command = evidence.parameters["command_kib"] * 1024
    return _twin_host(evidence, window // min(window // degree, command), window, depth)


def _slow(times: Times, place: tuple[str, int], evidence: Evidence) -> _Slow | None:
    """The largest degree that was read as often as planned, or None where none was."""
    gap, depth = place
    repeats = max(1, int(evidence.parameters["repeats"]))
    for degree in sorted({at.degree for at in times if at.gap == gap}, reverse=True):
        pieces, commands, whole = (
            times.get(_Place(part, gap, degree, depth), [])
            for part in ("pieces", "commands", "whole")
        )
        if min(len(pieces), len(commands), len(whole)) >= repeats:
            hosts = [_host_ms(times, (each, depth), evidence) for each in (1, degree)]
            host = None if hosts[0] is None or hosts[1] is None else hosts[1] - hosts[0]
            return _Slow(gap, degree, depth, pieces, commands, whole, host)
    return None


def _host_source(evidence: Evidence) -> Finding:
    """What the price of splitting, and the host's part of it, were measured on."""
    if evidence.virtual:
        return _fact("file in order", "the host's part is as the parameters give it to a twin")
    if evidence.steps(_MEMORY):
        why = "the host's part is what the commands take on a loop device over memory"
        return _fact("file in order, drive in memory", why)
    return _fact("file in order", "the host's part is not told apart: no drive in memory")


def _findings(
    main: Sequence[_Slow], others: Sequence[_Slow], measured: Finding
) -> dict[str, Finding]:
    found: dict[str, Finding] = {}
    for slow in main:
        found[f"slowdown_depth_{slow.depth}"] = _slowdown(slow)
    for slow in others:
        found[f"slowdown_depth_{slow.depth}_{slow.gap}"] = _slowdown(slow)
    for slow in main:
        found[f"cause_depth_{slow.depth}"] = _fact(slow.cause, _why(slow))
    slowed = [slow for slow in main if slow.cause != NONE] or main
    deepest = max(slowed, key=lambda slow: slow.depth)
    found["cause"] = _fact(deepest.cause, f"at queue depth {deepest.depth}: {_why(deepest)}")
    for slow in main:
        share = _host_share(slow)
        if share is not None:
            found[f"host_share_depth_{slow.depth}"] = share
    found["splitting_measured_by"] = measured
    return found


def _slowdown(slow: _Slow) -> Finding:
    value, bounds = slow.ratio, slow.bounds
    low, high = (min(bounds[0], value), max(bounds[1], value)) if bounds else (None, None)
    why = (
        f"8 MiB took {statistics.median(slow.whole):.3g} ms in one piece and "
        f"{statistics.median(slow.pieces):.3g} ms in {slow.degree}, with {_gaps([slow])}"
    )
    return Finding(value=value, unit="x", low=low, high=high, why=why)


def _why(slow: _Slow) -> str:
    return (
        f"{slow.degree} pieces take {slow.excess:.3g} ms more than one; the same commands on a "
        f"file in order take {slow.by_splitting:.3g} ms more"
    )


def _fact(value: str, why: str) -> Finding:
    return Finding(value=value, unit="", low=None, high=None, why=why)


def _host_share(slow: _Slow) -> Finding | None:
    """Per cent of the excess that the host alone takes; None where there is no excess to share."""
    if slow.host is None or slow.cause == NONE:
        return None
    value = 100 * min(1.0, max(0.0, slow.host / slow.excess))
    taken = f"{slow.host:.3g}" if slow.host > 0 else "nothing"
    why = f"the host alone takes {taken} of the {slow.excess:.3g} ms more"
    return Finding(value=value, unit="%", low=None, high=None, why=why)


def _verdict(main: Sequence[_Slow], others: Sequence[_Slow], warnings: frozenset[str]) -> str:
    sentence = qualified(_sentence(main, others), warnings)
    if _NOT_THE_DRIVE & warnings and any(slow.cause == CONFLICTS for slow in main):
        sentence += " Whether it is dies that conflict is doubtful, see the warnings."
    return sentence


def _sentence(main: Sequence[_Slow], others: Sequence[_Slow]) -> str:
    if all(slow.ratio < CHEAP for slow in [*main, *others]):
        return f"A file in {main[0].degree} pieces is read as fast as one in a single piece."
    told = " and ".join(f"{_times_as_long(slow)}{_because(slow)}" for slow in main)
    sentence = f"In {main[0].degree} pieces with {_gaps(main)} a file takes {told}"
    if others:
        sentence += f"; with {_gaps(others)} " + " and ".join(_times_as_long(s) for s in others)
    return sentence + "."


def _times_as_long(slow: _Slow) -> str:
    how = "one at a time" if slow.depth == 1 else f"{slow.depth} at a time"
    return f"{slow.ratio:.2f} times as long {how}"


def _because(slow: _Slow) -> str:
    if slow.cause != NONE:
        return f" ({slow.cause})"
    return "" if slow.ratio < CHEAP else " (no more than the repeats scatter)"


def _gaps(slows: Sequence[_Slow]) -> str:
    return "gaps of equal length" if slows[0].gap == "worst" else "random gaps"
