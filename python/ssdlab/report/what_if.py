"""`WhatIf`: a report on how changes to a twin affect a run: text, a table and a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ssdlab.analysis.contrast import Contrast
from ssdlab.charts import Ratio, forest
from ssdlab.records import Run
from ssdlab.report.group import (
    contrast_label,
    format_interval,
    format_value,
    merged_warnings,
)
from ssdlab.view import Column, Picture, Table, draw_figure
from ssdlab.wording import NOTHING, number, plain, unit_of

DRAWN: Final = 24
"""Maximum number of rows in the figure."""
_COLUMNS: Final = (
    Column("Number", numeric=False),
    Column("As is"),
    Column("Changed"),
    Column("Ratio"),
    Column("95 % interval", minor=True),
)


@dataclass(frozen=True)
class WhatIf:
    """The changes in words, the runs before and after them, and the contrasts between them."""

    changes: Sequence[str]
    runs: tuple[Run, Run]
    contrasts: Sequence[Contrast]

    @property
    def title(self) -> str:
        """The question: "What if" and the changes."""
        return f"What if {' and '.join(map(plain, self.changes))}?"

    @property
    def tables(self) -> list[tuple[str, Table]]:
        """A row for each finding and each case that a run measured."""
        known = [one for one in self.contrasts if (one.first, one.second) != (None, None)]
        rows = [self._cells(each) for each in known]
        return [("", Table(_COLUMNS, tuple(rows)))]

    @property
    def verdicts(self) -> list[tuple[str, str]]:
        """The verdict of each run, before and after the changes."""
        words = (plain(run.result.verdict) or "too little was measured" for run in self.runs)
        return list(zip(("as is", "changed"), words, strict=True))

    @property
    def notes(self) -> list[tuple[str, str]]:
        """The warnings of both runs."""
        return merged_warnings(self.runs)

    @property
    def pictures(self) -> list[Picture]:
        """A plot of the ratios changed / as is, with the intervals that are known."""
        rows = [self._ratio(each) for each in self.contrasts if each.ratio]
        return draw_figure(
            "What the changes make of each number",
            "Right of 1 is more, left of it less; of times and of amplification less is better. "
            "Lines are 95 % intervals.",
            forest("what-if", "changed / as is", rows[:DRAWN]).svg,
        )

    def _ratio(self, each: Contrast) -> Ratio:
        assert each.ratio is not None
        return Ratio(
            contrast_label(each, self.runs[0]), each.ratio, each.low, each.high, shown=True
        )

    def _cells(self, each: Contrast) -> tuple[str, ...]:
        label = contrast_label(each, self.runs[0])
        unit = plain(each.unit or unit_of(each.name))
        return (
            f"{label}, {unit}" if unit else label,
            format_value(each.first),
            format_value(each.second),
            NOTHING if each.ratio is None else number(each.ratio),
            format_interval(each),
        )
