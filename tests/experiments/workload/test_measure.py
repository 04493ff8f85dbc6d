"""The workload experiment: fio job files on a twin, in a directory and on a block device."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ssdlab.analysis.evidence import Evidence
from ssdlab.device import parse_fio
from ssdlab.errors import DeviceFailure, TargetError, UsageError
from ssdlab.experiments.workload import measure as workload
from ssdlab.experiments.workload.analysis import amplification_curve, conclude
from ssdlab.experiments.workload.measure import Plan, measure, plan_of, plan_of_file
from ssdlab.runner.open_target import OpenTarget, TargetOptions, open_for_run
from ssdlab.runner.session import RunSession
from ssdlab.target import Consent, Directory, Twin, parse_target

MIB = 1 << 20
READS = "[reads]\nioengine=io_uring\ndirect=1\nrw=randread\nnorandommap\niodepth=4\nsize=4m\n"
MIXED = f"""
[global]
ioengine=io_uring
direct=1
size=4m
[first]
rw=write
bs=64k
[mixed]
stonewall
rw=randrw
rwmixread=75
norandommap
bs=4k
iodepth=8
io_size={16 * MIB}
fsync=64
"""


def _plan(text: str) -> Plan:
    return Plan(tuple(parse_fio(text)), "job.fio")


def _run(options: TargetOptions, plan_: Plan) -> tuple[RunSession, OpenTarget]:
    with open_for_run(options) as target:
        session = RunSession(target)
        session.run_plan(measure, plan_)
    return session, target


def _options(target: object, plan_: Plan, **more: Any) -> TargetOptions:
    capacity = more.pop("capacity_bytes", None)
    parsed = parse_target(str(target), capacity)
    return TargetOptions(parsed, plan_.size, request_bytes_max=plan_.request_bytes_max, **more)


def _evidence(target: str, text: str, **more: Any) -> Evidence:
    plan_ = _plan(text)
    session, _ = _run(_options(target, plan_, **more), plan_)
    return Evidence(session.recording.tables(), plan_.parameters())


def test_a_twin_runs_each_job_with_a_row_for_each_request_type() -> None:
    evidence = _evidence("twin:toshiba-xg5", MIXED, capacity_bytes=1 << 30)
    conclusion = conclude(evidence)
    kinds = [(row["job"], row["op"]) for row in conclusion.measures]
    assert kinds == [("first", "write"), ("mixed", "read"), ("mixed", "write"), ("mixed", "flush")]
    assert sum(row["requests"] for row in conclusion.measures[1:3]) == 4096
    assert conclusion.measures[1]["requests"] == pytest.approx(3072, rel=0.1)
    assert conclusion.measures[3]["mib_per_s"] is None
    expected = {"iops", "mib_per_s", "latency_us_p50", "latency_us_p99", "waf"}
    assert set(conclusion.findings) == expected
    assert "requests/s" in conclusion.verdict


def test_a_percentile_with_too_few_requests_is_none_with_a_reason() -> None:
    evidence = _evidence("twin:toshiba-xg5", READS, capacity_bytes=1 << 30)
    [row] = conclude(evidence).measures
    assert row["requests"] == 1024
    assert row["latency_us_p50"] > 0
    assert [row[f"latency_us_{part}"] for part in ("p99", "p999", "p9999")] == [None] * 3
    assert row["why"].startswith("p99 needs 1100, p99.9 needs 11000, p99.99 needs 110000 requests")


def test_the_region_is_filled_first_on_a_twin_only_if_a_job_reads() -> None:
    read = _evidence("twin:toshiba-xg5", READS, capacity_bytes=1 << 30)
    assert [row["phase"] for row in read.steps()] == ["fill", "flush", "job"]
    assert read.steps("fill")[0]["bytes"] == 4 * MIB
    written = _evidence("twin:toshiba-xg5", READS.replace("randread", "randwrite"))
    assert [row["phase"] for row in written.steps()] == ["job"]


def test_a_region_that_is_not_a_multiple_of_1_mib_is_filled_to_its_end() -> None:
    evidence = _evidence("twin:toshiba-xg5", READS.replace("4m", "4100k"), capacity_bytes=1 << 30)
    assert [row["bytes"] for row in evidence.steps("fill")] == [4 * MIB, 4 << 10]


def test_jobs_run_in_a_directory_and_the_test_file_is_removed(
    drive_directory: Path,
) -> None:
    text = READS.replace("ioengine=io_uring", "ioengine=psync").replace("iodepth=4", "numjobs=2")
    plan_ = _plan(text)
    session, target = _run(_options(drive_directory, plan_), plan_)
    [job] = Evidence(session.recording.tables(), {}).steps("job")
    assert (job["requests"], job["queue_depth"]) == (2048, 1)
    assert '"engine":"sync"' in job["opened"]
    assert "page-cache" not in {warning.code for warning in target.warnings}
    assert list(drive_directory.iterdir()) == []


def test_a_job_that_uses_the_page_cache_gets_a_warning(drive_directory: Path) -> None:
    plan_ = _plan(READS.replace("direct=1", "direct=0\ninvalidate=0"))
    _, target = _run(_options(drive_directory, plan_), plan_)
    assert "page-cache" in {warning.code for warning in target.warnings}


def test_the_target_replaces_the_filename_with_a_warning() -> None:
    plan_ = _plan(f"{READS}filename=/dev/sdx\n")
    _, target = _run(_options("twin:toshiba-xg5", plan_, capacity_bytes=1 << 30), plan_)
    assert "/dev/sdx" in target.warnings[0].sentence


def test_a_job_without_a_size_uses_all_of_a_twin_and_several_queues_of_it() -> None:
    text = "[w]\nioengine=libaio\ndirect=1\nrw=write\nbs=1m\nnumjobs=4\niodepth=2\n"
    parsed = parse_target("twin:toshiba-xg5", 1 << 30)
    plan_ = plan_of(text, "job.fio", parsed, seed=0)
    session, target = _run(_options("twin:toshiba-xg5", plan_, capacity_bytes=1 << 30), plan_)
    [job] = Evidence(session.recording.tables(), {}).steps("job")
    assert job["bytes"] == 4 << 30
    notes = [warning.sentence for warning in target.warnings if warning.code == "workload"]
    assert [note.partition(":")[0] for note in notes] == ["ioengine=libaio", "numjobs"]


def test_a_twin_reports_its_write_amplification_in_total_and_by_interval() -> None:
    text = (
        "[fill]\nioengine=io_uring\ndirect=1\nrw=write\nbs=1m\n"
        "[random]\nstonewall\nioengine=io_uring\ndirect=1\nrw=randwrite\nbs=4k\n"
        "norandommap\niodepth=8\nlog_avg_msec=10\n"
    )
    parsed = parse_target("twin:toshiba-xg5", 256 * MIB)
    plan_ = plan_of(text, "job.fio", parsed, seed=0)
    session, _ = _run(_options("twin:toshiba-xg5", plan_, capacity_bytes=256 * MIB), plan_)
    tables = session.recording.tables()
    conclusion = conclude(Evidence(tables, {}, virtual=True))
    fill, random = conclusion.measures
    assert fill["waf"] == pytest.approx(1.0, abs=0.1)
    assert random["waf"] > 1.5
    assert conclusion.findings["waf"].value == pytest.approx((fill["waf"] + random["waf"]) / 2, 0.1)
    curve = amplification_curve(tables, Evidence(tables, {}).steps("job")[1])
    assert len(curve) > 10
    assert curve[len(curve) // 2][1] > 2 * curve[0][1]
    [waf] = [row["value"] for row in Evidence(tables, {}).observed("waf") if row["step"] == 2]
    assert random["waf"] == pytest.approx(waf, rel=0.05)


def test_a_real_drive_has_no_write_amplification(drive_directory: Path) -> None:
    plan_ = _plan(MIXED)
    session, _ = _run(_options(drive_directory, plan_), plan_)
    conclusion = conclude(Evidence(session.recording.tables(), {}))
    assert {row["waf"] for row in conclusion.measures} == {None}
    assert "waf" not in conclusion.findings


def test_what_ramps_a_job_up_is_not_measured_and_its_end_is_flushed() -> None:
    text = (
        f"{READS.replace('randread', 'randwrite')}runtime=1\ntime_based\nramp_time=2\nend_fsync=1\n"
    )
    evidence = _evidence("twin:toshiba-xg5", text, capacity_bytes=1 << 30)
    assert [row["phase"] for row in evidence.steps()] == ["ramp", "job", "flush"]
    ramp, job, _ = evidence.steps()
    assert (ramp["end_ns"] - ramp["start_ns"]) / 1e9 == pytest.approx(2, rel=0.01)
    [row] = conclude(evidence).measures
    assert row["requests"] == job["requests"]


@pytest.mark.parametrize(
    ("filename", "noted"),
    [("test-file", False), ("{directory}/deep/file", False), ("/dev/sdx", True), ("mine", True)],
)
def test_a_file_name_outside_the_directory_or_of_a_file_is_noted(
    drive_directory: Path, filename: str, *, noted: bool
) -> None:
    (drive_directory / "mine").write_text("mine")
    plan_ = _plan(f"{READS}filename={filename.format(directory=drive_directory)}\n")
    _, target = _run(_options(drive_directory, plan_), plan_)
    notes = [w.sentence for w in target.warnings if "stays untouched" in w.sentence]
    assert bool(notes) == noted
    assert (drive_directory / "mine").read_text() == "mine"


def test_the_page_cache_is_dropped_before_a_job_that_uses_it(
    drive_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped: list[OpenTarget] = []
    monkeypatch.setattr(workload, "drop_cached", dropped.append)
    for text, count in (("direct=0", 1), ("direct=0\ninvalidate=0", 0), ("direct=1", 0)):
        dropped.clear()
        plan_ = _plan(READS.replace("direct=1", text))
        _run(_options(drive_directory, plan_), plan_)
        assert len(dropped) == count, text


def test_reads_of_a_hole_are_refused(drive_directory: Path) -> None:
    """fio reads unwritten extents and reports rates that no drive reaches."""
    plan_ = _plan(f"{READS}[again]\nstonewall\ndirect=1\nsize=4m\nrw=read\n")
    with open_for_run(_options(drive_directory, plan_)) as target:
        session = RunSession(target)

        def listen(report: Any) -> None:
            if report.label == "running reads" and target.test_file is not None:
                os.ftruncate(target.test_file.fd, 0)
                os.posix_fallocate(target.test_file.fd, 0, 4 * MIB)

        session.listener = session.forecast.listener = listen
        with pytest.raises(TargetError, match=r"job again was not run: .* are not on the drive"):
            session.run_plan(measure, plan_)
    assert [row["phase"] for row in session.recording.tables()["steps"].to_pylist()][-1] == "job"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (READS.replace("iodepth=4", "iodepth=0"), "iodepth is 0; it must be a whole number"),
        (READS + "thinktime=10\n", "thinktime is 10; it must be left out"),
        (READS + READS.replace("reads", "more"), "stonewall is left out; it must be 1"),
        (
            READS + READS.replace("io_uring", "io_uring\nstonewall"),
            "two jobs are called \\[reads\\]",
        ),
        ("", "it has no job"),
    ],
)
def test_a_job_file_with_wrong_options_is_refused_in_one_line(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "job.fio"
    path.write_text(text)
    with pytest.raises(UsageError, match=message) as refused:
        plan_of_file(path, Directory(str(tmp_path)), seed=0)
    assert "\n" not in str(refused.value)


def test_a_missing_job_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot be read .*; give a fio job file"):
        plan_of_file(tmp_path / "none", Directory(str(tmp_path)), seed=0)


@pytest.mark.parametrize("option", ["bs=1000\nsize=4000000", "offset=100"])
def test_misaligned_jobs_are_refused_before_anything_is_written(
    drive_directory: Path, option: str
) -> None:
    plan_ = _plan(f"{READS}{option}\n")
    with open_for_run(_options(drive_directory, plan_)) as target:
        session = RunSession(target)
        with pytest.raises(UsageError, match="it must be a multiple of the sector of this target"):
            session.run_plan(measure, plan_)
    assert len(session.recording.tables()["steps"]) == 0


def test_a_region_beyond_the_end_is_refused_with_the_option_that_gave_it() -> None:
    plan_ = _plan(READS.replace("size=4m", "offset=1g\nsize=4m"))
    twin = Twin("toshiba-xg5", 1 << 30)
    named = TargetOptions(twin, plan_.size, size_from="offset and size")
    with (
        pytest.raises(
            TargetError,
            match=r"less than the 1\.004 GiB that this needs; give a smaller offset and size",
        ),
        open_for_run(named),
    ):
        pytest.fail("it was opened")


def test_a_device_failure_ends_the_run_and_keeps_the_measured_steps(
    loop_device: Callable[..., Path], tmp_path: Path
) -> None:
    """The file under a loop device is truncated during a read, which then fails with EIO."""
    device = loop_device(16)
    [image] = tmp_path.glob("image-*")
    text = READS.replace("size=4m", "size=16m\nruntime=20\ntime_based")
    plan_ = _plan(f"{READS}[then]\nstonewall\n{text.partition(chr(10))[2]}")
    with open_for_run(_options(device, plan_, consent=Consent(any_empty=True))) as target:
        session = RunSession(target)

        def listen(report: Any) -> None:
            if report.label == "running then":
                os.truncate(image, 4 * MIB)

        session.listener = session.forecast.listener = listen
        with pytest.raises(DeviceFailure, match="running then: a request failed") as failure:
            session.run_plan(measure, plan_)
    assert "\n" not in str(failure.value)
    steps = session.recording.tables()["steps"].to_pylist()
    assert [row["phase"] for row in steps] == ["fill", "flush", "job", "job"]
    assert steps[2]["requests"] == 1024
    assert steps[3]["errors"] > 0
    os.truncate(image, 16 * MIB)


def test_a_truncated_test_file_ends_the_run_with_a_one_line_error(
    drive_directory: Path,
) -> None:
    plan_ = _plan(READS.replace("size=4m", "size=4m\nruntime=20\ntime_based"))
    with open_for_run(_options(drive_directory, plan_)) as target:
        session = RunSession(target)

        def listen(report: Any) -> None:
            if report.label == "running reads" and target.test_file is not None:
                os.ftruncate(target.test_file.fd, MIB)

        session.listener = session.forecast.listener = listen
        with pytest.raises(DeviceFailure, match="running reads: ") as failure:
            session.run_plan(measure, plan_)
    assert "\n" not in str(failure.value)


def test_a_stored_plan_is_restored() -> None:
    plan_ = _plan(MIXED + READS.replace("direct=1", "direct=1\nstonewall\nrate_iops=1000"))
    assert msgspec.convert(msgspec.to_builtins(plan_), Plan) == plan_
