"""The stripe experiment on twins with known layouts and 5 % noise, and in a real directory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from known_layouts import KIB, MIB, Twin, irregular_layouts, random_twin
from random_drives import random_drive
from ssdlab import profiles
from ssdlab.analysis.evidence import Conclusion, Evidence
from ssdlab.device import Drive, Job, Outcome, open_twin, run_job
from ssdlab.errors import UsageError
from ssdlab.experiments.stripe.analysis import conclude
from ssdlab.experiments.stripe.measure import Plan, measure, plan
from ssdlab.experiments.stripe.parameters import Stripe
from ssdlab.profiles.toml_edit import set_value
from ssdlab.runner.open_target import OpenTarget, TargetOptions, open_for_run
from ssdlab.runner.resume import ResumeState
from ssdlab.runner.session import RunSession
from ssdlab.target import Directory, parse_target

SMALL = Plan(size=256 * MIB, reads=4096)
NOISE = 0.05
PUBLISHED = {
    "samsung-980-pro": {64: 1803, 128: 1062, 256: 570, 512: 324, 1024: 166},
    "wd-sn850": {64: 2170, 128: 1110, 256: 557},
}
"""MB/s by alignment in KiB, from the published study of fragmented files (FAST '24)."""


def _concluded(drive: Drive, plan_: Plan = SMALL) -> Conclusion:
    session = RunSession(OpenTarget(drive, {}))
    session.run_plan(measure, plan_)
    return conclude(Evidence(session.recording.tables(), plan_.parameters()))


def _found(twin: Twin, seed: int = 0) -> dict[str, Any]:
    findings = _concluded(twin.open(SMALL.size, NOISE, seed)).findings
    return {name: finding.value for name, finding in findings.items()}


def _truth(twin: Twin) -> dict[str, Any]:
    stripe = twin.chunk * twin.units
    return {
        "chunk_kib": twin.chunk,
        "stripe_kib": stripe,
        "units": twin.units,
        "regular": True,
    }


@pytest.mark.parametrize("seed", range(10))
def test_chunk_and_stripe_of_a_random_twin_are_found(seed: int) -> None:
    found, truth = _found(random_twin(seed), seed), _truth(random_twin(seed))
    if seed in {
        7,
        9,
    }:  # a larger mapping unit cannot be excluded, and so small a region has few waits
        assert found["chunk_kib"] == truth["chunk_kib"]
        assert found["units"] in {None, truth["units"]}
    else:
        assert found == truth


@pytest.mark.parametrize("name", irregular_layouts())
def test_a_drive_without_a_regular_stripe_gets_no_sizes(name: str) -> None:
    conclusion = _concluded(irregular_layouts()[name].open(SMALL.size, NOISE, 1))
    assert conclusion.verdict.startswith("No regular stripe was found: ")
    assert conclusion.findings["regular"].value is False
    unknown = [conclusion.findings[key] for key in ("chunk_kib", "stripe_kib", "units")]
    assert all(finding.value is finding.low is finding.high is None for finding in unknown)


def test_three_channels_of_five_dies_are_found_at_an_odd_multiple() -> None:
    conclusion = _concluded(Twin(3, 5, chunk=16, page=16).open(SMALL.size, NOISE, 1))
    curve = {row["alignment_kib"]: row["read_mib_per_s"] for row in conclusion.measures}
    assert curve[4096] > 0.8 * curve[4], "every power of two touches all fifteen units"
    assert conclusion.findings["units"].value == 15
    assert conclusion.findings["stripe_kib"].value == 240


def test_seventeen_units_are_reported_as_irregular() -> None:
    assert _found(Twin(17, 1))["regular"] is False


def test_a_region_that_begins_inside_a_chunk_has_the_same_chunk_and_stripe() -> None:
    def shifted(count: int) -> list[int]:
        return [*range(count - 5, count), *range(count - 5)]

    twin = Twin(4, 2, chunk=32, order=shifted)
    assert _found(twin) == _truth(twin)


def test_chunks_need_not_be_powers_of_two() -> None:
    assert _found(Twin(4, 2, chunk=48, planes=3, page=16)) == _truth(Twin(4, 2, chunk=48))


def test_dies_in_rotated_order_are_irregular() -> None:
    def rotated(count: int) -> list[int]:
        stripes = [list(range(start, start + 8)) for start in range(0, count, 8)]
        rotated_stripes = [stripe[-n % 8 :] + stripe[: -n % 8] for n, stripe in enumerate(stripes)]
        return [unit for stripe in rotated_stripes for unit in stripe]

    assert _found(Twin(4, 2, chunk=4, page=16, order=rotated))["regular"] is False


def test_two_chunks_with_swapped_last_blocks_are_irregular() -> None:
    def swapped(count: int) -> list[int]:
        order = list(range(count))
        order[31::64], order[47::64] = order[47::64], order[31::64]  # chunks of 8, the 4th and 6th
        return order

    assert _found(Twin(4, 2, order=swapped))["regular"] is False


@pytest.mark.parametrize(
    ("channels", "dies", "chunk"), [(4, 4, 32), (4, 1, 4), (8, 3, 32), (2, 8, 4)]
)
def test_programs_count_the_dies_behind_slow_channels(channels: int, dies: int, chunk: int) -> None:
    hidden = Twin(channels, dies, chunk=chunk, page=32, read=(15.0,), channel=200)
    plan_ = Plan(512 * MIB, reads=4096)
    findings = _concluded(hidden.open(plan_.size, NOISE, 0), plan_).findings
    assert {name: finding.value for name, finding in findings.items()} == _truth(hidden)
    assert "programs" in findings["regular"].why or dies == 1
    found, truth = _found(replace(hidden, read=(60.0,))), _truth(hidden)
    if (dies, chunk) == (8, 4):  # units of 65 MiB/s may also be channels of an old standard
        truth |= {"units": None, "stripe_kib": None}
    assert found == truth


@pytest.mark.parametrize(("dies", "suspend_us"), [(1, 5), (4, 5), (4, 49)])
def test_suspended_programs_do_not_show_dies_but_the_chunk_is_found(
    dies: int, suspend_us: int
) -> None:
    text = Twin(4, dies, chunk=32, page=32, read=(15.0,), channel=200).profile(1024)
    conclusion = _concluded(
        open_twin("known", set_value(text, "flash.suspend", f"{suspend_us} us"))
    )
    values = {name: finding.value for name, finding in conclusion.findings.items()}
    assert values == {"chunk_kib": 32, "stripe_kib": None, "units": None, "regular": True}
    assert "Chunks of 32 KiB on 4 channels or dies in turn" in conclusion.verdict
    assert "The data sheet's number of channels decides" in conclusion.verdict


def test_slow_channels_with_mapping_units_of_32_kib_are_not_taken_for_dies() -> None:
    text = Twin(3, 4, chunk=32, page=32, read=(50.0,), channel=80).profile(1024)
    conclusion = _concluded(open_twin("known", set_value(text, "ftl.mapping_unit", "32 KiB")))
    values = {name: finding.value for name, finding in conclusion.findings.items()}
    assert values == {"chunk_kib": 32, "stripe_kib": None, "units": None, "regular": True}


def test_more_units_than_any_drive_has_channels_are_dies() -> None:
    """Their chunks are too small to show whether transfers limit them, and programs suspended."""
    text = Twin(12, 4, chunk=4, page=16, read=(30.0,), channel=800).profile(1024)
    conclusion = _concluded(open_twin("known", set_value(text, "flash.suspend", "5 us")))
    values = {name: finding.value for name, finding in conclusion.findings.items()}
    assert values == {"chunk_kib": 4, "stripe_kib": 192, "units": 48, "regular": True}


@pytest.mark.parametrize("register", ["true", "false"])
def test_a_single_read_shows_a_die_although_programs_are_suspended(register: str) -> None:
    text = Twin(4, 1, chunk=4, page=16, read=(18.0,), channel=1600, link=800).profile(1024)
    text = set_value(text, "flash.suspend", "5 us")
    text = text.replace("[flash]", f"[flash]\ncache_register = {register}")
    conclusion = _concluded(open_twin("known", text))
    assert (conclusion.findings["chunk_kib"].value, conclusion.findings["units"].value) == (4, 4)
    assert "a single read takes too little time" in conclusion.findings["regular"].why


@pytest.mark.parametrize(("suspend", "units"), [(None, 4), ("5 us", None)])
def test_a_channel_that_is_a_little_faster_than_its_dies_is_not_taken_for_one(
    suspend: str | None, units: int | None
) -> None:
    """The drive has 2 channels of 2 dies, each 0.82 times as fast as its channel."""
    text = random_drive(55314).profile.replace("keeps_page = true", "")
    if suspend is not None:  # reads then do not wait for programs
        text = text.replace("[flash]", f'[flash]\nsuspend = "{suspend}"')
    session = RunSession(OpenTarget(open_twin("known", text), {"kind": "twin"}))
    plan = Plan(1024 * MIB, 2, 4096, 55314)
    session.run_plan(measure, plan)
    conclusion = conclude(Evidence(session.recording.tables(), plan.parameters(), virtual=True))
    assert conclusion.findings["units"].value == units
    if units is None:
        assert "at a multiple of this stripe reads are a little slower" in conclusion.verdict


@pytest.mark.parametrize("unit", [8, 16])
def test_dies_behind_a_slow_channel_are_counted_with_large_mapping_units(unit: int) -> None:
    text = Twin(8, 4, chunk=32, page=32, read=(15.0,), channel=200).profile(1024)
    drive = open_twin("known", set_value(text, "ftl.mapping_unit", f"{unit} KiB"))
    findings = _concluded(drive, Plan(512 * MIB, reads=4096)).findings
    assert (findings["chunk_kib"].value, findings["units"].value) == (32, 32)


def test_a_link_that_is_slower_for_a_mapping_unit_does_not_hide_the_channel() -> None:
    text = Twin(3, 2, chunk=16, page=16, read=(10.0,), channel=400, link=263).profile(1024)
    drive = open_twin("known", set_value(text, "ftl.mapping_unit", "16 KiB"))
    findings = _concluded(drive).findings
    assert (findings["chunk_kib"].value, findings["units"].value) in {(16, None), (16, 6)}


def test_pairs_of_addresses_are_not_all_on_pages_of_one_type() -> None:
    # 16384 stripes in the region, of which pairs visit every eighth; pages have four types.
    twin = Twin(2, 1, chunk=32, read=(52.0, 78.0, 104.0, 129.0), channel=200)
    plan_ = Plan(1024 * MIB, 2, 4096)
    findings = _concluded(twin.open(plan_.size, 0.0, 1), plan_).findings
    assert (findings["chunk_kib"].value, findings["units"].value) == (32, 2)


def test_the_writes_between_reads_are_within_the_plan() -> None:
    drive = Twin(2, 2, read=(15.0,), channel=200).open(SMALL.size, 0, 1)
    session = RunSession(OpenTarget(drive, {}))
    session.run_plan(measure, SMALL)
    counters = drive.counters()
    assert counters is not None
    assert SMALL.size < counters["host_write_bytes"] <= SMALL.write_bytes


def test_a_region_of_which_an_slc_cache_holds_a_part_has_the_stripe_of_its_parts() -> None:
    text = Twin(4, 2, chunk=32).profile(1024)
    slc = '[slc]\nsize = "100 MiB"\nprogram = "100 us"\nread = "10 us"\n'
    for plan_ in (SMALL, Plan(512 * MIB, reads=4096)):
        findings = _concluded(open_twin("known", text + slc), plan_).findings
        assert findings["units"].value in {None, 8}
        assert findings["chunk_kib"].value in {None, 32.0}


def test_the_search_continues_past_a_channel_with_several_dies() -> None:
    twin = Twin(4, 4, read=(30.0,), channel=205)  # 128 KiB: one channel, 512 KiB: one die
    assert _found(twin) == _truth(twin)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_drive_matches_its_curve_within_ten_percent(name: str) -> None:
    conclusion = _concluded(open_twin(name, profiles.load(name), 16 << 30), Plan())
    rates = {row["alignment_kib"]: row["read_mib_per_s"] * MIB / 1e6 for row in conclusion.measures}
    for alignment, printed in PUBLISHED[name].items():
        assert rates[alignment] == pytest.approx(printed, rel=0.1), alignment
    assert conclusion.findings["chunk_kib"].value == 32
    assert conclusion.findings["stripe_kib"].value == max(PUBLISHED[name])


def test_the_same_twin_and_seed_give_the_same_measures() -> None:
    rows = [_concluded(Twin(3, 2).open(SMALL.size, NOISE, 4), SMALL).measures for _ in range(2)]
    assert rows[0] == rows[1]


def test_a_resumed_run_repeats_no_recorded_probe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = RunSession(OpenTarget(Twin().open(SMALL.size, NOISE, 2), {}))
    first.run_plan(measure, SMALL)
    tables = first.recording.tables()
    ops: list[str] = []

    def only_flush(_drive: Drive, job: Job, *_: Any) -> Outcome:
        ops.append(job.op)
        return flush

    flush = run_job(Twin().open(SMALL.size, 0, 2), Job(op="flush"))
    monkeypatch.setattr("ssdlab.runner.session.run_job", only_flush)
    resumed = RunSession(
        OpenTarget(Twin().open(SMALL.size, 0, 2), {}), resume=ResumeState(tables, True)
    )
    resumed.run_plan(measure, SMALL)
    assert ops == ["flush"]
    assert resumed.recording.tables()["steps"].num_rows == tables["steps"].num_rows


def test_every_repeat_of_a_probe_has_its_number() -> None:
    session = RunSession(OpenTarget(Twin(2, 2).open(SMALL.size, NOISE, 2), {}))
    session.run_plan(measure, SMALL)
    reads = Evidence(session.recording.tables(), {}).steps("read")
    identities = [(row["case"], row["repeat"]) for row in reads]
    assert len(set(identities)) == len(identities) > 60


def test_an_interrupted_run_has_rows_and_no_findings() -> None:
    session = RunSession(OpenTarget(Twin().open(SMALL.size, NOISE, 2), {}))
    session.run_plan(measure, SMALL)
    tables = session.recording.tables()
    cut = {**tables, "steps": tables["steps"].slice(0, 40)}
    conclusion = conclude(Evidence(cut, SMALL.parameters(), "interrupted"))
    assert conclusion.findings == {}
    assert conclusion.verdict == "Interrupted before enough was read: too little to tell."
    assert [row["alignment_kib"] for row in conclusion.measures][:3] == [4, 8, 16]


def test_a_fragmented_test_file_gets_a_warning(
    drive_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = Plan(size=64 * MIB, repeats=2, reads=256)
    options = TargetOptions(
        parse_target(str(drive_directory)), small.size, request_bytes_max=small.request_bytes_max
    )
    with open_for_run(options) as target:
        monkeypatch.setattr(OpenTarget, "check_written", lambda _self: 7)
        session = RunSession(target)
        session.run_plan(measure, small)
    sentences = {warning.code: warning.sentence for warning in target.warnings}
    assert "has 7 extents" in sentences["fragmented"]
    conclusion = conclude(Evidence(session.recording.tables(), small.parameters()))
    assert set(conclusion.findings) == {"chunk_kib", "stripe_kib", "units", "regular"}


@pytest.mark.parametrize("size", [0, MIB, 63 * MIB, 64 * MIB + 4 * KIB])
def test_a_size_too_small_or_not_in_whole_mebibytes_is_refused(size: int) -> None:
    with pytest.raises(UsageError, match="a multiple of 1 MiB, at least 64 MiB"):
        plan(Stripe(size=size), Directory("."), 0)


def test_channels_with_mapping_units_of_8_kib_are_not_taken_for_dies_because_of_noise() -> None:
    drive = random_drive(45)  # 8 channels of 4 dies, slower than their dies
    session = RunSession(OpenTarget(drive.open(), {"kind": "twin"}))
    plan = Plan(1024 * MIB, 2, 4096, 45)
    session.run_plan(measure, plan)
    conclusion = conclude(Evidence(session.recording.tables(), plan.parameters(), virtual=True))
    assert conclusion.findings["units"].value in {None, 32}


@pytest.mark.parametrize(("bandwidth", "unit"), [(40, 4), (100, 8), (150, 16)])
def test_a_channel_of_an_old_standard_is_not_taken_for_a_die(bandwidth: int, unit: int) -> None:
    text = Twin(4, 2, chunk=32, page=16, read=(25.0,), channel=bandwidth).profile(1024)
    text = set_value(set_value(text, "ftl.mapping_unit", f"{unit} KiB"), "flash.program", "600 us")
    findings = _concluded(open_twin("known", text), Plan(512 * MIB, reads=4096)).findings
    assert (findings["chunk_kib"].value, findings["units"].value) == (32, 8)


def test_equal_waits_for_transfers_of_a_slow_channel_do_not_make_it_a_die() -> None:
    text = Twin(10, 2, chunk=16, planes=2, page=8, read=(25.0,), channel=40).profile(1024)
    text = set_value(set_value(text, "ftl.mapping_unit", "8 KiB"), "flash.program", "600 us")
    findings = _concluded(open_twin("known", text), Plan(512 * MIB, reads=4096)).findings
    assert (findings["chunk_kib"].value, findings["units"].value) in {(16, None), (16, 20)}


def test_chunks_of_36_kib_on_25_dies_are_found() -> None:
    twin = Twin(5, 5, chunk=36, planes=3, page=12)
    plan_ = Plan(1024 * MIB, 2, 4096)
    findings = _concluded(twin.open(plan_.size, 0.0, 1), plan_).findings
    assert (findings["chunk_kib"].value, findings["units"].value) == (36, 25)
