"""`Bundle`: a fitted twin with its measurements, without anything that identifies the host.

A bundle is one JSON object. It is made from lists of what may be in it: numbers of the
measurements, the words of their cases, and the drive's model, firmware, capacity and interface. The
sources in the profile are the only free text: names of hosts and users, serial numbers and paths
are removed.
"""

from __future__ import annotations

import getpass
import os
import platform
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import tomlkit

from ssdlab.device import describe_twin
from ssdlab.errors import UsageError
from ssdlab.fit import ageing_rows
from ssdlab.fit.checks import Check, check_profile
from ssdlab.fit.measurement import Measurement, measured_cells
from ssdlab.fit.results import ACCEPTED, FitInput, Results, drive_of
from ssdlab.input_files import read_bytes
from ssdlab.profiles.toml_edit import list_values
from ssdlab.records import Finding, Run

FORMAT: Final = "ssdlab twin"
VERSION: Final = 1
REMOVED: Final = "(removed)"
_WORD_MIN: Final = 3
"""Shorter names of hosts and users are not searched for in sources: they are parts of words."""
_PATH: Final = re.compile(r"(?<![\w.:/-])(?:~|\.{1,2})?/[^\s\"',;:()]+|\S+\.(?:toml|csv|json)\b")
_PRIVATE_KEY: Final = re.compile(r"serial|wwid|wwn|eui|nguid|uuid|host|user|label", re.IGNORECASE)
_TEXTS: Final = frozenset({"test", "op", "mode", "unit", "gap", "placement"})
"""Columns of measures whose values are words of ssdlab."""
_WORDS: Final = re.compile(r"[a-zA-Z0-9 .,%+-]{0,60}")

Number = float | bool | None


class Measured(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The measurements of one run: parameters, rows and findings, as its result has them."""

    experiment: str
    ssdlab: str
    virtual: bool
    seed: int
    parameters: dict[str, Number | list[float]]
    measures: list[dict[str, Number | str | list[float]]]
    findings: dict[str, dict[str, Any]]
    warnings: list[str]


class Accuracy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The errors of the twin in one experiment: how many values, mean and worst, relative."""

    experiment: str
    values: int
    mean_error: float
    worst_error: float


class Bundle(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A twin with its measurements. `fitted` are the keys of the numbers that were fitted."""

    format: str
    version: int
    ssdlab: str
    model: str
    firmware: str
    interface: str
    capacity_bytes: int
    fitted: list[str]
    accuracy: list[Accuracy]
    profile: str
    runs: list[Measured]


def make(profile: str, runs: Sequence[Run], version: str) -> Bundle:
    """The bundle of a profile that was fitted to runs; `version` is that of ssdlab.

    Raises:
        UsageError: the runs are not of one drive, or no fit accepts them.
        TargetError: the profile is invalid.
    """
    used = [run for run in runs if run.manifest.experiment in ACCEPTED]
    if not used:
        raise UsageError(
            f"none of these runs is of an experiment that a fit accepts; give runs of "
            f"{', '.join(ACCEPTED)}"
        )
    private = private_words(used)
    text = _without_private(profile, private)
    twin = describe_twin("the profile", text)
    interface = str(tomllib.loads(text)["drive"]["interface"])
    measured = [_measured(run) for run in used]
    bundle = Bundle(
        FORMAT,
        VERSION,
        version,
        str(twin["model"]),
        _scrubbed(_attribute(used, "firmware"), private),
        interface,
        int(twin["capacity_bytes"]),
        [entry["key"] for entry in list_values(text) if entry["kind"] == "fitted"],
        [],
        text,
        measured,
    )
    bundle = msgspec.structs.replace(bundle, accuracy=accuracy_of(text, results_of(bundle)))
    _require_anonymous(bundle, private)
    return bundle


def read(path: Path) -> Bundle:
    """A bundle, checked.

    Raises:
        UsageError: not a bundle, or not of a version that this ssdlab knows.
        TargetError: its profile is invalid.
    """
    try:
        bundle = msgspec.json.decode(read_bytes(path), type=Bundle)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read ({error.strerror}); give a file that `ssdlab twin submit` wrote"
        ) from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path} is not a bundle ({error}); give a file that `ssdlab twin submit` wrote"
        ) from error
    if bundle.format != FORMAT or bundle.version != VERSION:
        raise UsageError(
            f"{path} is {bundle.format!r} version {bundle.version}; this ssdlab reads "
            f"{FORMAT!r} version {VERSION}"
        )
    twin = describe_twin(str(path), bundle.profile)
    if (bundle.model, bundle.capacity_bytes) != (twin["model"], twin["capacity_bytes"]):
        raise UsageError(
            f"{path} says {bundle.model!r}, {bundle.capacity_bytes} bytes, but its profile is of "
            f"{twin['model']!r}, {twin['capacity_bytes']} bytes; make the bundle again"
        )
    return bundle


def accuracy_of(profile: str, results: Results) -> list[Accuracy]:
    """The errors of a profile's twin in each experiment. Takes seconds."""
    fit_input = FitInput(results.others, results.ageing, results.ageing)
    checks = check_profile(profile, fit_input)
    return [_accuracy(name, checks) for name in dict.fromkeys(one.experiment for one in checks)]


def _accuracy(name: str, checks: Iterable[Check]) -> Accuracy:
    errors = np.array([abs(one.error) for one in checks if one.experiment == name])
    mean, worst = (round(float(value), 4) for value in (errors.mean(), errors.max()))
    return Accuracy(name, len(errors), mean, worst)


def private_words(runs: Sequence[Run]) -> list[str]:
    """Texts that identify the host, its user or the drive itself, the longest first."""
    words = {platform.node(), platform.node().partition(".")[0], _user(), Path.home().name}
    words |= {os.environ.get(name, "") for name in ("USER", "LOGNAME", "SUDO_USER")}
    for run in runs:
        manifest = run.manifest
        words |= {manifest.label, run.folder.name, str(run.folder.resolve())}
        for part in (manifest.device, manifest.host, {"target": manifest.target}):
            words |= set(_private(part))
    words -= {"", "root"}
    return sorted(words, key=lambda word: (-len(word), word))


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user without an entry in the password database
        return ""


def _private(value: Any, key: str = "") -> Iterator[str]:
    """Values under private keys, and all paths, at any depth."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _private(each, str(name))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _private(each, key)
    elif isinstance(value, str) and (_PRIVATE_KEY.search(key) or value.startswith(("/", "~", "."))):
        yield value


def _without_private(profile: str, private: Collection[str]) -> str:
    """The profile without comments, and with sources that name no host, user, drive or path."""
    document = tomllib.loads(profile)
    for table in document.values():
        for key, entry in table.items():
            if isinstance(entry, dict):
                entry["source"] = _scrubbed(str(entry.get("source", "")), private)
            elif key == "model":
                table[key] = _model(str(entry), private)
    lines = []
    for name, table in document.items():
        lines.append(f"[{name}]")
        for key, entry in table.items():
            lines.append(f"{key} = {_inline(entry)}")
        lines.append("")
    return "\n".join(lines)


def _model(model: str, private: Collection[str]) -> str:
    """The model; a fit to the runs of an unknown drive names it by the target's path."""
    return "unknown drive" if REMOVED in _scrubbed(model, private) else model


def _inline(entry: Any) -> str:
    if not isinstance(entry, dict):
        return str(tomlkit.item(entry).as_string())
    parts = (f"{key} = {tomlkit.item(part).as_string()}" for key, part in entry.items())
    return f"{{ {', '.join(parts)} }}"


def _scrubbed(text: str, private: Iterable[str]) -> str:
    """The text without private words and paths."""
    for word in private:
        if len(word) >= _WORD_MIN:
            text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", REMOVED, text)
    return _PATH.sub(REMOVED, text)


def _measured(run: Run) -> Measured:
    result, parameters = run.result, {**drive_of(run), **run.result.parameters}
    return Measured(
        result.experiment,
        result.ssdlab,
        result.virtual,
        result.seed,
        {key: value for key, value in parameters.items() if _is_numeric(value)},
        [_row(row) for row in result.measures],
        {
            name: {"value": value, "unit": one.unit, "low": one.low, "high": one.high}
            for name, one in result.findings.items()
            if not isinstance(value := one.value, str) or _WORDS.fullmatch(value)
        },
        [warning.code for warning in result.warnings],
    )


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: value
        for key, value in row.items()
        if _is_numeric(value) or (key in _TEXTS and _WORDS.fullmatch(str(value)))
    }


def _is_numeric(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_numeric(each) for each in value)
    return value is None or isinstance(value, bool | int | float)


def _attribute(runs: Sequence[Run], name: str) -> str:
    for run in runs:
        device: Any = run.manifest.device
        drive: Any = (device.get("drives") or ({},))[0]
        if value := device.get(name) or drive.get(name):
            return str(value)
    return ""


def _require_anonymous(bundle: Bundle, private: Collection[str]) -> None:
    """Refuses a bundle that still has a serial number, a path or the name of a run."""
    text = msgspec.json.encode(bundle).decode()
    for word in private:
        if len(word) >= 2 * _WORD_MIN and word in text:
            raise UsageError(
                f"the bundle would contain {word!r}, which identifies this machine; remove it from "
                "the profile's model and sources"
            )


def encode(bundle: Bundle) -> bytes:
    """The text of a bundle's file."""
    return msgspec.json.format(msgspec.json.encode(bundle), indent=1) + b"\n"


def results_of(bundle: Bundle) -> Results:
    """The measurements of a bundle, as a fit reads them.

    Raises:
        UsageError: an ageing row is incomplete, or the experiment is not known.
    """
    rows, others = [], []
    model = bundle.model
    for run in bundle.runs:
        if run.experiment not in ACCEPTED:
            raise UsageError(
                f"a bundle has a run of {run.experiment!r}; it must be {', '.join(ACCEPTED)}"
            )
        if run.experiment == "aging":
            size = run.parameters.get("size_mib")
            lines = [{"file_mib": size, **row} for row in run.measures]
            rows.append(ageing_rows.of_csv(lines, Path(model)))
            continue
        findings = {
            name: Finding(one.get("value"), str(one["unit"]), one["low"], one["high"], "")
            for name, one in run.findings.items()
        }
        cells = measured_cells(run.experiment, run.measures)
        parameters = {**run.parameters, "interface": bundle.interface}
        others.append(Measurement(run.experiment, model, model, cells, findings, parameters))
    return Results(rows[0] if rows else None, tuple(others))
