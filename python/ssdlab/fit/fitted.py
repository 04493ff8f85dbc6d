"""`fit`: fits a profile to a drive's results; gives intervals of its numbers, and errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from ssdlab.device import describe_twin
from ssdlab.errors import TargetError, UsageError
from ssdlab.fit.checks import Check, check_cells, check_findings, is_left_out, objectives_of
from ssdlab.fit.direct_estimates import (
    SLC,
    Layout,
    apply_estimates,
    corrected_estimates,
    enlarge_buffer,
    initial_estimates,
    plane_layouts,
    with_capacity,
    with_unknown_unit,
)
from ssdlab.fit.intervals import DETERMINED_RATIO, POOR_FIT, drop_of
from ssdlab.fit.lasting import PROGRAM, lasting_estimates, page_by_rates
from ssdlab.fit.objective import Floats, Objective
from ssdlab.fit.parameters import (
    BUFFER,
    CHANNELS,
    CHUNK,
    DIES,
    DIES_PER_CHANNEL,
    PAGE,
    Estimate,
    SearchSpace,
    number_of_dies,
    within_overheads,
)
from ssdlab.fit.results import FitInput
from ssdlab.fit.searched import (
    Searched,
    VariantSearch,
    intervals_of,
    joined,
    nearest,
    shows_planes,
    with_plane_intervals,
)
from ssdlab.fit.solving import Progress, Solution, candidate_profile, cost_on
from ssdlab.fit.variables import Scale
from ssdlab.fit.variants import cache_variants, enlarge_spare
from ssdlab.profiles.toml_edit import (
    get_value,
    list_values,
    mark_inherited,
    replace_heading,
    restore_value,
    set_value,
    set_values,
)
from ssdlab.units import parse_duration, parse_size

UNCHANGED: Final = 0.01
"""If the logarithm of a factor is smaller, the profile's number and source stay unchanged."""
ASSUMED: Final = (
    "flash.channels",
    "flash.planes",
    "flash.page",
    "flash.pages_per_block",
    "flash.independent_plane_reads",
    CHUNK,
    "ftl.mapping_unit",
    "ftl.victim",
    "buffer.size",
    "slc.size",
    "slc.mode",
    "slc.bits_per_cell",
)
"""Numbers that fits with few results take from the start profile, and that others depend on."""
_WRITTEN_BY_PAGE: Final = ("flash.planes", "flash.page")
PROGRAMS: Final = (PROGRAM, "slc.program")
_OF_LAYOUT: Final = (CHANNELS, DIES_PER_CHANNEL, *_WRITTEN_BY_PAGE, CHUNK)
DEPENDS_ON: Final = {
    **dict.fromkeys(PROGRAMS, _WRITTEN_BY_PAGE),
    "flash.read": (CHUNK,),
}
"""Assumed numbers that decide the value of another: the rate of writing shows only the time of a
program divided by its size. Reads of single units show tR whatever the chunk."""
_KEYS_OF: Final = {
    DIES: ("flash.dies_per_channel",),
    PAGE: ("flash.planes", "flash.page"),
}
"""The profile's keys of estimates that are products of several keys."""
SINGLE_UNITS: Final = frozenset({"stripe", "suite", "fsync", "workload"})
"""Experiments that read single units."""


@dataclass(frozen=True)
class Fitted:
    """The result of a fit: the profile's text, its fitted numbers, and checks of its accuracy."""

    profile: str
    parameters: tuple[Estimate, ...]
    checks: tuple[Check, ...]
    contradicted: bool = False
    """Whether the rates of `steady` contradict the time of a program that all else determines."""
    excess: float = np.inf
    """Chi squared per degree of freedom, at least 1; infinite if nothing was searched for."""

    @property
    def assumed(self) -> dict[str, Any]:
        """Numbers of the start profile that the fit takes as known, and their values."""
        fitted = {parameter.key for parameter in self.parameters}
        if PAGE in fitted:  # how it is divided into planes makes no difference
            fitted |= {"flash.planes", "flash.page"}
        if get_value(self.profile, "slc.size") is None:
            fitted |= {"slc.mode", "slc.bits_per_cell"}
        return {key: get_value(self.profile, key) for key in ASSUMED if key not in fitted}

    @property
    def twin_values(self) -> Floats:
        """The twin's value of each check."""
        return np.array([check.twin for check in self.checks])

    @property
    def errors(self) -> Floats:
        """The relative error of each check."""
        return np.array([check.error for check in self.checks])


def fit(
    profile: str, fit_input: FitInput, source: str, progress: Progress = lambda _done, _total: None
) -> Fitted:
    """Fits a profile to the results that are not held out, and checks it on all results.

    Direct estimates come first, then the search; then buffer and spare are corrected with the
    fitted twin. `source` names the fit and its date, and is written to each changed number. If
    `stripe` leaves two layouts possible, both are fitted.

    Raises:
        UsageError: the start profile is unusable, or a twin can produce none of the results.
    """
    profile = with_capacity(profile, fit_input.capacity_bytes, source)
    layouts: list[Layout | None] = [*plane_layouts(fit_input.others)] or [None]
    found = list[tuple[Fitted, Searched]]()
    for layout in layouts:
        try:
            found.append(_fit(profile, fit_input, source, progress, layout))
        except (TargetError, UsageError):  # for example blocks that this one cannot have
            if layout is layouts[-1] and not found:
                raise
    found.sort(key=lambda one: one[1].cost)
    best, searched = found[0]
    limit = searched.cost + drop_of(searched.solutions[0])
    for other, its_search in found[1:]:
        if its_search.cost <= limit:
            best = _with_other_layout(best, other)
    return best


def _with_other_layout(best: Fitted, other: Fitted) -> Fitted:
    """The best fit; what differs in one that explains the results as well is not determined."""
    others = {one.key: one for one in other.parameters}
    parameters = []
    for one in best.parameters:
        its = others.get(one.key, one)
        if one.key in _OF_LAYOUT and its.value != one.value:
            low, high = joined(one.key, (one.value, its.value))
            parameters.append(replace(one, low=low, high=high, determined=False))
        else:
            parameters.append(replace(one, determined=one.determined and its.determined))
    return replace(best, parameters=tuple(parameters))


def _fit(
    profile: str, fit_input: FitInput, source: str, progress: Progress, layout: Layout | None
) -> tuple[Fitted, Searched]:
    """The fit with one of the layouts that `stripe` leaves possible, and its search."""
    initial = initial_estimates(profile, fit_input.others, layout)
    direct = {estimate.key: estimate for estimate in initial}
    start = apply_estimates(profile, list(direct.values()), source)
    objectives = list(objectives_of(start, fit_input))
    if not direct and not any(whole.cells for whole, _ in objectives):
        raise UsageError(
            f"a twin has none of these results ({', '.join(fit_input.experiments)}); give rows or "
            "findings under the names that `ssdlab run --json` prints"
        )
    starts = cache_variants(start, direct, fit_input.fitted_others)
    if "ftl.spare" not in direct:
        starts = [replace(one, start=enlarge_spare(one.start, source)) for one in starts]
    cached = any(get_value(one.start, SLC) is not None for one in starts)
    kept = [_without_left_out(one, cached=cached) for _, one in objectives if one.cells]
    search = VariantSearch(kept, fit_input, direct, source, progress)
    searched = search.run(starts)
    planes_tried = shows_planes(start, direct, fit_input)
    if planes_tried:
        searched += search.with_independent_planes(nearest(searched)[0])
    near = nearest(searched)
    best = near[0]
    direct = _with_cache(direct, best, near)
    text, parameters, contradicted = _estimates_of(profile, near, fit_input, direct, kept, source)
    if planes_tried:
        parameters = with_plane_intervals(parameters, near)
    checks = [
        *check_cells(text, objectives, cached=cached),
        *check_findings(text, fit_input.others),
    ]
    excess = best.solutions[0].excess if best.keys else np.inf
    return Fitted(text, tuple(parameters), tuple(checks), contradicted, excess), best


def _estimates_of(
    profile: str,
    near: Sequence[Searched],
    fit_input: FitInput,
    direct: dict[str, Estimate],
    objectives: Sequence[Objective],
    source: str,
) -> tuple[str, list[Estimate], bool]:
    """The fitted profile and its estimates, those without a search corrected with its twin.

    Also whether the rates contradict these. The first of `near` is the best; the intervals include
    those of the others.
    """
    found = near[0]
    space, start, searched = found.space, found.start, found.keys
    text = enlarge_buffer(_apply_solution(start, space, found.solutions[0], source), source)
    for one in corrected_estimates(text, fit_input.others):
        direct = direct | {one.key: _checked(text, one, objectives, found.solutions[0])}
    if CHANNELS in searched:
        searched.add(DIES_PER_CHANNEL)
    applied = {key: one for key, one in direct.items() if key not in searched}
    text = apply_estimates(text, list(applied.values()), source)
    intervals = [_with_page_types(text, one) for one in intervals_of(near)]
    if CHUNK not in direct:
        intervals = _with_unsure_chunk(intervals, space)
    is_known = any(one.key == PROGRAM and one.determined for one in intervals)
    excess = found.solutions[0].excess
    unsure = [one for one in intervals if one.key == PAGE and not one.determined]
    if is_known and unsure:
        pages = next(each for each in space.choices if each.key == PAGE)
        page = page_by_rates(text, fit_input, pages, unsure[0], excess, objectives=objectives)
        intervals = [page if one.key == PAGE else one for one in intervals]
        if page.value != unsure[0].value:
            text = pages.apply(text, page.value, source)
    lasting = lasting_estimates(
        text,
        fit_input,
        excess,
        objectives=objectives,
        spare=applied.get("ftl.spare"),
        is_known=is_known,
    )
    page_estimate = next((one for one in intervals if one.key == PAGE), None)
    found_by_rates = {one.key: _for_all_pages(text, one, page_estimate) for one in lasting}
    applied |= found_by_rates
    text = apply_estimates(text, list(applied.values()), source)
    applied |= {one.key: one for one in found.by_rates if one.key not in searched}
    parameters = [replace(one, start=get_value(profile, one.key)) for one in applied.values()]
    if CHANNELS in searched and DIES_PER_CHANNEL in direct:
        # Those of a regular stripe, whatever the number of channels.
        was, dies = (number_of_dies(each) for each in (profile, start))
        parameters.append(Estimate(DIES, dies, dies, dies, start=was))
    parameters += [
        replace(_with_units(found, text, one), start=_value_in(profile, space, one.key))
        for one in intervals
        if one.key not in applied
    ]
    contradicted = is_known and PROGRAM in found_by_rates
    return text, with_unknown_unit(_with_assumptions(text, parameters, fit_input)), contradicted


def _with_unsure_chunk(estimates: list[Estimate], space: SearchSpace) -> list[Estimate]:
    """The estimates; if the chunk was searched for, neither it nor what it decides is determined.

    Where `stripe` does not show the chunk, another one explains reads about as well, with other
    dies and pages.
    """
    chunks = next((choice.values for choice in space.choices if choice.key == CHUNK), None)
    if chunks is None:
        return estimates
    unsure = (CHUNK, PAGE, *PROGRAMS)
    found = [replace(one, determined=one.determined and one.key not in unsure) for one in estimates]
    return [
        replace(one, low=chunks[0], high=chunks[-1]) if one.key == CHUNK else one for one in found
    ]


def _for_all_pages(text: str, estimate: Estimate, pages: Estimate | None) -> Estimate:
    """The estimate; the time of a program with the bounds of each page that the drive may have.

    The rate of writing shows only the time divided by the page.
    """
    if estimate.key != PROGRAM or pages is None:
        return estimate
    scale = Scale(PROGRAM, 0.0, np.inf, 1.0)
    size = parse_size(str(pages.value))
    low, high = (
        scale.changes(text, parse_size(str(page)) / size, time)[PROGRAM]
        for page, time in ((pages.low, estimate.low), (pages.high, estimate.high))
    )
    return replace(estimate, low=low, high=high)


def _checked(
    text: str, corrected: Estimate, objectives: Sequence[Objective], solution: Solution
) -> Estimate:
    """The corrected estimate; a buffer stays if the results would then be explained worse.

    The search fitted all other numbers to the buffer that it had. A little less may not hold the
    pages that all dies program at a time. A twin that does not explain the results does not show
    what collection keeps in reserve.
    """
    if corrected.key == "ftl.spare" and solution.excess > POOR_FIT:
        return replace(corrected, determined=False)
    known = str(get_value(text, corrected.key))
    if corrected.key != BUFFER or parse_size(str(corrected.value)) == parse_size(known):
        return corrected
    changed = set_value(text, BUFFER, corrected.value)
    if cost_on(objectives, changed) <= cost_on(objectives, text) + drop_of(solution):
        return corrected
    low = min(known, str(corrected.low), key=parse_size)
    high = max(known, str(corrected.high), key=parse_size)
    return replace(corrected, value=known, low=low, high=high)


def _with_cache(
    direct: dict[str, Estimate], best: Searched, near: Sequence[Searched]
) -> dict[str, Estimate]:
    """The direct estimates, with no SLC cache if the results are explained best without one."""
    if best.variant.has_cache is not False:
        return direct
    most = next((one.variant.sizes[-1] for one in near if one.variant.sizes), None)
    kept = {key: one for key, one in direct.items() if not key.startswith("slc.")}
    return kept | {SLC: Estimate(SLC, None, None, most, determined=most is None)}


def _without_left_out(objective: Objective, *, cached: bool) -> Objective:
    """The objective with the values that the fit uses; `cached`: there may be an SLC cache."""
    left_out = [is_left_out(objective, objective, cell, cached=cached) for cell in objective.cells]
    return objective.select(~np.array(left_out, dtype=np.bool_))


def _with_page_types(text: str, estimate: Estimate) -> Estimate:
    """The estimate; that of tR with wider bounds if probes may have read some page types only.

    If a chunk has several multi-plane pages, reads of chunks' starts meet the same page types again
    and again, and the proportions of the types are those of the start profile.
    """
    times = get_value(text, "flash.read")
    if estimate.key != "flash.read" or not isinstance(times, list) or len(set(times)) == 1:
        return estimate
    twin = describe_twin("the profile", text)
    if twin["chunk_bytes"] <= twin["planes"] * twin["page_bytes"]:
        return estimate
    seconds = [parse_duration(time) for time in times]
    mean = sum(seconds) / len(seconds)
    low, high = estimate.low * min(seconds) / mean, estimate.high * max(seconds) / mean
    determined = estimate.determined and high <= DETERMINED_RATIO * low
    return replace(estimate, low=low, high=high, determined=determined)


def _with_assumptions(
    text: str, parameters: Sequence[Estimate], fit_input: FitInput
) -> list[Estimate]:
    """The estimates; those that depend on a number that was not tested are not determined."""
    assumed = Fitted(text, tuple(parameters), ()).assumed
    depends_on = dict(DEPENDS_ON)
    if not SINGLE_UNITS.isdisjoint(fit_input.experiments):
        del depends_on["flash.read"]
    if "stripe" in fit_input.experiments:  # it was run, but did not show the chunk
        for key in (PAGE, *PROGRAMS):
            depends_on[key] = (*depends_on.get(key, ()), CHUNK)
    return [
        replace(one, determined=False, assumes=assumes)
        if (assumes := tuple(key for key in depends_on.get(one.key, ()) if key in assumed))
        else one
        for one in parameters
    ]


def _apply_solution(profile: str, space: SearchSpace, solution: Solution, source: str) -> str:
    """The profile with the numbers that the fit changed; all others keep their source."""
    text = candidate_profile(profile, space, solution, source)
    chosen = set[str]()
    for choice, value in zip(space.choices, solution.choices, strict=True):
        changes = choice.changes(profile, value)
        if value != choice.value_in(profile):
            chosen |= changes.keys()
            continue
        for key in changes:
            text = restore_value(text, profile, key)
    for scale, log_factor in zip(space.scales, solution.log_factors, strict=True):
        # A choice may set the same key: the ratios of the page types set tR.
        if abs(log_factor) >= UNCHANGED or scale.key in chosen:
            continue
        if scale.of:  # the same as the other number, whatever the start has
            text = set_value(text, scale.key, None)
        else:
            text = restore_value(text, profile, scale.key)
    return set_values(text, within_overheads(text, {}), source)


def _with_units(found: Searched, text: str, estimate: Estimate) -> Estimate:
    key, low, high = estimate.key, estimate.low, estimate.high
    space = found.space
    scale = next((scale for scale in space.scales if scale.key == key), None)
    if scale is not None:
        chosen = get_value(text, scale.of) if scale.of else found.shapes.get(key)
        low, high = (scale.changes(found.start, factor, chosen)[key] for factor in (low, high))
    one = Estimate(key, _value_in(text, space, key), low, high, estimate.determined)
    return found.variant.of_size(one) if key == SLC else one


def _value_in(profile: str, space: SearchSpace, key: str) -> Any:
    if key == DIES:
        return number_of_dies(profile)
    choice = next((choice for choice in space.choices if choice.key == key), None)
    if choice is not None:
        return choice.value_in(profile)
    other = next((scale.of for scale in space.scales if scale.key == key), "")
    return get_value(profile, key) or (get_value(profile, other) if other else None)


def finished_profile(fitted: Fitted, drive: str, source: str, start: str, start_name: str) -> str:
    """The fitted profile under the drive's own name; `start` is the text of its start profile.

    A value that the fit determined is "fitted", even if it is that of the start profile; all
    others that are those of the start profile are "inherited".
    """
    profile = set_values(fitted.profile, dict(_confirmed(fitted, start)), source)
    profile = mark_inherited(profile, start, start_name)
    heading = (
        f"{drive}: {source}, from the profile {start_name}.\n"
        'kind: "fitted" values are results of this fit. "inherited" values are those of that '
        "profile:\nno result determined them, and they may be wrong for this drive."
    )
    return replace_heading(set_value(profile, "drive.model", drive), heading)


def _confirmed(fitted: Fitted, start: str) -> Iterator[tuple[str, object]]:
    """Keys and values of the start profile that the results determine."""
    entries = {entry["key"]: entry for entry in list_values(fitted.profile)}
    before = {entry["key"]: entry for entry in list_values(start)}
    for estimate in fitted.parameters:
        for key in _KEYS_OF.get(estimate.key, (estimate.key,)):
            if estimate.determined and key in entries and entries[key] == before.get(key):
                yield key, entries[key]["value"]
