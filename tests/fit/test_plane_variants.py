"""Planes that read independently look like dies: fewer dies, with larger pages and chunks."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from candidate_results import measured, measured_stripe

from ssdlab import profiles
from ssdlab.device import describe_twin
from ssdlab.errors import UsageError
from ssdlab.experiments.fsync import analysis as fsync_analysis
from ssdlab.experiments.fsync import measure as fsync
from ssdlab.experiments.split import analysis as split_analysis
from ssdlab.experiments.split import measure as split
from ssdlab.fit.fitted import fit
from ssdlab.fit.measurement import Measurement
from ssdlab.fit.objective import MIB
from ssdlab.fit.parameters import (
    CHUNK,
    DIES,
    PAGE,
    Estimate,
    SearchSpace,
    search_space,
)
from ssdlab.fit.results import FitInput
from ssdlab.fit.searched import Searched, joined, with_plane_intervals
from ssdlab.fit.solving import Solution
from ssdlab.fit.variants import PENALTY, Variant, plane_variants, with_chunks
from ssdlab.profiles.toml_edit import get_value, set_values

EXPERIMENTS = ("split", "fsync")
KNOWN = (CHUNK, "flash.dies_per_channel")
TEXT = set_values(
    profiles.load("toshiba-xg5"),
    {"flash.channels": 4, "flash.dies_per_channel": 3, CHUNK: "16 KiB", "buffer.size": "8 MiB"},
)


def _variants(text: str = TEXT) -> list[Variant]:
    return list(plane_variants(Variant(text), "a fit"))


def _space(variant: Variant) -> SearchSpace:
    space = search_space(variant.start, EXPERIMENTS, KNOWN)
    return with_chunks(space, variant.chunks) if variant.chunks else space


def _start(text: str, space: SearchSpace, cost: float) -> Solution:
    """The start of a search as its solution."""
    choices = tuple(choice.value_in(text) for choice in space.choices)
    zeros = np.zeros(len(space.scales))
    return Solution(choices, zeros, zeros + 0.01, cost)


def _searched(variant: Variant) -> Searched:
    """A search whose only solution is its start."""
    space = _space(variant)
    return Searched(variant, space, [_start(variant.start, space, 1.0)], [])


def test_planes_that_read_independently_make_as_many_units_of_fewer_dies() -> None:
    twins = [describe_twin("box", one.start) for one in _variants()]
    assert [(twin["dies"], twin["planes"]) for twin in twins] == [(6, 2), (3, 4)]
    for one in _variants():
        assert get_value(one.start, "flash.independent_plane_reads") is True


def test_a_chunk_may_have_a_piece_in_each_plane() -> None:
    assert [one.chunks for one in _variants()] == [
        ("16 KiB", "32 KiB"),
        ("16 KiB", "32 KiB", "64 KiB"),
    ]


@pytest.mark.parametrize(("dies", "planes"), [(1, [2, 4]), (3, [])])
def test_planes_divide_the_dies(dies: int, planes: list[int]) -> None:
    channels = 4 if dies == 1 else 5
    text = set_values(TEXT, {"flash.channels": channels, "flash.dies_per_channel": dies})
    assert [get_value(one.start, "flash.planes") for one in _variants(text)] == planes


def test_a_plane_has_pages_of_whole_mapping_units() -> None:
    small = {"flash.planes": 1, "flash.page": "16 KiB", "ftl.mapping_unit": "16 KiB"}
    pages = [get_value(one.start, "flash.page") for one in _variants(set_values(TEXT, small))]
    assert pages == ["16 KiB", "16 KiB"]


def test_another_page_leaves_planes_that_read_independently() -> None:
    [variant, _] = _variants()
    [pages] = [one for one in _space(variant).choices if one.key == PAGE]
    for size in ("8 KiB", "128 KiB"):
        text = pages.apply(variant.start, size)
        assert get_value(text, "flash.planes") == 2
        assert pages.value_in(text) == size


def test_independent_planes_cost_a_penalty() -> None:
    [variant, _] = _variants()
    found = _searched(variant)
    assert found.space.penalty(found.solutions[0].choices) == PENALTY


@pytest.mark.parametrize("is_first", [True, False])
def test_dies_and_chunks_are_those_of_all_variants_within_the_interval(is_first: bool) -> None:
    [halved, _] = _variants()
    near = [_searched(halved), _searched(Variant(TEXT))]
    near = near if is_first else near[::-1]
    own = [Estimate(DIES, 12, 12, 12), Estimate(CHUNK, "16 KiB", "16 KiB", "16 KiB")]
    dies, chunk, independent = with_plane_intervals(own, near)
    assert (dies.low, dies.high, dies.determined) == (6, 12, False)
    assert (chunk.low, chunk.high, chunk.determined) == ("16 KiB", "16 KiB", True)
    assert (independent.value, independent.determined) == (is_first, False)
    assert (independent.low, independent.high) == (False, True)


@pytest.mark.parametrize("is_divided", [True, False])
def test_dies_are_determined_if_one_kind_of_planes_remains(is_divided: bool) -> None:
    [halved, _] = _variants()
    near = [_searched(halved if is_divided else Variant(TEXT))]
    dies, independent = with_plane_intervals([Estimate(DIES, 6, 6, 6)], near)
    assert dies.low == dies.high == (6 if is_divided else 12)
    assert dies.determined
    assert (independent.value, independent.low, independent.high) == (is_divided,) * 3
    assert independent.determined


@pytest.mark.parametrize(
    ("halves", "quarters", "tried", "dies"),
    [
        (100.0, 1.0, [2], (12, 12)),
        (1.0, 100.0, [2, 4], (6, 6)),
        (9.0, 1.0, [2, 4], (3, 3)),
        (11.0, 11.0, [2, 4], (3, 12)),
    ],
)
def test_more_planes_are_tried_if_fewer_explain_the_results(
    halves: float,
    quarters: float,
    tried: list[int],
    dies: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without independent planes, the cost is 10."""
    costs, found = {2: halves, 4: quarters}, list[int]()

    def search(
        text: str, _objectives: Any, space: SearchSpace, _progress: Any, rival: float
    ) -> list[Solution]:
        if not get_value(text, "flash.independent_plane_reads"):
            assert rival == np.inf
            return [_start(text, space, 10.0)]
        assert rival == 10.0
        found.append(get_value(text, "flash.planes"))
        return [_start(text, space, costs[found[-1]])]

    monkeypatch.setattr("ssdlab.fit.searched.search", search)
    fitted = fit(profiles.load("toshiba-xg5"), FitInput(_results()), "test")
    assert found == tried
    [estimate] = [one for one in fitted.parameters if one.key == DIES]
    assert (estimate.low, estimate.high) == dies
    assert estimate.determined is (dies[0] == dies[1])
    assert describe_twin("box", fitted.profile)["dies"] == estimate.value
    assert "flash.independent_plane_reads" not in fitted.assumed


@pytest.mark.parametrize("left_out", ["stripe", "split", "fsync"])
def test_planes_are_taken_for_dies_without_the_experiments_that_distinguish_them(
    left_out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def search(text: str, _objectives: Any, space: SearchSpace, *_: Any) -> list[Solution]:
        assert not get_value(text, "flash.independent_plane_reads")
        return [_start(text, space, 10.0)]

    monkeypatch.setattr("ssdlab.fit.searched.search", search)
    results = tuple(one for one in _results() if one.experiment != left_out)
    fitted = fit(profiles.load("toshiba-xg5"), FitInput(results), "test")
    assert "flash.independent_plane_reads" in fitted.assumed


def test_planes_that_make_no_valid_twin_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def search(text: str, _objectives: Any, space: SearchSpace, *_: Any) -> list[Solution]:
        if get_value(text, "flash.independent_plane_reads"):
            raise UsageError("no candidate is a valid twin")
        return [_start(text, space, 10.0)]

    monkeypatch.setattr("ssdlab.fit.searched.search", search)
    fitted = fit(profiles.load("toshiba-xg5"), FitInput(_results()), "test")
    assert describe_twin("box", fitted.profile)["dies"] == 12


def test_a_start_profile_whose_planes_read_independently_keeps_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searches = list[str]()

    def search(text: str, _objectives: Any, space: SearchSpace, *_: Any) -> list[Solution]:
        searches.append(text)
        return [_start(text, space, 10.0)]

    monkeypatch.setattr("ssdlab.fit.searched.search", search)
    fitted = fit(_variants()[0].start, FitInput(_results()), "test")
    assert len(searches) == 1
    assert fitted.assumed["flash.independent_plane_reads"] is True


@pytest.mark.parametrize(
    ("key", "ends", "expected"),
    [
        (CHUNK, ("16 KiB", "32 KiB", "8 KiB", "16 KiB"), ("8 KiB", "32 KiB")),
        ("slc.size", ("900 MiB", "2 GiB", "80 MiB", "100 MiB"), ("80 MiB", "2 GiB")),
        ("flash.channels", (4, 8, 2, 4), (2, 8)),
        ("flash.keeps_page", (True, True, False, False), (False, True)),
        ("flash.suspend", (None, None, "20 us", "20 us"), (None, "20 us")),
        ("slc.mode", ("static", "static", "static", "static"), ("static", "static")),
    ],
)
def test_an_interval_includes_those_of_other_variants(
    key: str, ends: tuple[Any, ...], expected: tuple[Any, Any]
) -> None:
    assert joined(key, ends) == expected


@cache
def _results() -> tuple[Measurement, ...]:
    plan = fsync.Plan(16 * MIB, 0.05, 1, "unknown", 5)
    return (
        measured_stripe(TEXT),
        measured(TEXT, "split", (split, split_analysis), split.Plan(16 * MIB, 1, seed=5)),
        measured(TEXT, "fsync", (fsync, fsync_analysis), plan),
    )
