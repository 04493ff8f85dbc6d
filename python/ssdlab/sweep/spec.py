"""`Spec`: what a sweep varies and what it keeps fixed, from a TOML file or a mapping."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from ssdlab.errors import UsageError
from ssdlab.input_files import read_text
from ssdlab.records import encode_json

RUNS_MAX: Final = 1_000_000
Value = float | int | str | bool
_FIELDS: Final = (
    "a spec has name, profile, [vary], and may have capacity, design, samples, repeats, seed, "
    "[workload]"
)


class Range(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"start": "from"}):
    """A range for a sample; `log`: evenly spaced by logarithm, `whole`: integers only."""

    start: float
    to: float
    whole: bool = False
    log: bool = False


class Workload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The load; `sweep.measure.Plan` describes the fields."""

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
        UsageError: it cannot be read, or is invalid.
    """
    try:
        text = read_text(path)
        fields = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot read this spec ({error})") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: {error}; {_FIELDS}") from error
    return _convert(str(path), fields), text


def spec_of(fields: Mapping[str, Any]) -> tuple[Spec, str]:
    """The spec in a mapping that has the keys of the file, and its text as JSON.

    Raises:
        UsageError: it is invalid.
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
    """Whether the number of samples is valid for the design."""
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
