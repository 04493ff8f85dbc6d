"""CPU contention on the host: which load gets a warning, and the columns of a step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ssdlab.device import HostLoad, HostWatch, jobs
from ssdlab.errors import DeviceFailure
from ssdlab.experiments.aging import measure as aging
from ssdlab.experiments.aging.measure import Plan, measure
from ssdlab.runner import session
from ssdlab.runner.open_target import TargetOptions, open_for_run
from ssdlab.runner.session import RunSession
from ssdlab.runner.warnings.contention import check_contention, host_columns
from ssdlab.target import Twin

LOAD = HostLoad(wall_s=2.0, own_user_s=0.1, own_system_s=0.2, foreign_cpu_s=1.5, stolen_cpu_s=0.3)


def _step(phase: str, seconds: float, foreign: float = 0.0, stolen: float = 0.0) -> dict[str, Any]:
    """A step that starts at 7 s; other programs and the hypervisor used this many CPUs."""
    return {
        "phase": phase,
        "start_ns": 7_000_000_000,
        "end_ns": 7_000_000_000 + round(seconds * 1e9),
        "foreign_cpu_s": foreign * seconds,
        "stolen_cpu_s": stolen * seconds,
    }


def _warnings(*steps: dict[str, Any]) -> dict[str, str]:
    warnings: dict[str, str] = {}
    check_contention(steps, warnings.__setitem__)
    return warnings


def test_an_idle_host_gets_no_warning() -> None:
    assert _warnings(_step("fill", 10, 0.4, 0.04), _step("read", 10, 0.02)) == {}
    assert _warnings() == {}


def test_other_programs_on_more_than_half_a_cpu_get_a_warning() -> None:
    warnings = _warnings(_step("read", 10, 0.6))
    assert list(warnings) == ["busy-host"]
    assert warnings["busy-host"].startswith("While reading, other programs or kernel")
    assert "used 0.6 CPUs" in warnings["busy-host"]


def test_stolen_time_of_more_than_a_twentieth_of_a_cpu_gets_a_warning() -> None:
    warnings = _warnings(_step("overwrite", 10, 0.0, 0.06))
    assert list(warnings) == ["stolen-time"]
    assert "While overwriting, the hypervisor withheld 6% of a CPU" in warnings["stolen-time"]


def test_disturbed_reads_are_found_after_a_long_undisturbed_fill() -> None:
    warnings = _warnings(_step("fill", 1000), _step("read", 1, 0.9), _step("read", 1, 0.7))
    assert "used 0.8 CPUs" in warnings["busy-host"]


def test_a_phase_too_short_for_the_kernels_counters_is_not_checked() -> None:
    short = _step("read", 0.1, 1.0)
    assert _warnings(*[short] * 4) == {}
    assert list(_warnings(*[short] * 6)) == ["busy-host"]


def test_flushes_and_steps_without_host_columns_are_skipped() -> None:
    unseen = {**_step("read", 10), "foreign_cpu_s": None, "stolen_cpu_s": None}
    assert _warnings(unseen, _step("flush", 10, 2.0, 1.0)) == {}


def test_a_host_without_proc_stat_gets_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "_STAT", tmp_path / "stat")
    load = HostWatch().load()
    assert (load.foreign_cpu_s, load.stolen_cpu_s, load.foreign_cores) == (None, None, 0.0)
    unseen = _step("read", 10) | host_columns(load)
    assert list(_warnings(_step("fill", 10), unseen)) == ["host-unseen"]
    assert _warnings(_step("fill", 10) | host_columns(None)) == {}


def test_a_step_of_a_real_drive_has_host_columns_and_one_of_a_twin_nulls() -> None:
    assert host_columns(LOAD) == {
        "own_user_s": 0.1,
        "own_system_s": 0.2,
        "foreign_cpu_s": 1.5,
        "stolen_cpu_s": 0.3,
    }
    assert set(host_columns(None).values()) == {None}
    assert host_columns(None).keys() == host_columns(LOAD).keys()


@pytest.fixture
def busy_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives each step 2 s of contention. A twin runs them, so this machine's load has no effect."""
    busy = {**host_columns(LOAD), "start_ns": 0, "end_ns": 2_000_000_000}
    monkeypatch.setattr(session, "host_columns", lambda _: dict(busy))


@pytest.mark.usefixtures("busy_host")
def test_a_run_on_a_busy_host_gets_warnings(small_plan: Plan) -> None:
    with open_for_run(TargetOptions(Twin("toshiba-xg5", 1 << 30), 16 << 20)) as target:
        RunSession(target).run_plan(measure, small_plan)
        assert [warning.code for warning in target.warnings] == ["busy-host", "stolen-time"]


@pytest.mark.usefixtures("busy_host")
def test_a_failed_run_on_a_busy_host_gets_warnings_too(
    small_plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise DeviceFailure("lost")

    with open_for_run(TargetOptions(Twin("toshiba-xg5", 1 << 30), 16 << 20)) as target:
        monkeypatch.setattr(aging, "_overwrite", fail)
        with pytest.raises(DeviceFailure):
            RunSession(target).run_plan(measure, small_plan)
        assert "busy-host" in {warning.code for warning in target.warnings}
