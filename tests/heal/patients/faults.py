"""Each call of a heal fails once: what becomes of files, device, journal and message."""

from __future__ import annotations

import os
import subprocess
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from cases import Case
from devices import Device
from injection import FAULTS, Injection, injected
from patients import Healing
from torn import crashed

from ssdlab.errors import DeviceFailure, SsdlabError
from ssdlab.heal.device.allocated import allocated
from ssdlab.heal.device.whole import recover_device
from ssdlab.heal.device.windows import WINDOW_BYTES, gridded
from ssdlab.heal.file import heal_file
from ssdlab.heal.methods.copy import remove_leftovers
from ssdlab.heal.options import Wish
from ssdlab.heal.outcome import FileOutcome


@dataclass
class Findings:
    """What became of the faults so far: how many were injected, and each that was not mastered."""

    injected: int = 0
    told: int = 0
    bad: list[str] = field(default_factory=list)


def enumerate_faults(
    act: Callable[[], object],
    examine: Callable[[], None],
    *,
    begin: Callable[[], None] = lambda: None,
    every: int = 1,
) -> Findings:
    """Does `act` with each fault at each call, or at every so many; `examine` after each.

    `begin` makes the state that `act` begins with. The act may raise an `SsdlabError`, whose
    message is one line; everything else, and whatever `examine` raises, is a finding.
    """
    begin()
    with injected() as counted:
        act()
    examine()
    found, turn = Findings(), 0
    for at in range(counted.count):
        for name, number in FAULTS.items():
            turn += 1
            if turn % every:
                continue
            begin()
            with injected(at, number) as injection:
                told = _told(act)
            found.injected += injection.happened
            found.told += told != ""
            found.bad += [f"{name} at {at} {_call(injection, at)}: {why}" for why in _why(told)]
            try:
                examine()
            except Exception:  # noqa: BLE001 -- whatever it is, it is counted and shown
                why = traceback.format_exc(limit=-3)
                found.bad.append(f"{name} at {at} {_call(injection, at)} ({told}): {why}")
    return found


def _told(act: Callable[[], object]) -> str:
    try:
        act()
    except SsdlabError as error:
        return str(error)
    except Exception:  # noqa: BLE001 -- a traceback is what no user may see
        return "Traceback " + traceback.format_exc(limit=-4)
    return ""


def _why(told: str) -> Iterator[str]:
    if told.startswith("Traceback"):
        yield told
    elif "\n" in told:
        yield f"more than one line: {told}"


def _call(injection: Injection, at: int) -> str:
    return injection.names[at] if at < len(injection.names) else "in a child"


def of_file(healing: Healing, every: int = 1) -> Findings:
    """A heal of a file, by the way that its file system has."""

    def act() -> FileOutcome:
        return heal_file(healing.path, Wish(everything=True), lambda *_: None)

    def examine() -> None:
        remove_leftovers(healing.path.parent)  # as each heal begins
        healing.check()

    return enumerate_faults(act, examine, every=every)


def of_device(device: Device, every: int = 1) -> Findings:
    """A heal of a device at rest."""

    def examine() -> None:
        if device.journal.exists():
            recover_device(device.node, device.journal)
        device.check()
        assert not device.journal.exists(), "the journal stays"

    return enumerate_faults(lambda: device.heal(_two_windows(device)), examine, every=every)


def of_mounted(device: Device, every: int = 1) -> Findings:
    """A heal of a mounted device, in the process that asks the watchdog."""

    def examine() -> None:
        _check_mounted(device)
        if device.journal.exists():
            recover_device(device.node, device.journal)
        device.unmount()
        device.check()

    return enumerate_faults(
        lambda: device.heal(_two_windows(device)),
        examine,
        begin=lambda: _mounted(device),
        every=every,
    )


def of_keeper(device: Device, every: int = 1) -> Findings:
    """One window of a mounted device, in the watchdog, its hand and its guard."""
    cases: list[Case] = []

    def begin() -> None:
        _mounted(device)
        cases.append(Case(device))

    def act() -> None:
        case = cases[-1]
        if case.keeper.answer(case.record).end == "failed":
            raise DeviceFailure("a window could not be rewritten; the journal has it")

    def examine() -> None:
        _check_mounted(device)
        case = cases.pop()
        case.held.close()
        case.journal.close()
        case.keeper.close()
        recover_device(device.node, device.journal)
        device.unmount()
        device.check()

    return enumerate_faults(act, examine, begin=begin, every=every)


def of_recovery(device: Device, every: int = 1) -> Findings:
    """A recovery after a crash that tore a window of the device and left the journal."""

    def examine() -> None:
        if device.journal.exists():
            recover_device(device.node, device.journal)
        device.check()

    return enumerate_faults(
        lambda: recover_device(device.node, device.journal),
        examine,
        begin=lambda: crashed(device, 2),
        every=every,
    )


def _two_windows(device: Device) -> Wish:
    """The end of one window and the beginning of the next, where the large file lies."""
    middle = next(
        each.offset
        for each in gridded(allocated(device.node, device.kind, mounted=True).ranges, WINDOW_BYTES)
        if each.offset >= 2 * WINDOW_BYTES and each.length == WINDOW_BYTES
    )
    return Wish(chosen=((middle - (64 << 10), 128 << 10),), piece_bytes=1 << 30)


def _mounted(device: Device) -> None:
    if not os.path.ismount(device.point):
        device.mount()


def _check_mounted(device: Device) -> None:
    """It is not frozen: a write comes back."""
    probe = device.point / "file-0"
    done = subprocess.run(
        ["dd", f"if={probe}", f"of={probe}", "bs=4096", "count=1", "conv=notrunc,fsync"],
        check=True,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0
