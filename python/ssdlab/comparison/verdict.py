"""Faster, slower, or no difference shown: what the numbers of several sides come to together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ssdlab.comparison.method import Difference, check
from ssdlab.comparison.numbers import MARGIN, Number, numbers
from ssdlab.comparison.sense import NONE_SHOWN, sense_of
from ssdlab.comparison.side import Side
from ssdlab.errors import UsageError
from ssdlab.stats.shift import holm

LEVEL: Final = 0.05
NOT_JUDGED: Final = "not judged"
_WORDS: Final = ("faster", "slower", "better", "worse", "higher", "lower")


@dataclass(frozen=True)
class Judged:
    """A number, its chance of error adjusted for all numbers of the comparison, and the word."""

    number: Number
    p_holm: float | None
    verdict: str


@dataclass(frozen=True)
class Compared:
    """A side against the first: every number, and a word and a sentence for all of them."""

    side: Side
    judged: tuple[Judged, ...]
    verdict: str
    sentence: str


@dataclass(frozen=True)
class Comparison:
    """Sides, the first being what the others are compared with, and what differs in the method."""

    sides: tuple[Side, ...]
    differences: tuple[Difference, ...]
    others: tuple[Compared, ...]

    @property
    def count(self) -> int:
        """How many numbers were judged by chance, and adjusted for one another."""
        return sum(each.p_holm is not None for other in self.others for each in other.judged)


def compare(sides: Sequence[Side], *, settings: bool = False) -> Comparison:
    """Checks the method, then compares each side with the first.

    Raises:
        UsageError: as `method.check`, or nothing that both sides measured.
    """
    differing = check(sides, settings=settings)
    first = sides[0]
    found = [numbers(first, other) for other in sides[1:]]
    for other, mine in zip(sides[1:], found, strict=True):
        if not mine:
            raise UsageError(
                f"{first.name} and {other.name} have no number in common; give runs that came to "
                "their end"
            )
    every = [each.p for mine in found for each in mine]
    adjusted = iter(holm([p for p in every if p is not None]))
    others = []
    for other, mine in zip(sides[1:], found, strict=True):
        judged = tuple(_judged(each, None if each.p is None else next(adjusted)) for each in mine)
        word = _together(judged)
        others.append(Compared(other, judged, word, _sentence(first, other, judged, word)))
    return Comparison(tuple(sides), tuple(differing), tuple(others))


def _judged(number: Number, p_holm: float | None) -> Judged:
    contrast = number.contrast
    if contrast.ratio is None or (p_holm is None and not number.exact):
        return Judged(number, p_holm, NOT_JUDGED)
    small = 1 / MARGIN <= contrast.ratio <= MARGIN
    if small or (p_holm is not None and p_holm > LEVEL):
        return Judged(number, p_holm, NONE_SHOWN)
    sense = sense_of(contrast.name, contrast.unit)
    return Judged(number, p_holm, sense.more if contrast.ratio > 1 else sense.less)


def _together(judged: Sequence[Judged]) -> str:
    """Speeds decide; where none differs, what else differs."""
    words = {each.verdict for each in judged}
    if words == {NOT_JUDGED}:
        return NOT_JUDGED
    for pair in (("faster", "slower"), ("better", "worse"), ("higher", "lower")):
        found = [word for word in pair if word in words]
        if found:
            return " and ".join(found) if len(found) == 2 else found[0]
    return NONE_SHOWN


def _sentence(first: Side, other: Side, judged: Sequence[Judged], word: str) -> str:
    count = Counter(each.verdict for each in judged)
    if word == NOT_JUDGED:
        return (
            f"{other.name} and {first.name}: not judged, for nothing tells how much chance makes; "
            "give several runs of each, or compare with --interleave."
        )
    if word == NONE_SHOWN:
        many = count[NONE_SHOWN]
        numbers_ = "the number" if many == 1 else f"{many} numbers"
        return f"{other.name} and {first.name}: no difference shown in {numbers_}."
    told = [f"{each} in {count[each]}" for each in _WORDS if count[each]]
    rest = f", no difference shown in {count[NONE_SHOWN]}" if count[NONE_SHOWN] else ""
    of = f" of {len(judged) - count[NOT_JUDGED]} numbers"
    return f"{other.name} against {first.name}: {', '.join(told)}{rest}{of}; {_largest(judged)}."


def _largest(judged: Sequence[Judged]) -> str:
    """The number that says most: the largest factor among those that decided."""
    decided = [each for each in judged if each.verdict in _WORDS[:2]]
    decided = decided or [each for each in judged if each.verdict in _WORDS]
    most = max(decided, key=lambda each: max(_ratio(each), 1 / _ratio(each)))
    contrast = most.number.contrast
    named = f"{contrast.case}: {contrast.name}" if contrast.case else contrast.name
    bounds = ""
    if contrast.low is not None and contrast.high is not None:
        bounds = f" ({contrast.low:.3g} to {contrast.high:.3g})"
    return f"most in {named}, {_ratio(most):.3g} times{bounds}"


def _ratio(judged: Judged) -> float:
    assert judged.number.contrast.ratio is not None
    return judged.number.contrast.ratio
