"""Estimates without a search: whether a drive has an SLC cache."""

from __future__ import annotations

import pytest

from ssdlab import profiles
from ssdlab.device import describe_twin
from ssdlab.fit.direct_estimates import apply_estimates, initial_estimates
from ssdlab.fit.measurement import Measurement
from ssdlab.profiles.toml_edit import get_value, remove_table
from ssdlab.records import Finding

CACHED = "samsung-970-evo-plus-500"


def _cache(sustained: float | None, slc_mib: float | None, cached: float = 400.0) -> Measurement:
    values = {
        "lasting_mib_per_s": sustained,
        "cached_mib_per_s": sustained and cached,
        "slc_mib": slc_mib,
    }
    findings = {name: Finding(value, "", None, None, "") for name, value in values.items()}
    return Measurement("cache", "", "box", findings=findings)


def test_a_drop_without_an_slc_cache_removes_the_start_profiles_cache() -> None:
    start = profiles.load(CACHED)
    text = apply_estimates(start, list(initial_estimates(start, [_cache(200.0, 0.0)])), "test")
    assert get_value(text, "slc.size") is None
    assert "[slc]" not in text
    assert describe_twin("box", text)["capacity_bytes"] == pytest.approx(500e9)


@pytest.mark.parametrize("results", [_cache(None, None), _cache(200.0, None), _cache(200.0, 40.0)])
def test_a_cache_that_is_found_or_not_determined_keeps_that_of_the_start_profile(
    results: Measurement,
) -> None:
    start = profiles.load(CACHED)
    assert "[slc]" in apply_estimates(start, list(initial_estimates(start, [results])), "test")


def test_no_cache_is_not_an_estimate_if_the_start_profile_has_none() -> None:
    start = profiles.load("toshiba-xg5")
    assert list(initial_estimates(start, [_cache(200.0, 0.0)])) == []


@pytest.mark.parametrize(("cached", "determined"), [(400.0, True), (3000.0, False)])
def test_a_measured_cache_reaches_a_profile_without_one(cached: float, determined: bool) -> None:
    start = profiles.load("toshiba-xg5")
    assert get_value(start, "slc.size") is None
    estimates = list(initial_estimates(start, [_cache(200.0, 12000.0, cached)]))
    by_key = {estimate.key: estimate for estimate in estimates}
    text = apply_estimates(start, estimates, "test")
    assert get_value(text, "slc.size") == "12000 MiB"
    assert by_key["slc.program"].determined == determined
    assert describe_twin("box", text)["slc_bytes"] >= 12000 << 20


def test_a_table_is_removed_with_its_header() -> None:
    text = "[a]\nx = 1\n\n[b]\ny = 2  # two\n\n[c]\nz = 3\n"
    assert remove_table(text, "b") == "[a]\nx = 1\n\n[c]\nz = 3\n"
    assert remove_table(text, "c") == "[a]\nx = 1\n\n[b]\ny = 2  # two\n"
    assert remove_table(text, "d") == text
