"""`ComparisonReport`: shows a comparison as a table, verdicts and forest plots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ssdlab.analysis.contrast import Contrast
from ssdlab.charts import Ratio, forest
from ssdlab.comparison.verdict import (
    NONE_SHOWN,
    NOT_JUDGED,
    Comparison,
    NumberVerdict,
    SideVerdict,
)
from ssdlab.records import Run
from ssdlab.report.group import (
    contrast_label,
    format_interval,
    format_value,
    merged_warnings,
)
from ssdlab.report.what_if import DRAWN
from ssdlab.target import parse_profile
from ssdlab.view import Column, Picture, Table, draw_figure
from ssdlab.wording import NOTHING, number, plain, shorten, unit_of

_SMALLEST: Final = 0.0001
_HEADING_LENGTH: Final = 32
"""Maximum length of a side's name in a column heading."""
_NAME_WRAP: Final = 8
"""Width to which names in headings are wrapped: the table then fits on 80 columns."""


@dataclass(frozen=True)
class ComparisonReport:
    """A `GroupReport` of a comparison."""

    comparison: Comparison

    @property
    def runs(self) -> list[Run]:
        """The runs of all sides, in order."""
        return [run for side in self.comparison.sides for run in side.runs]

    @property
    def title(self) -> str:
        """The names of the sides, and the experiment."""
        first, *others = (plain(side.name) for side in self.comparison.sides)
        what = ", ".join(filter(None, (self.runs[0].manifest.experiment, self._only_case)))
        return f"{', '.join(others)} compared with {first}: {what}"

    @property
    def _only_case(self) -> str:
        """The case of all numbers, if it is the same: the title has it, and no row."""
        cases = {
            judged.number.contrast.case
            for other in self.comparison.others
            for judged in other.numbers
        }
        return plain(cases.pop()) if len(cases) == 1 else ""

    def _label(self, contrast: Contrast) -> str:
        return contrast_label(contrast, self.runs[0], with_case=not self._only_case)

    @property
    def tables(self) -> list[tuple[str, Table]]:
        """One table, with a row for each number of each side that is compared with the first."""
        several = len(self.comparison.others) > 1
        first, second = (side.name for side in self.comparison.sides[:2])
        columns = (
            *((Column("Side", numeric=False),) if several else ()),
            Column("Number", numeric=False, wrap=18),
            Column("Verdict", numeric=False, wrap=13),
            Column("Ratio"),
            Column("95 % interval"),
            Column(_short(first), wrap=_NAME_WRAP),
            Column("Other" if several else _short(second), wrap=_NAME_WRAP),
            Column("p", minor=True),
        )
        rows = [
            ((plain(other.side.name),) if several else ()) + self._cells(judged)
            for other in self.comparison.others
            for judged in other.numbers
        ]
        return [("", Table(columns, tuple(rows)))]

    @property
    def verdicts(self) -> list[tuple[str, str]]:
        """The verdict on each side, such as "faster", with a sentence that explains it."""
        return [(other.verdict, plain(other.sentence)) for other in self.comparison.others]

    @property
    def notes(self) -> list[tuple[str, str]]:
        """Differences between the sides, the data behind the verdicts, and the runs' warnings."""
        notes = [("differs", one.sentence) for one in self.comparison.differences]
        whys = dict.fromkeys(
            judged.number.why for other in self.comparison.others for judged in other.numbers
        )
        notes.append(("based on", "; ".join(whys)))
        if self.comparison.count > 1:
            sentence = (
                f"p is adjusted for {self.comparison.count} simultaneous tests (Holm); the "
                "intervals are not."
            )
            notes.append(("adjusted", sentence))
        return notes + merged_warnings(self.runs)

    @property
    def pictures(self) -> list[Picture]:
        """A forest plot for each side that is compared with the first."""
        return [
            picture
            for at, other in enumerate(self.comparison.others)
            for picture in self._forest(other, at)
        ]

    def _forest(self, other: SideVerdict, at: int) -> list[Picture]:
        first = plain(self.comparison.sides[0].name)
        rows = [self._ratio(judged) for judged in other.numbers if judged.number.contrast.ratio]
        return draw_figure(
            f"{plain(other.side.name)} compared with {first}",
            "The ratio of each number with its 95 % interval. Right of 1 is more, left of 1 is "
            "less; for times and write amplification, less is better. Grey: no difference shown.",
            forest(f"compare-{at}", f"{plain(other.side.name)} / {first}", rows[:DRAWN]).svg,
        )

    def _ratio(self, judged: NumberVerdict) -> Ratio:
        contrast = judged.number.contrast
        assert contrast.ratio is not None
        is_shown = judged.verdict not in {NONE_SHOWN, NOT_JUDGED}
        return Ratio(
            self._label(contrast), contrast.ratio, contrast.low, contrast.high, shown=is_shown
        )

    def _cells(self, judged: NumberVerdict) -> tuple[str, ...]:
        contrast = judged.number.contrast
        return (
            ", ".join(filter(None, (self._label(contrast), _unit(contrast)))),
            judged.verdict,
            NOTHING if contrast.ratio is None else number(contrast.ratio),
            format_interval(contrast),
            format_value(contrast.first),
            format_value(contrast.second),
            _format_p(judged.p_holm),
        )


def _unit(contrast: Contrast) -> str:
    return plain(contrast.unit or unit_of(contrast.name))


def _short(name: str) -> str:
    return shorten(parse_profile(plain(name)), _HEADING_LENGTH)


def _format_p(p: float | None) -> str:
    if p is None:
        return NOTHING
    return f"<{_SMALLEST}" if p < _SMALLEST else f"{p:.2g}"
