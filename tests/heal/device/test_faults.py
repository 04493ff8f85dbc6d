"""System calls of a heal that fail once: a sample of what bench/heal_faults.py tests in full."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import faults
import pytest
from injection import injected
from sample_device import Device
from sample_file import MakeFileSystem, MakeSample

from ssdlab.errors import DeviceFailure
from ssdlab.heal.methods import copy

M = 1 << 20


@pytest.mark.parametrize(
    ("kind", "options", "every"),
    [("ext4", "", 5), ("ext4", "-O ^extent,^64bit -b 4096", 13), ("xfs", "-m reflink=1", 5)],
)
def test_a_failed_call_in_the_heal_of_a_file_loses_no_data(
    kind: str,
    options: str,
    every: int,
    make_filesystem: MakeFileSystem,
    make_sample: MakeSample,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(copy, "GRACE_S", 0.0)
    sample = make_sample(make_filesystem(kind, 200, options), 2 * M + 5)
    result = faults.of_file(sample, every)
    assert result.bad == []
    assert result.injected > 10
    assert result.reported > 5


@pytest.mark.parametrize(
    ("inject_faults", "every"),
    [
        (faults.of_device, 29),
        (faults.of_watchdog, 13),
        (faults.of_recovery, 41),
        (faults.of_mounted, 41),
    ],
)
def test_a_failed_call_in_the_heal_of_a_device_loses_no_data(
    inject_faults: Callable[[Device, int], faults.FaultResults],
    every: int,
    make_device: Callable[..., Device],
) -> None:
    result = inject_faults(make_device("ext4"), every)
    assert result.bad == []
    assert result.injected >= 3
    assert result.reported > 0


def test_an_injected_fault_is_counted_and_tears_the_write(
    make_device: Callable[..., Device],
) -> None:
    """Tests the checker itself: it must find garbage that was not restored."""
    device = make_device("ext4")
    with injected() as counted:
        device.heal(faults.two_windows(device))
    at = counted.names.index("pwritev")
    with injected(at) as injection, pytest.raises(DeviceFailure, match="a write at byte"):
        device.heal(faults.two_windows(device))
    assert injection.happened
    with pytest.raises((AssertionError, subprocess.CalledProcessError)):
        device.check()
