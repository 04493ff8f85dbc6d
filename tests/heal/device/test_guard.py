"""Watchdog and worker are killed together: the guard thaws, or a recovery if it is killed too."""

from __future__ import annotations

import fcntl
import os
import select
import signal

import pytest
from watchdog_case import WatchdogCase

from ssdlab.heal.device import kernel, watchdog
from ssdlab.heal.device.drive import DirectDevice
from ssdlab.heal.device.whole import recover_device

TIMEOUT_S = 60


def kill_all(case: WatchdogCase, *, also_guard: bool) -> None:
    """Lets a worker kill its watchdog and itself; returns when all their processes have exited."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read_end)
            device = case.device
            dog = watchdog.Watchdog(device.point, device.node, device.journal, TIMEOUT_S)
            os.environ["GUARD"] = str(dog.guard.process if also_guard else 0)
            dog.rewrite(case.record)
        finally:
            os._exit(1)
    os.close(write_end)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the watchdog was killed"
    ended, _, _ = select.select([read_end], [], [], TIMEOUT_S)
    os.close(read_end)
    assert ended, "a process still has the write end"


def kill_group(*_: object) -> None:
    """Called by the worker instead of its write."""
    if guard := int(os.environ["GUARD"]):
        os.kill(guard, signal.SIGKILL)
    os.kill(os.getppid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(params=["prepared", "armed"])
def state(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The record's state when the worker dies: before the journal update, or during the write."""
    state: str = request.param
    if state == "prepared":
        monkeypatch.setattr(watchdog.Watchdog, "_write_window", kill_group)
    else:
        monkeypatch.setattr(DirectDevice, "write", kill_group)
    return state


def test_the_guard_thaws_if_watchdog_and_worker_are_killed_together(
    case: WatchdogCase, state: str
) -> None:
    kill_all(case, also_guard=False)
    assert not kernel.thaw(case.watchdog.fd), "it is thawed already"
    assert case.state().state == ("done" if state == "armed" else state)


def test_data_written_after_the_guards_thaw_is_kept_by_a_later_recovery(
    case: WatchdogCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(DirectDevice, "write", kill_group)
        kill_all(case, also_guard=False)
    name = "file-0"
    newer = bytes(len(case.device.content[name]))
    with (case.device.point / name).open("r+b") as file:
        file.write(newer)
    case.device.content[name] = newer
    case.lose_power()
    case.change_session()
    assert recover_device(case.device.node, case.device.journal).restored_bytes == 0
    case.device.check()
    case.device.mount()


@pytest.mark.usefixtures("state")
def test_a_recovery_thaws_if_the_guard_is_killed_too(case: WatchdogCase) -> None:
    kill_all(case, also_guard=True)
    fcntl.flock(case.journal._fd, fcntl.LOCK_UN)
    try:
        recovered = recover_device(case.device.node, case.device.journal)
    finally:
        was_frozen = kernel.thaw(case.watchdog.fd)
    assert recovered.thawed
    assert recovered.restored_bytes == 0
    assert not was_frozen
    assert not case.device.journal.exists()


def test_a_recovery_does_not_end_a_later_freeze_by_another_program(
    case: WatchdogCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(DirectDevice, "write", kill_group)
        kill_all(case, also_guard=True)
    assert kernel.thaw(case.watchdog.fd)
    kernel.freeze(case.watchdog.fd)
    fcntl.flock(case.journal._fd, fcntl.LOCK_UN)
    try:
        recovered = recover_device(case.device.node, case.device.journal)
    finally:
        was_frozen = kernel.thaw(case.watchdog.fd)
    assert was_frozen, "the other program's freeze remains"
    assert not recovered.thawed
