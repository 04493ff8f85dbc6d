"""Reads one drive's results for a fit: run folders, and tables in TOML or CSV.

A folder holds a run of `aging`, `stripe`, `split`, `steady`, `fsync`, `suite`, `cache` or
`workload`, or several such runs; a file other than TOML or CSV is a result of fio. A TOML file can
have `[aging]` with file_mib, written_mib (each amount in addition to those before it) and seconds
(the fresh file's first), or several `[[aging.drive]]` with model and seconds; `[iocost]` with its
six numbers; tables such as `[steady]` with findings and their units (`hidden_spare = "5.6 %"`); and
`[[suite.row]]` with the columns of a run's measures. A CSV file has a header with the columns of
one experiment, such as
`file_mib,written_mib,read_s`, and one row for each case.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ssdlab import profiles
from ssdlab.analysis.cells import Cell
from ssdlab.device import Job, RealOptions, decode, describe_twin
from ssdlab.errors import UsageError
from ssdlab.experiments.registry import cells_of
from ssdlab.experiments.stored_runs import read_runs
from ssdlab.fit import ageing_rows, iocost
from ssdlab.fit.ageing import AgeingRow
from ssdlab.fit.ageing_rows import HINT, check_agreement
from ssdlab.fit.measurement import FINDINGS, Measurement, from_csv, from_toml, measured_cells
from ssdlab.fit.objective import EXPERIMENTS
from ssdlab.input_files import read_text
from ssdlab.records import Run
from ssdlab.units import format_size

ACCEPTED: Final = ("aging", *sorted([*EXPERIMENTS, iocost.NAME]))
"""Experiments whose results a fit accepts, and iocost's numbers."""
AGING: Final = "aging:"
MIB: Final = 1 << 20
REGION_SHARE_MAX: Final = 0.5
"""Of the drive: writes to a larger region cause garbage collection, which candidates do not do."""
_WRITES_IN_A_REGION: Final = frozenset({"fsync", "suite"})
"""Experiments that write to a region at random, which a candidate repeats in a small region."""


@dataclass(frozen=True)
class Results:
    """The results of one drive: its ageing row, and the measurements of other experiments."""

    ageing: AgeingRow | None
    others: tuple[Measurement, ...]


def read_results(paths: Sequence[Path], model: str | None = None) -> Results:
    """The results of one drive; `model` selects it if there are several.

    Raises:
        UsageError: no results, an invalid table, or results that cannot be of one drive.
    """
    rows: list[AgeingRow] = []
    others: list[Measurement] = []
    where = ", ".join(map(str, paths))
    for path in paths:
        path_rows, path_others = _read(path)
        if not path_rows and not path_others:
            raise UsageError(
                f"{path} has no results that a fit accepts; give results of {', '.join(ACCEPTED)}"
            )
        rows += path_rows
        others += path_others
    if len(rows) > 1 or (model is not None and rows):
        rows = [ageing_rows.select_row(rows, model, where)]
    if model is not None:
        others = [one for one in others if not one.model or model.lower() in one.model.lower()]
        if not rows and not others:
            raise UsageError(f"{where} has no results of {model}; leave --model out")
    check_agreement(others, rows)
    return Results(rows[0] if rows else None, tuple(others))


def read_ageing(path: Path, model: str | None = None) -> AgeingRow:
    """The ageing row in a run folder or a table; `model` selects one of several drives.

    Raises:
        UsageError: no row, or several and no model.
    """
    return ageing_rows.select_row(_read(path)[0], model, str(path))


def published_rows() -> dict[str, AgeingRow]:
    """The published ageing rows that ssdlab ships, by the name of the drive's profile."""
    path = profiles.tables() / "aging.toml"
    table = tomllib.loads(path.read_text(encoding="utf-8"))["aging"]
    rows = ageing_rows.of_toml(table, path)
    return {drive["twin"]: row for drive, row in zip(table["drive"], rows, strict=True)}


def _read(path: Path) -> tuple[list[AgeingRow], list[Measurement]]:
    if path.is_dir() or path.suffix not in {".csv", ".toml"}:
        return _read_runs(read_runs(path))
    try:
        if path.suffix == ".csv":
            name, lines = from_csv(path)
            if name == "aging":
                return [ageing_rows.of_csv(lines, path)], []
            return [], [Measurement(name, "", str(path), tuple(cells_of(name, lines)))]
        tables = tomllib.loads(read_text(path))
    except (OSError, ValueError) as error:  # tomllib's and UTF-8's errors are ValueErrors
        raise UsageError(f"{path}: cannot read results ({error}); {HINT}") from error
    accepted = ("aging", *sorted([*FINDINGS, iocost.NAME]))
    unknown = next((name for name in tables if name not in accepted), None)
    if unknown is not None:
        raise UsageError(f"{path}: unknown table [{unknown}]; it must be {', '.join(accepted)}")
    rows = ageing_rows.of_toml(tables["aging"], path) if "aging" in tables else []
    others = [from_toml(name, tables[name], path) for name in tables if name in FINDINGS]
    if iocost.NAME in tables:
        others.append(iocost.from_toml(tables[iocost.NAME], path))
    return rows, others


def _read_runs(runs: Iterable[Run]) -> tuple[list[AgeingRow], list[Measurement]]:
    rows: list[AgeingRow] = []
    others: list[Measurement] = []
    for run in runs:
        name, result = run.manifest.experiment, run.result
        if name == "aging":
            row = ageing_rows.of_run(run, _model_of(run))
            rows.append(replace(row, capacity_bytes=_capacity_of(run)))
        elif name in EXPERIMENTS:
            run_cells = measured_cells(name, result.measures)
            where = _model_of(run), str(run.folder)
            parameters = {**drive_of(run), **result.parameters, "job_texts": _read_jobs(run)}
            if name in _WRITES_IN_A_REGION:
                _refuse_large_region(run, parameters)
            others.append(Measurement(name, *where, run_cells, result.findings, parameters))
    return rows, others


def _refuse_large_region(run: Run, parameters: dict[str, Any]) -> None:
    region, drive = (parameters.get(name) for name in ("size_mib", "drive_mib"))
    if region and drive and region > REGION_SHARE_MAX * drive:
        name, most = run.manifest.experiment, format_size(int(REGION_SHARE_MAX * drive) << 20)
        raise UsageError(
            f"{run.folder}: {name} wrote {format_size(region * MIB)} of a drive of "
            f"{format_size(drive * MIB)}, so garbage collection slowed it, which a fit does not "
            f"model; run {name} again with --size of at most {most}, or leave this run out"
        )


def _read_jobs(run: Run) -> dict[str, str]:
    """The jobs of a workload that a candidate can repeat, by name, as JSON; {} for others.

    They only read, as fast as possible and not through the page cache. The rate of writes depends
    on earlier writes, which a job does not show.
    """
    if run.manifest.experiment != "workload":
        return {}
    steps = run.tables["steps"].to_pylist()
    jobs = {}
    for row in steps:
        if row["phase"] == "job" and row["job"] and _is_direct(row["opened"]):
            job = decode(row["job"], Job)
            if job.op == "read" and job.arrival == "closed":
                jobs[row["case"]] = row["job"]
    return jobs


def _is_direct(opened: str | None) -> bool:
    return opened is None or decode(opened, RealOptions).direct


def drive_of(run: Run) -> dict[str, Any]:
    """The drive's interface, capacity, and measured capacity in MiB, if the run records them.

    A twin may be scaled: `drive_mib` is its scaled capacity, `capacity_bytes` that of the profile.
    """
    device: Any = run.manifest.device
    drive: Any = (device.get("drives") or ({},))[0]
    size = device.get("capacity_bytes") or drive.get("size_bytes")
    interface = device.get("interface") or drive.get("transport")
    capacity = _capacity_of(run)
    return {
        **({"drive_mib": size / (1 << 20)} if size else {}),
        **({"capacity_bytes": capacity} if capacity else {}),
        **({"interface": interface} if interface else {}),
    }


def _capacity_of(run: Run) -> int | None:
    """The capacity of the drive, or of the twin before scaling; None if not known."""
    manifest = run.manifest
    if manifest.virtual:
        profile = manifest.profile
        return int(describe_twin("the run's", profile)["capacity_bytes"]) if profile else None
    drives: Any = manifest.device.get("drives") or ()
    sizes = {drive.get("size_bytes") for drive in drives}
    return sizes.pop() if len(sizes) == 1 else None


def _model_of(run: Run) -> str:
    """The drive's model name; empty if the run does not record it."""
    drives: Any = run.manifest.device.get("drives") or ({},)
    return str(run.manifest.device.get("model") or drives[0].get("model") or "")


@dataclass(frozen=True)
class FitInput:
    """All results of a drive, and which of them the fit uses.

    `kept_row` is the part of the ageing row that the fit uses. `held_out` lists `EXPERIMENT` or
    `EXPERIMENT:WORD`, where WORD is a part of a cell's label.
    """

    others: tuple[Measurement, ...] = ()
    row: AgeingRow | None = None
    kept_row: AgeingRow | None = None
    held_out: tuple[str, ...] = ()

    @property
    def experiments(self) -> list[str]:
        """The experiments that have results, without duplicates."""
        names = [] if self.row is None else ["aging"]
        return list(dict.fromkeys([*names, *(results.experiment for results in self.others)]))

    @property
    def drive_name(self) -> str:
        """The name of the drive, or of the file of an ageing row; "" if neither is known."""
        models = [results.model for results in self.others if results.model]
        models += [] if self.row is None else [self.row.model]
        return models[0] if models else ""

    @property
    def capacity_bytes(self) -> int | None:
        """The capacity of the drive; None if no result has it.

        Raises:
            UsageError: the results are of drives of different capacities.
        """
        of_runs = {one.where: one.parameters.get("capacity_bytes") for one in self.others}
        if self.row is not None:
            of_runs[self.row.where] = self.row.capacity_bytes
        known = {size: where for where, size in of_runs.items() if size}
        if len(known) > 1:
            each = " and ".join(f"{size} bytes in {where}" for size, where in known.items())
            raise UsageError(f"the results are of drives of {each}; give those of one")
        return next(iter(known), None)

    @property
    def label(self) -> str:
        """A short description of the results, for a profile's `source`."""
        if self.row is not None and not self.others:
            return f"the ageing row of {self.row.model}"
        return ", ".join(self.experiments) + (f" of {self.drive_name}" if self.drive_name else "")

    @property
    def fitted_others(self) -> list[Measurement]:
        """The results other than ageing, without the values that are held out."""
        return [
            replace(
                one,
                cells=tuple(c for c in one.cells if not self.is_held_out(one.experiment, c)),
            )
            for one in self.others
        ]

    def is_held_out(self, experiment: str, cell: Cell) -> bool:
        """Whether a value is held out of the fit."""
        for text in self.held_out:
            name, _, word = text.partition(":")
            if name == experiment and word in cell.label:
                return True
        return False


def hold_out(results: Results, options: Sequence[str]) -> FitInput:
    """The results with the `--hold-out` options applied.

    Raises:
        UsageError: an option matches no result.
    """
    row, held_out = results.ageing, []
    kept = row
    for text in options:
        if row is not None and text.startswith(AGING):
            kept = row.without(_parse_amounts(text, row))
        else:
            held_out.append(text)
    fit_input = FitInput(results.others, row, kept, tuple(held_out))
    for text in held_out:
        _require_match(text, fit_input)
    return fit_input


def _require_match(text: str, fit_input: FitInput) -> None:
    name = text.partition(":")[0]
    matching = [results for results in fit_input.others if results.experiment == name]
    cells = [cell for results in matching for cell in results.cells]
    if any(fit_input.is_held_out(name, cell) for cell in cells):
        return
    rows = f"; the rows of {name} are {'; '.join(cell.label for cell in cells)}" if cells else ""
    allowed = [] if fit_input.row is None else ["aging:AMOUNTS"]
    allowed += dict.fromkeys(results.experiment for results in fit_input.others if results.cells)
    if not allowed:
        raise UsageError(f"--hold-out is {text}, but these results have no rows; leave it out")
    raise UsageError(
        f"--hold-out is {text}; it must be {', '.join(allowed)}, or EXPERIMENT:WORD with a word of "
        f"its rows{rows}"
    )


def _parse_amounts(text: str, row: AgeingRow) -> tuple[float, ...]:
    """The amounts in MiB of `aging:A,B`."""
    known = ",".join(f"{mib:g}" for mib in row.written_mib[1:])
    message = f"--hold-out is {text}; it must be aging: and some of {known}, as in {AGING}{known}"
    try:
        amounts = tuple(float(amount) for amount in text.removeprefix(AGING).split(","))
    except ValueError as error:
        raise UsageError(message) from error
    if not set(amounts) <= set(row.written_mib[1:]):
        raise UsageError(message)
    return amounts
