"""The verdicts of a comparison: faster, slower, or no difference shown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ssdlab.comparison.method import Difference, Side, check
from ssdlab.comparison.numbers import MARGIN, Number, numbers
from ssdlab.errors import UsageError
from ssdlab.records import Run
from ssdlab.report.group import contrast_label
from ssdlab.stats.shift import holm

LEVEL: Final = 0.05
NONE_SHOWN: Final = "no difference shown"
NOT_JUDGED: Final = "not judged"
_WORDS: Final = ("faster", "slower", "better", "worse", "higher", "lower")


class Direction(NamedTuple):
    """The verdicts, such as "faster", for a value above and below that of the first side."""

    above: str
    below: str


RATE: Final = Direction("faster", "slower")
TIME: Final = Direction("slower", "faster")
COST: Final = Direction("worse", "better")
NEUTRAL: Final = Direction("higher", "lower")

_TIME_NAME: Final = re.compile(r"(?:^|.*_)(?:ns|us|ms|s)(?:_(?:p\d+|mean|max|all))?")
_TIME_UNITS: Final = frozenset({"ns", "us", "ms", "s", "min"})
_DIRECTIONS: Final = {
    **dict.fromkeys(("slowdown", "waf", "split_penalty", "penalty", "iops_cv"), COST),
    "mean": RATE,  # of the suite; its access times have a unit
}


@dataclass(frozen=True)
class NumberVerdict:
    """A number with its verdict; `p_holm` is p adjusted for all tests in the comparison."""

    number: Number
    p_holm: float | None
    verdict: str


@dataclass(frozen=True)
class SideVerdict:
    """A side compared with the first: its numbers, the verdict, and a sentence on it."""

    side: Side
    numbers: tuple[NumberVerdict, ...]
    verdict: str
    sentence: str


@dataclass(frozen=True)
class Comparison:
    """The compared sides; the first is the reference, `others` has the verdicts on the others."""

    sides: tuple[Side, ...]
    differences: tuple[Difference, ...]
    others: tuple[SideVerdict, ...]

    @property
    def count(self) -> int:
        """The number of tests that p was adjusted for."""
        return sum(one.p_holm is not None for other in self.others for one in other.numbers)


def compare(sides: Sequence[Side], *, settings: bool = False) -> Comparison:
    """Check that the methods agree, then compare each side with the first.

    Raises:
        UsageError: as `method.check`; or the sides have no number in common.
    """
    differences = check(sides, settings=settings)
    first = sides[0]
    shared = [numbers(first, other) for other in sides[1:]]
    for other, common in zip(sides[1:], shared, strict=True):
        if not common:
            raise UsageError(
                f"{first.name} and {other.name} have no number in common; give complete runs"
            )
    adjusted = iter(holm([one.p for common in shared for one in common if one.p is not None]))
    others = []
    for other, common in zip(sides[1:], shared, strict=True):
        judged = tuple(_judge(one, None if one.p is None else next(adjusted)) for one in common)
        word = _overall(judged)
        others.append(SideVerdict(other, judged, word, _sentence(first, other, judged, word)))
    return Comparison(tuple(sides), tuple(differences), tuple(others))


def direction_of(name: str, unit: str) -> Direction:
    """The verdicts that suit a finding or column; `unit` is "" if the name ends in the unit."""
    if unit in _TIME_UNITS or (
        not unit and _TIME_NAME.fullmatch(name) and not name.endswith("_per_s")
    ):
        return TIME
    if name in _DIRECTIONS:
        return _DIRECTIONS[name]
    if name.startswith("slowdown"):
        return COST
    if "iops" in name or "_per_s" in name or unit in {"/s", "MiB/s"}:
        return RATE
    return NEUTRAL


def _judge(number: Number, p_holm: float | None) -> NumberVerdict:
    contrast = number.contrast
    if contrast.ratio is None or (p_holm is None and not number.exact):
        return NumberVerdict(number, p_holm, NOT_JUDGED)
    is_small = 1 / MARGIN <= contrast.ratio <= MARGIN
    if is_small or (p_holm is not None and p_holm > LEVEL):
        return NumberVerdict(number, p_holm, NONE_SHOWN)
    direction = direction_of(contrast.name, contrast.unit)
    return NumberVerdict(number, p_holm, direction.above if contrast.ratio > 1 else direction.below)


def _overall(judged: Sequence[NumberVerdict]) -> str:
    """The overall verdict: from rates and times if they differ, else costs, else other numbers."""
    words = {one.verdict for one in judged}
    if words == {NOT_JUDGED}:
        return NOT_JUDGED
    for pair in (("faster", "slower"), ("better", "worse"), ("higher", "lower")):
        present = [word for word in pair if word in words]
        if present:
            return " and ".join(present)
    return NONE_SHOWN


def _sentence(first: Side, other: Side, judged: Sequence[NumberVerdict], word: str) -> str:
    count = Counter(one.verdict for one in judged)
    if word == NOT_JUDGED:
        return (
            f"{other.name} and {first.name}: these runs do not show how much the numbers "
            "vary; give several runs of each, or compare with --interleave."
        )
    if word == NONE_SHOWN:
        total = count[NONE_SHOWN]
        amount = "the number" if total == 1 else f"{total} numbers"
        return f"{other.name} and {first.name}: no difference shown in {amount}."
    counts = [f"{one} in {count[one]}" for one in _WORDS if count[one]]
    rest = f", no difference shown in {count[NONE_SHOWN]}" if count[NONE_SHOWN] else ""
    of = f" of {len(judged) - count[NOT_JUDGED]} numbers"
    head = f"{other.name} compared with {first.name}"
    return f"{head}: {', '.join(counts)}{rest}{of}; {_largest(judged, first.runs[0])}."


def _largest(judged: Sequence[NumberVerdict], run: Run) -> str:
    """Describes the number that differs most; only a rate or time if any of them differ."""
    decisive = [one for one in judged if one.verdict in _WORDS[:2]]
    decisive = decisive or [one for one in judged if one.verdict in _WORDS]
    largest = max(decisive, key=lambda one: max(_ratio(one), 1 / _ratio(one)))
    contrast = largest.number.contrast
    bounds = ""
    if contrast.low is not None and contrast.high is not None:
        bounds = f" ({contrast.low:.3g} to {contrast.high:.3g})"
    direction = direction_of(contrast.name, contrast.unit)
    times = f"{_ratio(largest):.3g} times as {'long' if direction == TIME else 'high'}"
    return f"most in {contrast_label(contrast, run)}, {times}{bounds}"


def _ratio(judged: NumberVerdict) -> float:
    assert judged.number.contrast.ratio is not None
    return judged.number.contrast.ratio
