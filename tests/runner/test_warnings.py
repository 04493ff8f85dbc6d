"""Warnings from a run's records: each is raised in its case only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ssdlab.device import Extents, Job, encode
from ssdlab.profiles import load
from ssdlab.records import Recording, StepRow
from ssdlab.runner.open_target import TargetOptions, open_for_run
from ssdlab.runner.session import RunSession, Step
from ssdlab.runner.warnings import Coverage, check_percentiles, check_recording, from_records
from ssdlab.storage_stack.blockdev import BlockDevice
from ssdlab.storage_stack.health.hardware import Temperature
from ssdlab.target import Twin

MIB = 1 << 20
SECOND = 10**9
READ = Job(op="read", length_bytes=MIB, block_bytes=4096, amount_bytes=MIB, queue_depth=4)
WRITE = Job(op="write", length_bytes=64 * MIB, block_bytes=MIB, amount_bytes=64 * MIB)


def _row(job: Job, requests: int, **more: Any) -> dict[str, Any]:
    """A step of one second on a real clock."""
    row = {"phase": "read", "start_ns": 0, "end_ns": SECOND, "requests": requests}
    row |= {"bytes": requests * job.block_bytes, "errors": 0, "rest_s": 0.0, "job": encode(job)}
    idle = dict.fromkeys(("foreign_cpu_s", "stolen_cpu_s", "own_user_s", "own_system_s"), 0.01)
    return {**row, **idle, **more}


def _warnings(*rows: StepRow, link: float | None = None, engine: bool = False) -> dict[str, str]:
    recording = Recording()
    for row in rows:
        recording.add(row)
    warnings: dict[str, str] = {}
    check_recording(recording, link, warnings.setdefault, measure_engine=engine)
    return warnings


def test_an_ordinary_run_has_no_warnings() -> None:
    assert _warnings(StepRow(_row(READ, 1000)), link=600e6, engine=True) == {}


@pytest.mark.parametrize(("busy_s", "warned"), [(0.45, False), (0.55, True)])
def test_requests_that_use_more_than_half_a_cpu_are_a_ceiling(busy_s: float, warned: bool) -> None:
    warnings = _warnings(StepRow(_row(READ, 1000, own_user_s=0.0, own_system_s=busy_s)))
    assert ("ceiling" in warnings) == warned
    if warned:
        assert "a request cost 550 us of CPU time, 55% of the time" in warnings["ceiling"]


def test_the_cpu_time_of_preparation_is_not_checked() -> None:
    assert _warnings(StepRow(_row(WRITE, 1000, phase="fill", own_user_s=0.9))) == {}


@pytest.mark.parametrize(("most", "warned"), [(399_000.0, True), (401_000.0, False)])
def test_more_than_half_of_the_rate_of_empty_requests_is_a_ceiling(
    monkeypatch: pytest.MonkeyPatch, most: float, warned: bool
) -> None:
    monkeypatch.setattr(from_records, "nop_rate", lambda _: most)
    assert ("ceiling" in _warnings(StepRow(_row(READ, 200_000)), engine=True)) == warned
    assert "ceiling" not in _warnings(StepRow(_row(READ, 200_000)), engine=False)
    two = Job(**{**_fields(READ), "threads": 2})
    assert "ceiling" not in _warnings(StepRow(_row(two, 200_000)), engine=True)


def _fields(job: Job) -> dict[str, Any]:
    return {name: getattr(job, name) for name in job.__struct_fields__}


def test_the_rate_of_empty_requests_is_recorded() -> None:
    recording = Recording()
    recording.add(StepRow(_row(READ, 150_000)))
    check_recording(recording, None, lambda *_: None, measure_engine=True)
    observations = recording.tables()["observations"].to_pylist()
    [rate] = [row["value"] for row in observations if row["name"] == "nop_per_s"]
    assert rate > 0
    [cost] = [row for row in observations if row["name"] == "cost_us_per_request"]
    assert (cost["detail"], cost["value"]) == ("read", pytest.approx(0.02e6 / 150_000))


def test_only_a_rate_above_the_link_in_one_direction_gets_a_warning() -> None:
    fast = StepRow(_row(READ, 200_000))
    warning = _warnings(fast, link=600e6)["link-speed"]
    assert "781 MiB/s (phase read) exceed the 572 MiB/s" in warning
    assert _warnings(fast, link=900e6) == {}
    both = Job(**{**_fields(READ), "op": "write", "read_share": 0.5, "pattern": "random"})
    assert _warnings(StepRow(_row(both, 200_000)), link=600e6) == {}


def _writing(rates: list[float]) -> StepRow:
    """A sequential write: 0.1 s at each of these rates in MiB/s, with 2 % of noise."""
    count = len(rates)
    moved = [
        round(rate * MIB / 10 * (1 + 0.02 * ((7 * i) % 5 - 2) / 2)) for i, rate in enumerate(rates)
    ]
    columns = {"start_ns": [i * SECOND // 10 for i in range(count)], "bytes": moved}
    row = _row(WRITE, count, phase="fill", end_ns=count * SECOND // 10)
    return StepRow(row, {**columns, "requests": [1] * count, "latency_ns_max": [1] * count})


def test_a_fall_within_one_sequential_write_is_a_cliff_with_its_position() -> None:
    warnings = _warnings(_writing([1000.0] * 60 + [300.0] * 60))
    assert "fell from 1" in warnings["cliff"]
    assert "to 300 MiB/s after 6000 MiB" in warnings["cliff"].replace("5985", "6000")


def test_a_fall_that_the_experiment_looks_for_is_not_a_cliff() -> None:
    fall = _writing([1000.0] * 60 + [300.0] * 60)
    assert _warnings(StepRow({**fall.values, "phase": "gauge"}, fall.intervals)) == {}


@pytest.mark.parametrize(
    "job",
    [
        Job(**{**_fields(WRITE), "pattern": "random"}),
        Job(**{**_fields(WRITE), "pattern": Extents(((0, MIB),))}),
        Job(**{**_fields(WRITE), "read_share": 0.5}),
        Job(**{**_fields(WRITE), "op": "read"}),
    ],
)
def test_only_a_sequential_write_has_cliffs(job: Job) -> None:
    fall = _writing([1000.0] * 60 + [300.0] * 60)
    assert _warnings(StepRow({**fall.values, "job": encode(job)}, fall.intervals)) == {}


@pytest.mark.parametrize(
    "rates", [[500.0] * 100, [300.0] * 50 + [900.0] * 50, [900.0] * 10 + [300.0] * 10]
)
def test_a_constant_rate_a_rise_and_a_short_step_are_not_a_cliff(rates: list[float]) -> None:
    assert _warnings(_writing(rates)) == {}


@pytest.mark.parametrize(
    ("celsius", "limit", "warned"),
    [(45.0, None, False), (72.0, None, True), (72.0, 83.0, False), (79.0, 83.0, True)],
)
def test_a_drive_near_its_temperature_limit_gets_a_warning(
    celsius: float, limit: float | None, warned: bool
) -> None:
    recording = Recording()
    recording.observe("temperature_c", celsius, "nvme0n1")
    recording.observe("temperature_c", 30.0, "nvme0n1")
    if limit is not None:
        recording.observe("temperature_limit_c", limit, "nvme0n1")
    warnings: dict[str, str] = {}
    check_recording(recording, None, warnings.setdefault, measure_engine=False)
    assert ("thermal" in warnings) == warned


def test_a_hot_twin_throttles_and_gets_a_warning(tmp_path: Path) -> None:
    heat = (
        '[thermal]\nidle = "40 °C"\nprogram_heat = "50 K/GB"\ntime_constant = "10 s"\n'
        'throttle_at = "70 °C"\nthrottled_speed = 0.25\n'
    )
    profiles = {name: tmp_path / f"{name}.toml" for name in ("cool", "hot")}
    profiles["cool"].write_text(load("toshiba-xg5"), encoding="utf-8")
    profiles["hot"].write_text(f"{load('toshiba-xg5')}\n{heat}", encoding="utf-8")
    # 0.4 GB at the full speed, and one tenth of it lost: 40 °C, 59, 76, 87.
    warnings, (first, last) = _written_three_times(profiles["hot"])
    assert "hot.toml reached 87 degrees Celsius (its limit is 70)" in warnings["thermal"]
    cool_warnings, (cool_first, cool_last) = _written_three_times(profiles["cool"])
    assert "thermal" not in cool_warnings
    assert first == pytest.approx(cool_first, rel=0.001), "below the limit"
    assert last == pytest.approx(cool_last / 4, rel=0.01), "above it"


def _written_three_times(profile: Path) -> tuple[dict[str, str], tuple[float, float]]:
    """The warnings about three passes over a twin, and passes per second of the first and last."""
    job = Job(op="write", length_bytes=384 * MIB, block_bytes=MIB, amount_bytes=384 * MIB)
    twin, warnings = Twin(str(profile), 512 * MIB), dict[str, str]()
    with open_for_run(TargetOptions(twin, 384 * MIB)) as target:
        session = RunSession(target)
        for _ in range(3):
            session.run(Step("write", "writing", "fill"), job)
    steps = session.recording.tables()["steps"].to_pylist()
    check_recording(session.recording, None, warnings.setdefault, measure_engine=False)
    rates = [1e9 / (row["end_ns"] - row["start_ns"]) for row in steps]
    return warnings, (rates[0], rates[-1])


def test_null_percentiles_get_one_warning_with_names_and_counts() -> None:
    warnings: dict[str, str] = {}
    rows = [{"latency_us_p99": None, "latency_us_p9999": None}, {"latency_us_p9999": None}]
    check_percentiles(rows, warnings.setdefault)
    assert "p99 (1 row), p99.99 (2 rows)" in warnings["few-samples"]
    warnings.clear()
    check_percentiles([{"latency_us_p99": 3.0, "mib_per_s": None}], warnings.setdefault)
    assert warnings == {}


@pytest.mark.parametrize(("requests", "warned"), [(0, False), (9, True)])
def test_a_row_without_flushes_does_not_lack_their_percentiles(
    requests: int, *, warned: bool
) -> None:
    warnings: dict[str, str] = {}
    check_percentiles([{"sync_requests": requests, "sync_us_p50": None}], warnings.setdefault)
    assert bool(warnings) is warned


def _job(op: Any, offset: int, length: int, **more: Any) -> Job:
    start, size = offset * MIB, length * MIB
    return Job(
        op=op, offset_bytes=start, length_bytes=size, block_bytes=4096, amount_bytes=size, **more
    )


@pytest.mark.parametrize(
    ("read", "warned"),
    [
        (_job("read", 4, 6), False),
        (_job("read", 4, 8), True),
        (_job("read", 1, 2), True),
        (_job("read", 14, 4, pattern="random"), True),
        (_job("read", 0, 20, pattern=Extents(((MIB, MIB), (5 * MIB, MIB)))), False),
        (_job("read", 0, 20, pattern=Extents(((MIB, MIB), (9 * MIB, 2 * MIB)))), True),
        (_job("read", 0, 20, pattern=Extents(((9 * MIB, 2 * MIB), (MIB, MIB)))), True),
        (_job("read", 0, 20, pattern=Extents(((2 * MIB, MIB), (4 * MIB, MIB)))), True),
    ],
)
def test_a_read_outside_the_ranges_written_in_order_gets_a_warning(read: Job, warned: bool) -> None:
    coverage, warnings = Coverage(), dict[str, str]()
    coverage.track(_job("write", 4, 6), 6 * MIB, warnings.setdefault)
    coverage.track(_job("write", 0, 8), 2 * MIB, warnings.setdefault)  # stopped after a quarter
    coverage.track(_job("write", 12, 8, pattern="random"), 80 * MIB, warnings.setdefault)
    coverage.track(read, read.amount_bytes, warnings.setdefault)
    assert ("unwritten" in warnings) == warned


def test_a_read_of_a_twin_gets_a_warning_only_where_it_was_not_written() -> None:
    with open_for_run(TargetOptions(Twin("toshiba-xg5", 1 << 28), MIB)) as target:
        session = RunSession(target)
        session.run(Step("fill", "writing", "fill"), Job(**{**_fields(READ), "op": "write"}))
        session.run(Step("read", "reading", "read"), READ)
        assert target.warnings == []
        beyond = Job(**{**_fields(READ), "offset_bytes": MIB})
        session.run(Step("read", "reading", "read"), beyond)
        assert "1 MiB were read that this run had not written" in target.warnings[0].sentence


def test_a_twins_counters_are_recorded_after_each_step_that_writes() -> None:
    with open_for_run(TargetOptions(Twin("toshiba-xg5", 1 << 28), 16 * MIB)) as target:
        session = RunSession(target)
        job = Job(op="write", length_bytes=16 * MIB, block_bytes=MIB, amount_bytes=16 * MIB)
        session.run(Step("fill", "writing", "fill"), job)
        session.flush()
        session.run(Step("read", "reading", "read"), READ)
    observations = session.recording.tables()["observations"].to_pylist()
    assert [(row["step"], row["name"]) for row in observations] == [
        (1, "host_write_mib"),
        (1, "nand_write_mib"),
        (1, "waf"),
    ]
    assert observations[0]["value"] == 16.0
    assert 0 < observations[1]["value"] <= 16.5


def test_the_temperature_is_recorded_before_and_after_each_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    temperatures = iter([30.0, 31.0, 32.0, 33.0])
    monkeypatch.setattr(
        "ssdlab.runner.open_target.temperature", lambda _: Temperature(next(temperatures), 83.0)
    )
    with open_for_run(TargetOptions(Twin("toshiba-xg5", 1 << 28), MIB)) as target:
        target.drives = (BlockDevice("nvme0n1", 259, 0, "nvme0n1", "nvme", None),)
        session = RunSession(target)
        for _ in range(2):
            session.run(Step("read", "reading", "read"), READ)
    observations = session.recording.tables()["observations"].to_pylist()
    warm = [(row["step"], row["value"]) for row in observations if row["name"] == "temperature_c"]
    assert warm == [(0, 30.0), (1, 31.0), (1, 32.0), (2, 33.0)]
    assert [row["value"] for row in observations if row["name"] == "temperature_limit_c"] == [83.0]
