"""The runs of a sweep: points of a grid or a Latin hypercube, each with its repeats and seeds."""

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
from ssdlab.profiles.toml_edit import with_number
from ssdlab.sweep import lifetime as life
from ssdlab.sweep.spec import Range, Spec, Value
from ssdlab.units import parse_size

LOAD = "workload"


class Order(msgspec.Struct, frozen=True):
    """One run: what varies in it, the whole profile, and the plan; `key` is the hash of all.

    Whoever has an order needs nothing else, on whatever machine.
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


def orders(spec: Spec) -> list[Order]:
    """All runs in order of point and repeat. Repeats of all points have the same seeds.

    Raises:
        UsageError: a value that a profile or a load may not have, or two runs that are the same.
    """
    found = [order for at, point in enumerate(points(spec)) for order in _of_point(spec, at, point)]
    seen: dict[str, Order] = {}
    for order in found:
        if order.key in seen:
            raise UsageError(
                f"points {seen[order.key].point} and {order.point} of the sweep are the same run "
                f"({_told(order.values)}); give values that differ"
            )
        seen[order.key] = order
    return found


def points(spec: Spec) -> list[dict[str, Value]]:
    """What varies at each point: of a grid the last key fastest."""
    if spec.design == "grid":
        lists = [values for values in spec.vary.values() if not isinstance(values, Range)]
        return [dict(zip(spec.vary, each, strict=True)) for each in itertools.product(*lists)]
    from scipy.stats.qmc import LatinHypercube

    sampler = LatinHypercube(len(spec.vary), rng=np.random.default_rng(spec.seed))
    return [
        {
            key: _taken(values, float(share))
            for share, (key, values) in zip(row, spec.vary.items(), strict=True)
        }
        for row in sampler.random(spec.samples)
    ]


def _taken(values: Sequence[Value] | Range, share: float) -> Value:
    """The value so far along a list or a range."""
    if not isinstance(values, Range):
        return values[int(share * len(values))]
    if values.whole:
        low, high = round(values.start), round(values.to)
        return min(high, low + int(share * (high - low + 1)))
    if values.log:
        return float(values.start * (values.to / values.start) ** share)
    return float(values.start + share * (values.to - values.start))


def _of_point(spec: Spec, at: int, point: dict[str, Value]) -> Iterator[Order]:
    name = str(point.get("profile", spec.profile))
    changes = {key: value for key, value in point.items() if key.partition(".")[0] != LOAD}
    text = profiles.load(name)
    for key, value in changes.items():
        if key != "profile":
            text = with_number(text, key, value)
    asked = None if spec.capacity is None else parse_size(spec.capacity)
    described = describe_twin(f"{name} with {_told(point)}", text, asked)
    for repeat in range(spec.repeats):
        plan = _plan(spec, point, int(described["capacity_bytes"]), spec.seed + repeat)
        fields: dict[str, Any] = {
            "name": name,
            "profile": text,
            "capacity": int(described["capacity_bytes"]),
            "plan": msgspec.to_builtins(plan),
        }
        flash = int(described["flash_bytes"])
        yield Order(_key(fields), at, repeat, point, flash=flash, **fields)


def _plan(spec: Spec, point: dict[str, Value], capacity: int, seed: int) -> life.Plan:
    given: dict[str, Any] = msgspec.to_builtins(spec.workload)
    for key, value in point.items():
        table, _, field = key.partition(".")
        if table == LOAD:
            if field not in given:
                raise UsageError(f"[vary] has {key}; it may be {LOAD}.{'|'.join(given)}")
            given[field] = value
    try:
        load = msgspec.convert(given, type(spec.workload))
    except msgspec.ValidationError as error:
        raise UsageError(f"{LOAD}: {error}") from error
    block = parse_size(load.block)
    region = capacity // max(block, life.READ_BLOCK) * max(block, life.READ_BLOCK)
    return life.check(
        life.Plan(region, load.skew, load.drive_writes, block, load.depth, load.hint, seed)
    )


def _key(fields: dict[str, Any]) -> str:
    """Of all that decides what comes out, and the version that does it."""
    text = msgspec.json.encode({"ssdlab": version("ssdlab"), **fields}, order="sorted")
    return hashlib.sha256(text).hexdigest()[:24]


def _told(values: dict[str, Value]) -> str:
    return ", ".join(f"{key}={value}" for key, value in values.items())
