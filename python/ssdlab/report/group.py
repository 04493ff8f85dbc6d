"""`GroupReport`: a report on several runs together; `render_group` prints it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from ssdlab.analysis.contrast import Contrast
from ssdlab.experiments.registry import view_of
from ssdlab.records import Run
from ssdlab.report.table import print_table
from ssdlab.view import Picture, Table
from ssdlab.wording import NOTHING, label, number, plain


class GroupReport(Protocol):
    """A report on several runs: a comparison, a what-if, a sweep, a list."""

    @property
    def title(self) -> str:
        """The heading."""

    @property
    def tables(self) -> Sequence[tuple[str, Table]]:
        """Tables with their headings; a heading is "" if the title is enough."""

    @property
    def verdicts(self) -> Sequence[tuple[str, str]]:
        """Pairs of a subject and the verdict on it."""

    @property
    def notes(self) -> Sequence[tuple[str, str]]:
        """Notes and warnings, each a code and a sentence."""

    @property
    def pictures(self) -> list[Picture]:
        """The figures."""


def render_group(report: GroupReport, console: Console) -> None:
    """Print title, tables, verdicts and notes; only the HTML page has figures."""
    console.print()
    console.print(Padding(Text(report.title, "bold"), (0, 0, 0, 1)))
    console.print()
    for heading, table in report.tables:
        if heading:
            console.print(Padding(Text(heading), (0, 0, 0, 1)))
        if table.rows:
            print_table(table, console)
    for subject, verdict in report.verdicts:
        console.print(Padding(Text.assemble((f"{subject}: ", "bold"), verdict), (0, 0, 0, 1)))
    for code, sentence in report.notes:
        text = Text.assemble((f"! {plain(code)}: ", "bold yellow"), plain(sentence))
        console.print(Padding(text, (0, 0, 0, 1)))
    console.print()


def warnings_of(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """The warnings of all runs without duplicates, each a code and a sentence."""
    return sorted({(one.code, one.sentence) for run in runs for one in run.result.warnings})


def merged_warnings(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """A warning for each code: its first sentence, and how many more there are.

    The page has all of them with the runs.
    """
    by_code: dict[str, list[str]] = {}
    for code, sentence in warnings_of(runs):
        by_code.setdefault(code, []).append(sentence)
    return [
        (code, sentence + (f" ({len(others)} more of this kind)" if others else ""))
        for code, (sentence, *others) in by_code.items()
    ]


def contrast_label(contrast: Contrast, run: Run, *, with_case: bool = True) -> str:
    """The case of a contrast and the label that its experiment gives the number."""
    words = label(contrast.name, view_of(run).finding_labels)
    if not contrast.case or not with_case:
        return words
    is_abbreviation = words.split()[0].isupper()
    words = words if is_abbreviation else words[:1].lower() + words[1:]
    return f"{plain(contrast.case)}: {words}"


def format_value(value: Any) -> str:
    """A number, truth value or text of one side as text; "-" for None."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if isinstance(value, int | float) else plain(value)


def format_interval(contrast: Contrast) -> str:
    """The 95 % interval of the ratio as text; "-" if there is none."""
    if contrast.low is None or contrast.high is None:
        return NOTHING
    return f"{number(contrast.low)} to {number(contrast.high)}"
