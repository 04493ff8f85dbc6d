"""`print_table`: a table on a terminal of any width; no number and no word is broken in two."""

from __future__ import annotations

from typing import Final

from rich.console import Console, JustifyMethod
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from ssdlab.view import Column, Table
from ssdlab.wording import NOTHING

WORDS: Final = 24
"""Columns in which a sentence is still read with ease."""


def print_table(table: Table, console: Console) -> None:
    """Prints a table, and a blank line behind it.

    Where the terminal is too narrow, headings are broken between words; where that does not do,
    each row is a paragraph with a name before each value.
    """
    for between in (" ", "\n"):
        headings = [_heading(column, between) for column in table.columns]
        if _fits(table, headings, console.width):
            _print_columns(table, headings, console)
            break
    else:
        _print_paragraphs(table, console)
    console.print()


def _heading(column: Column, between: str) -> str:
    """Its label, with something between its words, above its unit."""
    return f"{column.label.replace(' ', between)}\n{column.unit}".rstrip()


def _fits(table: Table, headings: list[str], width: int) -> bool:
    """Whether all is readable under these headings: numbers whole, sentences not too narrow."""
    needed = 0
    for at, column in enumerate(table.columns):
        longest = max((len(row[at]) for row in table.rows), default=0)
        head = max(map(len, headings[at].split("\n")))
        needed += max(head, longest if column.numeric else min(longest, WORDS)) + 2
    return needed <= width


def _print_columns(table: Table, headings: list[str], console: Console) -> None:
    height = max(each.count("\n") for each in headings)
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
    """A paragraph a row: its first cell, then what each other cell is."""
    for row in table.rows:
        parts = [
            " ".join(word for word in (column.label, cell, _unit(column, cell)) if word)
            for column, cell in list(zip(table.columns, row, strict=True))[1:]
        ]
        text = Text.assemble((f"{row[0]}: ", "bold"), ", ".join(parts))
        console.print(Padding(text, (0, 0, 0, 1)))


def _unit(column: Column, cell: str) -> str:
    """Of a cell that has a value."""
    return "" if cell == NOTHING else column.unit
