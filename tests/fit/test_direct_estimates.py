"""Estimates without a search: SLC cache, map, spare, and planes that read independently."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from ssdlab import profiles
from ssdlab.analysis.cells import Cell
from ssdlab.analysis.evidence import Conclusion
from ssdlab.device import describe_twin
from ssdlab.errors import TargetError
from ssdlab.fit import direct_estimates
from ssdlab.fit.ageing_rows import check_agreement
from ssdlab.fit.direct_estimates import (
    Layout,
    apply_estimates,
    corrected_estimates,
    initial_estimates,
    plane_layouts,
    with_unknown_unit,
)
from ssdlab.fit.measurement import Measurement
from ssdlab.fit.objective import CAPACITY
from ssdlab.fit.parameters import INDEPENDENT, PAGE, Estimate, search_space
from ssdlab.fit.variants import enlarge_spare
from ssdlab.profiles.toml_edit import get_value, remove_table, set_value, set_values
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


def test_a_measured_cache_reaches_a_profile_without_one() -> None:
    start = profiles.load("toshiba-xg5")
    assert get_value(start, "slc.size") is None
    estimates = list(initial_estimates(start, [_cache(200.0, 12000.0)]))
    text = apply_estimates(start, estimates, "test")
    assert get_value(text, "slc.size") == "12000 MiB"
    assert get_value(text, "slc.program") == "350 us", "700 us, at half the rate"
    assert describe_twin("box", text)["slc_bytes"] >= 12000 << 20


def test_a_cache_has_the_same_share_of_a_smaller_drive_as_of_the_profile() -> None:
    start = profiles.load("toshiba-xg5")
    results = replace(_cache(200.0, 64.0), parameters={"drive_mib": 1024.0})
    text = apply_estimates(start, list(initial_estimates(start, [results])), "test")
    assert describe_twin("box", text, CAPACITY)["slc_bytes"] >> 20 == pytest.approx(64, rel=0.1)


def test_a_cache_and_a_buffer_of_which_only_bounds_are_known_are_not_determined() -> None:
    start = profiles.load(CACHED)
    findings = {
        "slc_mib": Finding(None, "MiB", 100.0, 300.0, "between"),
        "buffer_mib": Finding(None, "MiB", 4.0, 9.0, "between"),
    }
    results = Measurement("cache", "", "box", findings=findings)
    by_key = {each.key: each for each in initial_estimates(start, [results])}
    cache, buffer = by_key["slc.size"], by_key["buffer.size"]
    assert (cache.value, cache.low, cache.high) == ("200 MiB", "100 MiB", "300 MiB")
    assert (buffer.value, buffer.low, buffer.high) == ("6144 KiB", "4096 KiB", "9216 KiB")
    assert not cache.determined
    assert not buffer.determined


@pytest.mark.parametrize(
    ("seen_mib", "value_mib", "determined"), [(9.2, 8.0, True), (30.0, 8.6, False)]
)
def test_a_buffer_is_corrected_by_the_error_of_the_same_probe_on_the_candidate(
    *, seen_mib: float, value_mib: float, determined: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless that error is larger than the buffer: then its size is as measured, and uncertain."""

    def measure_cache(_profile: str) -> Conclusion:
        return Conclusion([], {"buffer_mib": Finding(seen_mib, "MiB", None, None, "")})

    monkeypatch.setattr("ssdlab.fit.direct_estimates.measure_cache", measure_cache)
    start = set_value(remove_table(profiles.load(CACHED), "slc"), "buffer.size", "8806 KiB")
    findings = {"buffer_mib": Finding(8.6, "MiB", 8.57, 8.62, "")}
    results = Measurement("cache", "", "box", findings=findings)
    [buffer] = corrected_estimates(start, [results])
    low, value, high = (
        float(str(each).split()[0]) for each in (buffer.low, buffer.value, buffer.high)
    )
    assert value == pytest.approx(value_mib * 1024, rel=0.005)
    assert 0 <= low < 8 * 1024 < high
    assert buffer.determined is determined


@pytest.mark.parametrize(
    ("results", "interface"),
    [
        (Measurement("suite", "", "box", parameters={"interface": "nvme"}), "nvme"),
        (Measurement("suite", "", "box", (Cell(("a",), "read_mib_per_s", 600.0),)), "nvme"),
        (Measurement("suite", "", "box", (Cell(("a",), "read_mib_per_s", 500.0),)), "sata"),
        (Measurement("suite", "", "box", parameters={"interface": "virtio"}), "sata"),
    ],
)
def test_a_drive_faster_than_sata_or_recorded_as_nvme_gets_that_interface(
    results: Measurement, interface: str
) -> None:
    start = profiles.load("intel-s3510-480")
    text = apply_estimates(start, list(initial_estimates(start, [results])), "test")
    assert get_value(text, "drive.interface") == interface


def test_a_table_is_removed_with_its_header() -> None:
    text = "[a]\nx = 1\n\n[b]\ny = 2  # two\n\n[c]\nz = 3\n"
    assert remove_table(text, "b") == "[a]\nx = 1\n\n[c]\nz = 3\n"
    assert remove_table(text, "c") == "[a]\nx = 1\n\n[b]\ny = 2  # two\n"
    assert remove_table(text, "d") == text


def _misses(value: float | None, low: float | None, high: float | None) -> Measurement:
    findings = {"map_misses": Finding(value, "%", low, high, "")}
    return Measurement("steady", "", "box", findings=findings)


def test_the_memory_for_the_map_is_the_share_of_reads_that_do_not_miss_it() -> None:
    start = set_value(profiles.load("toshiba-xg5"), "ftl.mapping_unit", "8 KiB")
    [estimate] = initial_estimates(start, [_misses(25.0, 20.0, 30.0)])
    whole_kib = 512e9 / 8192 * 4 / 1024  # four bytes for each mapping unit
    sizes = [float(str(size).removesuffix(" KiB")) for size in (estimate.value, estimate.low)]
    assert sizes == pytest.approx([0.75 * whole_kib, 0.7 * whole_kib], rel=0.001)
    assert estimate.determined
    text = apply_estimates(start, [estimate], "test")
    assert get_value(text, "ftl.map_cache") == estimate.value
    [corrected] = corrected_estimates(
        set_value(text, "ftl.mapping_unit", "4 KiB"), [_misses(25.0, 20.0, 30.0)]
    )
    assert float(corrected.value.removesuffix(" KiB")) == pytest.approx(1.5 * whole_kib, rel=0.001)


def test_a_map_that_is_not_known_to_be_in_memory_changes_nothing() -> None:
    start = profiles.load("toshiba-xg5")
    assert list(initial_estimates(start, [_misses(None, None, None)])) == []
    assert list(initial_estimates(start, [_misses(0.0, 0.0, 5.0)])) == []
    small = set_value(start, "ftl.map_cache", "64 MiB")
    [estimate] = initial_estimates(small, [_misses(0.0, 0.0, 5.0)])
    assert (estimate.key, estimate.value) == ("ftl.map_cache", None)
    assert get_value(apply_estimates(small, [estimate], "test"), "ftl.map_cache") is None


@pytest.mark.parametrize(
    ("value", "low", "expected"),
    [
        (16.0, 16.0, "16 KiB"),
        (4.0, None, "4 KiB"),  # no drive maps less
        (16.0, None, None),  # 16 KiB or less, by writes of 16 KiB
        (None, None, None),
    ],
)
def test_a_mapping_unit_that_is_only_known_not_to_be_larger_than_the_writes_is_no_estimate(
    value: float | None, low: float | None, expected: str | None
) -> None:
    findings = {"mapping_unit_kib": Finding(value, "KiB", low, value, "")}
    results = Measurement("steady", "", "box", findings=findings)
    found = list(initial_estimates(profiles.load("toshiba-xg5"), [results]))
    assert [(each.key, each.value) for each in found] == (
        [("ftl.mapping_unit", expected)] if expected else []
    )


def test_a_measured_buffer_that_is_slightly_too_small_for_the_dies_becomes_a_little_larger() -> (
    None
):
    start = set_value(profiles.load("toshiba-xg5"), "ftl.chunk", "4 KiB")
    size = next(
        kib for kib in range(8192, 0, -64) if not _is_twin(start, "buffer.size", f"{kib} KiB")
    )
    text = apply_estimates(start, [Estimate("buffer.size", f"{size} KiB", None, None)], "test")
    kib = int(get_value(text, "buffer.size").split()[0])
    assert size < kib <= 1.3 * size
    describe_twin("box", text, CAPACITY)


def test_a_spare_that_leaves_a_small_candidate_no_room_for_collection_is_enlarged() -> None:
    """As the superblocks of many dies take up much of it."""
    start = set_value(profiles.load(CACHED), "flash.dies_per_channel", 32)
    start = apply_estimates(set_value(start, "flash.blocks_per_plane", None), [], "test")
    assert enlarge_spare(start, "test") == start
    little = set_value(start, "ftl.spare", 0.01)
    assert not _is_twin(start, "ftl.spare", 0.01)
    text = enlarge_spare(little, "test")
    assert 0.01 < get_value(text, "ftl.spare") < get_value(start, "ftl.spare")
    describe_twin("box", text, CAPACITY)


def _is_twin(profile: str, key: str, value: object) -> bool:
    try:
        describe_twin("box", set_value(profile, key, value), CAPACITY)
    except TargetError:
        return False
    return True


def test_a_static_cache_is_not_taken_for_what_garbage_collection_holds_back() -> None:
    bare = set_value(profiles.load("toshiba-xg5"), "ftl.spare", 0.1)
    changes = {"slc.size": "20 GiB", "slc.mode": "static", "slc.program": "200 us"}
    cached = set_values(bare, changes)
    reserved = [direct_estimates._reserved_superblocks(text) for text in (bare, cached)]
    assert max(reserved) < 6


@pytest.mark.parametrize(
    ("unit", "determined", "expected"),
    [
        (("8 KiB", "8 KiB", "8 KiB"), True, ("90 KiB", "110 KiB", True)),
        (("8 KiB", "4 KiB", "16 KiB"), False, ("45 KiB", "220 KiB", False)),
        ((None, None, "8 KiB"), False, ("45 KiB", "110 KiB", False)),
    ],
)
def test_memory_for_the_map_is_known_as_far_as_the_mapping_unit_is(
    unit: tuple[str | None, str, str], determined: bool, expected: tuple[str, str, bool]
) -> None:
    found = with_unknown_unit(
        [
            Estimate("ftl.map_cache", "100 KiB", "90 KiB", "110 KiB"),
            Estimate("ftl.mapping_unit", *unit, determined),
        ]
    )
    assert [one.key for one in found] == ["ftl.map_cache", "ftl.mapping_unit"]
    assert (found[0].low, found[0].high, found[0].determined) == expected
    assert found[0].value == "100 KiB"


def test_memory_for_the_map_assumes_the_mapping_unit_that_no_result_shows() -> None:
    cache = Estimate("ftl.map_cache", "100 KiB", "90 KiB", "110 KiB")
    [found] = with_unknown_unit([cache])
    assert (found.assumes, found.determined) == (("ftl.mapping_unit",), False)
    whole = Estimate("ftl.map_cache", None, None, None)
    assert with_unknown_unit([whole]) == [whole], "a map that fits does so with any unit"


def _stripe(chunk: float, stripe: float, units: int, count: int, distance: float) -> Measurement:
    values = {
        "chunk_kib": chunk,
        "stripe_kib": stripe,
        "units": units,
        "chunks_per_unit": count,
        "chunk_distance_kib": distance,
    }
    findings = {name: Finding(value, "", value, value, "") for name, value in values.items()}
    return Measurement("stripe", "", "box", findings=findings)


@pytest.mark.parametrize(
    ("results", "chunk", "dies", "planes", "page"),
    [
        (_stripe(16, 3072, 96, 2, 64), "128 KiB", 24, 4, "16 KiB"),
        (_stripe(4, 256, 16, 4, 32), "4 KiB", 8, 2, "16 KiB"),
    ],
)
def test_planes_with_several_chunks_show_dies_planes_page_and_chunk(
    results: Measurement, chunk: str, dies: int, planes: int, page: str
) -> None:
    start = set_value(profiles.load(CACHED), "flash.cache_register", False)
    check_agreement([results])
    [layout] = plane_layouts([results])
    estimates = list(initial_estimates(start, [results], layout))
    assert all(one.determined and one.low == one.high == one.value for one in estimates)
    text = apply_estimates(start, estimates, "test")
    assert [get_value(text, f"flash.{key}") for key in ("planes", "page")] == [planes, page]
    assert get_value(text, "ftl.chunk") == chunk
    twin = describe_twin("box", text)
    assert (twin["dies"], get_value(text, INDEPENDENT)) == (dies, True)
    assert PAGE not in {one.key for one in search_space(text, ("split",), _keys(estimates)).choices}


def _keys(estimates: Sequence[Estimate]) -> set[str]:
    return {one.key for one in estimates}


@pytest.mark.parametrize(
    ("results", "layouts"),
    [
        (_stripe(16, 512, 16, 2, 64), [Layout(4, 4, 16, 128), Layout(4, 4, 32, 16)]),
        (_stripe(16, 256, 8, 2, 64), [Layout(2, 4, 16, 128), Layout(4, 2, 32, 16)]),
        pytest.param(_stripe(4, 512, 64, 2, 32), [], id="8 planes"),
        pytest.param(_stripe(32, 4096, 32, 4, 512), [], id="16 planes, or pages of 128 KiB"),
        pytest.param(_stripe(16, 512, 32, 1, 64), [], id="one chunk of each unit"),
    ],
)
def test_planes_with_several_chunks_may_have_two_layouts_or_none(
    results: Measurement, layouts: list[Layout]
) -> None:
    assert plane_layouts([_cache(None, None), results]) == layouts
