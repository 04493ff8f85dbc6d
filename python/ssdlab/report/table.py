"""`print_table`: a table on a terminal of any width, without breaking numbers or words."""

from __future__ import annotations

from typing import Final

from rich.console import Console, JustifyMethod
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from ssdlab.view import Column, Table
from ssdlab.wording import NOTHING

TEXT_WIDTH_MIN: Final = 24
"""Minimum width in characters of a column of sentences; narrower ones are hard to read."""


def print_table(table: Table, console: Console) -> None:
    """Print a table, then a blank line.

    On a narrow terminal, headings are wrapped; if the table is still too wide, each row becomes a
    paragraph of names and values.
    """
    for separator in (" ", "\n"):
        headings = [_heading(column, separator) for column in table.columns]
        if _fits(table, headings, console.width):
            _print_columns(table, headings, console)
            break
    else:
        _print_paragraphs(table, console)
    console.print()


def _heading(column: Column, separator: str) -> str:
    """The column's label, with its words joined by `separator`, and the unit below it."""
    return f"{column.label.replace(' ', separator)}\n{column.unit}".rstrip()


def _fits(table: Table, headings: list[str], width: int) -> bool:
    """Whether numbers fit without a line break, and text columns are wide enough."""
    needed = 0
    for at, column in enumerate(table.columns):
        longest = max((len(row[at]) for row in table.rows), default=0)
        heading = max(map(len, headings[at].split("\n")))
        needed += max(heading, longest if column.numeric else min(longest, TEXT_WIDTH_MIN)) + 2
    return needed <= width


def _print_columns(table: Table, headings: list[str], console: Console) -> None:
    height = max(heading.count("\n") for heading in headings)
    lines = RichTable(box=None, padding=(0, 1), header_style="dim", pad_edge=True)
    for column, heading in zip(table.columns, headings, strict=True):
        above = "\n" * (height - heading.count("\n"))
        justify: JustifyMethod = "right" if column.numeric else "left"
        lines.add_column(
            Text(above + heading), justify=justify, overflow="fold", no_wrap=column.numeric
        )
    for row in table.rows:
        lines.add_row(*(Text(cell) for cell in row))
    console.print(lines)


def _print_paragraphs(table: Table, console: Console) -> None:
    """One paragraph per row: the first column's text, then each other column's label and value."""
    for row in table.rows:
        parts = [
            " ".join(word for word in (column.label, cell, _unit(column, cell)) if word)
            for column, cell in list(zip(table.columns, row, strict=True))[1:]
        ]
        text = Text.assemble((f"{row[0]}: ", "bold"), ", ".join(parts))
        console.print(Padding(text, (0, 0, 0, 1)))


def _unit(column: Column, cell: str) -> str:
    """The column's unit, or "" if the table cell has no value."""
    return "" if cell == NOTHING else column.unit
