"""`Figure`: a number that was published of a drive, and the same of its twin."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """What was measured, in the table's unit: of the drive as published, and of its twin."""

    what: str
    measured: float
    twin: float

    @property
    def error(self) -> float:
        """Relative: above zero where the twin's number is the larger one."""
        return self.twin / self.measured - 1.0
