"""What a run's records give reason to warn, when it has ended."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ssdlab.device import nop_rate
from ssdlab.records import Recording
from ssdlab.runner.warnings.contention import LEAST_S, check_quiet
from ssdlab.stats.changepoint import change_points
from ssdlab.storage_stack.health.hardware import Temperature
from ssdlab.warning import Warn

MIB: Final = 1 << 20
HALF: Final = 0.5
"""Above this share of a ceiling a result says as much of the ceiling as of the drive."""
NOPS: Final = 1_000_000
WORTH_ASKING: Final = 100_000
"""Requests a second below which no machine's io_uring is the limit: it is not measured then."""
CLIFF: Final = 0.7
"""A fall to less than this share of the rate before is told."""
POINTS: Final = 48
"""What a step's rate is drawn through; so many of its intervals it must have at least."""
NEAR_LIMIT_K: Final = 5.0
HOT_C: Final = 70.0
"""Drives of consumers begin to slow down between 70 and 85 degrees; where one tells, it counts."""
_PREPARING: Final = frozenset({"fill", "flush", "rest", "trim"})
_PERCENTILE: Final = re.compile(r"(.*_us)_(p[0-9]+)")

Row = Mapping[str, Any]


def judge(recording: Recording, link: float | None, warn: Warn, *, ask_engine: bool) -> None:
    """Warns about a run from its records; `link` is what the link carries in bytes/s, if known.

    `ask_engine` allows to measure what io_uring can do here, which takes a moment; it is noted
    among the observations. A twin is not judged by the host.
    """
    tables = recording.tables()
    steps = [_with_job(row) for row in tables["steps"].to_pylist()]
    check_quiet(steps, warn)
    _check_cost(recording, steps, warn)
    if ask_engine:
        _check_engine(recording, steps, warn)
    if link is not None:
        _check_link(steps, link, warn)
    _check_cliffs(tables["intervals"], steps, warn)
    _check_warmth(tables["observations"].to_pylist(), warn)


def few_samples(measures: Iterable[Row], warn: Warn) -> None:
    """Warns about percentiles that are null because too few requests support them."""
    missing: dict[str, int] = {}
    for row in measures:
        for key, value in row.items():
            if value is None and (match := _PERCENTILE.fullmatch(key)):
                missing[match[2]] = missing.get(match[2], 0) + 1
    if missing:
        told = ", ".join(f"{_told(name)} ({count} rows)" for name, count in missing.items())
        warn(
            "few-samples",
            f"Too few requests for some percentiles: {told}. More than ten must lie beyond one: "
            "p99 takes 1100 requests, p99.99 takes 110 000.",
        )


def _told(name: str) -> str:
    digits = name[1:]
    return f"p{digits[:2]}.{digits[2:]}" if len(digits) > 2 else name


def _with_job(row: dict[str, Any]) -> dict[str, Any]:
    """A step with what was asked of it as the native module read it, under `asked`."""
    text = row.get("job")
    return {**row, "asked": {} if text is None else msgspec.json.decode(text)}


def _seconds(row: Row) -> float:
    return float(row["end_ns"] - row["start_ns"]) / 1e9


def _threads(row: Row) -> int:
    return int(row["asked"].get("threads", 1))


def _measured(steps: Iterable[Row]) -> list[Row]:
    """Steps on a real clock that are no preparation."""
    return [
        row
        for row in steps
        if row["phase"] not in _PREPARING and row["own_user_s"] is not None and row["requests"]
    ]


def _check_cost(recording: Recording, steps: list[dict[str, Any]], warn: Warn) -> None:
    """What a request costs this machine: at more than half of a processor, that is half a limit."""
    rows = _measured(steps)
    for phase in dict.fromkeys(row["phase"] for row in rows):
        chosen = [row for row in rows if row["phase"] == phase]
        own_s = sum(row["own_user_s"] + row["own_system_s"] for row in chosen)
        wall_s = sum(_seconds(row) * _threads(row) for row in chosen)
        if wall_s < LEAST_S:
            continue
        cost_us = own_s * 1e6 / sum(row["requests"] for row in chosen)
        recording.observe("cost_us_per_request", cost_us, phase)
        if own_s > HALF * wall_s:
            warn(
                "ceiling",
                f"While measuring ({phase}), a request cost {cost_us:.3g} us of processor time, "
                f"{own_s / wall_s:.0%} of the time there was: this machine, and not the drive, may "
                "be the limit.",
            )


def _check_engine(recording: Recording, steps: list[dict[str, Any]], warn: Warn) -> None:
    rows = [row for row in _measured(steps) if row["requests"] >= 1000 and _seconds(row) > 0]
    rate = max((row["requests"] / _seconds(row) / _threads(row) for row in rows), default=0.0)
    if rate < WORTH_ASKING:
        return
    try:
        most = nop_rate(NOPS)
    except OSError:  # no io_uring here: then it was not the way of the requests either
        return
    recording.observe("nop_per_s", most)
    if rate > HALF * most:
        warn(
            "ceiling",
            f"Up to {rate:.3g} requests a second were measured, {rate / most:.0%} of the "
            f"{most:.3g} that io_uring does here where each does nothing: the engine may be the "
            "limit.",
        )


def _check_link(steps: list[dict[str, Any]], link: float, warn: Warn) -> None:
    for row in steps:
        asked = row["asked"]
        # A link carries both ways at once; to trim is to send a few bytes.
        one_way = not asked.get("read_share") and asked.get("op") in {"read", "write"}
        if one_way and _seconds(row) > 0 and row["bytes"] / _seconds(row) > link:
            warn(
                "link-speed",
                f"{row['bytes'] / _seconds(row) / MIB:.0f} MiB/s while {row['phase']} are more "
                f"than the {link / MIB:.0f} MiB/s of the drive's link: what was measured is a "
                "memory on this side of it.",
            )
            return


def _check_cliffs(intervals: pa.Table, steps: list[dict[str, Any]], warn: Warn) -> None:
    """One pass of writing in order at two rates: its mean tells of neither."""
    for row in steps:
        asked = row["asked"]
        ordered = asked.get("pattern", "sequential") == "sequential"
        if asked.get("op") != "write" or asked.get("read_share") or not ordered:
            continue
        mine = intervals.filter(pc.equal(intervals["step"], row["step"]))
        found = _cliff(mine, row["end_ns"])
        if found is not None:
            before, after, at = found
            warn(
                "cliff",
                f"While writing in order ({row['phase']}), the rate fell from {before:.0f} to "
                f"{after:.0f} MiB/s after {at:.0f} MiB: a cache was full or the drive throttled, "
                "and a mean over both tells of neither.",
            )
            return


def _cliff(intervals: pa.Table, end_ns: int) -> tuple[float, float, float] | None:
    """The deepest fall in MiB/s before, after, and after how many MiB; None where none is clear."""
    if len(intervals) < POINTS:
        return None
    starts = intervals["start_ns"].to_numpy().astype(np.float64)
    edges = np.append(starts, max(float(end_ns), starts[-1] + 1.0))
    moved = np.concatenate([[0.0], np.cumsum(intervals["bytes"].to_numpy().astype(np.float64))])
    ticks = np.linspace(edges[0], edges[-1], POINTS + 1)
    drawn = np.interp(ticks, edges, moved)
    rates = np.diff(drawn) / np.diff(ticks) * 1e9 / MIB
    falls = [each for each in change_points(rates) if each.after < CLIFF * each.before]
    if not falls:
        return None
    deepest = min(falls, key=lambda each: each.after / each.before)
    return deepest.before, deepest.after, float(drawn[deepest.at]) / MIB


def _check_warmth(observations: Iterable[Row], warn: Warn) -> None:
    seen: dict[str, Temperature] = {}
    for row in observations:
        known = seen.get(row["detail"], Temperature(-300.0, None))
        if row["name"] == "temperature_c":
            known = Temperature(max(known.celsius, row["value"]), known.limit)
        elif row["name"] == "temperature_limit_c":
            known = Temperature(known.celsius, row["value"])
        seen[row["detail"]] = known
    for name, drive in seen.items():
        limit = HOT_C if drive.limit is None else drive.limit - NEAR_LIMIT_K
        if drive.celsius >= limit:
            own = "" if drive.limit is None else f"; it protects itself from {drive.limit:g} on"
            warn(
                "thermal",
                f"{name} was up to {drive.celsius:g} degrees Celsius warm{own}: it may have slowed "
                "itself down.",
            )
