"""`Side`: a run, or several repeats of it, to compare; checks methods and pairs runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from ssdlab.errors import UsageError
from ssdlab.records import Run

TURNS: Final = "turns"
"""Name of the experiment that measures sides in turns; its measures have a row per turn."""
_CONTAINED_IN_JOBS: Final = frozenset({"fio"})
"""Parameters that name files whose content is recorded in the jobs."""
_PER_RUN: Final = frozenset({"session"})
_WITH_JOBS: Final = frozenset({"workload", "turns", "replay"})
"""Experiments whose jobs are compared; in all others, the parameters determine the jobs."""


@dataclass(frozen=True)
class Side:
    """One of the things compared: its name, and at least one run, oldest first."""

    name: str
    runs: tuple[Run, ...]

    @property
    def virtual(self) -> bool:
        """Whether the side was measured in virtual time, on a twin."""
        return self.runs[0].manifest.virtual

    @property
    def seeds(self) -> list[int]:
        """The seed of each run."""
        return [run.manifest.seed for run in self.runs]

    @property
    def session(self) -> str | None:
        """The ID shared by all sides measured in turns; None if the side was measured alone."""
        parameters = self.runs[0].manifest.parameters
        return str(parameters.get("session")) if parameters.get("session") else None


def make_side(name: str, runs: Sequence[Run]) -> Side:
    """A side with its runs sorted by start time."""
    return Side(name, tuple(sorted(runs, key=lambda run: run.manifest.started)))


def pair_runs(one: Side, other: Side) -> tuple[list[Run], list[Run]] | None:
    """The runs of both sides, sorted so that equal positions form pairs; None if not paired.

    Runs of twins form pairs if both sides have the same seeds, each once. Runs on a real clock form
    pairs if the sides alternated: one run of each in the first two, in the next two, and so on.
    """
    if one.virtual and other.virtual:
        seeds = sorted(one.seeds)
        if seeds != sorted(other.seeds) or len(set(seeds)) < len(seeds):
            return None
        first, second = (sorted(s.runs, key=lambda run: run.manifest.seed) for s in (one, other))
        return first, second
    starts = [(run.manifest.started, at) for at, s in enumerate((one, other)) for run in s.runs]
    order = [at for _, at in sorted(starts)]
    pairs = [order[at : at + 2] for at in range(0, len(order), 2)]
    if len(one.runs) != len(other.runs) or any(sorted(pair) != [0, 1] for pair in pairs):
        return None
    return list(one.runs), list(other.runs)


@dataclass(frozen=True)
class Difference:
    """A property that differs between sides; `is_method` marks parameters and jobs.

    `values` has the property's value for each side, as text.
    """

    what: str
    values: tuple[str, ...]
    is_method: bool = False

    @property
    def sentence(self) -> str:
        """The difference in one line: "depth: 1 / 4"."""
        return f"{self.what}: {' / '.join(self.values)}"


def check(sides: Sequence[Side], *, settings: bool) -> list[Difference]:
    """The differences between the sides; `settings` allows parameters and jobs to differ.

    Raises:
        UsageError: different experiments, the same run twice, runs of one side that are not
            repeats, or parameters or jobs that differ without `settings`.
    """
    _refuse_duplicates(sides)
    for side in sides:
        _refuse_unequal_runs(side)
    experiments = [side.runs[0].manifest.experiment for side in sides]
    if len(set(experiments)) > 1:
        raise UsageError(
            f"{' and '.join(dict.fromkeys(experiments))} are different experiments and have no "
            "number in common; give runs of one experiment"
        )
    differences = list(_differences(sides))
    method = [difference for difference in differences if difference.is_method]
    if method and not settings:
        raise UsageError(
            f"{' and '.join(side.name for side in sides)} were not measured with the same method "
            f"({'; '.join(difference.sentence for difference in method)}); measure both the same "
            "way, or give --settings to compare exactly this"
        )
    return differences


def _differences(sides: Sequence[Side]) -> Iterator[Difference]:
    runs = [side.runs[0] for side in sides]
    yield from _differing_entries("", [_parameters(run) for run in runs], is_method=True)
    yield from _differing_values("jobs", [_jobs(run) for run in runs], is_method=True)
    yield from _differing_values("target", [run.manifest.target for run in runs])
    yield from _differing_values(
        "clock", ["virtual" if run.manifest.virtual else "real" for run in runs]
    )
    yield from _differing_values("size of the target", [_size(run) for run in runs])
    yield from _differing_values("opened", [_step_values(run, "opened") for run in runs])
    engines = [_step_values(run, "engine") for run in runs]
    if all(engines):  # older versions recorded none
        yield from _differing_values("engine", engines)
    yield from _differing_entries("version of ", [run.manifest.versions for run in runs])
    yield from _differing_values(
        "machine", [str(run.manifest.host.get("name", "")) for run in runs]
    )
    yield from _differing_values("ended", [_outcomes(side) for side in sides])
    if not any(side.session for side in sides):
        yield from _differing_values("seeds", [_join(side.seeds) for side in sides])


def _refuse_duplicates(sides: Sequence[Side]) -> None:
    folders = set[Path]()
    for run in (run for side in sides for run in side.runs):
        folder = run.folder.resolve()
        if folder in folders:
            raise UsageError(f"{run.folder} is given twice; give another run")
        folders.add(folder)


def _refuse_unequal_runs(side: Side) -> None:
    """Refuses a side whose runs do not repeat the same measurement of the same target."""
    first = side.runs[0]
    properties: list[tuple[str, Callable[[Run], Any]]] = [
        ("experiment", lambda run: run.manifest.experiment),
        ("target", lambda run: run.manifest.target),
        ("parameters", lambda run: (_parameters(run), _jobs(run))),
    ]
    for name, value_of in properties:
        other = next((run for run in side.runs if value_of(run) != value_of(first)), None)
        if other is not None:
            raise UsageError(
                f"{side.name} holds runs that are not repeats of one another (different {name} in "
                f"{other.folder.name}); list the folders of a side, separated by commas: A1,A2"
            )


def _parameters(run: Run) -> dict[str, Any]:
    left_out = _PER_RUN | (_CONTAINED_IN_JOBS if _jobs(run) else frozenset())
    return {k: v for k, v in run.manifest.parameters.items() if k not in left_out}


def _jobs(run: Run) -> str:
    """The distinct jobs as text, without their seeds; "" if none were recorded."""
    if run.manifest.experiment not in _WITH_JOBS:
        return ""
    steps = run.tables["steps"].to_pylist()
    texts = [row.get("job") for row in steps if row["phase"] == "job"]
    return "; ".join(dict.fromkeys(_seedless(text) for text in texts if text))


def _seedless(text: str) -> str:
    job = msgspec.json.decode(text, type=dict[str, Any])
    return " ".join(f"{key}={_text(value)}" for key, value in job.items() if key != "seed")


def _step_values(run: Run, column: str) -> str:
    """The distinct values of a column of the steps; "" if none were recorded."""
    values = dict.fromkeys(row.get(column) for row in run.tables["steps"].to_pylist())
    return "; ".join(value for value in values if value)


def _size(run: Run) -> str:
    device = run.manifest.device
    sizes = [device.get("capacity_bytes")]
    sizes += [drive.get("size_bytes") for drive in device.get("drives", ())]
    return ", ".join(str(size) for size in sizes if size is not None)


def _outcomes(side: Side) -> str:
    return _join(sorted({run.manifest.outcome for run in side.runs}))


def _differing_entries(
    prefix: str, mappings: Sequence[Mapping[str, Any]], *, is_method: bool = False
) -> Iterator[Difference]:
    for name in dict.fromkeys(name for mapping in mappings for name in mapping):
        values = [mapping.get(name) for mapping in mappings]
        yield from _differing_values(f"{prefix}{name}", values, is_method=is_method)


def _differing_values(
    what: str, values: Sequence[Any], *, is_method: bool = False
) -> Iterator[Difference]:
    texts = tuple(_text(value) or "none" for value in values)
    if len(set(texts)) > 1:
        yield Difference(what, texts, is_method)


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return _join(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else str(value)


def _join(values: Sequence[Any]) -> str:
    return ", ".join(_text(value) for value in values)
