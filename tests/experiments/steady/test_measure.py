"""The steady experiment on twins with known spare, and in a real directory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest

from known_twins import KnownTwin
from ssdlab.analysis.evidence import Conclusion, Evidence
from ssdlab.analysis.write_amplification import Bracket
from ssdlab.experiments.steady import analysis, closed_form
from ssdlab.experiments.steady.analysis import conclude, parts_of, spare_fall
from ssdlab.experiments.steady.estimate import Estimate
from ssdlab.experiments.steady.gauged import Gauged
from ssdlab.experiments.steady.measure import measure
from ssdlab.experiments.steady.parameters import Steady
from ssdlab.experiments.steady.plan import Plan, check, plan
from ssdlab.runner.open_target import OpenTarget, TargetOptions, open_for_run
from ssdlab.runner.session import RunSession
from ssdlab.target import parse_target
from ssdlab.units import parse_size

KIB, MIB = 1 << 10, 1 << 20
SMALL: Final = KnownTwin(capacity=512 * MIB, pages_per_block=32, buffer="256 KiB")
DRAWN: Final = {
    "5 %, greedy": replace(SMALL, spare=0.05),
    "12 %, 10 choices, capacitors, one bit a cell": replace(
        SMALL,
        spare=0.12,
        ftl='victim = "d-choices"',
        capacitors=True,
        read='["25 us"]',
        program="300 us",
    ),
    "20 %, 3 choices, larger buffer": replace(
        SMALL, spare=0.20, ftl='victim = "d-choices"\nchoices = 3', buffer="2 MiB"
    ),
    "40 %, two dies": replace(SMALL, spare=0.40, dies=2, pages_per_block=64),
}


@dataclass(frozen=True)
class Run:
    """A finished run: its twin, plan, records and conclusion."""

    twin: KnownTwin
    plan: Plan
    evidence: Evidence
    conclusion: Conclusion

    def number(self, name: str) -> float:
        """A finding's value."""
        value = self.conclusion.findings[name].value
        assert isinstance(value, float), self.conclusion.findings[name]
        return value


def _measured(target: OpenTarget, plan: Plan) -> Evidence:
    session = RunSession(target)
    session.run_plan(measure, plan)
    warnings = frozenset(warning.code for warning in target.warnings)
    return Evidence(session.recording.tables(), plan.parameters(), warnings=warnings)


def _run(twin: KnownTwin, folder: Path, plan: Plan) -> Run:
    plan = check(replace(plan, region=twin.capacity, drive=twin.capacity))
    with open_for_run(TargetOptions(parse_target(twin.target(folder)), plan.size)) as target:
        evidence = _measured(target, plan)
    return Run(twin, plan, evidence, conclude(evidence))


@pytest.fixture(scope="module", params=DRAWN)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run on each of the random twins."""
    return _run(DRAWN[request.param], tmp_path_factory.mktemp("twin"), Plan(seed=3))


def test_hidden_spare_is_within_two_points_and_usable_spare_within_half_a_point(
    run: Run,
) -> None:
    percent = run.number("hidden_spare")
    assert percent == pytest.approx(100 * run.twin.describe()["spare"], abs=2.0)
    assert percent == pytest.approx(100 * run.twin.usable_spare, abs=0.5)
    over = run.number("overprovisioning")
    assert over / 100 == pytest.approx(percent / (100 - percent), rel=1e-6)
    assert "hidden / all" in run.conclusion.findings["hidden_spare"].why


def test_a_drive_is_written_at_most_nine_times_at_random_and_16_times_in_all() -> None:
    whole = Plan(region=2**40, drive=2**40)
    assert whole.random_bytes(0.0) / whole.region == pytest.approx(9, rel=0.001)
    assert whole.write_bytes / whole.region == pytest.approx(15.9, rel=0.001)


def test_so_little_hidden_flash_that_the_reserve_may_be_as_large_is_no_finding(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 0.009 * run.evidence.parameters["region_mib"] * MIB
    little = Estimate(Bracket(size, size, size), "")
    monkeypatch.setattr(analysis, "hidden_flash", lambda _: little)
    for name in ("is_clear", "_is_by_two"):
        monkeypatch.setattr(closed_form, name, lambda _: False)
    contradicted = conclude(run.evidence).findings
    for name in ("hidden_spare", "waf_curve", "waf_without_map"):
        assert contradicted[name].value is None
        assert "but the cost of writes shows" in contradicted[name].why
    monkeypatch.setattr(analysis, "waf_without_map", lambda *_: Estimate(None, "not measured"))
    findings = conclude(run.evidence).findings
    for name in ("hidden_spare", "overprovisioning"):
        assert findings[name].value is None
        assert "the reserve may be as large" in findings[name].why


def test_the_write_amplification_without_counters_is_near_that_by_counters(run: Run) -> None:
    findings = run.conclusion.findings
    assert "counters" in findings["waf"].why
    blind = Evidence(
        {**run.evidence.tables, "observations": run.evidence.tables["observations"].slice(0, 0)},
        run.evidence.parameters,
    )
    waf = conclude(blind).findings["waf"]
    is_few = "choices = 3" in run.twin.ftl  # newer ones are victims earlier than in a first cycle
    assert ("programs and reads" if is_few else "first cycle of collection") in waf.why
    assert waf.value == findings["waf_curve"].value
    assert waf.value == pytest.approx(run.number("waf"), rel=0.05)
    assert _covers(run, "waf_curve", run.number("waf"), 0.0)


def test_the_state_is_never_steady_before_collection_begins(run: Run) -> None:
    (part,) = parts_of(run.evidence)
    fall, _ = spare_fall(run.evidence, part)
    assert fall is not None
    assert part.verdict.steady
    assert part.steady_from is not None
    assert part.steady_from * part.rule.round_bytes > fall.high
    assert run.conclusion.findings["steady"].value is True
    assert run.number("steady_from_round") == part.steady_from


def test_each_round_has_a_row_with_rates_latencies_and_waf(run: Run) -> None:
    rows = run.conclusion.measures
    assert [row["round"] for row in rows] == list(range(len(rows)))
    named = {"iops", "latency_us_p50", "latency_us_p99", "latency_us_p999", "waf"}
    assert all(named <= row.keys() for row in rows)
    last = rows[-5:]
    mean = 5 / sum(1 / row["iops"] for row in last)
    assert run.number("iops") == pytest.approx(mean, rel=1e-3)
    assert rows[0]["waf"] < rows[-1]["waf"]
    assert all(row["latency_us_p50"] <= row["latency_us_p99"] for row in rows)


def test_more_spare_is_faster_and_each_share_is_a_separate_part(tmp_path: Path) -> None:
    run = _run(replace(SMALL, spare=0.07), tmp_path, Plan(spares=(0.07, 0.28)))
    parts = parts_of(run.evidence)
    assert [part.share for part in parts] == [0.0, 0.07, 0.28]
    assert {row["spare_percent"] for row in run.conclusion.measures} == {0.0, 7.0, 28.0}
    rates = [part.iops or 0.0 for part in parts]
    assert rates == sorted(rates)
    assert rates[2] > 3 * rates[0], "the unused part is left alone"
    assert run.number("spare_gain") == pytest.approx(rates[2] / rates[0])
    why = run.conclusion.findings["spare_gain"].why
    assert "7 % of the region" in why
    assert "28 % of the region" in why


def test_a_fixed_amount_is_written_if_the_state_is_not_steady(tmp_path: Path) -> None:
    run = _run(SMALL, tmp_path, Plan(drive_writes=2.0))
    assert len(run.conclusion.measures) == 10
    assert run.conclusion.findings["steady"].value is False
    assert "not attained" in run.conclusion.findings["steady"].why
    assert run.conclusion.findings["steady_from_round"].value is None
    assert run.conclusion.verdict.startswith("A steady state was not attained")
    assert run.number("waf_curve") == pytest.approx(run.number("waf"), rel=0.1)
    assert run.conclusion.findings["waf_curve"].why.endswith("WAF in the last window")


def test_a_fixed_amount_is_written_even_after_the_state_is_steady(tmp_path: Path) -> None:
    run = _run(SMALL, tmp_path, Plan(drive_writes=4.0, guesses=(0.08, 0.02)))
    assert len(run.conclusion.measures) == 20
    assert run.number("steady_from_round") < 15


@pytest.mark.parametrize(
    ("link", "block", "is_read"),
    [(50, 4 * KIB, True), (400, 4 * KIB, False), (50, 16 * KIB, False)],
)
def test_half_of_what_a_rested_drive_takes_is_read_if_large_writes_may_be_limited(
    link: int, block: int, is_read: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A unit that is not known is taken to be four blocks."""
    monkeypatch.setattr(Gauged, "unit", None)
    run = _run(replace(SMALL, link=f"{link} MiB/s"), tmp_path, Plan(block=block, drive_writes=1.0))
    steps = {step["case"]: step for step in run.evidence.steps("gauge")}
    assert steps["once"]["block_bytes"] == 4 * block
    assert ("rested read" in steps) is is_read
    if is_read:
        assert steps["rested"]["bytes"] == 2 * steps["rested read"]["bytes"] == 32 * MIB


@pytest.mark.parametrize(("block", "is_measured"), [(128 * KIB, True), (256 * KIB, False)])
def test_blocks_above_any_mapping_unit_are_not_written_in_larger_sizes(
    block: int, is_measured: bool, tmp_path: Path
) -> None:
    run = _run(SMALL, tmp_path, Plan(block=block, drive_writes=1.0))
    cases = {step["case"] for step in run.evidence.steps("gauge")}
    assert ({"size 2", "size 4", "size 8"} <= cases) is is_measured
    assert "again" in cases
    largest = max(step["block_bytes"] for step in run.evidence.steps("gauge"))
    assert largest == MIB, "no request is larger than those of the fill"


def test_data_that_is_read_at_once_has_been_flushed(tmp_path: Path) -> None:
    steps = _run(replace(SMALL, link="50 MiB/s"), tmp_path, Plan(drive_writes=1)).evidence.steps()
    recent = next(number for number, step in enumerate(steps) if step["case"] == "recent")
    assert steps[recent + 1]["phase"] == "flush"
    reads = [step["case"] for step in steps if step["case"].endswith(" read")]
    cases = ("recent", "near", "anywhere", "strided", "unmapped", "large", "old", "rested")
    assert reads == [f"{case} read" for case in cases]
    assert '"pattern"' not in next(step["job"] for step in steps if step["case"] == "large read")


def test_sequential_writes_have_a_waf_of_one_and_give_no_spare(tmp_path: Path) -> None:
    plan = Plan(pattern="sequential", block=64 * KIB, drive_writes=1.0)
    run = _run(replace(SMALL, spare=0.28), tmp_path, plan)
    assert run.number("waf") == pytest.approx(1.0, abs=0.02)
    assert run.conclusion.findings["hidden_spare"].value is None
    assert "uniform" in run.conclusion.findings["hidden_spare"].why
    assert not run.evidence.steps("gauge")


def test_the_rate_of_an_slc_cache_larger_than_the_region_is_not_called_steady(
    tmp_path: Path,
) -> None:
    slc = 'size = "200 MiB"\nprogram = "100 us"'
    drive = KnownTwin(capacity=1024 * MIB, dies=8, spare=0.2, slc=slc)
    known = plan(Steady(region="32MiB"), parse_target(drive.target(tmp_path)), 0)
    assert known.slc_cache == drive.describe()["slc_bytes"] >= 200 * MIB
    plans = {
        "known": known,
        "unknown": replace(known, slc_cache=None),
        "directory": replace(known, slc_cache=None, drive=None),
    }
    findings = {}
    for name, each in plans.items():
        with open_for_run(TargetOptions(parse_target(drive.target(tmp_path)), each.size)) as target:
            findings[name] = conclude(_measured(target, each))
    lasting = replace(drive, slc="")
    with open_for_run(TargetOptions(parse_target(lasting.target(tmp_path)), known.size)) as target:
        truth = conclude(_measured(target, known)).findings["iops"].value
    assert isinstance(truth, float)
    for name in ("known", "unknown"):
        assert findings[name].findings["steady"].value is True
        assert findings[name].findings["iops"].value == pytest.approx(truth, rel=0.1)
    burst = findings["directory"].findings["iops"].value
    assert isinstance(burst, float)
    assert burst > 1.5 * truth
    assert findings["directory"].findings["steady"].value is None
    assert "--slc-cache" in findings["directory"].verdict


def test_a_region_is_written_until_the_drive_has_no_erased_flash_left(tmp_path: Path) -> None:
    drive = KnownTwin(spare=0.28, pages_per_block=16, program="300 us", buffer="256 KiB")
    small = Plan(region=64 * MIB, drive=drive.capacity)
    early = replace(small, drive=None, slc_cache=0)  # as in a directory
    later = replace(small, drive_writes=60.0)
    rates = {}
    for name, each in {"early": early, "small": small, "later": later}.items():
        with open_for_run(TargetOptions(parse_target(drive.target(tmp_path)), each.size)) as target:
            rates[name] = conclude(_measured(target, check(each))).findings
    truth = rates["later"]["iops"].value
    assert isinstance(truth, float)
    assert rates["small"]["steady"].value is True
    assert rates["small"]["iops"].value == pytest.approx(truth, rel=0.05)
    fresh = rates["early"]["iops"].value
    assert isinstance(fresh, float)
    assert fresh > 1.2 * truth, "without erases"


def test_a_region_too_small_to_use_up_the_erased_flash_has_no_verdict(tmp_path: Path) -> None:
    drive = replace(SMALL, capacity=2048 * MIB)
    small = check(Plan(region=16 * MIB, drive=drive.capacity))
    with open_for_run(TargetOptions(parse_target(drive.target(tmp_path)), small.size)) as target:
        conclusion = conclude(_measured(target, small))
    assert conclusion.findings["steady"].value is None
    assert "may not last" in conclusion.verdict
    passes = int(conclusion.verdict.split("--drive-writes ")[1].split(",")[0])
    rule = replace(small, drive_writes=float(passes)).rule(0.0)
    assert small.flash is not None
    assert rule.floor_bytes >= small.flash, "with the advice the floor can be met"
    assert replace(small, drive_writes=passes / 2).rule(0.0).floor_bytes < small.flash


CACHES: Final = {
    "static": 'size = "48 MiB"\nprogram = "200 us"\nmode = "static"\nbits_per_cell = 3',
    "dynamic": 'size = "100 MiB"\nprogram = "200 us"\nmode = "dynamic"\nbits_per_cell = 3',
}


@pytest.mark.parametrize(("slc", "spare"), [("", 0.12), (CACHES["static"], 0.25)])
def test_a_cache_as_fast_as_the_link_does_not_hide_where_collection_begins(
    tmp_path: Path, slc: str, spare: float
) -> None:
    run = _run(replace(SMALL, spare=spare, slc=slc, link="70 MiB/s"), tmp_path, Plan(seed=3))
    rested = {step["case"]: step["rest_s"] > 0 for step in run.evidence.steps("gauge")}
    assert (rested["read"], rested["rested"]) == (False, True)
    assert _gauged(run).rested_writes_cache is (None if slc else False)
    assert _covers(run, "hidden_spare", 100 * run.twin.describe()["spare"], 1.0)


@pytest.mark.parametrize("mode", CACHES)
def test_an_slc_cache_is_not_counted_as_hidden_spare(tmp_path: Path, mode: str) -> None:
    run = _run(replace(SMALL, spare=0.12, slc=CACHES[mode]), tmp_path, Plan(seed=3))
    assert _covers(run, "hidden_spare", 100 * run.twin.describe()["spare"], 1.0)
    assert run.number("waf_curve") == pytest.approx(run.number("waf"), rel=0.08)


@pytest.mark.parametrize("unit", [8, 16])
def test_a_block_smaller_than_the_mapping_unit_counts_as_a_whole_unit(
    tmp_path: Path, unit: int
) -> None:
    twin = replace(SMALL, spare=0.12, unit=f"{unit} KiB", buffer="2 MiB")
    run = _run(twin, tmp_path, Plan(seed=3))
    assert _covers(run, "hidden_spare", 100 * run.twin.describe()["spare"], 1.0)
    assert run.number("waf") > 3 * unit / 4
    assert run.number("mapping_unit_kib") == unit
    assert run.number("map_misses") == 0.0
    assert _covers(run, "waf_curve", run.number("waf"), 0.05)


def _covers(run: Run, name: str, truth: float, tolerance: float) -> bool:
    """Whether a finding's interval, widened by the tolerance, contains the truth."""
    finding = run.conclusion.findings[name]
    assert finding.low is not None, finding
    assert finding.high is not None, finding
    return finding.low - tolerance <= truth <= finding.high + tolerance


def test_behind_a_slow_link_the_first_cycle_of_collection_shows_waf(tmp_path: Path) -> None:
    run = _run(replace(SMALL, spare=0.1, link="60 MiB/s"), tmp_path, Plan(seed=3))
    assert _covers(run, "waf_curve", run.number("waf"), 0.0)


@pytest.mark.parametrize("slc", ["", CACHES["static"]])
def test_behind_a_slow_link_random_victims_show_waf_if_no_cache_may_hide_in_it(
    slc: str, tmp_path: Path
) -> None:
    twin = replace(SMALL, spare=0.1, link="30 MiB/s", ftl='victim = "random"', slc=slc)
    run = _run(twin, tmp_path, Plan(seed=3))
    if not slc:
        assert _covers(run, "waf_curve", run.number("waf"), 0.0)
        assert _covers(run, "hidden_spare", 100 * run.twin.describe()["spare"], 1.0)
    else:
        finding = run.conclusion.findings["waf_curve"]
        assert finding.value is None
        assert "hidden flash is not known" in finding.why


@pytest.mark.parametrize("folding", ["idle", "while writing"])
def test_writes_that_also_go_to_an_slc_cache_count_in_waf(tmp_path: Path, folding: str) -> None:
    slc = f'{CACHES["dynamic"]}\nread = "20 us"\nfolding = "{folding}"'
    run = _run(replace(SMALL, spare=0.25, slc=slc), tmp_path, Plan(seed=3))
    assert _gauged(run).writes_cache is (folding == "while writing")
    assert _covers(run, "waf_curve", run.number("waf"), 0.0)


@pytest.mark.parametrize("slc", ["", CACHES["dynamic"]])
def test_a_page_that_a_die_keeps_is_not_taken_for_an_slc_cache(tmp_path: Path, slc: str) -> None:
    slc = slc and f'{slc}\nread = "20 us"\nfolding = "while writing"'
    twin = replace(SMALL, spare=0.25, dies=16, slc=slc, flash="keeps_page = true")
    run = _run(twin, tmp_path, Plan(seed=3))
    assert _gauged(run)._single_reads("old").quantile(0.1) < 40_000, "some pages are read again"
    assert _gauged(run).writes_cache in ((None, True) if slc else (None, False))
    assert _covers(run, "waf_curve", run.number("waf"), 0.0)


@pytest.mark.parametrize("cache", ["", 'map_cache = "128 KiB"'])
def test_a_map_that_does_not_fit_makes_single_reads_slower(tmp_path: Path, cache: str) -> None:
    ftl = f'victim = "greedy"\n{cache}'
    gauged = _gauged(_run(replace(SMALL, spare=0.2, ftl=ftl), tmp_path, Plan(seed=3)))
    assert gauged.misses_map is bool(cache)
    _, low, high = gauged.map_misses or (0, 0, 1)
    assert high - low < 0.06, "a fit takes the memory for the map from it"


def _gauged(run: Run) -> Gauged:
    (part,) = parts_of(run.evidence)
    assert part.verdict.mean is not None
    return Gauged(run.evidence, float(run.plan.region), part.curve, part.verdict.mean)


def test_a_small_buffer_that_limits_writes_without_relocation_does_not_hide_waf(
    tmp_path: Path,
) -> None:
    twin = replace(SMALL, dies=8, planes=2, buffer="128 KiB", spare=0.1)
    run = _run(twin, tmp_path, Plan(seed=3))
    assert run.number("waf_curve") == pytest.approx(run.number("waf"), rel=0.08)


def test_a_region_smaller_than_the_drive_gives_no_spare(tmp_path: Path) -> None:
    plan = check(Plan(region=64 * MIB, drive=SMALL.capacity, drive_writes=1.0))
    with open_for_run(TargetOptions(parse_target(SMALL.target(tmp_path)), plan.size)) as target:
        findings = conclude(_measured(target, plan)).findings
    assert findings["hidden_spare"].value is None
    assert "whole drive" in findings["hidden_spare"].why


def test_a_real_directory_has_no_counters_and_a_warning_about_spare(drive_directory: Path) -> None:
    plan = check(Plan(region=32 * MIB, spares=(0.25,), drive_writes=1.0, settle_s=0.0))
    with open_for_run(TargetOptions(parse_target(str(drive_directory)), plan.size)) as target:
        evidence = _measured(target, plan)
    conclusion = conclude(evidence)
    assert "spare-not-trimmed" in evidence.warnings
    assert conclusion.findings["waf"].value is None
    assert conclusion.findings["iops"].value
    assert {row["waf"] for row in conclusion.measures} == {None}


def test_a_run_interrupted_in_its_first_rounds_has_no_findings(tmp_path: Path) -> None:
    run = _run(SMALL, tmp_path, Plan(drive_writes=1.0))
    steps = run.evidence.tables["steps"].slice(0, 5)
    cut = Evidence({**run.evidence.tables, "steps": steps}, run.plan.parameters(), "interrupted")
    conclusion = conclude(cut)
    assert conclusion.findings == {}
    assert conclusion.verdict.startswith("Interrupted before 5 rounds")


def test_the_share_of_reads_that_load_a_part_of_the_map_is_that_of_the_map_not_in_memory(
    tmp_path: Path,
) -> None:
    ftl = f'victim = "greedy"\nmap_cache = "{0.7 * SMALL.capacity / 4096 * 4 / KIB:.0f} KiB"'
    run = _run(replace(SMALL, spare=0.2, read='["60 us"]', ftl=ftl), tmp_path, Plan(seed=3))
    waf = run.number("waf")
    for name, truth in (("map_misses", 31), ("map_page_span_mib", 16), ("waf_curve", waf)):
        assert _covers(run, name, truth, 0.0), name
    assert "reads all over the region first load a part of the map" in run.conclusion.verdict


def test_the_rate_of_a_buffer_is_not_that_of_the_fresh_drive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = _run(DRAWN["20 %, 3 choices, larger buffer"], tmp_path, Plan(seed=3))
    fall, _ = spare_fall(run.evidence, parts_of(run.evidence)[0])
    assert fall is not None
    assert "fresh_iops" in run.conclusion.findings
    early = replace(fall, at=parse_size(run.twin.buffer) / 1.01)
    monkeypatch.setattr(analysis, "spare_fall", lambda _evidence, _part: (early, ""))
    assert "fresh_iops" not in conclude(run.evidence).findings
