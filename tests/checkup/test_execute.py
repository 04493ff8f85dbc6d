"""Checkups of twins and of a real directory: stored, interrupted, resumed, ended in time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ssdlab.checkup import execute, parts
from ssdlab.checkup.execute import (
    CheckupOptions,
    cost,
    options_for,
    perform_checkup,
    resume_checkup,
)
from ssdlab.checkup.lights import lights, verdict
from ssdlab.checkup.parts import RESERVED_S
from ssdlab.checkup.record import read_checkup
from ssdlab.checkup.table import table
from ssdlab.errors import TargetError, UsageError
from ssdlab.experiments.aging import measure as aging
from ssdlab.experiments.cache import measure as cache
from ssdlab.experiments.fsync import measure as fsync
from ssdlab.experiments.suite import measure as suite
from ssdlab.experiments.trim import plan as trim
from ssdlab.runner.progress import Report
from ssdlab.runner.run import RunObserver
from ssdlab.storage_stack.space import Space
from ssdlab.target import Directory, Twin

MIB = 1 << 20
CtrlCAt = Callable[[str], Callable[[Report], None]]


@pytest.fixture
def of_twin(tmp_path: Path) -> CheckupOptions:
    return CheckupOptions(Twin("toshiba-xg5", 1 << 30), tmp_path / "runs")


@pytest.fixture
def of_directory(
    drive_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> CheckupOptions:
    """A checkup of a directory by small files and steps of some milliseconds."""
    for module in (suite, fsync):
        monkeypatch.setattr(module, "QUICK_SECONDS", 0.02)
    monkeypatch.setattr(suite, "RUNS", 1)
    monkeypatch.setattr(aging, "RESTS_S", (0.01, 0.01))
    monkeypatch.setattr(cache, "QUICK_SETTLE_S", 0.01)
    monkeypatch.setattr(cache, "QUICK_REST_MAX_S", 0.01)
    monkeypatch.setattr(trim, "QUICK_WAIT_S", 0.01)
    monkeypatch.setattr(parts, "DOCTOR_READ_BYTES", 0)
    sizes = dict.fromkeys(RESERVED_S, 16 * MIB)
    monkeypatch.setattr(parts, "USUAL_SIZES", sizes)
    return CheckupOptions(Directory(str(drive_directory)), tmp_path / "runs")


def test_a_twin_is_measured_by_all_experiments_and_stored(of_twin: CheckupOptions) -> None:
    checkup = perform_checkup(of_twin, RunObserver())
    assert checkup.is_complete
    assert list(checkup.runs) == list(RESERVED_S)
    assert checkup.doctor is None
    assert checkup.record.why_not == {}
    assert {run.manifest.label for run in checkup.runs.values()} == {"checkup"}
    again = read_checkup(checkup.folder)
    assert lights(again) == lights(checkup)
    assert [row.test for row in table(again)] == [
        *("SEQ1M Q8T1", "SEQ1M Q1T1", "RND4K Q32T1", "RND4K Q1T1")
    ]
    for row in table(again):
        assert row.read_mb_per_s
        assert row.write_mb_per_s
    colours = {light.code: light.colour for light in lights(checkup)}
    assert colours["speed"] == colours["durable"] == colours["trim"] == "green"
    assert colours["ageing"] == "red", "this drive's files age by more than 3 times"


def test_a_directory_is_examined_too_and_nothing_is_left_in_it(
    of_directory: CheckupOptions, drive_directory: Path
) -> None:
    reports: list[Report] = []
    checkup = perform_checkup(of_directory, RunObserver(reports.append))
    assert checkup.is_complete
    assert list(drive_directory.iterdir()) == []
    assert list(checkup.runs) == list(RESERVED_S), checkup.record.why_not
    assert checkup.doctor is not None
    assert checkup.doctor.target == str(drive_directory)
    assert {report.label.partition(":")[0] for report in reports} == {"doctor", *RESERVED_S}
    assert all(report.left_s is not None and report.left_s <= 300 for report in reports)
    shares = [report.run_share for report in reports]
    assert shares[-1] > shares[0]


def test_ctrl_c_keeps_what_was_measured_and_resuming_measures_the_rest(
    of_twin: CheckupOptions, ctrl_c_at: CtrlCAt
) -> None:
    broken = perform_checkup(of_twin, RunObserver(ctrl_c_at("aging: reading the file, stage 2")))
    assert not broken.is_complete
    assert list(broken.runs) == ["suite", "fsync", "trim", "aging"]
    colours = {light.code: light.colour for light in lights(broken)}
    assert colours["lasting"] == "grey"
    assert "All right" not in verdict(lights(broken))
    suite_folder = broken.runs["suite"].folder
    resumed = resume_checkup(broken.folder, RunObserver())
    assert resumed.is_complete
    assert resumed.folder == broken.folder
    assert list(resumed.runs) == list(RESERVED_S)
    assert resumed.runs["suite"].folder == suite_folder
    assert {run.manifest.outcome for run in resumed.runs.values()} == {"complete"}
    with pytest.raises(UsageError, match="is complete; see it with: ssdlab checkup --recorded"):
        resume_checkup(resumed.folder, RunObserver())


def test_ctrl_c_removes_the_test_file(
    of_directory: CheckupOptions, ctrl_c_at: CtrlCAt, drive_directory: Path
) -> None:
    broken = perform_checkup(of_directory, RunObserver(ctrl_c_at("suite: random 4k, write")))
    assert list(drive_directory.iterdir()) == []
    assert not broken.is_complete
    assert list(broken.runs) == ["suite"]
    assert broken.doctor is not None


def test_parts_end_when_their_time_is_up(
    of_directory: CheckupOptions, drive_directory: Path
) -> None:
    checkup = perform_checkup(replace(of_directory, limit_s=1e-6), RunObserver())
    assert checkup.is_complete
    assert list(drive_directory.iterdir()) == []
    unmeasured = {light.code for light in lights(checkup) if light.colour == "grey"}
    assert {"speed", "durable", "lasting", "ageing"} <= unmeasured
    assert "ran out of time" in checkup.record.why_not["suite"]


def test_without_room_only_the_doctor_runs_and_the_lights_say_why(
    of_directory: CheckupOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_path: Path) -> Space:
        return Space(100 << 30, (5 << 30) + 3 * MIB, 8 << 30)

    monkeypatch.setattr(execute, "space_on", full)
    checkup = perform_checkup(of_directory, RunObserver())
    assert checkup.runs == {}
    assert checkup.doctor is not None
    speed = next(light for light in lights(checkup) if light.code == "speed")
    assert speed.colour == "grey"
    assert "only 3 MiB may be used, because 5 % of the file system, at least 1 GiB" in speed.says
    assert speed.next == "", "no other command would help"
    assert (
        "at most 3 MiB, which are removed, because 5.003 GiB are free and 5 GiB must stay free"
        in (cost(of_directory))
    )


def test_a_directory_that_is_not_on_a_drive_is_refused() -> None:
    with pytest.raises(TargetError, match="/proc is proc, a file system of the kernel"):
        options_for(Directory("/proc"), Path("runs"), 0)


class _SmallDrive(RunObserver):
    """Fails if the run wants a confirmation: a checkup needs none."""

    def confirm(self, sentence: str) -> bool | None:
        raise AssertionError(sentence)


def test_a_small_drive_is_written_less_without_asking(
    of_directory: CheckupOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ssdlab.runner import run as runner
    from ssdlab.runner.budget import Budget

    def wearing(plan: suite.Plan, _drives: object) -> Budget:
        return Budget(plan.write_bytes, 1.0, 1.0 if plan.size > 32 * MIB else 0.01)

    monkeypatch.setattr(runner, "budget", wearing)
    sizes = dict.fromkeys(RESERVED_S, 64 * MIB)
    monkeypatch.setattr(parts, "USUAL_SIZES", sizes)
    checkup = perform_checkup(of_directory, _SmallDrive())
    assert checkup.record.why_not == {}
    sized = {name: size for name, size in checkup.record.sizes.items() if name != "trim"}
    assert set(sized.values()) == {32 * MIB}
