"""`ValidationReport`: the figures of real drives and their twins, as tables and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ssdlab.charts import Axis, Chart, Line, Mark, dots, rule, run_colour
from ssdlab.charts import Row as ChartRow
from ssdlab.fit.validation.comparison import Comparison, Summary, summaries
from ssdlab.fit.validation.figure import Figure
from ssdlab.view import Column, Picture, Table, draw_figure
from ssdlab.wording import number, plain

ROLES: Final = ("fitted", "by construction", "predicted")
ROWS_MAX: Final = 30
"""Maximum number of drives in a picture of errors."""
_UNITS: Final = {
    "aging": "s",
    "fsync": "MiB/s",
    "suite": "MiB/s",
    "stripe": "MB/s",
    "fragments": "ms",
    "provisioning": "requests/s",
}
"""The unit of a table's figures; the labels of other tables name it."""
_DRIVES: Final = (
    Column("Drive", numeric=False),
    Column("Table", numeric=False),
    Column("Figures"),
    Column("Role", numeric=False),
    Column("Mean error"),
    Column("Worst"),
)


@dataclass(frozen=True)
class ValidationReport:
    """A report on comparisons, in the order given."""

    comparisons: Sequence[Comparison]

    @property
    def title(self) -> str:
        """The heading."""
        return "Published figures of real drives against their twins"

    @property
    def totals(self) -> list[Summary]:
        """The errors of each role."""
        return summaries(self.comparisons)

    @property
    def tables(self) -> list[tuple[str, Table]]:
        """A row for each drive and role, then the figures of each drive."""
        rows = [row for each in self.comparisons for row in _drive_rows(each)]
        figures = [(heading(each), _figure_table(each)) for each in self.comparisons]
        return [("All drives", Table(_DRIVES, tuple(rows))), *figures]

    @property
    def verdicts(self) -> list[tuple[str, str]]:
        """How many figures of how many drives there are, and the errors of each role in words."""
        figures = sum(total.figures for total in self.totals)
        drives = len({each.drive for each in self.comparisons})
        return [
            ("all", f"figures {figures}, drives {drives}"),
            *((total.role, in_words(total)) for total in self.totals),
        ]

    @property
    def notes(self) -> list[tuple[str, str]]:
        """None: the roles show how to judge a figure."""
        return []

    @property
    def pictures(self) -> list[Picture]:
        """All ratios twin / drive, a row for each drive; then curves of write amplification."""
        pictures = []
        tables = list(dict.fromkeys(each.table for each in self.comparisons))
        for table in tables:
            chosen = [each for each in self.comparisons if each.table == table]
            for first in range(0, len(chosen), ROWS_MAX):
                part = chosen[first : first + ROWS_MAX]
                pictures += draw_figure(
                    f"Twin / drive: {table}",
                    "A dot for each figure; on the line at 1 the twin equals the drive. Right of "
                    "it the twin's value is larger.",
                    _ratios(f"ratios-{table}-{first}", part).svg,
                )
        curves = [each for each in self.comparisons if _curve(each)]
        for at, each in enumerate(curves):
            pictures += draw_figure(
                f"Write amplification through a pass: {plain(each.drive)}",
                "Each block is written once per pass, at random: published values and the twin's.",
                _curve_chart(f"curve-{at}", each).svg,
            )
        return pictures


def heading(each: Comparison) -> str:
    """The drive, and the command that computes its figures again."""
    return f"{plain(each.drive)}: {plain(each.command)}"


def in_words(total: Summary) -> str:
    """The errors of a role in words."""
    return (
        f"figures {total.figures}, drives {total.drives}, mean error {total.mean_error:.1%}, "
        f"median {total.median_error:.1%}, worst {total.worst_error:.1%}"
    )


def figure_cells(figure: Figure) -> tuple[str, ...]:
    """The cells of a figure in a table."""
    return (
        plain(figure.label),
        number(float(f"{figure.published:.4g}")),
        number(float(f"{figure.twin:.4g}")),
        f"{figure.error:+.1%}",
        figure.role,
    )


def _figure_table(each: Comparison) -> Table:
    unit = _UNITS.get(each.table, "")
    columns = (
        Column("Figure", numeric=False),
        Column("Published", unit),
        Column("Twin", unit),
        Column("Error"),
        Column("Role", numeric=False),
    )
    return Table(columns, tuple(figure_cells(figure) for figure in each.figures))


def _drive_rows(each: Comparison) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for role in ROLES:
        errors = [abs(figure.error) for figure in each.figures if figure.role == role]
        if errors:
            mean = f"{sum(errors) / len(errors):.1%}"
            cells = (plain(each.drive), each.table, str(len(errors)), role)
            rows.append((*cells, mean, f"{max(errors):.1%}"))
    return rows


def _ratios(name: str, chosen: Sequence[Comparison]) -> Chart:
    marks: list[Mark] = [rule(x=1, dash=(1, 0))]
    ratios = [0.9, 1.1]
    for at, role in enumerate(ROLES, 1):
        points = [
            (figure.twin / figure.published, float(y))
            for y, each in enumerate(chosen)
            for figure in each.figures
            if figure.role == role and figure.twin > 0
        ]
        if points:
            marks.append(dots(points, run_colour(at), role, "large"))
            ratios += [x for x, _ in points]
    room = (max(ratios) / min(ratios)) ** 0.05
    axis = Axis("twin / drive", log=True, limits=(min(ratios) / room, max(ratios) * room))
    rows = [ChartRow(each.drive) for each in chosen]
    words = "; ".join(
        f"{plain(each.drive)} {min(values):.2f} to {max(values):.2f}"
        for each in chosen
        if (values := [figure.twin / figure.published for figure in each.figures])
    )
    return Chart(name, axis, Axis(), marks, f"twin / drive: {words}", rows, grid="x")


def _curve(each: Comparison) -> list[Figure]:
    return [figure for figure in each.figures if "twentieth" in figure.label]


def _curve_chart(name: str, each: Comparison) -> Chart:
    figures = _curve(each)
    at = [(n + 0.5) / len(figures) for n in range(len(figures))]
    lines = [
        Line("published", list(zip(at, (figure.published for figure in figures), strict=True))),
        Line("twin", list(zip(at, (figure.twin for figure in figures), strict=True)), dashed=True),
    ]
    return Chart(name, Axis("part of the pass"), Axis("WAF"), lines)
