"""Were the runs made by the same method? What differs is named; what must not differ, refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from ssdlab.comparison.side import Side
from ssdlab.errors import UsageError
from ssdlab.records import Run

_SAID_BY_JOBS: Final = frozenset({"fio"})
"""Parameters of which only the contents matter, and those are in the jobs."""
_OF_ONE_RUN: Final = frozenset({"session"})
_WITH_JOBS: Final = frozenset({"workload", "turns", "replay"})
"""Experiments whose method is the jobs themselves; the others' follow from the parameters."""


@dataclass(frozen=True)
class Difference:
    """What differs, with its value on each side; `settings`: a parameter or job of the method."""

    what: str
    values: tuple[str, ...]
    settings: bool = False

    @property
    def sentence(self) -> str:
        """In one line."""
        return f"{self.what}: {' / '.join(self.values)}"


def check(sides: Sequence[Side], *, settings: bool) -> list[Difference]:
    """What differs between the sides; `settings` says that the method may, on purpose.

    Raises:
        UsageError: another experiment, a run twice, several runs of one side that are no repeats,
            or a method that differs though it was not said that it may.
    """
    _refuse_twice(sides)
    for side in sides:
        _refuse_no_repeats(side)
    experiments = [side.runs[0].manifest.experiment for side in sides]
    if len(set(experiments)) > 1:
        raise UsageError(
            f"{' and '.join(dict.fromkeys(experiments))} answer different questions and have no "
            "number in common; give runs of one experiment"
        )
    found = differences(sides)
    method = [each for each in found if each.settings]
    if method and not settings:
        raise UsageError(
            f"{' and '.join(side.name for side in sides)} were not measured by the same method "
            f"({'; '.join(each.sentence for each in method)}); measure both alike, or give "
            "--settings to compare just that"
        )
    return found


def differences(sides: Sequence[Side]) -> list[Difference]:
    """Parameters and jobs, target, its size, engine, versions, machine, endings: what differs."""
    runs = [side.runs[0] for side in sides]
    found = [*_of_mappings("", [_parameters(run) for run in runs], settings=True)]
    found += _of_values("jobs", [_jobs(run) for run in runs], settings=True)
    found += _of_values("target", [run.manifest.target for run in runs])
    found += _of_values("clock", ["virtual" if run.manifest.virtual else "real" for run in runs])
    found += _of_values("size of the target", [_size(run) for run in runs])
    found += _of_values("opened", [_opened(run) for run in runs])
    engines = [_engines(run) for run in runs]
    found += _of_values("engine", engines) if all(engines) else []
    found += _of_mappings("version of ", [run.manifest.versions for run in runs])
    found += _of_values("machine", [str(run.manifest.host.get("name", "")) for run in runs])
    found += _of_values("ended", [_endings(side) for side in sides])
    if not any(side.session for side in sides):
        found += _of_values("seeds", [_listed(side.seeds) for side in sides])
    return found


def _refuse_twice(sides: Sequence[Side]) -> None:
    seen: dict[Any, str] = {}
    for side in sides:
        for run in side.runs:
            folder = run.folder.resolve()
            if folder in seen:
                raise UsageError(f"{run.folder} is given twice; a run equals itself, give another")
            seen[folder] = side.name


def _refuse_no_repeats(side: Side) -> None:
    """Several runs of one side must be the same measurement again, of the same target."""
    first = side.runs[0]
    questions: list[tuple[str, Callable[[Run], Any]]] = [
        ("experiment", lambda run: run.manifest.experiment),
        ("target", lambda run: run.manifest.target),
        ("parameters", lambda run: (_parameters(run), _jobs(run))),
    ]
    for what, asked in questions:
        other = next((run for run in side.runs if asked(run) != asked(first)), None)
        if other is not None:
            raise UsageError(
                f"{side.name} holds runs that are no repeats of one another (another {what} in "
                f"{other.folder.name}); give the folders of a side with commas between: A1,A2"
            )


def _parameters(run: Run) -> dict[str, Any]:
    left_out = _OF_ONE_RUN | (_SAID_BY_JOBS if _jobs(run) else frozenset())
    return {k: v for k, v in run.manifest.parameters.items() if k not in left_out}


def _jobs(run: Run) -> str:
    """The jobs as they were asked for, each once, without their seeds; "" where none is kept."""
    if run.manifest.experiment not in _WITH_JOBS:
        return ""
    steps = run.tables["steps"].to_pylist()
    texts = [row.get("job") for row in steps if row["phase"] == "job"]
    return "; ".join(dict.fromkeys(_seedless(text) for text in texts if text))


def _seedless(text: str) -> str:
    job = msgspec.json.decode(text, type=dict[str, Any])
    return " ".join(f"{key}={_word(value)}" for key, value in job.items() if key != "seed")


def _opened(run: Run) -> str:
    opened = dict.fromkeys(row.get("opened") for row in run.tables["steps"].to_pylist())
    return "; ".join(each for each in opened if each)


def _engines(run: Run) -> str:
    """The ways by which it was measured, each once; "" where an older version kept none."""
    engines = dict.fromkeys(row.get("engine") for row in run.tables["steps"].to_pylist())
    return "; ".join(each for each in engines if each)


def _size(run: Run) -> str:
    device = run.manifest.device
    sizes = [device.get("capacity_bytes")]
    sizes += [drive.get("size_bytes") for drive in device.get("drives", ())]
    return ", ".join(str(size) for size in sizes if size is not None)


def _endings(side: Side) -> str:
    return _listed(sorted({run.manifest.outcome for run in side.runs}))


def _of_mappings(
    of: str, mappings: Sequence[Mapping[str, Any]], *, settings: bool = False
) -> list[Difference]:
    names = dict.fromkeys(name for mapping in mappings for name in mapping)
    return [
        each
        for name in names
        for each in _of_values(
            f"{of}{name}", [mapping.get(name) for mapping in mappings], settings=settings
        )
    ]


def _of_values(what: str, values: Sequence[Any], *, settings: bool = False) -> list[Difference]:
    words = tuple(_word(value) or "none" for value in values)
    return [Difference(what, words, settings)] if len(set(words)) > 1 else []


def _word(value: Any) -> str:
    if isinstance(value, list | tuple):
        return _listed(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else str(value)


def _listed(values: Sequence[Any]) -> str:
    return ", ".join(_word(value) for value in values)
