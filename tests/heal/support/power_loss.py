"""A heal of a device that a power cut interrupts during a write."""

from __future__ import annotations

import pytest
from sample_device import Device

from ssdlab.heal.device import whole
from ssdlab.heal.device.drive import DirectDevice
from ssdlab.heal.device.windows import Window
from ssdlab.heal.options import HealOptions


class PowerLoss(Exception):  # noqa: N818 -- an event, not an error of the program
    """The machine lost power."""


class TornWrite:
    """Power is lost during write number `at`: half of it becomes garbage, and nothing follows.

    If `data` is given, only writes of a part of it are counted.
    """

    def __init__(self, at: int, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at, self.count = at, 0
        complete_write = DirectDevice.write

        def write(device: DirectDevice, window: Window, content: bytes) -> None:
            self.count += not data or content in data
            if self.count < self.at:
                complete_write(device, window, content)
                return
            half = len(content) // 8192 * 4096
            complete_write(device, window, b"\xaa" * half + content[half:])
            raise PowerLoss

        monkeypatch.setattr(DirectDevice, "write", write)


def crash(device: Device, at: int, data: bytes = b"", options: HealOptions | None = None) -> None:
    """Heals the device until power is lost during a write."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole, "current_session", lambda _: "before the power cut")
        TornWrite(at, data, patch)
        with pytest.raises(PowerLoss):
            device.heal(options)
