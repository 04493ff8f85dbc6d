"""Values of a drive's results, and the same on a twin: what a fit used, and what tests it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ssdlab.analysis.cells import Cell
from ssdlab.analysis.evidence import Conclusion
from ssdlab.errors import TargetError
from ssdlab.fit import iocost
from ssdlab.fit.ageing import FINAL_FILE, SCALED_FILE, AgeingRow, twin_seconds
from ssdlab.fit.measurement import CellKey, Measurement
from ssdlab.fit.objective import (
    CAPACITY,
    Effort,
    Objective,
    experiment_objective,
    measure_cache,
    measure_spare,
)
from ssdlab.fit.results import FitInput

SPARE_CHECK_MAX: Final = 4 * CAPACITY
"""Largest drive (in bytes) whose spare is checked: `steady` finds less spare on a small twin."""
FITTED, HELD_OUT, NOT_FITTED = "", "held out", "not fitted"


@dataclass(frozen=True)
class Check:
    """A value measured on the drive and on the twin; `note` says whether the fit used it."""

    experiment: str
    cell: Cell
    twin: float
    note: str

    @property
    def error(self) -> float:
        """Relative error: positive where the twin's value is larger."""
        return self.twin / self.cell.value - 1.0


def ageing_objective(row: AgeingRow) -> Objective:
    """The objective of an ageing row.

    The first search uses half the usual file size, unless the drive has too many dies for so small
    a twin.
    """
    written = [sum(row.written_mib[:n]) for n in range(len(row.seconds))]
    times = zip(written, row.seconds, strict=True)
    row_cells = tuple(Cell((mib,), "read_s", seconds, unit="s") for mib, seconds in times)
    sizes = {
        Effort.ROUGH: SCALED_FILE // 2,
        Effort.FINE: SCALED_FILE,
        Effort.FINAL: FINAL_FILE,
    }

    def measure_twin(profile: str, effort: Effort) -> dict[CellKey, float]:
        try:
            seconds = twin_seconds(profile, row, size=sizes[effort])
        except TargetError:
            if effort is not Effort.ROUGH:
                raise
            seconds = twin_seconds(profile, row, size=sizes[Effort.FINE])
        return {cell.key: float(s) for cell, s in zip(row_cells, seconds, strict=True)}

    return Objective("aging", row_cells, measure_twin, row.sigma)


def check_profile(profile: str, fit_input: FitInput) -> list[Check]:
    """Compares a profile's twin with results, without a fit."""
    objectives = list(objectives_of(profile, fit_input))
    return [
        *check_cells(profile, objectives, cached=False),
        *check_findings(profile, fit_input.others),
    ]


def objectives_of(profile: str, fit_input: FitInput) -> Iterator[tuple[Objective, Objective]]:
    """Each objective twice: with all values that a twin can produce, and with the fitted ones."""
    if fit_input.row is not None and fit_input.kept_row is not None:
        yield ageing_objective(fit_input.row), ageing_objective(fit_input.kept_row)
    for results in fit_input.others:
        is_rates = results.experiment == iocost.NAME
        objective = iocost.objective(results) if is_rates else experiment_objective(results)
        if objective is not None:
            whole = objective.select(np.isfinite(objective.simulate(profile)))
            held = [fit_input.is_held_out(results.experiment, cell) for cell in whole.cells]
            yield whole, whole.select(~np.array(held, dtype=np.bool_))


def check_cells(
    text: str, objectives: Sequence[tuple[Objective, Objective]], *, cached: bool
) -> Iterator[Check]:
    """The values of each objective, with those of the twin; `cached` as in `is_left_out`."""
    for whole, kept in objectives:
        if cached and whole.experiment == "steady":
            continue  # a small candidate cannot show them
        effort = Effort.FINAL if whole.experiment == "aging" else Effort.FINE
        fitted = {cell.key for cell in kept.cells}
        for cell, twin in zip(whole.cells, whole.simulate(text, effort), strict=True):
            note = FITTED if cell.key in fitted else HELD_OUT
            if note == FITTED and is_left_out(whole, kept, cell, cached=cached):
                note = NOT_FITTED
            yield Check(whole.experiment, cell, float(twin), note)


def is_left_out(whole: Objective, kept: Objective, cell: Cell, *, cached: bool) -> bool:
    """Whether the fit leaves a value out.

    Some of iocost's follow from others. How fast random writes are on a drive that has just been
    filled depends on what its SLC cache still holds, which a small candidate does not show.
    """
    if whole.experiment == iocost.NAME:
        return cell.case[0] not in iocost.used([str(one.case[0]) for one in kept.cells])
    return cached and whole.experiment == "steady"


def check_findings(text: str, others: Sequence[Measurement]) -> Iterator[Check]:
    """Compares buffer, spare and steady-state rate of the fitted twin with the drive's."""
    for results in others:
        if results.experiment == "cache":
            yield from _compare(results, measure_cache(text), {"buffer_mib": FITTED})
        elif results.experiment == "steady" and _is_small(results):
            notes = {"hidden_spare": FITTED, "iops": NOT_FITTED}
            yield from _compare(results, measure_spare(text), notes)


def _compare(
    results: Measurement, conclusion: Conclusion, notes: Mapping[str, str]
) -> Iterator[Check]:
    """A check for each finding in `notes` that both the drive and the twin have."""
    for name, note in notes.items():
        measured, twin = results.number(name), conclusion.findings.get(name)
        if measured and twin is not None and isinstance(twin.value, float):
            cell = Cell((), name, measured, unit=results.findings[name].unit)
            yield Check(results.experiment, cell, twin.value, note)


def _is_small(results: Measurement) -> bool:
    drive_mib = results.parameters.get("drive_mib")
    return drive_mib is not None and drive_mib * 2**20 <= SPARE_CHECK_MAX
