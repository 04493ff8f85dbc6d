"""What an analysis gets and what it gives, whatever the experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from ssdlab.records import Finding

DOUBTFUL: Final = frozenset(
    {
        *("page-cache-below", "page-cache", "extents-unknown", "layout-changed"),
        *("ceiling", "link-speed", "unwritten"),
    }
)
"""Warnings after which a number may be another thing's than the drive's."""
ENDINGS: Final = {"interrupted": "Interrupted", "failed": "Failed", "complete": "Ended"}


@dataclass(frozen=True)
class Evidence:
    """What a run recorded.

    `tables` are those of `records`, `parameters` and `outcome` as in its manifest; `warnings` are
    the codes of its warnings.
    """

    tables: Mapping[str, pa.Table]
    parameters: Mapping[str, Any]
    outcome: str = "complete"
    warnings: frozenset[str] = frozenset()
    virtual: bool = False

    def steps(self, phase: str | None = None) -> list[dict[str, Any]]:
        """The rows of `STEPS` in order, of one phase or of all."""
        rows: list[dict[str, Any]] = self.tables["steps"].to_pylist()
        return [row for row in rows if phase is None or row["phase"] == phase]

    def observed(self, name: str) -> list[dict[str, Any]]:
        """The rows of `OBSERVATIONS` with a name, in order."""
        rows: list[dict[str, Any]] = self.tables["observations"].to_pylist()
        return [row for row in rows if row["name"] == name]


@dataclass(frozen=True)
class Conclusion:
    """What the evidence supports: rows for the JSON's `measures`, findings, one sentence."""

    measures: list[dict[str, Any]]
    findings: dict[str, Finding] = field(default_factory=dict)
    verdict: str = ""


def seconds_of(step: Mapping[str, Any]) -> float:
    """How long a step took, in seconds of the drive's clock."""
    return float(step["end_ns"] - step["start_ns"]) / 1e9


def qualified(sentence: str, warnings: frozenset[str]) -> str:
    """The sentence; with warnings that shake it, it must not stand alone."""
    if DOUBTFUL.intersection(warnings):
        return f"{sentence.rstrip('.')}; doubtful, see the warnings."
    return sentence
