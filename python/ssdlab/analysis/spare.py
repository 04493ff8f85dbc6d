"""A drive's spare area, by both definitions in use, and what a wanted share would take.

Spare is hidden flash / ALL flash; overprovisioning is hidden flash / visible capacity. The
published test of two 840 Pro gives spare: 1000215216 sectors of 512 bytes of 512 GiB are 6.85 %;
so does its second example, the 850 Pro's 128 GB of 129 GiB, 7.6 %. Data sheets mostly give
overprovisioning.
"""

from __future__ import annotations

from dataclasses import dataclass

SECTOR = 512


@dataclass(frozen=True)
class Spare:
    """All flash of a drive and what of it is visible, in bytes."""

    flash: int
    visible: int

    def __post_init__(self) -> None:
        """Neither is nothing, and no drive shows more than it has."""
        assert 0 < self.visible <= self.flash, f"{self.visible} visible of {self.flash}"

    @property
    def hidden(self) -> int:
        """Bytes that no host can address."""
        return self.flash - self.visible

    @property
    def of_all(self) -> float:
        """Hidden / all flash: spare."""
        return self.hidden / self.flash

    @property
    def of_visible(self) -> float:
        """Hidden / visible: overprovisioning."""
        return self.hidden / self.visible

    def usable_for(self, share: float, unit: int = 1 << 20) -> int:
        """Bytes that may be used so that `share` of all flash is spare, in whole units."""
        return min(self.visible, int(self.flash * (1 - share)) // unit * unit)
