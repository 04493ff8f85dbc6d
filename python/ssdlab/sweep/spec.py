"""`Spec`: the parameters that a sweep varies or fixes, from a TOML file or a mapping.

Its runs are the points of a grid or a Latin hypercube, with their repeats and seeds.
"""

from __future__ import annotations

import hashlib
import itertools
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import numpy as np

from ssdlab import profiles
from ssdlab.device import describe_twin
from ssdlab.errors import UsageError
from ssdlab.input_files import read_text
from ssdlab.profiles.toml_edit import set_value
from ssdlab.records import encode_json
from ssdlab.sweep.measure import READ_BLOCK, Plan, check
from ssdlab.units import parse_size

RUNS_MAX: Final = 1_000_000
Value = float | int | str | bool
_FIELDS: Final = (
    "a spec has name, profile, [vary], and may have capacity, design, samples, repeats, seed, "
    "[workload]"
)


class Range(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"start": "from"}):
    """A range to sample from; `log` spaces values logarithmically, `whole` allows only integers."""

    start: float
    to: float
    whole: bool = False
    log: bool = False


class Workload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The load on the twin; `sweep.measure.Plan` describes the fields."""

    skew: float = 0.0
    drive_writes: float = 0.5
    block: str = "4KiB"
    depth: int = 32
    hint: Literal["none", "append", "overwrite"] = "none"


class Spec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sweep: a profile, the values of each varied key, and the number of repeats.

    A key is `profile`, `TABLE.KEY` of a profile, or `workload.KEY`. A grid takes lists of values; a
    sample (of `samples` points) also takes ranges.
    """

    name: str
    profile: str
    vary: dict[str, list[Value] | Range]
    capacity: str | None = None
    design: Literal["grid", "sample"] = "grid"
    samples: int = 0
    repeats: int = 1
    seed: int = 0
    workload: Workload = Workload()


def read_spec(path: Path) -> tuple[Spec, str]:
    """The spec in a file, and its text.

    Raises:
        UsageError: the file cannot be read, or the spec is invalid.
    """
    try:
        text = read_text(path)
        fields = tomllib.loads(text)
    except OSError as error:
        raise UsageError(
            f"{path}: cannot read this spec ({error.strerror}); give a file such as "
            "examples/sweeps/spare.toml"
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: cannot read this spec ({error})") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: {error}; {_FIELDS}") from error
    return _convert(str(path), fields), text


def spec_of(fields: Mapping[str, Any]) -> tuple[Spec, str]:
    """The spec in a mapping with the same keys as the file, and its text as JSON.

    Raises:
        UsageError: the spec is invalid.
    """
    return _convert("the spec", fields), encode_json(fields)


def _convert(where: str, fields: Mapping[str, Any]) -> Spec:
    try:
        spec = msgspec.convert(fields, Spec)
    except msgspec.ValidationError as error:
        raise UsageError(f"{where}: {error}; {_FIELDS}") from error
    _check(where, spec)
    return spec


def _check(where: str, spec: Spec) -> None:
    for name, value, is_valid, allowed in (
        ("name", spec.name, _is_name(spec.name), "letters, digits and - _ ."),
        ("repeats", spec.repeats, 1 <= spec.repeats <= RUNS_MAX, f"from 1 to {RUNS_MAX}"),
        ("seed", spec.seed, 0 <= spec.seed < 1 << 53, "from 0 to 2^53 - 1"),
        ("[vary]", "empty", bool(spec.vary), "one key or more, with lists or ranges"),
        ("samples", spec.samples, _fits_design(spec), "2 or more in a sample, absent in a grid"),
    ):
        if not is_valid:
            raise UsageError(f"{where}: {name} is {value}; it must be {allowed}")
    for key, values in spec.vary.items():
        _check_values(where, spec, key, values)


def _is_name(name: str) -> bool:
    return bool(name) and all(c.isalnum() or c in "-_." for c in name) and name[0] != "."


def _fits_design(spec: Spec) -> bool:
    """Whether `samples` is valid for the design: 0 for a grid, otherwise at least 2."""
    if spec.design == "grid":
        return spec.samples == 0
    return 2 <= spec.samples <= RUNS_MAX


def _check_values(where: str, spec: Spec, key: str, values: Any) -> None:
    table, dot, name = key.partition(".")
    if key != "profile" and not (dot and table.isidentifier() and name.isidentifier()):
        raise UsageError(
            f"{where}: [vary] has {key!r}; it must be profile, TABLE.KEY such as ftl.spare, or "
            "workload.KEY"
        )
    if isinstance(values, Range):
        if spec.design == "grid":
            raise UsageError(f"{where}: {key} is a range; a grid takes a list, a sample a range")
        if not values.start < values.to or (values.log and values.start <= 0):
            raise UsageError(
                f"{where}: {key} is from {values.start:g} to {values.to:g}; give a range that "
                "goes up, above 0 with log"
            )
    elif not values or len(set(map(str, values))) < len(values):
        raise UsageError(f"{where}: {key} has {values}; give one value or more, each once")


LOAD = "workload"


class SweepRun(msgspec.Struct, frozen=True):
    """All that one run needs: the varied parameters, the profile's text, and the plan.

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
    """All runs, ordered by point and repeat. All points use the same seeds for their repeats.

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
    """The value at a relative position (`share`, 0 to 1) in a list or a range."""
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
    """A hash of all that determines the result, including the version of ssdlab."""
    text = msgspec.json.encode({"ssdlab": version("ssdlab"), **fields}, order="sorted")
    return hashlib.sha256(text).hexdigest()[:24]


def _describe(values: dict[str, Value]) -> str:
    return ", ".join(f"{key}={value}" for key, value in values.items())
