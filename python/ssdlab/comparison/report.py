"""`SideBySide`: a comparison of sides, as a table, verdicts and a forest plot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ssdlab.charts import Ratio, forest
from ssdlab.comparison.sense import NONE_SHOWN
from ssdlab.comparison.verdict import NOT_JUDGED, Compared, Comparison, Judged
from ssdlab.records import Run
from ssdlab.report.several import bounds, named, shown, warnings_of
from ssdlab.report.what_if import DRAWN
from ssdlab.view import Column, Picture, Table, drawn
from ssdlab.wording import NOTHING, number, plain, shorten, unit_of

_SMALLEST: Final = 0.0001
_HEAD: Final = 14
"""Characters of a side's name above its numbers."""


@dataclass(frozen=True)
class SideBySide:
    """What was compared, for people."""

    comparison: Comparison

    @property
    def runs(self) -> list[Run]:
        """All of them, in the order of the sides."""
        return [run for side in self.comparison.sides for run in side.runs]

    @property
    def title(self) -> str:
        """Who against whom."""
        first, *others = (plain(side.name) for side in self.comparison.sides)
        return f"{', '.join(others)} against {first}: {self.runs[0].manifest.experiment}"

    @property
    def tables(self) -> list[tuple[str, Table]]:
        """A row for each number of each side."""
        several = len(self.comparison.others) > 1
        columns = (
            *((Column("Side", numeric=False),) if several else ()),
            Column("", numeric=False),
            Column(_short(self.comparison.sides[0].name)),
            Column("other" if several else _short(self.comparison.sides[1].name)),
            Column("", numeric=False),
            Column("Ratio"),
            Column("95 % interval"),
            Column("p"),
            Column("Verdict", numeric=False),
        )
        rows = [
            ((plain(other.side.name),) if several else ()) + self._cells(each)
            for other in self.comparison.others
            for each in other.judged
        ]
        return [("", Table(columns, tuple(rows)))]

    @property
    def verdicts(self) -> list[tuple[str, str]]:
        """The word and the sentence of each side."""
        return [(each.verdict, plain(each.sentence)) for each in self.comparison.others]

    @property
    def notes(self) -> list[tuple[str, str]]:
        """What differs, how the verdicts were reached, and what the runs doubt of themselves."""
        found = [("differs", each.sentence) for each in self.comparison.differences]
        whys = dict.fromkeys(
            each.number.why for other in self.comparison.others for each in other.judged
        )
        found.append(("rests on", "; ".join(whys)))
        if self.comparison.count > 1:
            sentence = (
                f"{self.comparison.count} numbers were judged at once: p is adjusted for that "
                "(Holm), the intervals are each one's own."
            )
            found.append(("several", sentence))
        return found + warnings_of(self.runs)

    @property
    def pictures(self) -> list[Picture]:
        """A forest plot of each side."""
        return [
            picture
            for at, other in enumerate(self.comparison.others)
            for picture in self._forest(other, at)
        ]

    def _forest(self, other: Compared, at: int) -> list[Picture]:
        first = plain(self.comparison.sides[0].name)
        rows = [self._ratio(each) for each in other.judged if each.number.contrast.ratio]
        return drawn(
            f"{plain(other.side.name)} against {first}",
            "Each number's ratio with its 95 % interval. Right of 1 is more, left of it less; of "
            "times and of amplification less is better. Grey: no difference shown.",
            forest(f"compare-{at}", f"{plain(other.side.name)} / {first}", rows[:DRAWN]).svg,
        )

    def _ratio(self, judged: Judged) -> Ratio:
        contrast = judged.number.contrast
        assert contrast.ratio is not None
        is_shown = judged.verdict not in {NONE_SHOWN, NOT_JUDGED}
        label = named(contrast, self.runs[0])
        return Ratio(label, contrast.ratio, contrast.low, contrast.high, shown=is_shown)

    def _cells(self, judged: Judged) -> tuple[str, ...]:
        each = judged.number.contrast
        return (
            named(each, self.runs[0]),
            shown(each.first),
            shown(each.second),
            plain(each.unit or unit_of(each.name)),
            NOTHING if each.ratio is None else number(each.ratio),
            bounds(each),
            _chance(judged.p_holm),
            judged.verdict,
        )


def _short(name: str) -> str:
    """A side's name as the head of a column."""
    return shorten(plain(name), _HEAD)


def _chance(p: float | None) -> str:
    if p is None:
        return NOTHING
    return f"<{_SMALLEST}" if p < _SMALLEST else f"{p:.2g}"
