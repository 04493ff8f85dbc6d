"""Input and output of every analysis: `Evidence` and `Conclusion`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from ssdlab.records import Finding

_DOUBTFUL: Final = frozenset(
    {
        *("page-cache-below", "page-cache", "extents-unknown", "layout-changed"),
        *("ceiling", "link-speed", "unwritten"),
    }
)
"""Warnings that something other than the drive may have determined the result."""
ENDINGS: Final = {"interrupted": "Interrupted", "failed": "Failed", "complete": "Ended"}


@dataclass(frozen=True)
class Evidence:
    """The records of a run.

    `tables` are those of `records`; `parameters` and `outcome` are those of the manifest;
    `warnings` are the codes of the warnings.
    """

    tables: Mapping[str, pa.Table]
    parameters: Mapping[str, Any]
    outcome: str = "complete"
    warnings: frozenset[str] = frozenset()
    virtual: bool = False

    def steps(self, phase: str | None = None) -> list[dict[str, Any]]:
        """The rows of `STEPS` in order, of one phase or all."""
        return [row for row in self._steps if phase is None or row["phase"] == phase]

    def observed(self, name: str) -> list[dict[str, Any]]:
        """The rows of `OBSERVATIONS` with this name, in order."""
        return [row for row in self._observations if row["name"] == name]

    @cached_property
    def _steps(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.tables["steps"].to_pylist()
        return rows

    @cached_property
    def _observations(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.tables["observations"].to_pylist()
        return rows


@dataclass(frozen=True)
class Conclusion:
    """The result of an analysis: rows of `measures`, findings, and the verdict in one sentence."""

    measures: list[dict[str, Any]]
    findings: dict[str, Finding] = field(default_factory=dict)
    verdict: str = ""


def seconds_of(step: Mapping[str, Any]) -> float:
    """The duration of a step in seconds, on the device's clock."""
    return float(step["end_ns"] - step["start_ns"]) / 1e9


def qualified(sentence: str, warnings: frozenset[str]) -> str:
    """The sentence, marked as doubtful if a warning says that the result may not be the drive's."""
    if "page-cache-below" in warnings:
        sentence = f"Not the drive, or not it alone (a page cache is below): {sentence}"
    if _DOUBTFUL.intersection(warnings):
        return f"{sentence.rstrip('.')}; doubtful, see the warnings."
    return sentence
