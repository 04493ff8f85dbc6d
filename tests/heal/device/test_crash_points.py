"""All crash points of a heal of two windows; bench/crash_images.py heals whole devices."""

from __future__ import annotations

from collections.abc import Callable

import faults
import pytest
from crashes import check_all
from sample_device import Device

from ssdlab.heal.device.journal import Journal

Make = Callable[..., Device]


def test_a_crash_at_any_point_loses_no_data(make_device: Make) -> None:
    device = make_device("ext4")
    tally = check_all(device, faults.two_windows(device))
    assert tally.bad == []
    assert tally.images >= 12
    assert tally.restored >= 2


def test_a_journal_that_is_not_flushed_before_the_device_is_detected(
    make_device: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests the checker itself: it must find this mistake."""
    device = make_device("ext4")
    monkeypatch.setattr(Journal, "_sync", lambda _: None)
    assert check_all(device, faults.two_windows(device)).bad != []
