"""What was asked of several runs together: its title, table, verdicts, figure, for people."""

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


class Asked(Protocol):
    """A question to runs and what they answer together."""

    @property
    def title(self) -> str:
        """What was asked."""

    @property
    def tables(self) -> Sequence[tuple[str, Table]]:
        """Tables with what they are, "" where the title says it."""

    @property
    def verdicts(self) -> Sequence[tuple[str, str]]:
        """Who, and what that comes to."""

    @property
    def notes(self) -> Sequence[tuple[str, str]]:
        """What to know or doubt: a word and a sentence each."""

    @property
    def pictures(self) -> list[Picture]:
        """Its figures."""


def render_asked(asked: Asked, console: Console) -> None:
    """Prints it for people: question, table, verdicts, what to doubt."""
    console.print()
    console.print(Padding(Text(asked.title, "bold"), (0, 0, 0, 1)))
    console.print()
    for heading, table in asked.tables:
        if heading:
            console.print(Padding(Text(heading), (0, 0, 0, 1)))
        if table.rows:
            print_table(table, console)
    for who, verdict in asked.verdicts:
        console.print(Padding(Text.assemble((f"{who}: ", "bold"), verdict), (0, 0, 0, 1)))
    for code, sentence in asked.notes:
        text = Text.assemble((f"! {plain(code)}: ", "bold yellow"), plain(sentence))
        console.print(Padding(text, (0, 0, 0, 1)))
    console.print()


def warnings_of(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """The warnings of all runs, each once."""
    return sorted({(each.code, each.sentence) for run in runs for each in run.result.warnings})


def named(contrast: Contrast, run: Run) -> str:
    """A contrast's name for people, in the words of its experiment."""
    words = label(contrast.name, view_of(run).finding_labels)
    return f"{plain(contrast.case)}: {words.lower()}" if contrast.case else words


def shown(value: Any) -> str:
    """A value of either side."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if isinstance(value, int | float) else plain(value)


def bounds(contrast: Contrast) -> str:
    """The bounds of its ratio."""
    if contrast.low is None or contrast.high is None:
        return NOTHING
    return f"{number(contrast.low)} to {number(contrast.high)}"
