"""A drive whose planes, page and cache differ from those of the start profile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from candidate_results import measured, measured_stripe

from ssdlab import profiles
from ssdlab.analysis.cells import Cell
from ssdlab.device import describe_twin
from ssdlab.experiments.fsync import analysis as fsync_analysis
from ssdlab.experiments.fsync import measure as fsync
from ssdlab.experiments.split import analysis as split_analysis
from ssdlab.experiments.split import measure as split
from ssdlab.experiments.steady import analysis as steady_analysis
from ssdlab.experiments.steady import measure as steady
from ssdlab.experiments.suite import analysis as suite_analysis
from ssdlab.experiments.suite import measure as suite
from ssdlab.fit import fitted as fitted_module
from ssdlab.fit import lasting
from ssdlab.fit.direct_estimates import with_capacity
from ssdlab.fit.first_guess import guess
from ssdlab.fit.fitted import Fitted, fit
from ssdlab.fit.lasting import lasting_estimates, page_by_rates
from ssdlab.fit.measurement import Measurement
from ssdlab.fit.objective import CAPACITY, MIB, with_whole_caches
from ssdlab.fit.parameters import (
    MULTI_PLANE_PAGES,
    PAGE,
    PROTECTED,
    Estimate,
    search_space,
)
from ssdlab.fit.results import FitInput
from ssdlab.fit.variables import MultiPlanePage
from ssdlab.profiles.toml_edit import get_value, remove_table, set_value, set_values
from ssdlab.records import Finding
from ssdlab.units import parse_duration

UNLIKE = {
    "flash.channels": 4,
    "flash.dies_per_channel": 2,
    "flash.planes": 1,
    "flash.page": "8 KiB",
    "flash.read": "80 us",
    "flash.program": "600 us",
    "flash.cache_register": False,
    "flash.suspend": "30 us",
    "ftl.chunk": "32 KiB",
    "ftl.mapping_unit": "8 KiB",
    "ftl.read_ahead": None,
    "ftl.read_portion": None,
    "ftl.read_portions": None,
}
START = "samsung-970-evo-plus-500"


def _truth() -> str:
    return set_values(profiles.load("toshiba-xg5"), UNLIKE)


@pytest.fixture(scope="module")
def fitted() -> Fitted:
    text = _truth()
    results = (
        measured_stripe(text),
        measured(text, "split", (split, split_analysis), split.Plan(64 * MIB, 3, seed=5)),
        measured(text, "suite", (suite, suite_analysis), suite.Plan(128 * MIB, 1.0, 2, 5)),
        measured(
            text, "fsync", (fsync, fsync_analysis), fsync.Plan(64 * MIB, 0.5, 2, "unknown", 5)
        ),
    )
    start = set_value(remove_table(profiles.load(START), "slc"), "buffer.size", "8 MiB")
    return fit(start, FitInput(results), "test")


def test_the_multi_plane_page_is_found_and_with_it_the_times_of_the_flash(fitted: Fitted) -> None:
    twin = describe_twin("box", fitted.profile, CAPACITY)
    assert twin["planes"] * twin["page_bytes"] == 8 << 10
    found = {each.key: each for each in fitted.parameters}
    assert found[PAGE].determined
    # These results hardly tell a shorter read, with a cache register, from a channel that its
    # transfer keeps busy longer.
    read_us = _mean_us(get_value(fitted.profile, "flash.read"))
    assert read_us == pytest.approx(80, rel=0.15)
    assert read_us == pytest.approx(80, rel=0.05) or not found["flash.read"].determined
    low, high = found["flash.read"].low, found["flash.read"].high
    assert _mean_us(low) < 80 < _mean_us(high)
    program = float(get_value(fitted.profile, "flash.program").split()[0])
    assert program == pytest.approx(600, rel=0.1)
    assert "flash.page" not in fitted.assumed


def _mean_us(times: list[str]) -> float:
    return sum(float(text.split()[0]) for text in times) / len(times)


def test_the_mapping_unit_and_what_reads_wait_for_are_found(fitted: Fitted) -> None:
    found = {each.key: each for each in fitted.parameters}
    assert found["ftl.mapping_unit"].value == "8 KiB"
    assert found["flash.cache_register"].value is False
    assert found["flash.keeps_page"].value is False
    assert found["ftl.mapping_unit"].determined
    suspend = found["flash.suspend"]
    assert suspend.start is None
    assert parse_duration(suspend.low) < 30e-6 < parse_duration(suspend.high)
    assert not suspend.determined


def test_the_channels_are_searched_and_those_of_the_drive_are_in_the_interval(
    fitted: Fitted,
) -> None:
    [channels] = [each for each in fitted.parameters if each.key == "flash.channels"]
    assert channels.start == 8
    assert channels.low <= 4 <= channels.high
    assert describe_twin("box", fitted.profile)["dies"] == 8


@pytest.mark.parametrize(
    ("buffer", "limit", "low", "high"),
    [
        ("64 MiB", "1 ms", "707 us", "1414 us"),
        ("64 MiB", None, None, None),
        ("1 MiB", None, "250 us", None),
    ],
)
def test_how_long_reads_may_delay_a_program_is_found_where_results_show_it(
    buffer: str, limit: str | None, low: str | None, high: str | None
) -> None:
    """Behind a large buffer, reads of a mix are faster if they may delay programs for long."""
    dies = {"flash.channels": 2, "flash.dies_per_channel": 1, "buffer.size": buffer}
    start = set_values(profiles.load("toshiba-xg5"), dies | {"flash.suspend": "20 us"})
    plan = fsync.Plan(64 * MIB, 0.5, 2, "unknown", 5)
    text = set_value(start, "flash.delay_limit", limit)
    results = (
        measured_stripe(text),
        measured(text, "fsync", (fsync, fsync_analysis), plan),
    )
    found = {each.key: each for each in fit(start, FitInput(results), "test").parameters}
    delay = found["flash.delay_limit"]
    assert delay.value == limit
    assert (delay.low, delay.high) == (low, high)


@pytest.mark.parametrize("protected", [True, False])
def test_whether_flushes_wait_for_flash_is_found_where_fsync_does_not_decide(
    protected: bool,
) -> None:
    """A slow flush without such a wait looked like one with a short program."""
    start = profiles.load("toshiba-xg5")
    changes = {"buffer.flush_overhead": "200 us", "buffer.size": "1 MiB"} if protected else {}
    for profile in (start, set_value(start, PROTECTED, True)):
        text = set_values(start, changes | {PROTECTED: protected})
        plan = fsync.Plan(64 * MIB, 0.5, 2, "unknown", 5)
        flushed = measured(text, "fsync", (fsync, fsync_analysis), plan)
        findings = {name: one for name, one in flushed.findings.items() if name != "class"}
        results = FitInput((measured_stripe(text), replace(flushed, findings=findings)))
        fitted = fit(profile, results, "test")
        found = {each.key: each for each in fitted.parameters}
        assert found[PROTECTED].value == protected
        assert (found[PROTECTED].low, found[PROTECTED].high) == (False, protected)
        overhead = found["buffer.flush_overhead"]
        assert _us(overhead.low) <= (200 if protected else 0) <= _us(overhead.high)
        assert get_value(fitted.profile, PROTECTED) == protected


def _us(text: str) -> float:
    return 1e6 * parse_duration(text)


def test_dies_that_keep_the_page_that_they_read_last_are_found() -> None:
    start = profiles.load("toshiba-xg5")
    text = set_value(start, "flash.keeps_page", True)
    plan = split.Plan(64 * MIB, 3, seed=5)
    results = (measured_stripe(text), measured(text, "split", (split, split_analysis), plan))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("ssdlab.fit.variables._RATIOS", ())
        fitted = fit(start, FitInput(results), "test")
    [keeps] = [each for each in fitted.parameters if each.key == "flash.keeps_page"]
    assert (keeps.value, keeps.start, keeps.determined) == (True, False, True)
    assert get_value(fitted.profile, "flash.keeps_page") is True


def test_a_program_time_is_not_determined_if_no_result_tests_the_page() -> None:
    findings = {"lasting_mib_per_s": Finding(200.0, "", None, None, "")}
    results = (measured_stripe(_truth()), Measurement("cache", "", "box", findings=findings))
    fitted = fit(profiles.load("toshiba-xg5"), FitInput(results), "test")
    [program] = [each for each in fitted.parameters if each.key == "flash.program"]
    assert program.assumes == ("flash.planes", "flash.page")
    assert not program.determined
    [read] = [each for each in fitted.parameters if each.key == "flash.read"]
    assert read.determined
    assert read.assumes == ()


@pytest.mark.parametrize(("chunk", "determined"), [("32 KiB", True), ("128 KiB", False)])
def test_tr_is_uncertain_by_its_page_types_if_a_chunk_has_several_pages(
    chunk: str, determined: bool
) -> None:
    text = set_value(profiles.load("toshiba-xg5"), "ftl.chunk", chunk)
    fitted = fit(profiles.load("toshiba-xg5"), FitInput((measured_stripe(text),)), "test")
    assert get_value(fitted.profile, "ftl.chunk") == chunk
    [read] = [each for each in fitted.parameters if each.key == "flash.read"]
    assert read.determined == determined


@pytest.mark.parametrize(("drive_mib", "cache_mib"), [(1024, 45), (500e9 / MIB, 1024)])
def test_a_candidate_has_a_cache_as_large_as_the_drive(drive_mib: float, cache_mib: int) -> None:
    results = Measurement("suite", "", "box", parameters={"drive_mib": drive_mib})
    text = with_whole_caches(profiles.load(START), results)
    slc_mib = describe_twin("box", text, CAPACITY)["slc_bytes"] / MIB
    assert slc_mib == pytest.approx(cache_mib, rel=0.05)


def test_spare_behind_a_cache_comes_from_the_lasting_rate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ssdlab.fit.lasting.SPARES", (0.13, 0.19, 0.28))
    monkeypatch.setattr("ssdlab.fit.lasting.REFINEMENTS", 1)
    monkeypatch.setattr("ssdlab.fit.lasting.VICTIMS", ("greedy",))
    cache = {"slc.size": "32000 MiB", "slc.mode": "static", "slc.program": "150 us"}
    truth = set_values(_truth(), {**cache, "ftl.spare": 0.2})
    plan = steady.Plan(CAPACITY, CAPACITY, drive_writes=2.0, settle_s=3.0, seed=5)
    results = measured(truth, "steady", (steady, steady_analysis), plan)
    assert [cell.name for cell in results.cells] == ["iops"] * 10
    start = set_value(truth, "ftl.spare", 0.07)
    results = replace(results, findings={})  # with the spare that `steady` found it would be known
    found = {one.key: one for one in lasting_estimates(start, FitInput((results,)))}
    spare, mode = found["ftl.spare"], found["slc.mode"]
    assert spare.value == pytest.approx(0.2, rel=0.1)
    assert spare.low < 0.2 < spare.high
    assert mode.value == "static"
    # The rates show the spare only as well as everything else is known.
    [wide, *_] = lasting_estimates(start, FitInput((results,)), 100.0)
    assert wide.low < spare.low
    assert wide.high > spare.high
    assert not wide.determined


def test_the_kind_of_cache_must_agree_with_the_other_results(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = set_values(_truth(), {"slc.size": "32000 MiB", "slc.program": "150 us"})
    cells = tuple(Cell((number,), "iops", 1000.0) for number in range(10))
    parameters = {"drive_mib": 1024.0, "region_mib": 1024.0}
    finding = Finding(10.0, "%", 9.0, 11.0, "")
    results = Measurement("steady", "", "box", cells, {"hidden_spare": finding}, parameters)
    monkeypatch.setattr(lasting, "VICTIMS", ("greedy",))
    monkeypatch.setattr(lasting._Candidates, "_errors", lambda *_: np.zeros(10))
    monkeypatch.setattr(lasting, "cost_on", lambda _o, text: 50.0 * ('"dynamic"' in text))
    found = {one.key: one for one in lasting_estimates(text, FitInput((results,)))}
    assert (found["slc.mode"].value, found["slc.mode"].determined) == ("static", True)
    assert "ftl.spare" not in found
    assert not found["ftl.victim"].determined
    monkeypatch.setattr(lasting, "cost_on", lambda _o, _text: 0.0)
    found = {one.key: one for one in lasting_estimates(text, FitInput((results,)))}
    assert (found["slc.mode"].low, found["slc.mode"].high) == ("static", "dynamic")
    assert not found["slc.mode"].determined


def _steady(truth: str, percent: float) -> FitInput:
    """Rates of rounds on a drive, and its spare as `steady` would report it."""
    plan = steady.Plan(CAPACITY, CAPACITY, drive_writes=2.0, settle_s=3.0, seed=5)
    results = measured(truth, "steady", (steady, steady_analysis), plan)
    finding = Finding(percent, "%", None, None, "")
    return FitInput((replace(results, findings={"hidden_spare": finding}),))


def _program_us(found: Estimate) -> list[float]:
    return [float(text.split()[0]) for text in (found.value, found.low, found.high)]


def test_the_lasting_rate_shows_the_time_of_a_program_if_the_spare_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lasting, "VICTIMS", ("greedy",))
    truth = set_values(_truth(), {"link.bandwidth": "60 MB/s", "ftl.spare": 0.15})
    start, results = set_value(truth, "flash.program", "1200 us"), _steady(truth, 12.0)
    spare = Estimate("ftl.spare", 0.15, 0.149, 0.151)
    found = list(lasting_estimates(start, results, spare=spare, is_known=False))
    [program] = [one for one in found if one.key == "flash.program"]
    value, low, high = _program_us(program)
    assert value == pytest.approx(600, rel=0.05)
    assert low == pytest.approx(value / 1.2, rel=0.03)
    assert high == pytest.approx(1.2 * value, rel=0.03)
    assert not program.determined
    assert "ftl.spare" not in {one.key for one in found}
    # With less spare each write costs more, so that a program takes less.
    spare = replace(spare, low=0.1, high=0.2)
    [program, *_] = lasting_estimates(start, results, spare=spare, is_known=False)
    _, wide_low, wide_high = _program_us(program)
    assert wide_low < 0.9 * low
    assert wide_high > 1.1 * high
    # If the other results show it, the rates do not change it, but may contradict it.
    near = set_value(truth, "flash.program", "720 us")
    assert {one.key for one in lasting_estimates(near, results, spare=spare)} == {"ftl.victim"}
    [program, *_] = lasting_estimates(start, results, spare=spare)
    value, low, high = _program_us(program)
    assert value == high == 1200
    assert 500 < low < 600
    assert not program.determined
    # With little spare, victims chosen at random are not tried, but may explain the rates.
    monkeypatch.setattr(lasting, "RANDOM_LEAST_KNOWN", 0.2)
    assert {one.key for one in lasting_estimates(start, results, spare=spare)} == {"ftl.victim"}


def test_the_lasting_rate_shows_the_page_if_spare_and_time_of_a_program_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lasting, "VICTIMS", ("greedy",))
    truth = set_value(_truth(), "ftl.spare", 0.15)
    pages = MultiPlanePage.of_profile(PAGE, truth, MULTI_PLANE_PAGES)
    true, results = pages.value_in(truth), _steady(truth, 12.0)
    without = FitInput((replace(results.others[0], findings={}),))
    for start in ("8 KiB", "16 KiB", "32 KiB"):  # 4 KiB are less than a mapping unit
        text, unsure = pages.apply(truth, start), Estimate(PAGE, start, start, start, False)
        assert page_by_rates(text, without, pages, unsure) == unsure
        page = page_by_rates(text, results, pages, unsure)
        assert (page.value, page.low, page.high) == (true, true, true)
        assert not page.determined


def test_the_first_round_does_not_count_where_it_need_not_show_the_spare(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What it writes before collection begins depends on the buffer and the link."""
    truth = set_value(_truth(), "ftl.spare", 0.3)
    results = _steady(truth, 25.0)
    counted = list[int]()

    def count(candidates: lasting._Candidates, *_: Any, **__: Any) -> list[Estimate]:
        counted.append(len(candidates._errors(truth)))
        return []

    monkeypatch.setattr(lasting, "_estimates", count)
    without = FitInput((replace(results.others[0], findings={}),))
    for each, is_known in ((results, False), (results, True), (without, False)):
        list(lasting_estimates(truth, each, is_known=is_known))
    assert counted == [9, 10, 10]


def test_the_lasting_rate_does_not_show_the_time_of_a_program_if_the_link_limits_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lasting, "VICTIMS", ("greedy",))
    truth = set_values(_truth(), {"link.bandwidth": "20 MB/s", "ftl.spare": 0.4})
    spare = Estimate("ftl.spare", 0.4, 0.39, 0.41)
    start = set_value(truth, "flash.program", "500 us")
    found = lasting_estimates(start, _steady(truth, 35.0), spare=spare, is_known=False)
    assert {one.key for one in found} == {"ftl.victim"}


def test_victims_chosen_at_random_are_found_with_little_spare_that_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lasting, "VICTIMS", ("greedy", "random"))
    truth = set_values(_truth(), {"ftl.spare": 0.048, "ftl.victim": "random"})
    start = set_value(truth, "ftl.victim", "greedy")
    found = {one.key: one for one in lasting_estimates(start, _steady(truth, 3.0))}
    assert found["ftl.victim"].value == "random"


def test_the_search_starts_from_the_rates_that_results_show() -> None:
    start = profiles.load("wd-sn850")
    results = (
        Measurement(
            "stripe", "", "box", (Cell((512.0,), "read_mib_per_s", 62.5),),
            {"stripe_kib": Finding(512.0, "KiB", None, None, "")},
        ),
        Measurement(
            "suite", "", "box", (Cell(("random 4k", "read"), "mean", 39.0625, unit="MiB/s"),)
        ),
    )  # fmt: skip
    space = search_space(start, ("stripe", "suite"))
    text = guess(start, results, space, "test")
    assert float(get_value(text, "flash.read").split()[0]) == pytest.approx(62.5)
    overhead = float(get_value(text, "link.read_overhead").split()[0])
    assert overhead == pytest.approx(0.8 * (100 - 62.5), rel=0.01)


@pytest.mark.parametrize("capacity", [1 << 30, 4 << 30, 64 << 30, 480 * 10**9])
@pytest.mark.parametrize("start", [START, "intel-s3510-480", "wd-sn850"])
def test_a_start_profile_becomes_a_drive_of_any_capacity(start: str, capacity: int) -> None:
    full = profiles.load(start)
    text = with_capacity(full, capacity, "test")
    twin = describe_twin("box", text)
    assert twin["capacity_bytes"] == capacity
    assert twin["superblocks"] >= 100
    sizes, erases = zip(
        *(
            (get_value(each, "flash.pages_per_block"), get_value(each, "flash.erase").split()[0])
            for each in (full, text)
        ),
        strict=True,
    )
    assert sizes[0] / sizes[1] == pytest.approx(float(erases[0]) / float(erases[1]), rel=0.01)
    if capacity > 100 << 30:
        assert sizes[0] == sizes[1]


@pytest.mark.parametrize(
    ("name", "found", "determined"),
    [("stripe", (), False), ("stripe", ("ftl.chunk",), True), ("suite", (), True)],
)
def test_a_page_is_right_only_with_the_chunk_that_stripe_did_not_show(
    name: str, found: tuple[str, ...], determined: bool
) -> None:
    estimates = [Estimate(key, "16 KiB", "16 KiB", "16 KiB") for key in (PAGE, *found)]
    estimates.append(Estimate("flash.program", "600 us", "590 us", "610 us"))
    fit_input = FitInput((Measurement(name, "", "box"),))
    page, *_, program = fitted_module._with_assumptions(_truth(), estimates, fit_input)
    for each in (page, program):  # the time of a program is found with the page
        assert each.determined is determined, each.key
        assert each.assumes == (() if determined else ("ftl.chunk",)), each.key
