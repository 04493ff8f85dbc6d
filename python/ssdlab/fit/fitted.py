"""`Fitted`: a twin made from a drive's results, how sure its numbers are, and how well it does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ssdlab.analysis.cells import Cell
from ssdlab.analysis.evidence import Conclusion
from ssdlab.errors import UsageError
from ssdlab.fit.ageing import Ageing
from ssdlab.fit.direct_estimates import Inferred, applied, begin, refined
from ssdlab.fit.measured import Measured
from ssdlab.fit.objective import (
    CAPACITY,
    FINE,
    LAST,
    Exam,
    Floats,
    buffer_and_rate,
    hidden_spare,
    of_ageing,
    of_measured,
)
from ssdlab.fit.parameters import Freedom, Scale, freedom_of
from ssdlab.fit.search import Bounds, Listener, Solved, bounds, candidate, search
from ssdlab.profiles.toml_edit import number, restored

SAME: Final = 0.01
"""A factor so near to one (its logarithm) is none: the number stays as it was."""
SMALL: Final = 4 * CAPACITY
"""Of a larger drive the candidate's own spare looks smaller than it is: no row for that."""
FITTED, HELD_OUT, NOT_FITTED = "", "held out", "not fitted"


@dataclass(frozen=True)
class Parameter:
    """A number of the profile: start, value, 95 % interval; `told`: the results determine it."""

    key: str
    start: Any
    value: Any
    low: Any
    high: Any
    told: bool


@dataclass(frozen=True)
class Check:
    """A cell of the drive and what the twin makes of it; `note` says whether it was fitted to."""

    experiment: str
    cell: Cell
    twin: float
    note: str

    @property
    def error(self) -> float:
        """Relative: above zero where the twin has more."""
        return self.twin / self.cell.value - 1.0


@dataclass(frozen=True)
class Fitted:
    """What a fit gives."""

    profile: str
    parameters: tuple[Parameter, ...]
    checks: tuple[Check, ...]

    @property
    def answers(self) -> Floats:
        """What the twin measures, check by check."""
        return np.array([check.twin for check in self.checks])

    @property
    def errors(self) -> Floats:
        """Relative errors of the checks."""
        return np.array([check.error for check in self.checks])


@dataclass(frozen=True)
class Sheet:
    """All results of a drive that a fit starts from; `held` are held out.

    `ageing` is the whole row and what of it is kept. `held` has `EXPERIMENT` or
    `EXPERIMENT:CASE`, where CASE is a part of a cell's label.
    """

    ageing: tuple[Ageing, Ageing] | None
    others: tuple[Measured, ...]
    held: tuple[str, ...] = ()

    @property
    def experiments(self) -> list[str]:
        """Their names, each once."""
        names = [] if self.ageing is None else ["aging"]
        return list(dict.fromkeys([*names, *(each.experiment for each in self.others)]))

    def holds_out(self, experiment: str, cell: Cell) -> bool:
        """Whether a cell is kept from the fit."""
        for each in self.held:
            name, _, case = each.partition(":")
            if name == experiment and case in cell.label:
                return True
        return False


def fit_ageing(profile: str, row: Ageing, kept: Ageing, source: str, told: Listener) -> Fitted:
    """Fits a profile's text to `kept`, the whole row or its beginning, and checks it on `row`.

    Raises:
        UsageError: as `fit`.
    """
    return fit(profile, Sheet((row, kept), ()), source, told)


def fit(profile: str, sheet: Sheet, source: str, told: Listener) -> Fitted:
    """Fits a profile's text to all results that are not held out, and checks it on all.

    First come the numbers that an experiment's own inference tells, then the search, then buffer
    and spare, which the finished candidate is asked for. `source` names the fit and its day; it
    stands at each number that was changed.

    Raises:
        UsageError: the profile cannot be started from, or a twin gives no such results.
    """
    known = {each.key: each for each in begin(profile, sheet.others)}
    begun = applied(profile, list(known.values()), source)
    exams = list(_exams(begun, sheet))
    if not known and not any(whole.cells for whole, _ in exams):
        raise UsageError(
            f"none of these results ({', '.join(sheet.experiments)}) is one that a twin gives; "
            "give rows or findings as `ssdlab run --json` names them"
        )
    freedom = freedom_of(begun, sheet.experiments, known)
    found = search(begun, [kept for _, kept in exams if kept.cells], freedom, told)
    text = _written(begun, freedom, found[0], source)
    known |= {each.key: each for each in refined(text, sheet.others)}
    text = applied(text, list(known.values()), source)
    parameters = [_known(profile, each) for each in known.values()]
    parameters += [_parameter(begun, text, freedom, each) for each in bounds(freedom, found)]
    checks = [*_checks(text, exams), *_checks_of_findings(text, sheet.others)]
    return Fitted(text, tuple(parameters), tuple(checks))


def _exams(profile: str, sheet: Sheet) -> Iterator[tuple[Exam, Exam]]:
    """Each exam with all its cells that a twin answers, and with those that are kept."""
    if sheet.ageing is not None:
        row, kept = sheet.ageing
        yield of_ageing(row), of_ageing(kept)
    for results in sheet.others:
        exam = of_measured(results)
        if exam is not None:
            whole = exam.only(np.isfinite(exam.answers(profile)))
            held = [sheet.holds_out(results.experiment, cell) for cell in whole.cells]
            yield whole, whole.only(~np.array(held, dtype=np.bool_))


def _checks(text: str, exams: Sequence[tuple[Exam, Exam]]) -> Iterator[Check]:
    for whole, kept in exams:
        effort = LAST if whole.experiment == "aging" else FINE
        fitted = {cell.key for cell in kept.cells}
        for cell, twin in zip(whole.cells, whole.answers(text, effort), strict=True):
            note = FITTED if cell.key in fitted else HELD_OUT
            yield Check(whole.experiment, cell, float(twin), note)


def _checks_of_findings(text: str, others: Sequence[Measured]) -> Iterator[Check]:
    """What the finished twin shows of buffer, spare and lasting rate, by the same experiments."""
    for results in others:
        if results.experiment == "cache":
            yield from _same(results, buffer_and_rate(text), {"buffer_mib": FITTED})
        elif results.experiment == "steady" and _is_small(results):
            asked = {"hidden_spare": FITTED, "iops": NOT_FITTED}
            yield from _same(results, hidden_spare(text), asked)


def _same(results: Measured, answer: Conclusion, asked: Mapping[str, str]) -> Iterator[Check]:
    for name, note in asked.items():
        seen, twin = results.number(name), answer.findings.get(name)
        if seen and twin is not None and isinstance(twin.value, float):
            cell = Cell((), name, seen, unit=results.findings[name].unit)
            yield Check(results.experiment, cell, twin.value, note)


def _is_small(results: Measured) -> bool:
    drive_mib = results.parameters.get("drive_mib")
    return drive_mib is not None and drive_mib * 2**20 <= SMALL


def _written(profile: str, freedom: Freedom, solved: Solved, source: str) -> str:
    """The profile with what the fit changed; what it left as it was keeps its source."""
    text = candidate(profile, freedom, solved, source)
    for choice, value in zip(freedom.choices, solved.choices, strict=True):
        if value == number(profile, choice.key):
            text = restored(text, profile, choice.key)
    for scale, factor in zip(freedom.scales, solved.factors, strict=True):
        if abs(factor) < SAME:
            text = restored(text, profile, scale.key)
    return text


def _known(start: str, found: Inferred) -> Parameter:
    was = number(start, found.key)
    return Parameter(found.key, was, found.value, found.low, found.high, found.told)


def _parameter(start: str, text: str, freedom: Freedom, found: Bounds) -> Parameter:
    """Bounds in the profile's own words: factors become numbers with units."""
    low, high = found.low, found.high
    scale = next((each for each in freedom.scales if each.key == found.key), None)
    if isinstance(scale, Scale):
        low, high = (number(scale.apply(start, end), found.key) for end in (low, high))
    return Parameter(
        found.key, number(start, found.key), number(text, found.key), low, high, found.told
    )
