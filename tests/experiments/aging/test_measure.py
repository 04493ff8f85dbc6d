"""Complete runs of aging on scaled twins, real file systems and a loop device."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ssdlab.errors import Interrupted, TargetError, UsageError
from ssdlab.experiments.aging import analysis
from ssdlab.experiments.aging.measure import Plan, measure
from ssdlab.experiments.aging.measure import plan as make_plan
from ssdlab.experiments.aging.parameters import Aging
from ssdlab.runner.open_target import OpenTarget, TargetOptions, open_for_run
from ssdlab.runner.progress import Report
from ssdlab.runner.session import RunSession
from ssdlab.target import Consent, Directory, Twin, parse_target

MIB = 1 << 20
ROOMY_MIB = 1400
TWINS = ("toshiba-xg5", "intel-s3510-480")

Listener = Callable[[Report], None]


def _twin(name: str = "toshiba-xg5") -> TargetOptions:
    return TargetOptions(Twin(name, 1 << 30), 64 * MIB)


def _steps(session: RunSession) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = session.recording.tables()["steps"].to_pylist()
    return rows


def _run(options: TargetOptions, plan: Plan) -> RunSession:
    with open_for_run(options) as opened:
        session = RunSession(opened)
        session.run_plan(measure, plan)
    return session


def _interrupted(options: TargetOptions, plan: Plan, listener: Listener) -> RunSession:
    """A run that Ctrl-C interrupts; the exception closes the target, as in the program."""
    sessions: list[RunSession] = []
    with contextlib.suppress(KeyboardInterrupt, Interrupted), open_for_run(options) as opened:
        sessions.append(RunSession(opened, listener))
        sessions[0].run_plan(measure, plan)
    return sessions[0]


def _codes(opened: OpenTarget) -> set[str]:
    """Codes of the experiment's own warnings, without those about this machine and its drive."""
    machine = {"virtual", "rotational", "page-cache-below", "composed", "usb", "network"}
    machine |= {"busy-host", "stolen-time", "ceiling", "link-speed", "cliff", "thermal"}
    return {warning.code for warning in opened.warnings} - machine


def test_the_default_plan_is_the_published_one() -> None:
    plan = make_plan(Aging(), Directory("."), 0)
    assert plan.parameters()["size_mib"] == 4096
    assert plan.parameters()["amounts_mib"] == [50, 200, 800, 4000]
    assert list(plan.rests_s) == [10, 20, 30]


def test_a_quick_plan_has_a_smaller_file_and_a_tenth_of_the_rests() -> None:
    quick = make_plan(Aging(quick=True), Directory("."), 0)
    assert quick.size == 512 * MIB
    assert list(quick.rests_s) == [1, 2, 3]
    assert make_plan(Aging(size="1GiB", quick=True), Directory("."), 0).size == 1 << 30


@pytest.mark.parametrize("size_mib", [16, 17, 512, 1000, 4096, 1 << 20])
def test_amounts_scale_with_the_file_in_whole_blocks(size_mib: int) -> None:
    scaled = make_plan(Aging(size=size_mib * MIB), Directory("."), 0)
    for amount, published in zip(scaled.amounts, (50, 200, 800, 4000), strict=True):
        assert amount % 4096 == 0
        assert amount == pytest.approx(published / 4096 * size_mib * MIB, abs=4096)
        assert 0 < amount <= scaled.size


@pytest.mark.parametrize("size", [0, 1, MIB, 16 * MIB - 1, 16 * MIB + 1])
def test_a_size_that_is_too_small_or_not_in_whole_mib_is_refused(size: int) -> None:
    with pytest.raises(UsageError, match=r"--size is .*a multiple of 1 MiB, at least 16 MiB"):
        make_plan(Aging(size=size), Directory("."), 0)


def test_the_refusal_of_a_size_names_sizes_that_are_accepted() -> None:
    with pytest.raises(UsageError, match=r"; give 953MiB or 954MiB$"):
        make_plan(Aging(size="1GB"), Directory("."), 0)
    assert make_plan(Aging(size="953MiB"), Directory("."), 0).size == 953 * MIB


def test_a_rest_of_more_than_a_year_is_refused() -> None:
    with pytest.raises(UsageError, match="--rest is 366d; it must be up to 365 d"):
        make_plan(Aging(rest="366d"), Directory("."), 0)


def test_the_steps_come_in_the_order_of_the_method(small_plan: Plan) -> None:
    steps = _steps(_run(_twin(), replace(small_plan, long_rest_s=5.0)))
    order = [(step["phase"], step["stage"], step["repeat"]) for step in steps]
    assert order == [
        *[("fill", 0, 0), ("flush", 0, 0), ("read", 0, 0), ("read", 0, 1)],
        *[("overwrite", 1, 0), ("flush", 1, 0), ("read", 1, 0), ("read", 1, 1)],
        *[("overwrite", 2, 0), ("flush", 2, 0), ("read", 2, 0), ("read", 2, 1)],
        ("read", 2, 2),
    ]
    assert [step["rest_s"] for step in steps if step["phase"] == "read"][-3:] == [0.0, 0.01, 5.0]


def test_each_step_has_the_block_size_depth_and_amount_of_the_method(small_plan: Plan) -> None:
    for step in _steps(_run(_twin(), small_plan)):
        block, depth, amount = {
            "fill": (MIB, 4, 16 * MIB),
            "flush": (0, 1, 0),
            "read": (MIB, 1, 16 * MIB),
            "overwrite": (4096, 1, small_plan.amounts[step["stage"] - 1]),
        }[step["phase"]]
        assert (step["block_bytes"], step["queue_depth"], step["bytes"]) == (block, depth, amount)
        assert step["errors"] == 0


def test_steps_follow_each_other_in_time_with_their_rests_between(small_plan: Plan) -> None:
    steps = _steps(_run(_twin(), small_plan))
    for before, after in itertools.pairwise(steps):
        assert after["start_ns"] - before["end_ns"] >= after["rest_s"] * 1e9
        assert after["end_ns"] > after["start_ns"]


def test_a_client_drive_slows_down_with_every_amount_but_a_data_centre_drive_does_not() -> None:
    plan = make_plan(Aging(size="64MiB"), Directory("."), 0)
    reads = {}
    for name in TWINS:
        steps = _run(_twin(name), plan).recording.tables()["steps"]
        reads[name] = [row["read_s"] for row in analysis.measures(steps, 3)]
    client, data_centre = reads[TWINS[0]], reads[TWINS[1]]
    assert client == sorted(client)
    assert len(set(client)) == 5
    assert 2.5 < client[-1] / client[0] < 4.5
    assert data_centre[-1] / data_centre[0] < 1.05


def test_the_same_seed_gives_the_same_run(small_plan: Plan) -> None:
    def tables(seed: int) -> dict[str, Any]:
        session = _run(_twin(), replace(small_plan, seed=seed))
        return {name: t.to_pylist() for name, t in session.recording.tables().items()}

    assert tables(1) == tables(1)
    assert tables(1)["steps"] != tables(2)["steps"]


HOST = ("own_user_s", "own_system_s", "foreign_cpu_s", "stolen_cpu_s")


def test_the_steps_of_a_twin_record_no_host_load_and_no_warning_about_it(
    small_plan: Plan,
) -> None:
    with open_for_run(_twin()) as opened:
        session = RunSession(opened)
        session.run_plan(measure, small_plan)
        assert {step[name] for step in _steps(session) for name in HOST} == {None}
        assert not {"busy-host", "stolen-time"} & {warning.code for warning in opened.warnings}


def test_every_interval_of_every_step_is_recorded_with_its_latencies(small_plan: Plan) -> None:
    session = _run(_twin(), small_plan)
    tables = session.recording.tables()
    fine, intervals = (tables[name].to_pylist() for name in ("interval_latency", "intervals"))
    for step in _steps(session):
        rows = [row for row in fine if row["step"] == step["step"]]
        requests = [row["requests"] for row in intervals if row["step"] == step["step"]]
        assert sum(row["count"] for row in rows) == sum(requests) == step["requests"]
        for number, counted in enumerate(requests):
            assert sum(row["count"] for row in rows if row["interval"] == number) == counted
        op = {"read": 0, "flush": 3}.get(step["phase"], 1)
        assert {row["op"] for row in rows} == {op}


def test_a_listener_gets_reports_of_every_step_and_of_the_end(small_plan: Plan) -> None:
    reports: list[Report] = []
    with open_for_run(_twin()) as opened:
        RunSession(opened, reports.append).run_plan(measure, small_plan)
    labels = list(dict.fromkeys(report.label.split(" ")[0] for report in reports))
    assert labels == ["writing", "reading", "resting", "overwriting"]
    assert reports[-1].run_share == 1.0
    assert reports[-1].left_s == 0.0
    assert all(report.is_virtual for report in reports)


@pytest.mark.parametrize(
    ("label", "phases"),
    [
        ("writing", set()),
        ("resting", {"fill", "flush", "read"}),
        ("reading the file, stage 0", {"fill", "flush"}),
        ("overwriting", {"fill", "flush", "read"}),
        ("reading the file, stage 1", {"fill", "flush", "read", "overwrite"}),
    ],
)
def test_ctrl_c_keeps_the_complete_steps_and_removes_the_file(
    drive_directory: Path,
    small_plan: Plan,
    ctrl_c_at: Callable[[str], Listener],
    label: str,
    phases: set[str],
) -> None:
    options = TargetOptions(parse_target(str(drive_directory)), 16 * MIB)
    session = _interrupted(options, small_plan, ctrl_c_at(label))
    assert {step["phase"] for step in _steps(session)} == phases
    assert list(drive_directory.iterdir()) == []


def test_an_interrupted_read_does_not_count(
    small_plan: Plan, ctrl_c_at: Callable[[str], Listener]
) -> None:
    press = ctrl_c_at("reading the file, stage 1")

    def in_the_middle(report: Report) -> None:
        if report.step_share > 0:
            press(report)

    session = _interrupted(_twin(), small_plan, in_the_middle)
    steps = session.recording.tables()["steps"]
    assert len(analysis.measures(steps, 2)) == 1


def test_a_directory_is_measured_and_left_empty(drive_directory: Path, small_plan: Plan) -> None:
    session = _run(TargetOptions(parse_target(str(drive_directory)), 16 * MIB), small_plan)
    steps = _steps(session)
    assert len(steps) == 12
    assert [step["extents"] for step in steps if step["phase"] != "flush"] == [None] * 9
    assert all(step["extents"] >= 1 for step in steps if step["phase"] == "flush")
    tables = session.recording.tables()
    assert len(analysis.measures(tables["steps"], 2)) == 3
    for name in ("latency", "interval_latency"):
        assert sum(tables[name]["count"].to_pylist()) == sum(s["requests"] for s in steps)
    assert all(step[name] >= 0 for step in steps for name in HOST)
    assert sum(step["own_user_s"] + step["own_system_s"] for step in steps) > 0
    assert list(drive_directory.iterdir()) == []


def test_a_file_that_another_program_reads_into_the_page_cache_is_refused(
    drive_directory: Path, small_plan: Plan
) -> None:
    def read_file(report: Report) -> None:
        if "resting" in report.label:
            next(drive_directory.iterdir()).read_bytes()

    with (
        pytest.raises(TargetError, match="are in the page cache"),
        open_for_run(TargetOptions(parse_target(str(drive_directory)), 16 * MIB)) as opened,
    ):
        RunSession(opened, read_file).run_plan(measure, small_plan)
    assert list(drive_directory.iterdir()) == []


def test_an_exception_during_the_run_removes_the_file(
    drive_directory: Path, small_plan: Plan
) -> None:
    class OddError(Exception):
        pass

    def fail(report: Report) -> None:
        if "overwriting" in report.label:
            raise OddError

    with (
        pytest.raises(OddError),
        open_for_run(TargetOptions(parse_target(str(drive_directory)), 16 * MIB)) as opened,
    ):
        RunSession(opened, fail).run_plan(measure, small_plan)
    assert list(drive_directory.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "options", "codes"),
    [
        ("ext4", "", set()),
        ("xfs", "", set()),
        ("ext2", "", set()),
        ("btrfs", "", {"copy-on-write", "layout-changed"}),
        ("btrfs", "nodatacow", set()),
    ],
)
def test_a_file_system_that_moves_overwritten_blocks_gives_warnings(
    make_filesystem: Callable[..., Path],
    small_plan: Plan,
    kind: str,
    options: str,
    codes: set[str],
) -> None:
    top = make_filesystem(kind, ROOMY_MIB, "", options)
    with open_for_run(TargetOptions(parse_target(str(top)), 16 * MIB)) as opened:
        RunSession(opened).run_plan(measure, small_plan)
        assert _codes(opened) == codes
    assert not list(top.glob("ssdlab*"))


def test_a_compressing_file_system_gives_warnings(
    make_filesystem: Callable[..., Path], small_plan: Plan
) -> None:
    top = make_filesystem("btrfs", ROOMY_MIB, "", "compress-force=zstd")
    with open_for_run(TargetOptions(parse_target(str(top)), 16 * MIB)) as opened:
        try:
            RunSession(opened).run_plan(measure, small_plan)
        except TargetError as refused:  # compressed reads may come from the page cache
            assert "page cache" in str(refused)  # noqa: PT017 -- either outcome is correct
        assert {"copy-on-write", "compressed"} <= _codes(opened)


def test_a_block_device_is_measured(loop_device: Callable[..., Path], small_plan: Plan) -> None:
    device = loop_device(32)
    options = TargetOptions(parse_target(str(device)), 16 * MIB, consent=Consent(any_empty=True))
    steps = _steps(_run(options, small_plan))
    assert len(steps) == 12
    assert {step["extents"] for step in steps} == {None}
    content = device.read_bytes()
    assert content[: 16 * MIB].count(0) < 16 * MIB // 100
    assert not any(content[16 * MIB :])
