"""All who freeze are killed at once: the guard thaws, and where that is killed too, a recovery."""

from __future__ import annotations

import fcntl
import os
import select
import signal

import pytest
from cases import Case

from ssdlab.heal.device import kernel, watchdog
from ssdlab.heal.device.drive import DirectDevice
from ssdlab.heal.device.whole import recover_device

PATIENCE_S = 600


def all_die(case: Case, *, also_guard: bool) -> None:
    """A watchdog and its hand are killed by the hand; returns when nobody is left of them."""
    alive, held = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(alive)
            device = case.device
            keeper = watchdog.Keeper(device.point, device.node, device.journal, PATIENCE_S)
            os.environ["GUARD"] = str(keeper.guard.process if also_guard else 0)
            keeper.rewrite(case.record)
        finally:
            os._exit(1)
    os.close(held)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the watchdog was killed"
    ended, _, _ = select.select([alive], [], [], PATIENCE_S)
    os.close(alive)
    assert ended, "whoever inherited the other end is gone"


def kills_all(*_: object) -> None:
    """What a hand does in place of its work."""
    if guard := int(os.environ["GUARD"]):
        os.kill(guard, signal.SIGKILL)
    os.kill(os.getppid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(params=["prepared", "armed"])
def state(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of the record, when the hand dies: before it has begun, or in its write."""
    found: str = request.param
    if found == "prepared":
        monkeypatch.setattr(watchdog.Keeper, "_frozen", kills_all)
    else:
        monkeypatch.setattr(DirectDevice, "write", kills_all)
    return found


def test_a_watchdog_and_its_hand_that_are_killed_together_leave_nothing_frozen(
    case: Case, state: str
) -> None:
    all_die(case, also_guard=False)
    assert not kernel.thaw(case.keeper.fd), "it is thawed already"
    assert case.state().state == ("done" if state == "armed" else state)


def test_what_is_written_after_that_is_newer_also_on_another_day(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(DirectDevice, "write", kills_all)
        all_die(case, also_guard=False)
    name = "file-0"
    newer = bytes(len(case.device.content[name]))
    with (case.device.point / name).open("r+b") as file:
        file.write(newer)
    case.device.content[name] = newer
    case.go_out()
    case.other_session()
    assert recover_device(case.device.node, case.device.journal).restored_bytes == 0
    case.device.check()
    case.device.mount()


@pytest.mark.usefixtures("state")
def test_what_all_of_them_left_frozen_is_thawed_by_a_recovery(case: Case) -> None:
    all_die(case, also_guard=True)
    fcntl.flock(case.journal._fd, fcntl.LOCK_UN)
    try:
        found = recover_device(case.device.node, case.device.journal)
    finally:
        was_frozen = kernel.thaw(case.keeper.fd)
    assert found.thawed
    assert found.restored_bytes == 0
    assert not was_frozen
    assert not case.device.journal.exists()


def test_a_recovery_leaves_a_later_freeze_of_somebody_else_alone(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(DirectDevice, "write", kills_all)
        all_die(case, also_guard=True)
    assert kernel.thaw(case.keeper.fd)
    kernel.freeze(case.keeper.fd)
    fcntl.flock(case.journal._fd, fcntl.LOCK_UN)
    try:
        found = recover_device(case.device.node, case.device.journal)
    finally:
        was_frozen = kernel.thaw(case.keeper.fd)
    assert was_frozen, "it is still the other's"
    assert not found.thawed
