"""How fast the pieces of a device read, through the descriptor that already holds it."""

from __future__ import annotations

from ssdlab.heal.device.drive import DirectDevice
from ssdlab.heal.options import Watch
from ssdlab.heal.pieces import Range
from ssdlab.heal.speed import Speedometer


class DeviceSpeedometer(Speedometer):
    """The speedometer of files, on a device that is held exclusively: nobody can open it again."""

    def __init__(self, device: DirectDevice, watch: Watch) -> None:
        """Measures a device that is open."""
        self._device, self._watch = device, watch

    def close(self) -> None:
        """The device stays open: it is another's."""

    def _speed_of(self, each: Range) -> float | None:
        """None too where most is zeros: a drive may have them in its map alone, and reads no flash.

        They would pass for the fresh speed, and all else for slow.
        """
        seconds, data = self._device.read_timed(each)
        return each.length / seconds if seconds > 0 and 2 * data >= each.length else None
