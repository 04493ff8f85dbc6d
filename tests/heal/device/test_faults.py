"""System calls of a heal that fail once: some of what bench/heal_faults.py goes through in turn."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import faults
import pytest
from devices import Device
from injection import injected
from patients import Make, Patient

from ssdlab.errors import DeviceFailure
from ssdlab.heal.methods import copy

M = 1 << 20


@pytest.mark.parametrize(
    ("kind", "options", "every"),
    [("ext4", "", 5), ("ext4", "-O ^extent,^64bit -b 4096", 13), ("xfs", "-m reflink=1", 5)],
)
def test_no_call_that_fails_in_the_heal_of_a_file_loses_anything(
    kind: str,
    options: str,
    every: int,
    make_filesystem: Make,
    patient: Patient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(copy, "GRACE_S", 0.0)
    healing = patient(make_filesystem(kind, 200, options), 2 * M + 5)
    found = faults.of_file(healing, every)
    assert found.bad == []
    assert found.injected > 10
    assert found.told > 5


@pytest.mark.parametrize(
    ("enumerate_some", "every"),
    [
        (faults.of_device, 29),
        (faults.of_keeper, 13),
        (faults.of_recovery, 41),
        (faults.of_mounted, 61),
    ],
)
def test_no_call_that_fails_in_the_heal_of_a_device_loses_anything(
    enumerate_some: Callable[[Device, int], faults.Findings],
    every: int,
    make_device: Callable[..., Device],
) -> None:
    found = enumerate_some(make_device("ext4"), every)
    assert found.bad == []
    assert found.injected >= 3
    assert found.told > 0


def test_a_fault_that_comes_is_counted_and_tears_what_was_written(
    make_device: Callable[..., Device],
) -> None:
    """Of the means themselves: garbage that nobody puts back is seen."""
    device = make_device("ext4")
    with injected() as counted:
        device.heal(faults._two_windows(device))
    at = counted.names.index("pwritev")
    with injected(at) as injection, pytest.raises(DeviceFailure, match="a write at byte"):
        device.heal(faults._two_windows(device))
    assert injection.happened
    with pytest.raises((AssertionError, subprocess.CalledProcessError)):
        device.check()
