"""An SLC cache that `cache` does not determine is searched for with the other results."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from candidate_results import measured, measured_stripe

from ssdlab import profiles
from ssdlab.analysis.cells import Cell
from ssdlab.device import describe_twin
from ssdlab.experiments.cache import analysis as cache_analysis
from ssdlab.experiments.cache import measure as cache
from ssdlab.experiments.cache.parameters import Cache
from ssdlab.experiments.suite import analysis as suite_analysis
from ssdlab.experiments.suite import measure as suite
from ssdlab.fit.checks import FITTED
from ssdlab.fit.direct_estimates import initial_estimates
from ssdlab.fit.fitted import fit
from ssdlab.fit.measurement import Measurement
from ssdlab.fit.objective import CAPACITY, MIB, experiment_objective
from ssdlab.fit.parameters import Estimate, SearchSpace, experiments_for
from ssdlab.fit.results import FitInput
from ssdlab.fit.solving import Solution
from ssdlab.fit.variants import Variant, cache_variants
from ssdlab.profiles.toml_edit import get_value, set_values
from ssdlab.records import Finding

BARE, CACHED = "toshiba-xg5", "samsung-970-evo-plus-500"
UNKNOWN = Finding(None, "MiB", None, None, "no drop in speed")
ENDS = ("value", "low", "high")
ABSENT = Finding(0.0, "MiB", None, None, "")


def _cache(slc: Finding) -> Measurement:
    return Measurement(
        "cache", "box", "box", findings={"slc_mib": slc}, parameters={"drive_mib": CAPACITY / MIB}
    )


def _variants(start: str, slc: Finding) -> list[Variant]:
    text, results = profiles.load(start), [_cache(slc)]
    return cache_variants(text, {one.key: one for one in initial_estimates(text, results)}, results)


@pytest.mark.parametrize("start", [BARE, CACHED])
def test_a_cache_of_which_nothing_is_known_is_tried_in_many_sizes_and_left_out(start: str) -> None:
    cached, bare = _variants(start, UNKNOWN)
    assert len(cached.sizes) == 49
    capacity = describe_twin("box", profiles.load(start))["capacity_bytes"]
    tried = [
        float(size.split()[0]) * MIB / capacity for size in (cached.sizes[0], cached.sizes[-1])
    ]
    assert tried == [pytest.approx(0.02, rel=0.01), pytest.approx(0.32, rel=0.01)]
    for size in cached.sizes:
        text = set_values(cached.start, {"slc.size": size})
        assert 0 < describe_twin("box", text, CAPACITY)["slc_bytes"] < CAPACITY / 2
    assert get_value(bare.start, "slc.size") is None


def test_a_cache_with_bounds_is_tried_between_them_and_never_left_out() -> None:
    [cached] = _variants(BARE, Finding(None, "MiB", 64.0, 128.0, "between"))
    capacity = describe_twin("box", profiles.load(BARE))["capacity_bytes"]
    shares = [float(size.split()[0]) * MIB / capacity for size in cached.sizes]
    assert (shares[0], shares[-1]) == (
        pytest.approx(1 / 16, rel=0.01),
        pytest.approx(1 / 8, rel=0.01),
    )


@pytest.mark.parametrize("slc", [ABSENT, Finding(100.0, "MiB", 95.0, 105.0, "")])
def test_a_cache_that_is_known_or_known_to_be_absent_is_not_searched_for(slc: Finding) -> None:
    [only] = _variants(BARE, slc)
    assert only.sizes == ()


def test_the_interval_of_a_size_ends_half_way_to_the_next_that_was_tried() -> None:
    """Of ten sizes, the first and the seventh are tried everywhere."""
    variant = Variant("", tuple(f"{100 * n} MiB" for n in range(1, 11)))
    one = variant.of_size(Estimate("slc.size", "500 MiB", "500 MiB", "600 MiB"))
    assert (one.low, one.high) == ("200 MiB", "900 MiB")
    assert not one.determined


@pytest.mark.parametrize(
    ("bare", "cached", "kept", "determined"),
    [
        (100.0, 1.0, True, False),
        (1.0, 100.0, False, True),
        (1.0, 2.0, False, False),
        pytest.param(2.0, 1.0, False, False, id="a cache that the results do not require"),
    ],
)
def test_the_variant_that_explains_the_results_is_taken(
    *, bare: float, cached: float, kept: bool, determined: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def search(text: str, _objectives: Any, space: SearchSpace, *_: Any) -> list[Solution]:
        zeros = np.zeros(len(space.scales))
        choices = tuple(choice.value_in(text) for choice in space.choices)
        cost = bare if get_value(text, "slc.size") is None else cached
        return [Solution(choices, zeros, zeros + 0.01, cost)]

    monkeypatch.setattr("ssdlab.fit.searched.search", search)
    cell = Cell(("random 4k", "read"), "mean", 50.0, unit="MiB/s")
    suite = Measurement("suite", "box", "box", (cell,), parameters={"size_mib": 16, "step_s": 0.1})
    fitted = fit(profiles.load(BARE), FitInput((suite, _cache(UNKNOWN))), "test")
    assert (get_value(fitted.profile, "slc.size") is not None) is kept
    [size] = [one for one in fitted.parameters if one.key == "slc.size"]
    assert size.determined is determined
    assert (size.low is None) is not kept
    assert (size.high is None) is (not kept and determined)


def test_the_rate_of_a_cache_with_bounds_is_compared() -> None:
    findings = {
        "slc_mib": Finding(None, "MiB", 38.0, 126.0, "between"),
        "cached_mib_per_s": Finding(937.0, "MiB/s", None, None, ""),
        "lasting_mib_per_s": Finding(238.0, "MiB/s", None, None, ""),
    }
    results = replace(_cache(UNKNOWN), findings=findings)
    objective = experiment_objective(results)
    assert objective is not None
    assert {cell.name for cell in objective.cells} == {"cached_mib_per_s", "lasting_mib_per_s"}


@pytest.mark.parametrize(("slc_mib", "name"), [(0.0, "cached"), (60.0, "buffered")])
def test_a_buffer_is_filled_as_fast_as_the_link_takes_writes(slc_mib: float, name: str) -> None:
    rate = f"{name}_mib_per_s"
    values = {"slc_mib": slc_mib, "buffer_mib": 16.0, rate: 1000.0}
    findings = {key: Finding(value, "", None, None, "") for key, value in values.items()}
    objective = experiment_objective(replace(_cache(UNKNOWN), findings=findings))
    assert objective is not None
    assert [cell.name for cell in objective.cells] == [rate]
    slow = {"buffer.size": "16 MiB", "link.write_overhead": "1 us", "flash.program": "5 ms"}
    start = set_values(profiles.load(BARE), slow)
    for link, writes in ((1000, None), (3000, "524 MB/s"), (1000, "12000 MB/s")):
        changes = {"link.bandwidth": f"{link} MB/s", "link.write_bandwidth": writes}
        [seen] = objective.simulate(set_values(start, changes))
        taken = float((writes or f"{link} MB/s").split()[0])
        assert seen == pytest.approx(taken * 1e6 / MIB, rel=0.03)
    for key in ("link.bandwidth", "link.write_bandwidth"):
        assert "cache" in experiments_for(key)
    small = findings | {"buffer_mib": Finding(7.0, "", None, None, "")}
    assert experiment_objective(replace(_cache(UNKNOWN), findings=small)) is None


def test_a_link_that_writes_slower_than_it_reads_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise other numbers, as the overhead of a write, explain how long writes take."""
    for name in ("MAPPING_UNITS", "TRANSFERS", "MULTI_PLANE_PAGES"):
        monkeypatch.setattr(f"ssdlab.fit.parameters.{name}", ())
    start = set_values(profiles.load(BARE), {"buffer.size": "32 MiB"})
    text = set_values(start, {"link.write_bandwidth": "1000 MB/s"})
    plan = cache.plan_for(Cache(size="512MiB", quick=True), CAPACITY, 5)
    results = (
        measured_stripe(text),
        measured(text, "suite", (suite, suite_analysis), suite.Plan(128 * MIB, 1.0, 1, 5)),
        measured(text, "cache", (cache, cache_analysis), plan),
    )
    found = {each.key: each for each in fit(start, FitInput(results), "test").parameters}
    for key, true in (("link.bandwidth", 2275), ("link.write_bandwidth", 1000)):
        value, low, high = (float(getattr(found[key], end).split()[0]) for end in ENDS)
        assert value == pytest.approx(true, rel=0.02)
        assert low < true < high
        assert found[key].determined
    overhead = float(found["link.write_overhead"].value.split()[0])
    assert overhead == pytest.approx(4, rel=0.1)


@pytest.mark.parametrize(("slc", "notes"), [(UNKNOWN, []), (ABSENT, [FITTED])])
def test_the_fresh_rate_is_neither_fitted_nor_compared_if_there_may_be_a_cache(
    slc: Finding, notes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted_to: list[str] = []

    def search(text: str, objectives: Any, space: SearchSpace, *_: Any) -> list[Solution]:
        fitted_to.extend(cell.name for one in objectives for cell in one.cells)
        zeros = np.zeros(len(space.scales))
        choices = tuple(choice.value_in(text) for choice in space.choices)
        return [Solution(choices, zeros, zeros + 0.01, 1.0)]

    monkeypatch.setattr("ssdlab.fit.searched.search", search)
    steady = Measurement(
        "steady", "box", "box", findings={"fresh_iops": Finding(6e4, "", None, None, "")}
    )
    fitted = fit(profiles.load(BARE), FitInput((steady, _cache(slc))), "test")
    assert [one.note for one in fitted.checks if one.cell.name == "fresh_iops"] == notes
    assert ("fresh_iops" in fitted_to) is bool(notes)


@pytest.mark.parametrize("slc_mib", [150, 420])
def test_the_lasting_rate_of_the_drive_itself_is_that_after_a_cache_of_any_size(
    slc_mib: int,
) -> None:
    """A cache that holds more than 358 MiB of the candidate, which is small, is full later."""
    full = describe_twin("box", profiles.load(CACHED))["capacity_bytes"]
    size = f"{round(slc_mib * full / CAPACITY)} MiB"
    text = set_values(profiles.load(CACHED), {"slc.size": size, "slc.mode": "static"})
    findings = {
        "slc_mib": Finding(float(slc_mib), "MiB", None, None, ""),
        "lasting_mib_per_s": Finding(200.0, "MiB/s", None, None, ""),
    }
    objective = experiment_objective(replace(_cache(UNKNOWN), findings=findings))
    assert objective is not None
    [rate] = objective.simulate(text)
    [slower] = objective.simulate(set_values(text, {"flash.program": "5 ms"}))
    [cached] = objective.simulate(set_values(text, {"slc.program": "900 us"}))
    assert slower < 0.6 * rate
    assert cached == pytest.approx(rate, rel=0.02)


def test_no_rate_is_compared_if_the_cache_may_hold_all_that_the_candidate_is_written() -> None:
    findings = {
        "slc_mib": Finding(600.0, "MiB", None, None, ""),
        "lasting_mib_per_s": Finding(200.0, "MiB/s", None, None, ""),
        "cached_mib_per_s": Finding(900.0, "MiB/s", None, None, ""),
    }
    assert experiment_objective(replace(_cache(UNKNOWN), findings=findings)) is None
