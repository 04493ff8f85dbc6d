"""The runs of a sweep: the points of a grid or a Latin hypercube, with their repeats and seeds."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import Any

import msgspec
import numpy as np

from ssdlab import profiles
from ssdlab.device import describe_twin
from ssdlab.errors import UsageError
from ssdlab.profiles.toml_edit import set_value
from ssdlab.sweep.measure import READ_BLOCK, Plan, check
from ssdlab.sweep.spec import Range, Spec, Value
from ssdlab.units import parse_size

LOAD = "workload"


class SweepRun(msgspec.Struct, frozen=True):
    """One run, complete: the varied parameters, the profile's text, and the plan.

    `key` is the hash of everything that determines the result. `capacity` and `flash` are in bytes.
    """

    key: str
    point: int
    repeat: int
    values: dict[str, Value]
    name: str
    profile: str
    capacity: int
    flash: int
    plan: dict[str, Any]


def plan_runs(spec: Spec) -> list[SweepRun]:
    """All runs, ordered by point and repeat. The repeats have the same seeds at all points.

    Raises:
        UsageError: an invalid value of a profile or load, or two identical runs.
    """
    runs = [run for at, point in enumerate(points(spec)) for run in _runs_of_point(spec, at, point)]
    by_key: dict[str, SweepRun] = {}
    for run in runs:
        if run.key in by_key:
            raise UsageError(
                f"points {by_key[run.key].point} and {run.point} of the sweep are the same run "
                f"({_describe(run.values)}); give values that differ"
            )
        by_key[run.key] = run
    return runs


def points(spec: Spec) -> list[dict[str, Value]]:
    """The varied parameters at each point; in a grid, the last key varies fastest."""
    if spec.design == "grid":
        lists = [values for values in spec.vary.values() if not isinstance(values, Range)]
        return [dict(zip(spec.vary, values, strict=True)) for values in itertools.product(*lists)]
    from scipy.stats.qmc import LatinHypercube

    sampler = LatinHypercube(len(spec.vary), rng=np.random.default_rng(spec.seed))
    return [
        {
            key: _value_at(values, float(share))
            for share, (key, values) in zip(row, spec.vary.items(), strict=True)
        }
        for row in sampler.random(spec.samples)
    ]


def _value_at(values: Sequence[Value] | Range, share: float) -> Value:
    """The value at a share (0 to 1) of a list or a range."""
    if not isinstance(values, Range):
        return values[int(share * len(values))]
    if values.whole:
        low, high = round(values.start), round(values.to)
        return min(high, low + int(share * (high - low + 1)))
    if values.log:
        return float(values.start * (values.to / values.start) ** share)
    return float(values.start + share * (values.to - values.start))


def _runs_of_point(spec: Spec, at: int, point: dict[str, Value]) -> Iterator[SweepRun]:
    name = str(point.get("profile", spec.profile))
    text = profiles.load(name)
    for key, value in point.items():
        if key != "profile" and key.partition(".")[0] != LOAD:
            text = set_value(text, key, value)
    capacity = None if spec.capacity is None else parse_size(spec.capacity)
    twin = describe_twin(f"{name} with {_describe(point)}", text, capacity)
    for repeat in range(spec.repeats):
        plan = _plan(spec, point, int(twin["capacity_bytes"]), spec.seed + repeat)
        fields: dict[str, Any] = {
            "name": name,
            "profile": text,
            "capacity": int(twin["capacity_bytes"]),
            "plan": msgspec.to_builtins(plan),
        }
        flash = int(twin["flash_bytes"])
        yield SweepRun(_hash(fields), at, repeat, point, flash=flash, **fields)


def _plan(spec: Spec, point: dict[str, Value], capacity: int, seed: int) -> Plan:
    fields: dict[str, Any] = msgspec.to_builtins(spec.workload)
    for key, value in point.items():
        table, _, field = key.partition(".")
        if table == LOAD:
            if field not in fields:
                raise UsageError(f"[vary] has {key}; it must be {LOAD}.{'|'.join(fields)}")
            fields[field] = value
    try:
        load = msgspec.convert(fields, type(spec.workload))
    except msgspec.ValidationError as error:
        raise UsageError(f"{LOAD}: {error}") from error
    block = parse_size(load.block)
    region = capacity // max(block, READ_BLOCK) * max(block, READ_BLOCK)
    return check(Plan(region, load.skew, load.drive_writes, block, load.depth, load.hint, seed))


def _hash(fields: dict[str, Any]) -> str:
    """Of all that determines the result, including the version of ssdlab."""
    text = msgspec.json.encode({"ssdlab": version("ssdlab"), **fields}, order="sorted")
    return hashlib.sha256(text).hexdigest()[:24]


def _describe(values: dict[str, Value]) -> str:
    return ", ".join(f"{key}={value}" for key, value in values.items())
