"""A heal of a device that a power cut ends in the middle of a write."""

from __future__ import annotations

import pytest
from devices import Device

from ssdlab.heal.device import whole
from ssdlab.heal.device.drive import DirectDevice
from ssdlab.heal.device.windows import Window


class PowerLoss(Exception):  # noqa: N818 -- what happened, no error of the program
    """The machine went out."""


class Torn:
    """Power goes in the middle of the write numbered `at`: half of it is garbage, then nothing.

    Writes of less than `least_bytes` do not count.
    """

    def __init__(self, at: int, least_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at, self.seen = at, 0
        untorn = DirectDevice.write

        def write(device: DirectDevice, window: Window, content: bytes) -> None:
            self.seen += window.length >= least_bytes
            if self.seen < self.at:
                untorn(device, window, content)
                return
            half = len(content) // 8192 * 4096
            untorn(device, window, b"\xaa" * half + content[half:])
            raise PowerLoss

        monkeypatch.setattr(DirectDevice, "write", write)


def crashed(device: Device, at: int, least_bytes: int = 0) -> None:
    """Heals it until the power goes in the midst of a write."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole, "session_of", lambda _: "before the machine went out")
        Torn(at, least_bytes, patch)
        with pytest.raises(PowerLoss):
            device.heal()
