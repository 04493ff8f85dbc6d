"""A busy host: which load is doubted, and what a step's columns say of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ssdlab.device import HostLoad, HostWatch, host
from ssdlab.errors import DeviceFailure
from ssdlab.experiments.aging import measure as aging
from ssdlab.experiments.aging.measure import Plan, measure
from ssdlab.runner import session
from ssdlab.runner.open_target import TargetOptions, open_for_run
from ssdlab.runner.session import RunSession
from ssdlab.runner.warnings.contention import check_quiet, host_columns
from ssdlab.target import Twin

LOAD = HostLoad(wall_s=2.0, own_user_s=0.1, own_system_s=0.2, foreign_cpu_s=1.5, stolen_cpu_s=0.3)


def _step(phase: str, seconds: float, foreign: float = 0.0, stolen: float = 0.0) -> dict[str, Any]:
    """A row of a step at 7 s of the drive's clock, beside which others had so many processors."""
    return {
        "phase": phase,
        "start_ns": 7_000_000_000,
        "end_ns": 7_000_000_000 + round(seconds * 1e9),
        "foreign_cpu_s": foreign * seconds,
        "stolen_cpu_s": stolen * seconds,
    }


def _doubts(*steps: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    check_quiet(steps, found.__setitem__)
    return found


def test_a_quiet_host_is_not_doubted() -> None:
    assert _doubts(_step("fill", 10, 0.4, 0.04), _step("read", 10, 0.02)) == {}
    assert _doubts() == {}


def test_more_than_half_a_processor_of_others_is_doubted_with_its_number() -> None:
    found = _doubts(_step("read", 10, 0.6))
    assert list(found) == ["busy-host"]
    assert found["busy-host"].startswith("While reading, 0.6 processors were busy with other")


def test_stolen_time_of_a_twentieth_of_one_processor_is_doubted() -> None:
    found = _doubts(_step("overwrite", 10, 0.0, 0.06))
    assert list(found) == ["stolen-time"]
    assert "While overwriting, the hypervisor kept 6% of a processor" in found["stolen-time"]


def test_noisy_reads_do_not_hide_behind_a_long_and_quiet_fill() -> None:
    found = _doubts(_step("fill", 1000), _step("read", 1, 0.9), _step("read", 1, 0.7))
    assert "While reading, 0.8 processors" in found["busy-host"]


def test_what_is_too_short_for_the_systems_counters_is_not_judged_alone() -> None:
    blink = _step("read", 0.1, 1.0)
    assert _doubts(*[blink] * 4) == {}
    assert list(_doubts(*[blink] * 6)) == ["busy-host"]


def test_flushes_and_steps_without_a_look_at_the_host_are_left_out() -> None:
    unseen = {**_step("read", 10), "foreign_cpu_s": None, "stolen_cpu_s": None}
    assert _doubts(unseen, _step("flush", 10, 2.0, 1.0)) == {}


def test_a_host_that_cannot_be_seen_is_doubted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "_STAT", tmp_path / "stat")
    load = HostWatch().load()
    assert (load.foreign_cpu_s, load.stolen_cpu_s, load.foreign_cores) == (None, None, 0.0)
    unseen = _step("read", 10) | host_columns(load, is_virtual=False)
    assert list(_doubts(_step("fill", 10), unseen)) == ["host-unseen"]
    assert _doubts(_step("fill", 10) | host_columns(load, is_virtual=True)) == {}


def test_a_real_drives_step_has_the_hosts_seconds_and_a_twins_has_nulls() -> None:
    assert host_columns(LOAD, is_virtual=False) == {
        "own_user_s": 0.1,
        "own_system_s": 0.2,
        "foreign_cpu_s": 1.5,
        "stolen_cpu_s": 0.3,
    }
    assert set(host_columns(LOAD, is_virtual=True).values()) == {None}
    assert host_columns(LOAD, is_virtual=True).keys() == host_columns(LOAD, is_virtual=False).keys()


@pytest.fixture
def crowded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step is said to have lasted 2 s beside a busy host.

    A twin runs them, so that what this machine does meanwhile decides nothing.
    """
    busy = {**host_columns(LOAD, is_virtual=False), "start_ns": 0, "end_ns": 2_000_000_000}
    monkeypatch.setattr(session, "host_columns", lambda _, is_virtual: dict(busy))


@pytest.mark.usefixtures("crowded")
def test_a_run_beside_a_busy_host_is_doubted(small_plan: Plan) -> None:
    with open_for_run(TargetOptions(Twin("toshiba-xg5", 1 << 30), 16 << 20)) as opened:
        RunSession(opened).run_plan(measure, small_plan)
        assert [warning.code for warning in opened.warnings] == ["busy-host", "stolen-time"]


@pytest.mark.usefixtures("crowded")
def test_a_run_that_fails_beside_a_busy_host_is_doubted_too(
    small_plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise DeviceFailure("lost")

    with open_for_run(TargetOptions(Twin("toshiba-xg5", 1 << 30), 16 << 20)) as opened:
        monkeypatch.setattr(aging, "_overwrite", fail)
        with pytest.raises(DeviceFailure):
            RunSession(opened).run_plan(measure, small_plan)
        assert "busy-host" in {warning.code for warning in opened.warnings}
