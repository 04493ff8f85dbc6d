"""Analysis of fragments: do split requests or die conflicts slow reads of a fragmented file?

The additional read time of a file in pieces has two parts. The time that the same commands also add
on a contiguous file is request splitting: there are more commands, each with a round trip to the
drive. The drive causes the remaining time: reads of pieces on the same die wait for each other.

The commands are read backwards, because read-ahead would hide their cost, and forward. Backwards,
they may meet on dies as the pieces do; forward, they may cost less than those of the pieces. So at
most the former is splitting, and at least the latter.

A drive that looks up its map in flash also takes longer for distant pieces, without any conflict.
Depth 1 shows how much longer, since nothing conflicts there. At greater depths look-ups overlap, so
that time is an upper bound.
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

COLUMNS: Final = Columns(
    ("degree", "queue_depth"),
    ("read_ms",),
    {"read_ms": "read_ms_all"},
    {"degree": "{} pieces", "queue_depth": "queue depth {}"},
)
"""The columns that `compare` matches and compares between two runs."""
SLOWDOWN_MIN: Final = 1.1
"""Smaller ratios count as no slowdown: repeats differ by a few per cent."""
CONFLICTS: Final = "die conflicts"
SPLITTING: Final = "request splitting"
NONE: Final = "none"
_IN_ORDER: Final = "in order"
_FORWARD: Final = "forward"
_MEMORY: Final = "memory"
_WIDEST: Final = 1.5  # of upper and lower bound, for a slowdown that counts as determined

_NOT_THE_DRIVE: Final = frozenset({"virtual", "busy-host", "stolen-time", "composed", "network"})
"""With one of these warnings, the cause may be outside the drive."""


@dataclass(frozen=True)
class _Case:
    """Identifies reads that repeat each other: what was read, in which layout and queue depth.

    `kind` is "pieces", "commands" (a contiguous file, read with the same commands backwards),
    "forward" (the same from start to end), "whole" (a contiguous file in one piece), or "memory" (a
    loop device over memory; without a gap).
    """

    kind: str
    gap: str
    degree: int
    depth: int


Times = dict[_Case, list[float]]
"""Read times of the repeats in ms."""


@dataclass(frozen=True)
class _Comparison:
    """Read times of a layout at a queue depth, and of its reference reads, in ms per repeat.

    `host` is the host's part of the additional time, or None if it was not measured. `distant` is
    the time that the pieces take longer than the same commands in order at depth 1. `forward` is
    empty at depth 1, and in runs of older versions.
    """

    gap: str
    degree: int
    depth: int
    pieces: list[float]
    commands: list[float]
    whole: list[float]
    host: float | None
    forward: list[float]
    distant: float = 0.0

    @property
    def ratio(self) -> float:
        return statistics.median(self.pieces) / statistics.median(self.whole)

    @property
    def varies(self) -> bool:
        """Whether the slowdown differs too much between repeats to state it as one number."""
        bounds = _bounds(self.pieces, self.whole)
        return bounds is not None and bounds[1] > _WIDEST * bounds[0]

    @property
    def excess(self) -> float:
        return statistics.median(self.pieces) - statistics.median(self.whole)

    @property
    def splitting(self) -> float:
        return statistics.median(self.commands) - statistics.median(self.whole)

    @property
    def least_splitting(self) -> float:
        """The time that the same commands add forward, if that is less than backwards."""
        forward = self.forward or self.commands
        return min(self.splitting, statistics.median(forward) - statistics.median(self.whole))

    @property
    def exceeds_commands(self) -> bool:
        """Whether the pieces take significantly longer than the same commands in order."""
        return _is_longer(self.pieces, self.commands)

    @property
    def cause(self) -> str | None:
        """The cause of most of the additional time, if the file is significantly slower.

        For conflicts, it must also be significantly slower than with the same commands in order.
        None if it is not, if look-ups may take as long as conflicts, or if the cause depends on the
        order in which the commands are read.
        """
        if self.ratio < SLOWDOWN_MIN or not _is_longer(self.pieces, self.whole):
            return NONE
        if self.excess <= 2 * self.splitting:
            return SPLITTING if self.excess <= 2 * self.least_splitting else None
        if not self.exceeds_commands:
            return None
        return CONFLICTS if self.excess > 2 * (self.splitting + self.distant) else None


def _bounds(above: list[float], below: list[float]) -> tuple[float, float] | None:
    """Interval of the ratio: by ranks, as a busy host slows some reads tenfold; or by means."""
    return median_ratio_interval(above, below) or ratio_interval(above, below)


def _is_longer(above: list[float], below: list[float]) -> bool:
    """Whether `above` is significantly longer; always without an interval, as on a twin."""
    bounds = _bounds(above, below)
    return bounds is None or bounds[0] > 1.0


def conclude(evidence: Evidence) -> Conclusion:
    """One row per gap, degree and depth; slowdowns and causes are those of the largest degree.

    `cause` is that at the largest depth with a slowdown: at depth 1 a command has no other command
    to conflict with, so the cause is always splitting.
    """
    times = _times(evidence)
    gaps = [gap for gap in evidence.parameters["gaps"] if any(case.gap == gap for case in times)]
    rows = _rows(times, gaps, evidence)
    comparisons = [
        comparison
        for gap in gaps
        for depth in evidence.parameters["queue_depths"]
        if (comparison := _comparison(times, gap, depth, evidence)) is not None
    ]
    comparisons = [replace(each, distant=_distant(each, comparisons)) for each in comparisons]
    ended = ENDINGS[evidence.outcome]
    if not comparisons:
        return Conclusion(rows, {}, f"{ended} before there were enough reads to compare.")
    main = [each for each in comparisons if each.gap == comparisons[0].gap]
    others = [each for each in comparisons if each.gap != comparisons[0].gap]
    findings = _findings(main, others, _splitting_method(evidence))
    verdict = _verdict(main, others, evidence.warnings)
    if evidence.outcome != "complete":
        verdict = f"{ended} before all layouts were read. {verdict}"
    return Conclusion(rows, findings, verdict)


def _times(evidence: Evidence) -> Times:
    gaps = evidence.parameters["gaps"]
    steps = evidence.steps()
    layout_steps = {step["stage"]: step for step in steps if step["phase"] in gaps}
    times: Times = {}
    for step in steps:
        case = _case_of(step, layout_steps.get(step["stage"]))
        if case is not None:
            times.setdefault(case, []).append(_milliseconds(step, evidence))
    return times


def _case_of(step: Mapping[str, Any], layout_step: Mapping[str, Any] | None) -> _Case | None:
    """The case of a step; `layout_step` is a read of the fragmented file in the same stage."""
    depth = step["queue_depth"]
    if step["phase"] == _MEMORY:
        return _Case("memory", "", int(step["value"]), depth)
    if layout_step is None:
        return None
    gap, degree = layout_step["phase"], int(layout_step["value"])
    if step["phase"] == gap:
        return _Case("pieces", gap, degree, depth)
    if step["phase"] == _FORWARD:
        return _Case("forward", gap, degree, depth)
    if step["phase"] == _IN_ORDER:
        return _Case("whole" if step["value"] == 1 else "commands", gap, degree, depth)
    return None


def _milliseconds(step: Mapping[str, Any], evidence: Evidence) -> float:
    """Duration of a read; on a twin, including the modelled time of the host."""
    drive = 1000 * seconds_of(step)
    if not evidence.virtual:
        return drive
    host = _modelled_host_ms(evidence, step["requests"], step["bytes"], step["queue_depth"])
    if step["queue_depth"] == 1:
        return drive + host
    first = float(evidence.parameters["twin_host_deep_first_us"]) / 1000
    return max(drive + first, host)


def _modelled_host_ms(evidence: Evidence, commands: int, size_bytes: int, depth: int) -> float:
    """Host time of a read from a twin, by the model in the run's parameters (`plan.Host`)."""
    parameters, kib = evidence.parameters, size_bytes / 1024
    if depth > 1:
        return float(kib * parameters["twin_host_deep_per_kib_us"] / 1000)
    us = (
        commands * parameters["twin_host_per_command_us"] + kib * parameters["twin_host_per_kib_us"]
    )
    return float(us / 1000)


def _rows(times: Times, gaps: Sequence[str], evidence: Evidence) -> list[dict[str, Any]]:
    """Rows sorted by gap, depth and degree; each depth begins with the file in one piece."""
    rows = []
    for gap in gaps:
        cases = [case for case in times if case.gap == gap and case.kind == "pieces"]
        for depth in sorted({case.depth for case in cases}):
            whole_row = _whole_row(times, gap, depth, evidence)
            if whole_row is not None:
                rows.append(whole_row)
            degrees = sorted(case.degree for case in cases if case.depth == depth)
            rows += [_row(times, _Case("pieces", gap, each, depth), evidence) for each in degrees]
    return rows


def _whole_row(times: Times, gap: str, depth: int, evidence: Evidence) -> dict[str, Any] | None:
    """The row of the file in one piece, from its reads in turn with the layouts of this gap."""
    read_ms = [
        value
        for case, values in times.items()
        if (case.kind, case.gap, case.depth) == ("whole", gap, depth)
        for value in values
    ]
    if not read_ms:
        return None
    median = statistics.median(read_ms)
    return {
        "degree": 1,
        "queue_depth": depth,
        "gap": gap,
        "read_ms": median,
        "in_order_ms": median,
        "whole_ms": median,
        "host_ms": _host_ms(times, 1, depth, evidence),
        "read_ms_all": read_ms,
    }


def _row(times: Times, case: _Case, evidence: Evidence) -> dict[str, Any]:
    return {
        "degree": case.degree,
        "queue_depth": case.depth,
        "gap": case.gap,
        "read_ms": statistics.median(times[case]),
        "in_order_ms": _median(times.get(replace(case, kind="commands"))),
        "whole_ms": _median(times.get(replace(case, kind="whole"))),
        "host_ms": _host_ms(times, case.degree, case.depth, evidence),
        "read_ms_all": times[case],
    }


def _median(values: Sequence[float] | None) -> float | None:
    return statistics.median(values) if values else None


def _host_ms(times: Times, degree: int, depth: int, evidence: Evidence) -> float | None:
    """The host's part of a read time: measured on a loop device over memory, or a twin's model."""
    if not evidence.virtual:
        return _median(times.get(_Case("memory", "", degree, depth)))
    window = int(evidence.parameters["window_mib"] * 1024 * 1024)
    command = evidence.parameters["command_kib"] * 1024
    commands = window // min(window // degree, command)
    return _modelled_host_ms(evidence, commands, window, depth)


def _comparison(times: Times, gap: str, depth: int, evidence: Evidence) -> _Comparison | None:
    """The comparison for the largest degree that has all repeats, or None."""
    repeats = max(1, int(evidence.parameters["repeats"]))
    for degree in sorted({case.degree for case in times if case.gap == gap}, reverse=True):
        pieces, commands, whole = (
            times.get(_Case(kind, gap, degree, depth), [])
            for kind in ("pieces", "commands", "whole")
        )
        if min(len(pieces), len(commands), len(whole)) >= repeats:
            one, many = (_host_ms(times, each, depth, evidence) for each in (1, degree))
            host = None if one is None or many is None else many - one
            forward = times.get(_Case("forward", gap, degree, depth), [])
            return _Comparison(gap, degree, depth, pieces, commands, whole, host, forward)
    return None


def _distant(of: _Comparison, comparisons: Sequence[_Comparison]) -> float:
    """Milliseconds that these pieces take longer than the same commands in order at depth 1."""
    for each in comparisons:
        is_alone = (each.gap, each.degree, each.depth) == (of.gap, of.degree, 1)
        if is_alone and _is_longer(each.pieces, each.commands):
            return max(0.0, each.excess - each.splitting)
    return 0.0


def _splitting_method(evidence: Evidence) -> Finding:
    """The finding `splitting_measured_by`."""
    if evidence.virtual:
        return _fact("file in order", "the host's time is modelled, see the parameters")
    if evidence.steps(_MEMORY):
        why = "the host's time was measured with the same commands on a loop device over memory"
        return _fact("file in order, drive in memory", why)
    return _fact("file in order", "the host's time was not measured: no loop device over memory")


def _findings(
    main: Sequence[_Comparison], others: Sequence[_Comparison], splitting_method: Finding
) -> dict[str, Finding]:
    findings: dict[str, Finding] = {}
    for each in main:
        findings[f"slowdown_depth_{each.depth}"] = _slowdown(each)
    for each in others:
        findings[f"slowdown_depth_{each.depth}_{each.gap}"] = _slowdown(each)
    for each in main:
        findings[f"cause_depth_{each.depth}"] = _fact(each.cause, _why(each))
    slower = [each for each in main if each.cause != NONE] or main
    deepest = max(slower, key=lambda each: each.depth)
    why = f"at queue depth {deepest.depth}: {_why(deepest)}"
    findings["cause"] = _fact(deepest.cause, why)
    for each in main:
        share = _host_share(each)
        if share is not None:
            findings[f"host_share_depth_{each.depth}"] = share
    findings["splitting_measured_by"] = splitting_method
    return findings


def _slowdown(comparison: _Comparison) -> Finding:
    value, bounds = comparison.ratio, _bounds(comparison.pieces, comparison.whole)
    low, high = (min(bounds[0], value), max(bounds[1], value)) if bounds else (None, None)
    why = (
        f"8 MiB took {statistics.median(comparison.whole):.3g} ms in one piece and "
        f"{statistics.median(comparison.pieces):.3g} ms in {comparison.degree} pieces with "
        f"{_gap_text(comparison)}"
    )
    if comparison.varies:
        why = f"{why}: it depends on where the pieces are; more pieces would show more"
        return Finding(value=None, unit="x", low=low, high=high, why=why)
    return Finding(value=value, unit="x", low=low, high=high, why=why)


def _why(comparison: _Comparison) -> str:
    why = (
        f"{comparison.degree} pieces take {comparison.excess:.3g} ms more than one; the same "
        f"commands on a contiguous file take {comparison.splitting:.3g} ms more"
    )
    if comparison.cause is None and comparison.excess <= 2 * comparison.splitting:
        why += (
            f" if it is read backwards, and {comparison.least_splitting:.3g} ms forward. Backwards "
            "they may meet on dies as the pieces do, or read-ahead hides their cost forward"
        )
    elif comparison.cause is None and not comparison.exceeds_commands:
        why += ", and the repeats vary by more than the difference"
    elif comparison.cause is None:
        why += (
            f". At queue depth 1, where commands do not conflict, distant pieces take "
            f"{comparison.distant:.3g} ms more than these commands: the drive may look up its map "
            "in flash, which may be most of the additional time"
        )
    return why


def _fact(value: str | None, why: str) -> Finding:
    return Finding(value=value, unit="", low=None, high=None, why=why)


def _host_share(comparison: _Comparison) -> Finding | None:
    """Per cent of the additional time spent in the host; None if unknown or without a slowdown."""
    if comparison.host is None or comparison.cause == NONE:
        return None
    value = 100 * min(1.0, max(0.0, comparison.host / comparison.excess))
    why = f"{max(0.0, comparison.host):.3g} of the {comparison.excess:.3g} ms more are host time"
    return Finding(value=value, unit="%", low=None, high=None, why=why)


def _verdict(
    main: Sequence[_Comparison], others: Sequence[_Comparison], warnings: frozenset[str]
) -> str:
    sentence = qualified(_sentence(main, others), warnings)
    if _NOT_THE_DRIVE & warnings and any(each.cause == CONFLICTS for each in main):
        sentence += " Something other than dies may conflict, see the warnings."
    return sentence


def _sentence(main: Sequence[_Comparison], others: Sequence[_Comparison]) -> str:
    if all(each.ratio < SLOWDOWN_MIN for each in [*main, *others]):
        return f"A file in {main[0].degree} pieces is read as fast as one in a single piece."
    slowdowns = " and ".join(f"{_ratio_text(each)}{_cause_text(each)}" for each in main)
    sentence = f"A file in {main[0].degree} pieces with {_gap_text(main[0])} takes {slowdowns}"
    if others:
        slowdowns = " and ".join(_ratio_text(each) for each in others)
        sentence += f"; with {_gap_text(others[0])} {slowdowns}"
    return sentence + "."


def _ratio_text(comparison: _Comparison) -> str:
    bounds = _bounds(comparison.pieces, comparison.whole)
    if comparison.varies and bounds is not None:
        low, high = bounds
        return f"{low:.2f} to {high:.2f} times as long at queue depth {comparison.depth}"
    return f"{comparison.ratio:.2f} times as long at queue depth {comparison.depth}"


def _cause_text(comparison: _Comparison) -> str:
    if comparison.cause != NONE:
        return f" ({comparison.cause or 'cause undetermined'})"
    return "" if comparison.ratio < SLOWDOWN_MIN else " (within the variation of the repeats)"


def _gap_text(comparison: _Comparison) -> str:
    return "even gaps" if comparison.gap == "worst" else "random gaps"
