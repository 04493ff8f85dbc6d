"""Makes each system call of a heal fail once, and checks files, device, journal and message."""

from __future__ import annotations

import os
import subprocess
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from injection import FAULTS, Injection, injected
from power_loss import crash
from sample_device import Device
from sample_file import SampleFile
from watchdog_case import WatchdogCase

from ssdlab.errors import DeviceFailure, SsdlabError
from ssdlab.heal.device.allocated import read_file_system
from ssdlab.heal.device.whole import recover_device
from ssdlab.heal.device.windows import WINDOW_BYTES
from ssdlab.heal.file import heal_file
from ssdlab.heal.methods.copy import remove_leftovers
from ssdlab.heal.options import HealOptions
from ssdlab.heal.outcome import FileOutcome
from ssdlab.heal.pieces import split_at_grid


@dataclass
class FaultResults:
    """Faults injected, those that the heal reported, and a line for each that it mishandled."""

    injected: int = 0
    reported: int = 0
    bad: list[str] = field(default_factory=list)


def enumerate_faults(
    act: Callable[[], object],
    examine: Callable[[], None],
    *,
    prepare: Callable[[], None] = lambda: None,
    every: int = 1,
) -> FaultResults:
    """Calls `act` with each fault at every call, or every Nth, and `examine` after each.

    `prepare` makes the state that `act` needs. `act` may raise an `SsdlabError` with a one-line
    message. Any other exception, and any exception of `examine`, is counted in `bad`.
    """
    prepare()
    with injected() as counted:
        act()
    examine()
    results, trial = FaultResults(), 0
    for at in range(counted.count):
        for name, number in FAULTS.items():
            trial += 1
            if trial % every:
                continue
            prepare()
            with injected(at, number) as injection:
                message = _message(act)
            results.injected += injection.happened
            results.reported += message != ""
            call = f"{name} at {at} {_call(injection, at)}"
            results.bad += [f"{call}: {why}" for why in _complaints(message)]
            try:
                examine()
            except Exception:  # noqa: BLE001 -- every exception is counted and shown
                why = traceback.format_exc(limit=-3)
                results.bad.append(f"{call} ({message}): {why}")
    return results


def _message(act: Callable[[], object]) -> str:
    try:
        act()
    except SsdlabError as error:
        return str(error)
    except Exception:  # noqa: BLE001 -- no user may see a traceback
        return "Traceback " + traceback.format_exc(limit=-4)
    return ""


def _complaints(message: str) -> Iterator[str]:
    if message.startswith("Traceback"):
        yield message
    elif "\n" in message:
        yield f"more than one line: {message}"


def _call(injection: Injection, at: int) -> str:
    return injection.names[at] if at < len(injection.names) else "in a child process"


def of_file(sample: SampleFile, every: int = 1) -> FaultResults:
    """A heal of a file, by the method of its file system."""

    def act() -> FileOutcome:
        return heal_file(sample.path, HealOptions(everything=True), lambda *_: None)

    def examine() -> None:
        remove_leftovers(sample.path.parent)  # as `ssdlab heal` does first
        sample.check()

    return enumerate_faults(act, examine, every=every)


def of_device(device: Device, every: int = 1) -> FaultResults:
    """A heal of an unmounted device."""

    def examine() -> None:
        if device.journal.exists():
            recover_device(device.node, device.journal)
        device.check()
        assert not device.journal.exists(), "the journal was not removed"

    return enumerate_faults(lambda: device.heal(two_windows(device)), examine, every=every)


def of_mounted(device: Device, every: int = 1) -> FaultResults:
    """A heal of a mounted device, in the process that starts the watchdog."""

    def examine() -> None:
        _check_mounted(device)
        if device.journal.exists():
            recover_device(device.node, device.journal)
        device.unmount()
        device.check()

    return enumerate_faults(
        lambda: device.heal(two_windows(device)),
        examine,
        prepare=lambda: _mount(device),
        every=every,
    )


def of_watchdog(device: Device, every: int = 1) -> FaultResults:
    """One window of a mounted device, in the watchdog, its worker and its guard."""
    cases: list[WatchdogCase] = []

    def prepare() -> None:
        _mount(device)
        cases.append(WatchdogCase(device))

    def act() -> None:
        case = cases[-1]
        if case.watchdog.answer(case.record).end == "failed":
            raise DeviceFailure("a window could not be rewritten; the journal has it")

    def examine() -> None:
        _check_mounted(device)
        case = cases.pop()
        case.direct.close()
        case.journal.close()
        case.watchdog.close()
        recover_device(device.node, device.journal)
        device.unmount()
        device.check()

    return enumerate_faults(act, examine, prepare=prepare, every=every)


def of_recovery(device: Device, every: int = 1) -> FaultResults:
    """A recovery after a crash that tore a window of the device."""

    def examine() -> None:
        if device.journal.exists():
            recover_device(device.node, device.journal)
        device.check()

    return enumerate_faults(
        lambda: recover_device(device.node, device.journal),
        examine,
        prepare=lambda: crash(device, 2),
        every=every,
    )


def two_windows(device: Device) -> HealOptions:
    """Options for the end of one window and the start of the next, inside the large file."""
    middle = next(
        each.offset
        for each in split_at_grid(
            read_file_system(device.node, device.kind, mounted=True).ranges, WINDOW_BYTES
        )
        if each.offset >= 2 * WINDOW_BYTES and each.length == WINDOW_BYTES
    )
    return HealOptions(ranges=((middle - (64 << 10), 128 << 10),), piece_bytes=1 << 30)


def _mount(device: Device) -> None:
    if not os.path.ismount(device.point):
        device.mount()


def _check_mounted(device: Device) -> None:
    """Fails if it is frozen: a write would not return."""
    probe = device.point / "file-0"
    done = subprocess.run(
        ["dd", f"if={probe}", f"of={probe}", "bs=4096", "count=1", "conv=notrunc,fsync"],
        check=True,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0
