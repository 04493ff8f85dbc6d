"""Searches from the variants of a start profile, and intervals that include those of each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from ssdlab.errors import UsageError
from ssdlab.fit import iocost
from ssdlab.fit.direct_estimates import SLC
from ssdlab.fit.first_guess import guess
from ssdlab.fit.intervals import DETERMINED_RATIO, drop_of, estimates
from ssdlab.fit.objective import Objective
from ssdlab.fit.parameters import (
    BUFFER,
    CHUNK,
    DIES,
    DIES_PER_CHANNEL,
    INDEPENDENT,
    PAGE,
    Estimate,
    SearchSpace,
    number_of_dies,
    search_space,
)
from ssdlab.fit.results import FitInput
from ssdlab.fit.search import search
from ssdlab.fit.solving import Progress, Solution
from ssdlab.fit.variants import Variant, plane_variants, with_chunks
from ssdlab.profiles.toml_edit import get_value
from ssdlab.units import parse_size

SIZE_KEYS: Final = frozenset({PAGE, CHUNK, SLC, "flash.page"})
"""Numbers that are sizes, as text."""
SHOW_PLANES: Final = frozenset({"split", "fsync"})
"""Experiments that, with `stripe`, show planes that read independently."""


@dataclass(frozen=True)
class Searched:
    """What the search found from one start profile, and what the fit of rates changed before."""

    variant: Variant
    space: SearchSpace
    solutions: list[Solution]
    by_rates: list[Estimate]

    @property
    def start(self) -> str:
        """The profile that the factors and choices change."""
        return self.variant.start

    @property
    def cost(self) -> float:
        """That of the best solution."""
        return self.solutions[0].cost

    @property
    def shapes(self) -> dict[str, Any]:
        """What the choices of the best solution set, before the factors."""
        changes: dict[str, Any] = {}
        pairs = zip(self.space.choices, self.solutions[0].choices, strict=True)
        for choice, value in pairs:
            changes |= choice.changes(self.start, value)
        return changes

    @property
    def keys(self) -> set[str]:
        """The keys that were searched for."""
        scales, choices = self.space.scales, self.space.choices
        return {scale.key for scale in scales} | {choice.key for choice in choices}


def nearest(searched: Sequence[Searched]) -> list[Searched]:
    """The variants within the interval, the best first.

    If one of them has no SLC cache, it is the best: the results do not require a cache.
    """
    least = min(searched, key=lambda one: one.cost)
    limit = least.cost + drop_of(least.solutions[0])
    near = [one for one in searched if one.cost <= limit]
    return sorted(near, key=lambda one: (one.variant.has_cache is True, one.cost))


def intervals_of(near: Sequence[Searched]) -> Iterator[Estimate]:
    """The estimates of the best search, with intervals that include those of the others."""
    best, *others = near
    scales = {scale.key: scale for scale in best.space.scales}
    for estimate in estimates(best.space, best.solutions):
        low, high, determined = estimate.low, estimate.high, estimate.determined
        for other in others:
            for one in estimates(other.space, other.solutions):
                if one.key != estimate.key:
                    continue
                if one.key not in scales:
                    low, high = joined(one.key, (low, high, one.low, one.high))
                    determined &= one.determined and low == high
                    continue
                scale = scales[one.key]
                there, here = (scale.mean(each.start) + scale.offset for each in (other, best))
                ratio = there / here
                low, high = min(low, ratio * one.low), max(high, ratio * one.high)
                determined &= high <= DETERMINED_RATIO * low
        yield replace(estimate, low=low, high=high, determined=determined)


@dataclass(frozen=True)
class VariantSearch:
    """Searches from several variants of a start profile, for the same results."""

    objectives: Sequence[Objective]
    fit_input: FitInput
    direct: Mapping[str, Estimate]
    source: str
    progress: Progress

    def run(self, variants: Sequence[Variant]) -> list[Searched]:
        """The solutions of each variant.

        Raises:
            UsageError: a variant has no candidate that is a valid twin.
        """
        found = list[Searched]()
        for variant in variants:
            found.append(self._search(variant, min((one.cost for one in found), default=np.inf)))
        return found

    def with_independent_planes(self, best: Searched) -> list[Searched]:
        """The variants of the best in which planes read independently.

        More planes are tried only if fewer explain the results about as well as none, or better.
        """
        found = list[Searched]()
        for variant in plane_variants(best.variant, self.source):
            try:
                found.append(self._search(variant, best.cost))
            except UsageError:  # no candidate is a valid twin, but the best is one
                break
            if found[-1].cost > best.cost + drop_of(best.solutions[0]):
                break
        return found

    def _search(self, variant: Variant, rival: float) -> Searched:
        """The solutions of a variant; one without any change if there is nothing to search for."""
        space, start = self._space(variant), variant.start
        start = guess(start, self.fit_input.fitted_others, space, self.source)
        start, by_rates = _fit_rates(start, self.fit_input, self._known, self.source)
        variant = replace(variant, start=start)
        space = self._space(variant)
        if not space.scales and not space.choices:
            nothing = [Solution((), np.empty(0), np.empty(0), 0.0)]
            return Searched(variant, space, nothing, by_rates)
        solutions = search(start, self.objectives, space, self.progress, rival)
        return Searched(variant, space, solutions, by_rates)

    def _space(self, variant: Variant) -> SearchSpace:
        """What is searched for from a variant."""
        experiments = [name for name in self.fit_input.experiments if name != iocost.NAME]
        buffer = self.direct.get(BUFFER)
        sizes = None if buffer is None or buffer.determined else (buffer.low, buffer.high)
        space = search_space(variant.start, experiments, self._known, variant.sizes, sizes)
        return with_chunks(space, variant.chunks) if variant.chunks else space

    @property
    def _known(self) -> set[str]:
        """The keys with direct estimates, which are not searched for; but an unsure buffer is."""
        return {key for key, one in self.direct.items() if key != BUFFER or one.determined}


def _fit_rates(
    text: str, fit_input: FitInput, known: Collection[str], source: str
) -> tuple[str, list[Estimate]]:
    """The profile fitted to iocost's numbers, if there are any, and what that fit changed.

    The search starts there if there are other results, too. `known` numbers stay.
    """
    wanted = {
        str(cell.case[0]): cell.value
        for results in fit_input.fitted_others
        if results.experiment == iocost.NAME
        for cell in results.cells
    }
    if not wanted:
        return text, []
    names = ", ".join(iocost.used(wanted))
    rates = iocost.RatesFit(text, wanted, f"{source}: {names}", known)
    return rates.run(), rates.estimates()


def joined(key: str, ends: tuple[Any, ...]) -> tuple[Any, Any]:
    """The interval of a choice with these ends of two intervals, the better one first."""
    if key in SIZE_KEYS:
        return min(ends, key=parse_size), max(ends, key=parse_size)
    if all(isinstance(end, int | float) for end in ends):
        return min(ends), max(ends)
    values = list(dict.fromkeys(ends))  # without an order
    return values[0], values[-1]


def _chunks(searched: Searched) -> tuple[str, str]:
    """The smallest and largest chunk that explain the results."""
    found = [one for one in estimates(searched.space, searched.solutions) if one.key == CHUNK]
    own = str(get_value(searched.start, CHUNK))
    return next(((one.low, one.high) for one in found), (own, own))


def shows_planes(start: str, direct: Mapping[str, Estimate], fit_input: FitInput) -> bool:
    """Whether the results can show planes that read independently.

    The fit keeps those of a start profile whose planes do.
    """
    if get_value(start, INDEPENDENT):
        return False
    return {CHUNK, DIES_PER_CHANNEL} <= direct.keys() and set(fit_input.experiments) >= SHOW_PLANES


def with_plane_intervals(
    parameters: Sequence[Estimate], near: Sequence[Searched]
) -> list[Estimate]:
    """The estimates, with the dies and chunks of all variants, and whether planes read alone.

    The first of `near` is the best.
    """
    dies = sorted(number_of_dies(one.start) for one in near)
    chunks = sorted((end for one in near for end in _chunks(one)), key=parse_size)
    divided = [bool(one.variant.chunks) for one in near]
    best = Estimate(INDEPENDENT, divided[0], divided[0], divided[0], start=False)
    ends: dict[str, list[Any]] = {DIES: dies, CHUNK: chunks, INDEPENDENT: sorted(divided)}
    rest = [one for one in parameters if one.key != INDEPENDENT]
    return [
        replace(one, low=of[0], high=of[-1], determined=of[0] == of[-1])
        if (of := ends.get(one.key))
        else one
        for one in (*rest, best)
    ]
