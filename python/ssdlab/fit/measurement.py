"""`Measurement`: the results of one experiment on one drive, from a run or a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ssdlab.analysis.cells import Cell
from ssdlab.records import Finding


@dataclass(frozen=True)
class Measurement:
    """Results of one experiment.

    `model` is empty if the results do not name the drive. `where` is the file or folder, for error
    messages. `parameters` are those of the run's manifest.
    """

    experiment: str
    model: str
    where: str
    cells: tuple[Cell, ...] = ()
    findings: Mapping[str, Finding] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def number(self, name: str) -> float | None:
        """The value of a finding; None if it is absent or not a number."""
        value = self.findings[name].value if name in self.findings else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return float(value)

    def text(self, name: str) -> str | None:
        """The value of a finding; None if it is absent or not a string."""
        value = self.findings[name].value if name in self.findings else None
        return value if isinstance(value, str) else None
