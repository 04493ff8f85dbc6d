"""`Measured`: what one run or one table says of a drive: cells, findings, and how it was asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ssdlab.analysis.cells import Cell
from ssdlab.records import Finding


@dataclass(frozen=True)
class Measured:
    """Results of one experiment. `model` is empty where they do not name the drive.

    `where` is the file or folder, for messages; `parameters` as in a run's manifest.
    """

    experiment: str
    model: str
    where: str
    cells: tuple[Cell, ...] = ()
    findings: Mapping[str, Finding] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def number(self, name: str) -> float | None:
        """A finding's value, if it is a number."""
        value = self.findings[name].value if name in self.findings else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return float(value)

    def word(self, name: str) -> str | None:
        """A finding's value, if it is a word."""
        value = self.findings[name].value if name in self.findings else None
        return value if isinstance(value, str) else None
