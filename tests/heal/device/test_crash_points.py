"""All crash points of a heal of two windows at rest; bench/crash_images.py has whole devices."""

from __future__ import annotations

from collections.abc import Callable

import faults
import pytest
from crashes import check_all
from devices import Device

from ssdlab.heal.device.journal import Journal

Make = Callable[..., Device]


def test_after_a_crash_at_any_point_the_device_gets_its_content_back(make_device: Make) -> None:
    device = make_device("ext4")
    found = check_all(device, faults._two_windows(device))
    assert found.bad == []
    assert found.images >= 12
    assert found.restored >= 2


def test_a_journal_that_is_not_flushed_before_the_device_is_written_is_found(
    make_device: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the means themselves: this is the mistake that they are for."""
    device = make_device("ext4")
    monkeypatch.setattr(Journal, "_sync", lambda _: None)
    assert check_all(device, faults._two_windows(device)).bad != []
