"""Checks the records of a finished run for reasons to distrust its results."""

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
from ssdlab.runner.warnings.contention import LEAST_S, check_contention
from ssdlab.stats.changepoint import change_points
from ssdlab.storage_stack.health.hardware import Temperature
from ssdlab.warning import Warn

MIB: Final = 1 << 20
HALF: Final = 0.5
"""Above this share of its maximum, the I/O engine or a CPU may limit the result."""
NOPS: Final = 1_000_000
ENGINE_CHECK_RATE: Final = 100_000
"""Requests/s below which io_uring is never the limit, so that its maximum is not measured."""
CLIFF: Final = 0.7
"""A fall to less than this share of the previous throughput is a cliff."""
POINTS: Final = 48
"""Points at which a step's throughput is sampled; a step with fewer intervals is not checked."""
NEAR_LIMIT_K: Final = 5.0
HOT_C: Final = 70.0
"""Temperature limit if a drive reports none: client drives begin to throttle at 70 to 85 C."""
_PREPARATION: Final = frozenset({"fill", "flush", "rest", "trim"})
_CURVES: Final = frozenset({"gauge", "write"})
"""Phases of steady and cache that are analysed as a rate over time: they look for a fall."""
_PERCENTILE: Final = re.compile(r"(.*)_us_(p[0-9]+)")

Row = Mapping[str, Any]


class _Job(msgspec.Struct):
    """What the checks use of a recorded job; the defaults are those of steps without a job."""

    op: str = ""
    threads: int = 1
    read_share: float = 0.0
    pattern: msgspec.Raw = msgspec.Raw(b'"sequential"')  # may list thousands of addresses


def check_recording(
    recording: Recording, link_bytes_per_s: float | None, warn: Warn, *, measure_engine: bool
) -> None:
    """Warns about a run from its records; `link_bytes_per_s` is None if the speed is unknown.

    `measure_engine` allows measuring the maximum rate of io_uring (well below a second), which is
    recorded as an observation. Checks of the host skip steps of twins.
    """
    tables = recording.tables()
    steps = [_with_decoded_job(row) for row in tables["steps"].to_pylist()]
    check_contention(steps, warn)
    _check_cpu_cost(recording, steps, warn)
    if measure_engine:
        _check_engine(recording, steps, warn)
    if link_bytes_per_s is not None:
        _check_link(steps, link_bytes_per_s, warn)
    _check_cliffs(tables["intervals"], steps, warn)
    _check_temperatures(tables["observations"].to_pylist(), warn)


def check_percentiles(measures: Iterable[Row], warn: Warn) -> None:
    """Warns about percentiles that are null because too few requests are above them.

    Rows without such requests, as the column of their number says, have none.
    """
    missing: dict[str, int] = {}
    for row in measures:
        for key, value in row.items():
            match = _PERCENTILE.fullmatch(key)
            if value is None and match and row.get(f"{match[1]}_requests") != 0:
                missing[match[2]] = missing.get(match[2], 0) + 1
    if missing:
        percentiles = ", ".join(
            f"{_percentile_name(name)} ({count} row{'s' * (count != 1)})"
            for name, count in missing.items()
        )
        warn(
            "few-samples",
            f"Too few requests for some percentiles: {percentiles}. More than ten requests must "
            "be slower than a percentile: run longer, as p99 needs 1100 requests and p99.99 "
            "110 000.",
        )


def _percentile_name(name: str) -> str:
    digits = name[1:]
    return f"p{digits[:2]}.{digits[2:]}" if len(digits) > 2 else name


def _with_decoded_job(row: dict[str, Any]) -> dict[str, Any]:
    """A step with its job decoded; old runs recorded no job."""
    text = row.get("job")
    return {**row, "job": _Job() if text is None else msgspec.json.decode(text, type=_Job)}


def _seconds(row: Row) -> float:
    return float(row["end_ns"] - row["start_ns"]) / 1e9


def _threads(row: Row) -> int:
    job: _Job = row["job"]
    return job.threads


def _measured(steps: Iterable[Row]) -> list[Row]:
    """The steps on a real clock, except those that prepare the target."""
    return [
        row
        for row in steps
        if row["phase"] not in _PREPARATION and row["own_user_s"] is not None and row["requests"]
    ]


def _check_cpu_cost(recording: Recording, steps: list[dict[str, Any]], warn: Warn) -> None:
    """Records the CPU time per request; warns above half of a CPU."""
    rows = _measured(steps)
    for phase in dict.fromkeys(row["phase"] for row in rows):
        in_phase = [row for row in rows if row["phase"] == phase]
        own_s = sum(row["own_user_s"] + row["own_system_s"] for row in in_phase)
        wall_s = sum(_seconds(row) * _threads(row) for row in in_phase)
        if wall_s < LEAST_S:
            continue
        cost_us = own_s * 1e6 / sum(row["requests"] for row in in_phase)
        recording.observe("cost_us_per_request", cost_us, phase)
        if own_s > HALF * wall_s:
            warn(
                "ceiling",
                f"While measuring ({phase}), a request cost {cost_us:.3g} us of CPU time, "
                f"{own_s / wall_s:.0%} of the time available, so this machine and not the drive "
                "may be the limit: use larger blocks, more numjobs or a faster CPU.",
            )


def _check_engine(recording: Recording, steps: list[dict[str, Any]], warn: Warn) -> None:
    rows = [row for row in _measured(steps) if row["requests"] >= 1000 and _seconds(row) > 0]
    rate = max((row["requests"] / _seconds(row) / _threads(row) for row in rows), default=0.0)
    if rate < ENGINE_CHECK_RATE:
        return
    try:
        most = nop_rate(NOPS)
    except OSError:  # no io_uring here, so the requests did not use it either
        return
    recording.observe("nop_per_s", most)
    if rate > HALF * most:
        warn(
            "ceiling",
            f"{rate:.3g} requests/s are {rate / most:.0%} of the {most:.3g} requests/s that "
            "io_uring achieves here with empty requests, so the engine may be the limit: use "
            "larger blocks, more numjobs or a faster CPU.",
        )


def _check_link(steps: list[dict[str, Any]], link_bytes_per_s: float, warn: Warn) -> None:
    for row in steps:
        job: _Job = row["job"]
        # The link is full duplex, and a trim transfers no data: check pure reads and writes only.
        one_way = not job.read_share and job.op in {"read", "write"}
        if one_way and _seconds(row) > 0 and row["bytes"] / _seconds(row) > link_bytes_per_s:
            warn(
                "link-speed",
                f"{row['bytes'] / _seconds(row) / MIB:.0f} MiB/s (phase {row['phase']}) exceed the "
                f"{link_bytes_per_s / MIB:.0f} MiB/s of the drive's link, so a cache on the host's "
                "side of the link was measured: use a larger --size or direct I/O.",
            )
            return


def _check_cliffs(intervals: pa.Table, steps: list[dict[str, Any]], warn: Warn) -> None:
    """Warns about the first sequential write with a fall, because its mean says little."""
    for row in steps:
        job: _Job = row["job"]
        sequential = bytes(job.pattern) == b'"sequential"'
        if job.op != "write" or job.read_share or not sequential:
            continue
        if row["phase"] in _CURVES:
            continue
        own_rows = intervals.filter(pc.equal(intervals["step"], row["step"]))
        cliff = _cliff(own_rows, row["end_ns"])
        if cliff is not None:
            before, after, at = cliff
            warn(
                "cliff",
                f"While writing sequentially ({row['phase']}), the rate fell from {before:.0f} to "
                f"{after:.0f} MiB/s after {at:.0f} MiB, as a cache was full or the drive "
                "throttled: do not use the mean; see throughput over time in the HTML report.",
            )
            return


def _cliff(intervals: pa.Table, end_ns: int) -> tuple[float, float, float] | None:
    """MiB/s before and after the deepest fall, and MiB written before it; None without a cliff."""
    if len(intervals) < POINTS:
        return None
    starts = intervals["start_ns"].to_numpy().astype(np.float64)
    edges = np.append(starts, max(float(end_ns), starts[-1] + 1.0))
    moved = np.concatenate([[0.0], np.cumsum(intervals["bytes"].to_numpy().astype(np.float64))])
    ticks = np.linspace(edges[0], edges[-1], POINTS + 1)
    sampled = np.interp(ticks, edges, moved)
    rates = np.diff(sampled) / np.diff(ticks) * 1e9 / MIB
    falls = [change for change in change_points(rates) if change.after < CLIFF * change.before]
    if not falls:
        return None
    deepest = min(falls, key=lambda change: change.after / change.before)
    return deepest.before, deepest.after, float(sampled[deepest.at]) / MIB


def _check_temperatures(observations: Iterable[Row], warn: Warn) -> None:
    highest: dict[str, Temperature] = {}
    for row in observations:
        drive = highest.get(row["detail"], Temperature(-300.0, None))
        if row["name"] == "temperature_c":
            drive = Temperature(max(drive.celsius, row["value"]), drive.limit)
        elif row["name"] == "temperature_limit_c":
            drive = Temperature(drive.celsius, row["value"])
        highest[row["detail"]] = drive
    for name, drive in highest.items():
        limit = HOT_C if drive.limit is None else drive.limit - NEAR_LIMIT_K
        if drive.celsius >= limit:
            own = "" if drive.limit is None else f" (its limit is {drive.limit:g})"
            warn(
                "thermal",
                f"{name} reached {drive.celsius:g} degrees Celsius{own} and may have throttled: "
                "cool it, and compare with a shorter run.",
            )
