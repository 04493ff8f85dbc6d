"""Results that a fit starts from: run folders, and small tables in TOML or CSV, of one drive.

A run of `aging`, `stripe`, `split`, `steady`, `fsync`, `suite` or `cache`, or a results folder with
such runs. TOML: `[aging]` with file_mib, written_mib (each amount on top of those before) and
seconds (first that of the fresh file); or several `[[aging.drive]]` with model and seconds. Of
other experiments `[steady]` and the like, with findings as numbers with units (`hidden_spare =
"5.6 %"`) and `[[suite.row]]` with the columns of a run's measures. CSV: a header line with the
columns of one experiment, such as `file_mib,written_mib,read_s`, and a row a case.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ssdlab.errors import UsageError
from ssdlab.experiments.registry import cells_of
from ssdlab.fit.ageing import Ageing
from ssdlab.fit.input import ageing_rows
from ssdlab.fit.input.ageing_rows import HINT
from ssdlab.fit.input.agreement import check_agreement
from ssdlab.fit.input.table import from_csv, from_toml
from ssdlab.fit.measured import Measured
from ssdlab.fit.objective import ASKED
from ssdlab.input_files import read_text
from ssdlab.records import Run, find_runs, read_run

USED: Final = ("aging", *sorted(ASKED))


@dataclass(frozen=True)
class Results:
    """All that was given, as it was read."""

    ageing: Ageing | None
    others: tuple[Measured, ...]


def read_results(paths: Sequence[Path], model: str | None = None) -> Results:
    """The results of one drive; `model` picks those of one of several.

    Raises:
        UsageError: there are none, a table is wrong, or there are several drives' ageing rows.
    """
    rows: list[Ageing] = []
    others: list[Measured] = []
    for path in paths:
        found, more = _read(path)
        if not found and not more:
            raise UsageError(f"{path} has no results that a fit can use; give {', '.join(USED)}")
        rows += found
        others += more
    if len(rows) > 1 or (model is not None and rows):
        rows = [ageing_rows.picked(rows, model, ", ".join(map(str, paths)))]
    if model is not None:
        others = [each for each in others if not each.model or _is_of(model, each.model)]
        if not rows and not others:
            raise UsageError(
                f"{', '.join(map(str, paths))} has nothing of {model}; leave --model out"
            )
    check_agreement(others, rows)
    return Results(rows[0] if rows else None, tuple(others))


def read_ageing(path: Path, model: str | None = None) -> Ageing:
    """The ageing row of a run folder or a table; `model` picks one of several drives.

    Raises:
        UsageError: there is none, or there are several and none was picked.
    """
    return ageing_rows.picked(_read(path)[0], model, str(path))


def _is_of(model: str, name: str) -> bool:
    return model.lower() in name.lower()


def shipped() -> dict[str, Ageing]:
    """The published ageing rows that ssdlab brings along, by the profile's name."""
    from ssdlab import profiles

    path = profiles.tables() / "aging.toml"
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    rows = ageing_rows.of_toml(tables["aging"], path)
    drives = tables["aging"]["drive"]
    return {drive["twin"]: row for drive, row in zip(drives, rows, strict=True)}


def _read(path: Path) -> tuple[list[Ageing], list[Measured]]:
    if path.is_dir():
        return _of_runs([read_run(run) for run in find_runs(path)])
    try:
        if path.suffix == ".csv":
            name, lines = from_csv(path)
            if name == "aging":
                return [ageing_rows.of_csv(lines, path)], []
            return [], [Measured(name, "", str(path), tuple(cells_of(name, lines)))]
        tables = tomllib.loads(read_text(path))
    except (OSError, ValueError) as error:  # tomllib and UTF-8 raise ValueError's children
        raise UsageError(f"{path}: no results can be read there ({error}); {HINT}") from error
    unknown = next((name for name in tables if name not in USED), None)
    if unknown is not None:
        raise UsageError(f"{path}: [{unknown}] is not known; it may be {', '.join(USED)}")
    rows = ageing_rows.of_toml(tables["aging"], path) if "aging" in tables else []
    return rows, [from_toml(name, tables[name], path) for name in tables if name != "aging"]


def _of_runs(runs: Iterable[Run]) -> tuple[list[Ageing], list[Measured]]:
    rows: list[Ageing] = []
    others: list[Measured] = []
    for run in runs:
        if run.manifest.experiment == "aging":
            rows.append(ageing_rows.of_run(run, _model_of(run)))
        elif run.manifest.experiment in ASKED:
            others.append(_measured_of_run(run))
    return rows, others


def _model_of(run: Run) -> str:
    """The drive's name, or empty where a run does not know it."""
    drives: Any = run.manifest.device.get("drives") or ({},)
    return str(run.manifest.device.get("model") or drives[0].get("model") or "")


def _measured_of_run(run: Run) -> Measured:
    name, result = run.manifest.experiment, run.result
    found = tuple(cells_of(name, result.measures))
    return Measured(
        name, _model_of(run), str(run.folder), found, result.findings, result.parameters
    )
