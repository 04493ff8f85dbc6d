"""What is inferred before any search: here that a drive has no SLC cache, and what goes with it."""

from __future__ import annotations

import pytest

from ssdlab import profiles
from ssdlab.device import describe_twin
from ssdlab.fit.direct_estimates import applied, begin
from ssdlab.fit.measured import Measured
from ssdlab.profiles.toml_edit import number, without
from ssdlab.records import Finding

CACHED = "samsung-970-evo-plus-500"


def _cache(lasting: float | None, slc_mib: float | None) -> Measured:
    found = {"lasting_mib_per_s": lasting, "slc_mib": slc_mib}
    findings = {name: Finding(value, "", None, None, "") for name, value in found.items()}
    return Measured("cache", "", "box", findings=findings)


def test_a_fall_that_is_the_buffer_s_alone_means_no_slc_cache() -> None:
    start = profiles.load(CACHED)
    text = applied(start, list(begin(start, [_cache(200.0, None)])), "test")
    assert number(text, "slc.size") is None
    assert "[slc]" not in text
    assert describe_twin("box", text)["capacity_bytes"] == pytest.approx(500e9)


@pytest.mark.parametrize("seen", [_cache(None, None), _cache(200.0, 40.0)])
def test_writes_that_never_fell_and_a_cache_that_was_seen_leave_the_start_s_cache(
    seen: Measured,
) -> None:
    start = profiles.load(CACHED)
    assert "[slc]" in applied(start, list(begin(start, [seen])), "test")


def test_a_drive_without_a_cache_from_a_start_without_one_is_told_nothing_new() -> None:
    start = profiles.load("toshiba-xg5")
    assert list(begin(start, [_cache(200.0, None)])) == []


def test_a_table_goes_with_its_header_and_the_others_stay() -> None:
    text = "[a]\nx = 1\n\n[b]\ny = 2  # two\n\n[c]\nz = 3\n"
    assert without(text, "b") == "[a]\nx = 1\n\n[c]\nz = 3\n"
    assert without(text, "c") == "[a]\nx = 1\n\n[b]\ny = 2  # two\n"
    assert without(text, "d") == text
