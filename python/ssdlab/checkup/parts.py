"""The parts of a checkup: their order, time and sizes.

Each part may take until its deadline: the end of the checkup, less the time reserved for the parts
after it. So time that a fast part leaves over goes to later parts, and none starves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ssdlab.experiments import Aging, Cache, Fsync, Suite, Trim
from ssdlab.experiments.aging.measure import plan as plan_aging
from ssdlab.runner.parameters import Parameters
from ssdlab.runner.progress import NOMINAL
from ssdlab.storage_stack.space import KEPT_RULE
from ssdlab.target import Target, Twin
from ssdlab.units import format_duration, format_size

MIB: Final = 1 << 20
LIMIT_S: Final = 300.0
DOCTOR: Final = "doctor"
DOCTOR_READ_BYTES: Final = 128 * MIB
"""Bytes of the largest files that the doctor reads: at least 30 pieces of 4 MiB."""
RESERVED_S: Final = {"suite": 75.0, "fsync": 50.0, "trim": 15.0, "aging": 85.0, "cache": 50.0}
"""The experiments in their order, with the seconds reserved for each; the doctor has the rest.

The suite is first, on an idle drive, as other programs of its kind measure. `cache` is last: it
fills the SLC cache.
"""
ORDER: Final = (DOCTOR, *RESERVED_S)
SIZE_MIN: Final = 16 * MIB
"""The least that suite, fsync, aging and cache accept."""
TRIM_SIZE: Final = 8 * MIB
USUAL_SIZES: Final = {
    "suite": 128 * MIB,
    "fsync": 128 * MIB,
    "trim": TRIM_SIZE,
    "aging": 512 * MIB,
    "cache": 1024 * MIB,
}
"""Bytes of the test files: those of --quick."""
_CACHE_PASSES: Final = 3
_CACHE_RESTS_S: Final = 11.0
"""cache writes its region three times until it can conclude; with --quick it first idles for 5 s,
and for 1 and 4 s later."""


@dataclass(frozen=True)
class Sizing:
    """What limits the test files: bytes that may be used, and rates in bytes/s by kind of work.

    `rates` are those that the suite measured, {} if unknown; `seconds` remain for the part.
    """

    room_bytes: int
    rates: Mapping[str, float]
    seconds: float


@dataclass(frozen=True)
class Choice:
    """The parameters of an experiment, or None and the reason why it cannot run."""

    parameters: Parameters | None
    why_not: str = ""


def choose(name: str, target: Target, sizing: Sizing) -> Choice:
    """The parameters of the experiment `name` for a target: a test file that fits room and time."""
    least = TRIM_SIZE if name == "trim" else SIZE_MIN
    if sizing.room_bytes < least:
        return Choice(
            None,
            f"only {format_size(sizing.room_bytes)} may be used, because {KEPT_RULE}, must "
            f"stay free, and {name} needs {format_size(least)}",
        )
    size = min(USUAL_SIZES[name], sizing.room_bytes // MIB * MIB)
    if name == "trim":
        return Choice(Trim(quick=True))
    if name in {"suite", "fsync"}:
        return Choice(Suite(size=size, quick=True) if name == "suite" else _fsync(size))
    if isinstance(target, Twin):
        return Choice(Aging(size=size, quick=True) if name == "aging" else Cache(quick=True))
    return _fitting(name, size, target, sizing)


def _fsync(size: int) -> Parameters:
    return Fsync(size=size, quick=True)


def _fitting(name: str, size: int, target: Target, sizing: Sizing) -> Choice:
    """Halves the size until the expected time fits."""
    while True:
        parameters: Parameters
        if name == "aging":
            parameters = Aging(size=size, quick=True)
            work = plan_aging(parameters, target, 0).work()
        else:
            parameters = Cache(size=size, quick=True)
            work = {"fill": float(_CACHE_PASSES * size), "rest": _CACHE_RESTS_S}
        expected = expected_s(work, sizing.rates)
        if expected <= sizing.seconds:
            return Choice(parameters)
        if size // 2 < SIZE_MIN:
            return Choice(
                None,
                f"{format_size(size)} would take about {format_duration(expected)} here, and "
                f"{format_duration(max(1.0, sizing.seconds))} are left",
            )
        size = size // 2 // MIB * MIB


def expected_s(work: Mapping[str, float], rates: Mapping[str, float]) -> float:
    """Seconds that work by kind takes, at measured rates or those of a SATA drive."""
    return sum(amount / rates.get(kind, NOMINAL[kind]) for kind, amount in work.items())


_KINDS: Final = {
    ("sequential", "write"): "fill",
    ("sequential x1", "read"): "read",
    ("random 4k", "write"): "overwrite",
}


def measured_rates(measures: list[dict[str, Any]]) -> dict[str, float]:
    """Rates in bytes/s by kind of work, from the rows of a suite."""
    rates = {}
    for row in measures:
        kind = _KINDS.get((row["test"], row["op"]))
        if kind is not None and row["mean"]:
            rates[kind] = row["mean"] * MIB
    return rates
