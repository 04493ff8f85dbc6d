"""Runs of cache on twins with known buffers and SLC caches, and on a real directory."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from msgspec.structs import replace as replace_job

from known_twins import KnownTwin
from random_drives import random_drive
from ssdlab.analysis.evidence import Conclusion, Evidence
from ssdlab.device import Job, describe_twin, open_twin, run_job
from ssdlab.errors import UsageError
from ssdlab.experiments.cache.analysis import conclude
from ssdlab.experiments.cache.buffers import Size, WritePass
from ssdlab.experiments.cache.measure import Plan, measure, plan_for, small_job
from ssdlab.experiments.cache.parameters import Cache
from ssdlab.experiments.cache.rests import BLOCK, DEPTH
from ssdlab.experiments.cache.sizes import Sizes, _bounded, _undivided, _unless_slower
from ssdlab.records import Finding
from ssdlab.runner.open_target import OpenTarget, TargetOptions, open_for_run
from ssdlab.runner.session import RunSession
from ssdlab.stats.rate_drops import RateDrop
from ssdlab.stats.steady import Progress
from ssdlab.target import parse_target
from ssdlab.units import parse_size

MIB: Final = 1 << 20
SIZE: Final = 256 * MIB
CACHE: Final = 64 * MIB
SMALL: Final = KnownTwin(
    capacity=2 << 30, dies=8, pages_per_block=24, program="1200 us", buffer="4 MiB"
)
STATIC: Final = 'size = "64 MiB"\nprogram = "300 us"'
DYNAMIC: Final = f'{STATIC}\nmode = "dynamic"'
CACHED: Final = {
    "static": replace(SMALL, slc=STATIC),
    "static, capacitors": replace(SMALL, slc=STATIC, capacitors=True, buffer="8 MiB"),
    "dynamic": replace(SMALL, slc=DYNAMIC),
    "as fast as the link": replace(SMALL, slc=STATIC, link="400 MiB/s"),
    "little faster than flash": replace(SMALL, slc='size = "64 MiB"\nprogram = "920 us"'),
}
BUFFERED: Final = {
    "small": replace(SMALL, buffer="2 MiB"),
    "capacitors": replace(SMALL, buffer="16 MiB", capacitors=True),
    "capacitors, 64 MiB": replace(SMALL, buffer="64 MiB", capacitors=True),
    "little faster than flash": replace(SMALL, buffer="4 MiB", link="135 MiB/s"),
}


def _measured(twin: KnownTwin, drive: int = 0) -> Conclusion:
    return conclude(_evidence(twin, drive))


@cache
def _evidence(twin: KnownTwin, drive: int = 0) -> Evidence:
    plan = Plan(size=SIZE, trims=True, drive=drive, whole=drive > 0)
    with (
        tempfile.TemporaryDirectory() as folder,
        open_for_run(TargetOptions(parse_target(twin.target(Path(folder))), plan.size)) as opened,
    ):
        session = RunSession(opened)
        session.run_plan(measure, plan)
    return Evidence(session.recording.tables(), plan.parameters(), virtual=True)


def _number(conclusion: Conclusion, name: str) -> float:
    value = conclusion.findings[name].value
    assert isinstance(value, float), conclusion.findings[name]
    return value


def _mib(text: str) -> float:
    return float(text.removesuffix(" MiB"))


def _fold_s(twin: KnownTwin) -> float:
    """The shortest rest after the first write that folds all of it, by the twin's counters."""
    total, too_short, enough = _folded(twin, 100.0), 0.0, 4.0
    assert _folded(twin, enough) == total
    while enough - too_short > 0.02:
        middle = (too_short + enough) / 2
        if _folded(twin, middle) == total:
            enough = middle
        else:
            too_short = middle
    return enough


def _folded(twin: KnownTwin, rest_s: float) -> int:
    """Units folded during a rest; the twin accounts for them when the next request arrives."""
    drive = open_twin("known", twin.text)
    job = Job(
        op="write", length_bytes=SIZE, block_bytes=BLOCK, amount_bytes=SIZE, queue_depth=DEPTH
    )
    run_job(drive, job)
    run_job(drive, Job(op="flush"))
    drive.rest(rest_s)
    run_job(drive, Job(op="read", length_bytes=4096, block_bytes=4096, amount_bytes=4096))
    counters = drive.counters()
    assert counters is not None
    return int(counters["folding_moves"])


@pytest.mark.parametrize("name", CACHED)
def test_buffer_and_cache_are_found_within_10_percent(name: str) -> None:
    twin = CACHED[name]
    conclusion = _measured(twin)
    assert _number(conclusion, "buffer_mib") == pytest.approx(_mib(twin.buffer), rel=0.1)
    assert _number(conclusion, "slc_mib") == pytest.approx(CACHE / MIB, rel=0.1)
    assert "SLC cache" in conclusion.verdict


def test_a_buffer_in_front_of_a_cache_is_written_at_the_rate_of_the_link() -> None:
    buffered = _number(_measured(CACHED["static, capacitors"]), "buffered_mib_per_s")
    link = _mib(SMALL.link.removesuffix("/s"))
    assert 0.8 * link < buffered < 1.02 * link
    alone = _measured(BUFFERED["capacitors"]).findings["buffered_mib_per_s"]
    assert alone.value is None
    assert "dropped only once" in alone.why


@pytest.mark.parametrize(("dies", "buffer"), [(32, "1 MiB"), (24, "1 MiB"), (24, "2 MiB")])
def test_the_sustained_rate_is_that_of_all_later_writes_and_not_of_the_first_programs(
    dies: int, buffer: str
) -> None:
    twin = replace(SMALL, dies=dies, buffer=buffer, link="12000 MiB/s", planes=2)
    drive = open_twin("known", twin.text)
    job = Job(
        op="write", length_bytes=SIZE, block_bytes=BLOCK, amount_bytes=SIZE, queue_depth=DEPTH
    )
    run_job(drive, job)
    again = run_job(drive, replace_job(job, offset_bytes=SIZE))
    sustained = _number(_measured(twin), "lasting_mib_per_s")
    assert sustained == pytest.approx(again.bytes / MIB / again.seconds, rel=0.03)


@pytest.mark.parametrize("name", ["static", "dynamic"])
def test_the_refill_time_is_found_within_a_factor_of_1_5(name: str) -> None:
    conclusion = _measured(CACHED[name])
    refill, fold_s = conclusion.findings["refill_s"], _fold_s(CACHED[name])
    assert isinstance(refill.value, float)
    assert fold_s / 1.5 < refill.value < fold_s * 1.5
    assert refill.low is not None
    assert refill.high is not None
    assert refill.high / refill.low == pytest.approx(2**0.5)
    assert "too short" in refill.why


@pytest.mark.parametrize("name", CACHED)
def test_flushes_that_something_else_delays_do_not_enlarge_the_buffer(name: str) -> None:
    evidence = _evidence(CACHED[name])
    steps = evidence.tables["steps"].to_pylist()
    for step in [step for step in steps if step["phase"] == "flush"][1:]:  # not of the idle drive
        step["end_ns"] += 5_000_000_000
    slow = pa.Table.from_pylist(steps, schema=evidence.tables["steps"].schema)
    tables = {**evidence.tables, "steps": slow}
    conclusion = conclude(Evidence(tables, evidence.parameters, virtual=True))
    buffer = conclusion.findings["buffer_mib"]
    assert buffer.low is not None
    assert buffer.high is not None
    assert buffer.low <= _mib(CACHED[name].buffer) * 1.1
    assert buffer.high <= 75  # no more than was written before the drop


def test_a_buffer_larger_than_what_was_written_is_not_reported() -> None:
    sizes = Sizes(Size(437 * MIB, 440 * MIB, "programmed during a flush"), None)
    bounded = _bounded(sizes, 250.0 * MIB, 251.0 * MIB)
    assert (bounded.buffer, bounded.cache) == (None, None)
    assert "only 250 MiB were written before the drop" in bounded.why


def test_a_buffer_may_hold_requests_in_flight_in_part() -> None:
    twin = KnownTwin(
        capacity=2 << 30, dies=8, pages_per_block=24, program="1200 us", buffer="512 KiB"
    )
    conclusion = _measured(twin)
    assert _number(conclusion, "buffer_mib") == pytest.approx(0.5, rel=0.15)


def _of_random_drive(seed: int) -> Conclusion:
    drive = random_drive(seed)
    plan = plan_for(Cache(), int(drive.describe()["capacity_bytes"]), seed)
    session = RunSession(OpenTarget(drive.open(), {"kind": "twin"}))
    session.run_plan(measure, plan)
    return conclude(Evidence(session.recording.tables(), plan.parameters(), virtual=True))


def test_what_a_buffer_leaves_is_no_cache_if_it_is_a_mebibyte() -> None:
    cache = _of_random_drive(57053).findings["slc_mib"]
    assert cache.value in {None, 0.0}
    assert cache.high is None


def test_a_cache_that_is_folded_ends_at_the_first_fall_or_the_last() -> None:
    cache = _of_random_drive(56000).findings["slc_mib"]  # 415 MiB
    assert cache.low is not None
    assert cache.high is not None
    assert cache.low < 415 < cache.high


def test_an_absent_cache_is_not_certain_if_the_next_write_was_far_slower() -> None:
    sizes = Sizes(Size(MIB, MIB, ""), Size(0, 0, "a write buffer"))
    drop = RateDrop(MIB, MIB, MIB, before=8e9, after=2e9, ahead=0.0, seconds=1.0)
    kept = _unless_slower(sizes, drop, replace(drop, after=1.5e9))
    assert kept == sizes
    unsure = _unless_slower(sizes, drop, replace(drop, after=0.5e9))
    assert (unsure.buffer, unsure.cache) == (sizes.buffer, None)
    assert "an SLC cache may have taken all of the first" in unsure.why


@pytest.mark.parametrize("name", BUFFERED)
def test_a_buffer_alone_is_not_reported_as_a_cache(name: str) -> None:
    twin = BUFFERED[name]
    conclusion = _measured(twin)
    assert _number(conclusion, "buffer_mib") == pytest.approx(_mib(twin.buffer), rel=0.1)
    assert conclusion.findings["slc_mib"].value == 0
    assert conclusion.findings["refill_s"].value is None
    assert all(conclusion.findings[name].why for name in ("slc_mib", "refill_s"))
    assert "no SLC cache" in conclusion.verdict


def test_without_a_drop_there_are_no_sizes_but_a_reason() -> None:
    conclusion = _measured(replace(SMALL, link="50 MiB/s"))
    assert {finding.value for finding in conclusion.findings.values()} == {None}
    assert all("no drop in speed" in finding.why for finding in conclusion.findings.values())
    assert conclusion.verdict.startswith("No drop in speed")


def test_reads_show_a_buffer_that_a_cache_as_fast_as_the_link_would_hide() -> None:
    twin = replace(CACHED["as fast as the link"], capacitors=True)
    conclusion = _measured(twin)
    assert _number(conclusion, "buffer_mib") == pytest.approx(_mib(twin.buffer), rel=0.1)
    assert _number(conclusion, "slc_mib") == pytest.approx(CACHE / MIB, rel=0.1)
    assert "were read without waiting" in conclusion.findings["buffer_mib"].why


def test_without_these_reads_such_a_cache_hides_the_buffer() -> None:
    evidence = _evidence(replace(CACHED["as fast as the link"], capacitors=True))
    steps = evidence.tables["steps"]
    kept = steps.filter(pc.not_equal(steps["phase"], "read back"))
    conclusion = conclude(replace(evidence, tables={**evidence.tables, "steps": kept}))
    assert [conclusion.findings[name].value for name in ("buffer_mib", "slc_mib")] == [None, None]
    cache = conclusion.findings["slc_mib"]
    assert "rests that empty it freed no more" in cache.why
    assert cache.low is not None
    assert cache.high is not None
    assert cache.low < CACHE / MIB < cache.high


@pytest.mark.parametrize(
    ("written_mib", "before", "is_buffer"),
    [(30, 3000.0, True), (158, 3000.0, False), (158, 470.0, False)],
)
def test_a_short_rest_shows_a_buffer_only_if_all_that_was_written_may_be_in_it(
    written_mib: int, before: float, is_buffer: bool
) -> None:
    """A cache that is folded as fast as the flash is written needs no longer rest."""
    sizes = _undivided(*_one_drop(written_mib, before), None)
    assert (sizes.cache is not None and sizes.cache.high == 0) is is_buffer
    assert (sizes.buffer is not None) is is_buffer


@pytest.mark.parametrize(("written_mib", "is_buffer"), [(2, True), (60, False)])
def test_a_cache_of_a_few_mib_is_a_buffer_whatever_rests_show(
    written_mib: int, is_buffer: bool
) -> None:
    first, _, held = _one_drop(written_mib, 3000.0)
    sizes = _undivided(first, Finding(100.0, "s", 80.0, 120.0, ""), held, MIB)
    assert sizes.cache is not None
    assert (sizes.cache.high == 0) is is_buffer
    assert (sizes.buffer is not None) is is_buffer


def _one_drop(written_mib: int, before: float) -> tuple[WritePass, Finding, Size]:
    """A write with one drop, a rest just long enough for flash to program it, and the buffer."""
    at, after = float(written_mib * MIB), 390.0 * MIB
    last = RateDrop(at, at, at, before * MIB, after, 0.0, at / before / MIB)
    curve = Progress([at / before / MIB, 400 * MIB / after], [at, 400.0 * MIB])
    first = WritePass("first", None, 128 << 10, curve, last, None, None)
    refill = Finding(at / after, "s", at / after / 1.4, at / after, "")
    return first, refill, Size(0.0, at * (1 - after / before / MIB), "")


def test_a_link_as_slow_as_flash_shows_no_cache_on_the_whole_drive() -> None:
    conclusion = _measured(replace(SMALL, link="50 MiB/s", slc=STATIC), drive=2 << 30)
    assert conclusion.findings["slc_mib"].value == 0
    assert conclusion.findings["buffer_mib"].value is None
    assert "never dropped" in conclusion.findings["buffer_mib"].why
    assert "makes sequential writes faster" in conclusion.verdict


def test_the_rows_are_the_write_curves() -> None:
    rows = _measured(CACHED["static"]).measures
    first = [row for row in rows if row["case"] == "first"]
    assert first[-1]["written_mib"] == pytest.approx(SIZE / MIB)
    fast = [row["write_mib_per_s"] for row in first if 10 < row["written_mib"] < 60]
    slow = [row["write_mib_per_s"] for row in first if row["written_mib"] > 100]
    assert min(fast) > 2 * max(slow)
    assert {row["case"] for row in rows} == {"first", "flushed", "rested"}


def test_a_real_directory_is_measured_and_left_empty(drive_directory: Path) -> None:
    plan = Plan(size=32 * MIB, settle_s=0.0, rest_most_s=0.01)
    with open_for_run(TargetOptions(parse_target(str(drive_directory)), plan.size)) as opened:
        session = RunSession(opened)
        session.run_plan(measure, plan)
    conclusion = conclude(Evidence(session.recording.tables(), plan.parameters()))
    assert conclusion.measures
    assert {"buffer_mib", "slc_mib", "refill_s"} <= conclusion.findings.keys()
    assert not list(drive_directory.iterdir())


def test_the_region_is_half_of_a_drive_or_an_eighth_if_quick() -> None:
    assert plan_for(Cache(), 1 << 30, 0).size == 512 * MIB
    assert plan_for(Cache(quick=True), 1 << 30, 0).size == 128 * MIB
    assert plan_for(Cache(quick=True), None, 0).size == 1 << 30


def test_a_drop_when_no_flash_is_free_only_bounds_the_cache() -> None:
    """Direct writes are as fast as the cache, so that nothing shows when that is full.

    The rule needs the drive's size, also with a region that the user gave.
    """
    drive = random_drive(193001, 512_000_000_000)
    twin = open_twin("twin", drive.profile, 1 << 30)
    plan = plan_for(Cache(size=512 * MIB, quick=True), 1 << 30, 0)
    session = RunSession(OpenTarget(twin, {"kind": "twin"}))
    session.run_plan(measure, plan)
    found = conclude(Evidence(session.recording.tables(), plan.parameters(), virtual=True))
    slc = found.findings["slc_mib"]
    assert slc.value is None
    assert slc.high is not None
    assert describe_twin("twin", drive.profile, 1 << 30)["slc_bytes"] / MIB < slc.high
    assert "borrowed" in slc.why


@pytest.mark.parametrize("capacity", ["1 GiB", "2 GiB"])
def test_the_ramp_of_the_queue_is_neither_a_full_buffer_nor_a_full_cache(capacity: str) -> None:
    """The link brings 1.4 times what flash programs. The first two requests are faster."""
    drive = random_drive(332170)
    values = drive.values | {"drive": drive.values["drive"] | {"capacity": capacity}}
    plan = plan_for(Cache(), parse_size(capacity), drive.seed)
    session = RunSession(OpenTarget(drive.with_values(values).open(), {"kind": "twin"}))
    session.run_plan(measure, plan)
    found = conclude(Evidence(session.recording.tables(), plan.parameters(), virtual=True)).findings
    assert found["buffer_mib"].low is None
    assert found["slc_mib"].value == 0


def test_the_whole_drive_is_written_unless_the_user_limits_it() -> None:
    assert plan_for(Cache(), 1 << 30, 0).reach == 1 << 30
    assert plan_for(Cache(quick=True), 1 << 30, 0).reach == 128 * MIB
    assert plan_for(Cache(size=256 * MIB), 1 << 30, 0).reach == 256 * MIB
    assert plan_for(Cache(size=256 * MIB), None, 0).reach == 256 * MIB


@pytest.mark.parametrize("limit", [{}, {"quick": True}, {"size": 256 * MIB}])
def test_the_size_of_the_drive_is_recorded_whatever_is_written(limit: dict[str, Any]) -> None:
    assert plan_for(Cache(**limit), 1 << 30, 0).parameters()["drive_mib"] == 1024
    assert plan_for(Cache(**limit), None, 0).parameters()["drive_mib"] == 0


@pytest.mark.parametrize(
    ("drive", "size"), [(None, MIB), (None, 20 * MIB + 1), (MIB << 6, MIB << 7)]
)
def test_a_size_out_of_range_is_refused(drive: int | None, size: int) -> None:
    with pytest.raises(UsageError, match="--size"):
        plan_for(Cache(size=size), drive, 0)


def test_small_writes_stay_in_the_region() -> None:
    plan = Plan(size=32 * MIB)
    jobs = [
        small_job(plan, number, mib * MIB) for number in range(64) for mib in (1, 8, 27, 31, 64)
    ]
    assert max(job.offset_bytes + job.length_bytes for job in jobs) <= plan.size
    assert len({job.offset_bytes for job in jobs}) > 4
