"""`Spec`: what a sweep varies and what it keeps, from a TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from ssdlab.errors import UsageError
from ssdlab.input_files import read_text
from ssdlab.records import encode_json

RUNS_MOST: Final = 1_000_000
Value = float | int | str | bool
_HAS: Final = (
    "a spec has name, profile, [vary], and may have capacity, design, samples, repeats, seed, "
    "[workload]"
)


class Range(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"start": "from"}):
    """From a number to another, of which a sample takes any; `log`: evenly by their logarithms."""

    start: float
    to: float
    whole: bool = False
    log: bool = False


class Workload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The load, as `experiment.life.Plan` has it."""

    skew: float = 0.0
    drive_writes: float = 0.5
    block: str = "4KiB"
    depth: int = 32
    hint: Literal["none", "append", "overwrite"] = "none"


class Spec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sweep: a profile, what varies by its key, and how often each point is run.

    A key is `profile`, `TABLE.KEY` of a profile, or `workload.KEY`. A grid takes lists of values,
    a sample of so many points also ranges.
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


def read(path: Path) -> tuple[Spec, str]:
    """The spec in a file, and its text.

    Raises:
        UsageError: it cannot be read, or says what it may not.
    """
    try:
        text = read_text(path)
        given = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: no spec can be read there ({error})") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: {error}; {_HAS}") from error
    return _converted(str(path), given), text


def of(given: Mapping[str, Any]) -> tuple[Spec, str]:
    """The spec that a mapping is, with the names of the file's, and its text as JSON.

    Raises:
        UsageError: it says what it may not.
    """
    return _converted("the spec", given), encode_json(given)


def _converted(path: str, given: Mapping[str, Any]) -> Spec:
    try:
        spec = msgspec.convert(given, Spec)
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {error}; {_HAS}") from error
    _check(path, spec)
    return spec


def _check(path: str, spec: Spec) -> None:
    for name, given, fits, allowed in (
        ("name", spec.name, _is_name(spec.name), "letters, digits and - _ ."),
        ("repeats", spec.repeats, 1 <= spec.repeats <= RUNS_MOST, f"1 to {RUNS_MOST}"),
        ("seed", spec.seed, 0 <= spec.seed < 1 << 53, "0 to 2^53 - 1"),
        ("[vary]", "empty", bool(spec.vary), "one key or more, with lists or ranges"),
        ("samples", spec.samples, _fits(spec), "2 or more in a sample, left out in a grid"),
    ):
        if not fits:
            raise UsageError(f"{path}: {name} is {given}; it may be {allowed}")
    for key, values in spec.vary.items():
        _check_values(path, spec, key, values)


def _is_name(name: str) -> bool:
    return bool(name) and all(c.isalnum() or c in "-_." for c in name) and name[0] != "."


def _fits(spec: Spec) -> bool:
    if spec.design == "grid":
        return spec.samples == 0
    return 2 <= spec.samples <= RUNS_MOST


def _check_values(path: str, spec: Spec, key: str, values: Any) -> None:
    table, dot, name = key.partition(".")
    if key != "profile" and not (dot and table.isidentifier() and name.isidentifier()):
        raise UsageError(
            f"{path}: [vary] has {key!r}; it may be profile, TABLE.KEY such as "
            "ftl.spare, or workload.KEY"
        )
    if isinstance(values, Range):
        if spec.design == "grid":
            raise UsageError(f"{path}: {key} is a range; a grid takes a list, a sample a range")
        if not values.start < values.to or (values.log and values.start <= 0):
            raise UsageError(
                f"{path}: {key} goes from {values.start:g} to {values.to:g}; give a range that "
                "goes up, above 0 where it is log"
            )
    elif not values or len(set(map(str, values))) < len(values):
        raise UsageError(f"{path}: {key} has {values}; give each value once, one or more")
