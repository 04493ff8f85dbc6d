"""`WhatIf`: the comparison of an unchanged and a changed twin, as a table and a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ssdlab import charts as figure
from ssdlab.analysis.contrast import Contrast
from ssdlab.charts import Ratio
from ssdlab.records import Run
from ssdlab.report.several import bounds, named, shown, warnings_of
from ssdlab.view import Column, Picture, Table, drawn
from ssdlab.wording import NOTHING, number, plain, unit_of

DRAWN: Final = 24
"""Maximum number of rows in the figure."""
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
    """The changes in words, both runs (unchanged first), and the contrasts (findings first)."""

    changes: Sequence[str]
    runs: tuple[Run, Run]
    contrasts: Sequence[Contrast]

    @property
    def title(self) -> str:
        """The question."""
        return f"What if {' and '.join(map(plain, self.changes))}?"

    @property
    def tables(self) -> list[tuple[str, Table]]:
        """One row for each finding and case that both runs have."""
        return [("", Table(_COLUMNS, tuple(self._cells(each) for each in self.contrasts)))]

    @property
    def verdicts(self) -> list[tuple[str, str]]:
        """The verdict of each run."""
        verdicts = (plain(run.result.verdict) or "too little was measured" for run in self.runs)
        return list(zip(("as is", "changed"), verdicts, strict=True))

    @property
    def notes(self) -> list[tuple[str, str]]:
        """The warnings of both runs."""
        return warnings_of(self.runs)

    @property
    def pictures(self) -> list[Picture]:
        """A forest plot of the ratios with their intervals."""
        rows = [self._ratio(each) for each in self.contrasts if each.ratio]
        return drawn(
            "Effect of the changes on each number",
            "Right of 1: the number grew; left: it fell. Less is better for times and write "
            "amplification. Lines are 95 % intervals.",
            lambda size: figure.forest("what-if", "changed / as is", rows[:DRAWN], size),
        )

    def _ratio(self, each: Contrast) -> Ratio:
        assert each.ratio is not None
        return Ratio(named(each, self.runs[0]), each.ratio, each.low, each.high, shown=True)

    def _cells(self, each: Contrast) -> tuple[str, ...]:
        return (
            named(each, self.runs[0]),
            shown(each.first),
            shown(each.second),
            plain(each.unit or unit_of(each.name)),
            NOTHING if each.ratio is None else number(each.ratio),
            bounds(each),
        )
