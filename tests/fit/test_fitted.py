"""What a fit changes after its search: restored numbers, and a corrected buffer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ssdlab import profiles
from ssdlab.analysis.cells import Cell
from ssdlab.device import describe_twin
from ssdlab.errors import UsageError
from ssdlab.fit import fitted
from ssdlab.fit import searched as searched_module
from ssdlab.fit.intervals import POOR_FIT
from ssdlab.fit.measurement import Measurement
from ssdlab.fit.parameters import (
    BUFFER,
    MULTI_PLANE_PAGES,
    PAGE,
    TYPES,
    Estimate,
    SearchSpace,
)
from ssdlab.fit.results import FitInput
from ssdlab.fit.searched import Searched
from ssdlab.fit.solving import Solution
from ssdlab.fit.variables import Choice, MultiPlanePage, PageTypes, Scale
from ssdlab.fit.variants import Variant
from ssdlab.profiles.toml_edit import get_value, set_value, set_values
from ssdlab.records import Finding

START = set_value(profiles.load("toshiba-xg5"), "flash.read", ["40 us", "60 us"])
WRITE = "link.write_bandwidth"
SPACE = SearchSpace((Scale("flash.read", 0.1, 10.0, 1.0),), (PageTypes.of_profile(TYPES, START),))


@pytest.mark.parametrize(("types", "read"), [("1", ["50.05 us"]), ("1 : 1.5", ["40 us", "60 us"])])
def test_page_types_that_were_chosen_stay_if_their_mean_does_not_change(
    types: str, read: list[str]
) -> None:
    solution = Solution((types,), np.array([0.001]), np.ones(1), 1.0)
    text = fitted._apply_solution(START, SPACE, solution, "a fit")
    assert get_value(text, "flash.read") == read


def _solution(excess: float) -> Solution:
    zeros = np.zeros(1)
    return Solution((), zeros, zeros, 1.0, excess=excess)


def test_the_spare_is_not_determined_if_no_twin_explains_the_results() -> None:
    spare = Estimate("ftl.spare", 0.2, 0.18, 0.22, determined=True)
    assert fitted._checked(START, spare, [], _solution(excess=1.0)) is spare
    poor = fitted._checked(START, spare, [], _solution(excess=1.1 * POOR_FIT))
    assert poor == replace(spare, determined=False)


@pytest.mark.parametrize(("rise", "size"), [(0.0, "496 KiB"), (3.0, "496 KiB"), (50.0, "512 KiB")])
def test_a_buffer_is_not_corrected_if_the_results_then_fit_worse(
    monkeypatch: pytest.MonkeyPatch, rise: float, size: str
) -> None:
    text = set_value(START, BUFFER, "512 KiB")
    monkeypatch.setattr(fitted, "cost_on", lambda _o, text: 7.0 + rise * ('"496 KiB"' in text))
    buffer = Estimate(BUFFER, "496 KiB", "480 KiB", "500 KiB", determined=True)
    kept = fitted._checked(text, buffer, [], _solution(excess=1.0))
    assert kept.value == size
    assert (kept.low, kept.high) == ("480 KiB", "500 KiB" if size == "496 KiB" else "512 KiB")


@pytest.mark.parametrize("is_sure", [(True, False), (False, False), (True, True)])
def test_the_rates_show_a_page_that_is_not_determined_if_the_time_of_a_program_is(
    monkeypatch: pytest.MonkeyPatch, is_sure: tuple[bool, bool]
) -> None:
    pages = MultiPlanePage.of_profile(PAGE, START, MULTI_PLANE_PAGES)
    program = Estimate("flash.program", "600 us", "590 us", "610 us", determined=is_sure[0])
    page = Estimate(PAGE, "32 KiB", "32 KiB", "32 KiB", determined=is_sure[1])
    larger = replace(page, value="64 KiB", high="64 KiB")
    monkeypatch.setattr(searched_module, "estimates", lambda *_: [program, page])
    monkeypatch.setattr(fitted, "page_by_rates", lambda *_, **__: larger)
    monkeypatch.setattr(fitted, "lasting_estimates", lambda *_, **__: [])
    none = np.empty(0)
    solution = Solution(("32 KiB",), none, none, 1.0)
    searched = Searched(Variant(START), SearchSpace((), (pages,)), [solution], [])
    text, found, _ = fitted._estimates_of(START, [searched], FitInput(()), {}, [], "a fit")
    is_changed = is_sure == (True, False)
    assert pages.value_in(text) == ("64 KiB" if is_changed else "32 KiB")
    [estimate] = [one for one in found if one.key == PAGE]
    assert (estimate.low, estimate.high) == ("32 KiB", "64 KiB" if is_changed else "32 KiB")


@pytest.mark.parametrize(
    ("is_sure", "by_rates", "expected"),
    [(True, True, True), (False, True, False), (True, False, False)],
)
def test_rates_contradict_only_what_the_other_results_determine(
    monkeypatch: pytest.MonkeyPatch, is_sure: bool, by_rates: bool, expected: bool
) -> None:
    program = Estimate("flash.program", "600 us", "590 us", "610 us", determined=is_sure)
    wide = replace(program, low="300 us", determined=False)
    monkeypatch.setattr(searched_module, "estimates", lambda *_: [program])
    monkeypatch.setattr(fitted, "lasting_estimates", lambda *_, **__: [wide] if by_rates else [])
    none = np.empty(0)
    searched = Searched(Variant(START), SearchSpace((), ()), [Solution((), none, none, 1.0)], [])
    *_, contradicted = fitted._estimates_of(START, [searched], FitInput(()), {}, [], "a fit")
    assert contradicted == expected


@pytest.mark.parametrize(
    ("ends", "expected"),
    [(("16 KiB", "64 KiB"), ("250 us", "2400 us")), (None, ("500 us", "1200 us"))],
)
def test_a_program_that_rates_show_may_be_longer_with_a_larger_page(
    monkeypatch: pytest.MonkeyPatch, ends: tuple[str, str] | None, expected: tuple[str, str]
) -> None:
    """`steady` shows bytes per program, of which one page or another may be the right one."""
    page = [] if ends is None else [Estimate(PAGE, "32 KiB", *ends, determined=False)]
    program = Estimate("flash.program", "700 us", "500 us", "1200 us", determined=False)
    spare = Estimate("ftl.spare", 0.1, 0.08, 0.12, determined=False)
    pages = MultiPlanePage.of_profile(PAGE, START, MULTI_PLANE_PAGES)
    monkeypatch.setattr(searched_module, "estimates", lambda *_: page)
    monkeypatch.setattr(fitted, "lasting_estimates", lambda *_, **__: [program, spare])
    none = np.empty(0)
    solution = Solution(("32 KiB",), none, none, 1.0)
    searched = Searched(Variant(START), SearchSpace((), (pages,)), [solution], [])
    _, found, _ = fitted._estimates_of(START, [searched], FitInput(()), {}, [], "a fit")
    by_key = {each.key: each for each in found}
    wide = by_key["flash.program"]
    assert (wide.value, wide.low, wide.high) == ("700 us", *expected)
    assert (by_key["ftl.spare"].low, by_key["ftl.spare"].high) == (0.08, 0.12)


@pytest.mark.parametrize("is_known", [True, False])
def test_without_a_known_chunk_neither_page_nor_programs_are_determined(
    monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    """With another chunk, other pages may explain the results as well."""
    keys = ("ftl.chunk", PAGE, "flash.program", "slc.program")
    found = [Estimate(key, "32 KiB", "32 KiB", "32 KiB") for key in keys[:2]]
    found += [Estimate(key, "600 us", "590 us", "610 us") for key in (*keys[2:], "flash.read")]
    chunks = Choice("ftl.chunk", ("4 KiB", "32 KiB", "64 KiB"), (0.0, 0.0, 0.0))
    pages = MultiPlanePage.of_profile(PAGE, START, MULTI_PLANE_PAGES)
    monkeypatch.setattr(searched_module, "estimates", lambda *_: found)
    monkeypatch.setattr(fitted, "lasting_estimates", lambda *_, **__: [])
    none = np.empty(0)
    solution = Solution(("32 KiB", "32 KiB"), none, none, 1.0)
    space = SearchSpace((), (chunks, pages))
    searched = Searched(Variant(START), space, [solution], [])
    direct = {"ftl.chunk": found[0]} if is_known else {}
    _, parameters, _ = fitted._estimates_of(START, [searched], FitInput(()), direct, [], "a fit")
    by_key = {each.key: each for each in parameters}
    for key in keys:
        assert by_key[key].determined is is_known, key
    assert by_key["flash.read"].determined
    chunk = by_key["ftl.chunk"]
    assert (chunk.low, chunk.high) == (("32 KiB", "32 KiB") if is_known else ("4 KiB", "64 KiB"))


@pytest.mark.parametrize(
    ("before", "ratio", "own"),
    [(None, 1.0, None), (None, 0.6, "1200 MB/s"), ("700 MB/s", 1.0, None)],
)
def test_a_link_that_writes_as_fast_as_it_reads_has_one_number(
    before: str | None, ratio: float, own: str | None
) -> None:
    start = set_values(START, {"link.bandwidth": "1000 MB/s", WRITE: before})
    link = Scale("link.bandwidth", 0.1, 10.0, 1.0)
    space = SearchSpace((link, Scale(WRITE, 0.3, 1.25, 0.3, of="link.bandwidth")), ())
    solution = Solution((), np.log([2.0, ratio]), np.ones(2), 1.0)
    text = fitted._apply_solution(start, space, solution, "a fit")
    assert get_value(text, WRITE) == own
    found = Searched(Variant(start), space, [solution], [])
    estimate = fitted._with_units(found, text, Estimate(WRITE, ratio, 0.6, 1.25))
    assert estimate.value == (own or "2000 MB/s")
    assert (estimate.low, estimate.high) == ("1200 MB/s", "2500 MB/s")


@pytest.mark.parametrize(
    ("costs", "planes", "bounds"),
    [
        ({4: 1.0, 2: 100.0}, 4, (4, 4)),
        ({4: 100.0, 2: 1.0}, 2, (2, 2)),
        ({4: 1.0, 2: 2.0}, 4, (2, 4)),
        pytest.param({4: 1.0}, 4, (4, 4), id="two planes make no twin"),
        pytest.param({2: 1.0}, 2, (2, 2), id="four planes make no twin"),
    ],
)
def test_both_layouts_that_a_stripe_leaves_possible_are_fitted(
    costs: dict[int, float], planes: int, bounds: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def search(text: str, _objectives: object, space: SearchSpace, *_: object) -> list[Solution]:
        if (here := get_value(text, "flash.planes")) not in costs:
            raise UsageError("no candidate is a valid twin")
        zeros = np.zeros(len(space.scales))
        choices = tuple(choice.value_in(text) for choice in space.choices)
        return [Solution(choices, zeros, zeros + 0.01, costs[here])]

    monkeypatch.setattr(searched_module, "search", search)
    values = {"chunk_kib": 16, "stripe_kib": 256, "units": 8}
    values |= {"chunks_per_unit": 2, "chunk_distance_kib": 64}
    found = {key: Finding(float(n), "", n, n, "") for key, n in values.items()}
    rates = Cell(("random 4k", "read"), "mean", 50.0, unit="MiB/s")
    results = (
        Measurement("stripe", "box", "box", findings=found),
        Measurement("suite", "box", "box", (rates,), parameters={"size_mib": 16, "step_s": 0.1}),
    )
    best = fitted.fit(START, FitInput(results), "test")
    of = {one.key: one for one in best.parameters}
    assert get_value(best.profile, "flash.planes") == of["flash.planes"].value == planes
    assert (of["flash.planes"].low, of["flash.planes"].high) == bounds
    chunks = {4: "128 KiB", 2: "16 KiB"}
    assert (of["ftl.chunk"].low, of["ftl.chunk"].high) == tuple(chunks[n] for n in bounds)
    dies = {4: 2, 2: 4}
    assert describe_twin("box", best.profile)["dies"] == dies[planes]
    is_known = bounds[0] == bounds[1]
    assert of["flash.planes"].determined is of["ftl.chunk"].determined is is_known


def test_what_another_layout_does_not_determine_is_not_determined() -> None:
    read = Estimate("flash.read", "50 us", "49 us", "51 us", determined=True)
    best, other = (
        fitted.Fitted("", (replace(read, determined=known), replace(read, key="x")), ())
        for known in (True, False)
    )
    found = fitted._with_other_layout(best, other).parameters
    assert [one.determined for one in found] == [False, True]
