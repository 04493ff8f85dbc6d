"""`WhatIf`: two runs and what differs between them, as text, a table and a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ssdlab.analysis.contrast import Contrast
from ssdlab.charts import Ratio, forest
from ssdlab.records import Run
from ssdlab.report.group import contrast_label, format_interval, format_value, warnings_of
from ssdlab.view import Column, Picture, Table, draw_figure
from ssdlab.wording import NOTHING, number, plain, unit_of

DRAWN: Final = 24
"""Rows of the figure at most."""
_COLUMNS: Final = (
    Column("", numeric=False),
    Column("As is"),
    Column("Changed"),
    Column("", numeric=False),
    Column("Changed / as is"),
    Column("95 % interval"),
)


@dataclass(frozen=True)
class WhatIf:
    """The changes in words, both runs (as is first), and what differs, findings first."""

    changes: Sequence[str]
    runs: tuple[Run, Run]
    contrasts: Sequence[Contrast]

    @property
    def title(self) -> str:
        """What was asked."""
        return f"What if {' and '.join(map(plain, self.changes))}?"

    @property
    def tables(self) -> list[tuple[str, Table]]:
        """A row for each finding and each case that both runs measured."""
        rows = [self._cells(each) for each in self.contrasts]
        return [("", Table(_COLUMNS, tuple(rows)))]

    @property
    def verdicts(self) -> list[tuple[str, str]]:
        """What each run comes to."""
        words = (plain(run.result.verdict) or "too little was measured" for run in self.runs)
        return list(zip(("as is", "changed"), words, strict=True))

    @property
    def notes(self) -> list[tuple[str, str]]:
        """What the runs doubt of themselves."""
        return warnings_of(self.runs)

    @property
    def pictures(self) -> list[Picture]:
        """The ratios with their intervals, where there are any."""
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
        return (
            contrast_label(each, self.runs[0]),
            format_value(each.first),
            format_value(each.second),
            plain(each.unit or unit_of(each.name)),
            NOTHING if each.ratio is None else number(each.ratio),
            format_interval(each),
        )
