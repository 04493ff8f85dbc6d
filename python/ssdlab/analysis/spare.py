"""A drive's spare area, by both definitions in use, and the usable bytes for a given spare.

Spare is hidden flash / ALL flash; overprovisioning is hidden flash / visible capacity. The
published test of two 840 Pro drives uses spare: 1000215216 sectors of 512 bytes on 512 GiB of flash
are 6.85 %; its second example, the 850 Pro with 128 GB on 129 GiB, is 7.6 %. Data sheets mostly
give overprovisioning.
"""

from __future__ import annotations

from dataclasses import dataclass

SECTOR = 512


@dataclass(frozen=True)
class SpareArea:
    """Total flash and visible capacity of a drive, in bytes."""

    flash: int
    visible: int

    def __post_init__(self) -> None:
        """Requires 0 < visible <= flash."""
        assert 0 < self.visible <= self.flash, f"{self.visible} visible of {self.flash}"

    @property
    def hidden(self) -> int:
        """Bytes that the host cannot address."""
        return self.flash - self.visible

    @property
    def spare(self) -> float:
        """Hidden / all flash: spare."""
        return self.hidden / self.flash

    @property
    def overprovisioning(self) -> float:
        """Hidden / visible: overprovisioning."""
        return self.hidden / self.visible

    def usable_for(self, share: float, unit: int = 1 << 20) -> int:
        """Usable bytes, in whole units, if `share` of all flash is to be spare."""
        return min(self.visible, int(self.flash * (1 - share)) // unit * unit)
