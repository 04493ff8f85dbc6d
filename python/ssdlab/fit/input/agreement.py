"""Whether results can be of one drive: the same number twice, a stripe that is no whole, two names.

What cannot both be is refused in one line before anything is fitted: a fit would put itself
between two drives, and be neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from ssdlab.errors import UsageError
from ssdlab.fit.ageing import Ageing
from ssdlab.fit.measured import Measured

APART: Final = 1.5
"""The same number from two runs may differ by this factor: hosts and states differ."""
EXACT: Final = frozenset({"chunk_kib", "stripe_kib", "units"})
_UNLIKE: Final = frozenset({"iops", "fresh_iops", "refill_s", "penalty"})
"""Findings that depend on how the experiment was asked."""


def check_agreement(results: Sequence[Measured], rows: Sequence[Ageing] = ()) -> None:
    """Refuses results and ageing rows that cannot be of one drive.

    Raises:
        UsageError: which two results contradict each other.
    """
    named = [(each.model, each.where) for each in results if each.model]
    named += [(row.drive, row.where) for row in rows if row.drive]
    for one, other in pairwise(named):
        if not _may_be_one(one[0], other[0]):
            raise UsageError(
                f"the results are of two drives, {one[0]} in {one[1]} and {other[0]} in "
                f"{other[1]}; give those of one"
            )
    for each in results:
        _check_stripe(each)
        _check_rows(each, each)
    for first, second in _pairs(results):
        _check_numbers(first, second)


def _may_be_one(one: str, other: str) -> bool:
    """Names by different hands: one may be a part of the other."""
    one, other = one.lower(), other.lower()
    return one in other or other in one


def _pairs(results: Sequence[Measured]) -> Iterator[tuple[Measured, Measured]]:
    for n, one in enumerate(results):
        for other in results[n + 1 :]:
            if one.experiment == other.experiment:
                yield one, other


def _check_stripe(results: Measured) -> None:
    chunk, stripe, units = (results.number(x) for x in ("chunk_kib", "stripe_kib", "units"))
    if None not in {chunk, stripe, units} and chunk and units and chunk * units != stripe:
        raise UsageError(
            f"{results.where}: a stripe of {stripe:g} KiB is not {units:g} chunks of {chunk:g} "
            "KiB; correct one of the three"
        )


def _check_numbers(one: Measured, other: Measured) -> None:
    for name in sorted(set(one.findings) & set(other.findings) - _UNLIKE):
        first, second = one.findings[name].value, other.findings[name].value
        if isinstance(first, str) and isinstance(second, str) and first != second:
            raise UsageError(_sentence(name, (first, second), one, other))
        below, above = one.number(name), other.number(name)
        if below is None or above is None or min(below, above) <= 0:
            continue
        if max(below, above) / min(below, above) > (1.0 if name in EXACT else APART):
            raise UsageError(_sentence(name, (f"{below:g}", f"{above:g}"), one, other))
    _check_rows(one, other)


def _check_rows(one: Measured, other: Measured) -> None:
    """The same case in both, or twice in one: the first of each counts."""
    values = {cell.key: cell for cell in reversed(one.cells)}
    for cell in other.cells:
        if (twin := values.get(cell.key)) is None or min(twin.value, cell.value) <= 0:
            continue
        if max(twin.value / cell.value, cell.value / twin.value) > APART**2:
            both = (f"{twin.value:.4g}", f"{cell.value:.4g}")
            raise UsageError(_sentence(f"{cell.name} of {cell.label}", both, one, other))


def _sentence(what: str, both: tuple[str, str], one: Measured, other: Measured) -> str:
    there = "there again" if one.where == other.where else f"in {other.where}"
    return (
        f"{one.experiment}: {what} is {both[0]} in {one.where} and {both[1]} {there}; "
        "both cannot be of one drive in one state, leave one out"
    )
