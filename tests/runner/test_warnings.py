"""Doubts from a run's records: each comes when it should, and not otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from ssdlab.device import Extents, Job, encode
from ssdlab.records import Recording, StepRow
from ssdlab.runner.open_target import TargetOptions, open_for_run
from ssdlab.runner.session import RunSession, Step
from ssdlab.runner.warnings import Coverage, few_samples, judge
from ssdlab.runner.warnings import from_records as judged_module
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
    quiet = dict.fromkeys(("foreign_cpu_s", "stolen_cpu_s", "own_user_s", "own_system_s"), 0.01)
    return {**row, **quiet, **more}


def _judged(*rows: StepRow, link: float | None = None, ask: bool = False) -> dict[str, str]:
    recording = Recording()
    for row in rows:
        recording.add(row)
    found: dict[str, str] = {}
    judge(recording, link, found.setdefault, ask_engine=ask)
    return found


def test_a_plain_run_has_no_doubts() -> None:
    assert _judged(StepRow(_row(READ, 1000)), link=600e6, ask=True) == {}


@pytest.mark.parametrize(("busy_s", "doubted"), [(0.45, False), (0.55, True)])
def test_requests_that_keep_more_than_half_a_processor_busy_are_a_ceiling(
    busy_s: float, doubted: bool
) -> None:
    found = _judged(StepRow(_row(READ, 1000, own_user_s=0.0, own_system_s=busy_s)))
    assert ("ceiling" in found) == doubted
    if doubted:
        assert "a request cost 550 us of processor time, 55% of the time" in found["ceiling"]


def test_what_prepares_a_run_may_cost_what_it_wants() -> None:
    assert _judged(StepRow(_row(WRITE, 1000, phase="fill", own_user_s=0.9))) == {}


@pytest.mark.parametrize(("most", "doubted"), [(399_000.0, True), (401_000.0, False)])
def test_more_than_half_of_what_io_uring_does_with_nothing_is_a_ceiling(
    monkeypatch: pytest.MonkeyPatch, most: float, doubted: bool
) -> None:
    monkeypatch.setattr(judged_module, "nop_rate", lambda _: most)
    assert ("ceiling" in _judged(StepRow(_row(READ, 200_000)), ask=True)) == doubted
    assert "ceiling" not in _judged(StepRow(_row(READ, 200_000)), ask=False)
    two = Job(**{**_fields(READ), "threads": 2})
    assert "ceiling" not in _judged(StepRow(_row(two, 200_000)), ask=True)


def _fields(job: Job) -> dict[str, Any]:
    return {name: getattr(job, name) for name in job.__struct_fields__}


def test_the_real_ceiling_is_measured_once_and_noted() -> None:
    recording = Recording()
    recording.add(StepRow(_row(READ, 150_000)))
    judge(recording, None, lambda *_: None, ask_engine=True)
    notes = recording.tables()["observations"].to_pylist()
    [rate] = [row["value"] for row in notes if row["name"] == "nop_per_s"]
    assert rate > 0, "how much is this machine's, and of the programs beside"
    [cost] = [row for row in notes if row["name"] == "cost_us_per_request"]
    assert (cost["detail"], cost["value"]) == ("read", pytest.approx(0.02e6 / 150_000))


def test_a_rate_above_the_link_is_doubted_and_both_ways_together_are_not() -> None:
    fast = StepRow(_row(READ, 200_000))
    assert (
        "781 MiB/s while read are more than the 572 MiB/s"
        in _judged(fast, link=600e6)["link-speed"]
    )
    assert _judged(fast, link=900e6) == {}
    both = Job(**{**_fields(READ), "op": "write", "read_share": 0.5, "pattern": "random"})
    assert _judged(StepRow(_row(both, 200_000)), link=600e6) == {}


def _writing(rates: list[float]) -> StepRow:
    """Writing in order, 0.1 s each at so many MiB/s, with noise of two per cent."""
    count = len(rates)
    moved = [
        round(rate * MIB / 10 * (1 + 0.02 * ((7 * i) % 5 - 2) / 2)) for i, rate in enumerate(rates)
    ]
    columns = {"start_ns": [i * SECOND // 10 for i in range(count)], "bytes": moved}
    row = _row(WRITE, count, phase="fill", end_ns=count * SECOND // 10)
    return StepRow(row, {**columns, "requests": [1] * count, "latency_ns_max": [1] * count})


def test_a_fall_within_one_pass_of_writing_is_a_cliff_and_tells_where() -> None:
    found = _judged(_writing([1000.0] * 60 + [300.0] * 60))
    assert "fell from 1" in found["cliff"]
    assert "to 300 MiB/s after 6000 MiB" in found["cliff"].replace("5985", "6000")


@pytest.mark.parametrize(
    "rates", [[500.0] * 100, [300.0] * 50 + [900.0] * 50, [900.0] * 10 + [300.0] * 10]
)
def test_a_steady_rate_a_rise_and_a_short_step_are_no_cliff(rates: list[float]) -> None:
    assert _judged(_writing(rates)) == {}


@pytest.mark.parametrize(
    ("celsius", "limit", "doubted"),
    [(45.0, None, False), (72.0, None, True), (72.0, 83.0, False), (79.0, 83.0, True)],
)
def test_a_drive_near_its_limit_is_doubted(
    celsius: float, limit: float | None, doubted: bool
) -> None:
    recording = Recording()
    recording.observe("temperature_c", celsius, "nvme0n1")
    recording.observe("temperature_c", 30.0, "nvme0n1")
    if limit is not None:
        recording.observe("temperature_limit_c", limit, "nvme0n1")
    found: dict[str, str] = {}
    judge(recording, None, found.setdefault, ask_engine=False)
    assert ("thermal" in found) == doubted


def test_percentiles_that_are_null_are_told_by_name_and_number() -> None:
    found: dict[str, str] = {}
    rows = [{"latency_us_p99": None, "latency_us_p9999": None}, {"latency_us_p9999": None}]
    few_samples(rows, found.setdefault)
    assert "p99 (1 rows), p99.99 (2 rows)" in found["few-samples"]
    found.clear()
    few_samples([{"latency_us_p99": 3.0, "mib_per_s": None}], found.setdefault)
    assert found == {}


def _asked(op: Any, offset: int, length: int, **more: Any) -> Job:
    start, size = offset * MIB, length * MIB
    return Job(
        op=op, offset_bytes=start, length_bytes=size, block_bytes=4096, amount_bytes=size, **more
    )


@pytest.mark.parametrize(
    ("read", "doubted"),
    [
        (_asked("read", 4, 6), False),
        (_asked("read", 4, 8), True),
        (_asked("read", 1, 2), True),
        (_asked("read", 14, 4, pattern="random"), True),
        (_asked("read", 0, 20, pattern=Extents(((MIB, MIB), (5 * MIB, MIB)))), False),
        (_asked("read", 0, 20, pattern=Extents(((MIB, MIB), (9 * MIB, 2 * MIB)))), True),
    ],
)
def test_a_read_outside_of_what_was_written_in_order_is_doubted(read: Job, doubted: bool) -> None:
    coverage, found = Coverage(), dict[str, str]()
    coverage.see(_asked("write", 4, 6), 6 * MIB, found.setdefault)
    coverage.see(_asked("write", 0, 8), 2 * MIB, found.setdefault)  # broken off: a quarter
    coverage.see(_asked("write", 12, 8, pattern="random"), 80 * MIB, found.setdefault)
    coverage.see(read, read.amount_bytes, found.setdefault)
    assert ("unwritten" in found) == doubted


def test_a_twin_that_is_read_before_it_was_written_is_doubted_and_then_it_is_not() -> None:
    with open_for_run(TargetOptions(Twin("toshiba-xg5", 1 << 28), MIB)) as opened:
        session = RunSession(opened)
        session.run(Step("fill", "writing", "fill"), Job(**{**_fields(READ), "op": "write"}))
        session.run(Step("read", "reading", "read"), READ)
        assert opened.warnings == []
        beyond = Job(**{**_fields(READ), "offset_bytes": MIB})
        session.run(Step("read", "reading", "read"), beyond)
        assert "1 MiB of what was read had not been written" in opened.warnings[0].sentence


def test_a_twins_counters_are_noted_after_each_step_that_writes() -> None:
    with open_for_run(TargetOptions(Twin("toshiba-xg5", 1 << 28), 16 * MIB)) as opened:
        session = RunSession(opened)
        job = Job(op="write", length_bytes=16 * MIB, block_bytes=MIB, amount_bytes=16 * MIB)
        session.run(Step("fill", "writing", "fill"), job)
        session.flush()
        session.run(Step("read", "reading", "read"), READ)
    notes = session.recording.tables()["observations"].to_pylist()
    assert [(row["step"], row["name"]) for row in notes] == [
        (1, "host_write_mib"),
        (1, "nand_write_mib"),
        (1, "waf"),
    ]
    assert notes[0]["value"] == 16.0
    assert 0 < notes[1]["value"] <= 16.5


def test_the_temperature_is_noted_before_and_after_each_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    warmth = iter([30.0, 31.0, 32.0, 33.0])
    monkeypatch.setattr(
        "ssdlab.runner.open_target.temperature", lambda _: Temperature(next(warmth), 83.0)
    )
    with open_for_run(TargetOptions(Twin("toshiba-xg5", 1 << 28), MIB)) as opened:
        opened.drives = (BlockDevice("nvme0n1", 259, 0, "nvme0n1", "nvme", None),)
        session = RunSession(opened)
        for _ in range(2):
            session.run(Step("read", "reading", "read"), READ)
    notes = session.recording.tables()["observations"].to_pylist()
    warm = [(row["step"], row["value"]) for row in notes if row["name"] == "temperature_c"]
    assert warm == [(0, 30.0), (1, 31.0), (1, 32.0), (2, 33.0)]
    assert [row["value"] for row in notes if row["name"] == "temperature_limit_c"] == [83.0]
