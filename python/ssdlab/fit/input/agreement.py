"""Refuses results that cannot be of one drive in one state, before anything is fitted.

Otherwise the fit would be a compromise between two drives.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import Final

from ssdlab.errors import UsageError
from ssdlab.fit.ageing import AgeingRow
from ssdlab.fit.measurement import Measurement

MAX_RATIO: Final = 1.5
"""Two runs of one drive may differ by this factor: hosts and drive states differ."""
EXACT: Final = frozenset({"chunk_kib", "stripe_kib", "units"})
_NOT_COMPARABLE: Final = frozenset({"iops", "fresh_iops", "refill_s", "penalty"})
"""Findings that depend on the options of the run."""


def check_agreement(results: Sequence[Measurement], rows: Sequence[AgeingRow] = ()) -> None:
    """Refuses results and ageing rows that cannot be of one drive.

    Raises:
        UsageError: names the two results that contradict each other.
    """
    models = [(one.model, one.where) for one in results if one.model]
    models += [(row.drive, row.where) for row in rows if row.drive]
    for one, other in pairwise(models):
        if not _may_be_one_model(one[0], other[0]):
            raise UsageError(
                f"the results are of two drives, {one[0]} in {one[1]} and {other[0]} in "
                f"{other[1]}; give those of one"
            )
    for measurement in results:
        _check_stripe(measurement)
        _check_cells(measurement, measurement)
    for first, second in combinations(results, 2):
        if first.experiment == second.experiment:
            _check_findings(first, second)
            _check_cells(first, second)


def _may_be_one_model(one: str, other: str) -> bool:
    """Whether one name contains the other: sources shorten model names."""
    one, other = one.lower(), other.lower()
    return one in other or other in one


def _check_stripe(results: Measurement) -> None:
    chunk, stripe, units = (results.number(x) for x in ("chunk_kib", "stripe_kib", "units"))
    if None not in {chunk, stripe, units} and chunk and units and chunk * units != stripe:
        raise UsageError(
            f"{results.where}: a stripe of {stripe:g} KiB is not {units:g} chunks of {chunk:g} "
            "KiB; correct one of the three"
        )


def _check_findings(one: Measurement, other: Measurement) -> None:
    for name in sorted(set(one.findings) & set(other.findings) - _NOT_COMPARABLE):
        first, second = one.findings[name].value, other.findings[name].value
        if isinstance(first, str) and isinstance(second, str) and first != second:
            raise UsageError(_contradiction(name, (first, second), one, other))
        low, high = one.number(name), other.number(name)
        if low is None or high is None or min(low, high) <= 0:
            continue
        if max(low, high) / min(low, high) > (1.0 if name in EXACT else MAX_RATIO):
            raise UsageError(_contradiction(name, (f"{low:g}", f"{high:g}"), one, other))


def _check_cells(one: Measurement, other: Measurement) -> None:
    """Compares cells of the same case; `other` is `one` if a table has a case twice."""
    first_cells = {cell.key: cell for cell in reversed(one.cells)}
    for cell in other.cells:
        if (first := first_cells.get(cell.key)) is None or min(first.value, cell.value) <= 0:
            continue
        if max(first.value / cell.value, cell.value / first.value) > MAX_RATIO**2:
            values = (f"{first.value:.4g}", f"{cell.value:.4g}")
            raise UsageError(_contradiction(f"{cell.name} of {cell.label}", values, one, other))


def _contradiction(name: str, values: tuple[str, str], one: Measurement, other: Measurement) -> str:
    where = "in another row" if one.where == other.where else f"in {other.where}"
    return (
        f"{one.experiment}: {name} is {values[0]} in {one.where} and {values[1]} {where}; "
        "these cannot be one drive in one state, leave one out"
    )
