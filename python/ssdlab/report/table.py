"""`print_table`: a table on a terminal of any width, without breaking numbers or words."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rich.console import Console, JustifyMethod
from rich.padding import Padding
from rich.segment import Segment, Segments
from rich.table import Table as RichTable
from rich.text import Text

from ssdlab.view import Table
from ssdlab.wording import NOTHING

TEXT_WIDTH_MIN: Final = 24
"""Minimum width in characters of a column of sentences; narrower ones are hard to read."""


@dataclass(frozen=True)
class _Shape:
    """Numbers of the columns side by side, of those below each row, and of those dropped."""

    columns: list[int]
    below: list[int]
    dropped: list[int]


def print_table(table: Table, console: Console) -> None:
    """Print a table, then a blank line.

    On a narrow terminal headings are wrapped; then columns without information are dropped, then
    sentences are printed below their row, then minor columns are dropped; then text is wrapped as
    `Column.wrap` allows, then other columns are dropped from the right. The first column and
    sentences are never dropped. A line names dropped columns.
    """
    shape, shown, headings = _fitting(table, console.width)
    if shape.below:
        _print_with_sentences(shown, headings, _select(table, shape.below), console)
    else:
        console.print(_as_columns(shown, headings))
    if shape.dropped:
        names = ", ".join(_describe_dropped(table, at) for at in shape.dropped)
        console.print(Padding(Text(f"not shown, too narrow: {names}", "dim"), (0, 0, 0, 1)))
    console.print()


def _fitting(table: Table, width: int) -> tuple[_Shape, Table, list[str]]:
    """The first shape that fits, or the last one, with its cells and headings."""
    shape, shown, headings = _Shape([0], [], []), table, [""]
    shapes = list(_shapes(table))
    essential = [shape for shape in shapes if _has_essentials(table, shape)]
    choices = [
        *((shape, wrapped, False) for shape in essential for wrapped in (False, True)),
        *((shape, True, True) for shape in essential if not shape.below),
        *((shape, wrapped, False) for shape in shapes for wrapped in (False, True)),
    ]
    for shape, wraps_headings, wraps_text in choices:
        shown = _select(table, shape.columns)
        shown = _wrap_text(shown) if wraps_text else shown
        headings = [_heading(table, at, wrapped=wraps_headings) for at in shape.columns]
        if _fits(shown, headings, width):
            break
    return shape, shown, headings


def _has_essentials(table: Table, shape: _Shape) -> bool:
    """Whether only minor columns, and those without information, are dropped."""
    return all(
        table.columns[at].minor or _is_empty(table, at) or _is_constant(table, at)
        for at in shape.dropped
    )


def _shapes(table: Table) -> Iterator[_Shape]:
    """Ways to print the table, from the best to the narrowest."""
    columns = list(range(len(table.columns)))
    yield _Shape(columns, [], [])
    dropped = [at for at in columns[1:] if _is_empty(table, at)]
    dropped += [at for at in columns[1:] if at not in dropped and _is_constant(table, at)]
    columns = [at for at in columns if at not in dropped]
    yield _Shape(columns, [], dropped)
    below: list[int] = []
    for at in [at for at in columns[:0:-1] if _is_sentence(table, at)]:
        columns, below = [other for other in columns if other != at], [at, *below]
        yield _Shape(columns, below, dropped)
    minor = [at for at in columns[1:] if table.columns[at].minor]
    for at in [*minor[::-1], *(at for at in columns[:0:-1] if at not in minor)]:
        columns, dropped = [other for other in columns if other != at], [*dropped, at]
        yield _Shape(columns, below, dropped)


def _is_empty(table: Table, at: int) -> bool:
    return all(row[at] in {"", NOTHING} for row in table.rows)


def _is_constant(table: Table, at: int) -> bool:
    numeric = table.columns[at].numeric
    return numeric and len(table.rows) > 1 and len({row[at] for row in table.rows}) == 1


def _is_sentence(table: Table, at: int) -> bool:
    return not table.columns[at].numeric and _longest(table, at) > TEXT_WIDTH_MIN


def _longest(table: Table, at: int) -> int:
    return max((len(line) for row in table.rows for line in row[at].split("\n")), default=0)


def _describe_dropped(table: Table, at: int) -> str:
    """The label of a column; with its value if all rows have the same.

    A label that another column has, too, gets its unit.
    """
    column = table.columns[at]
    if _is_empty(table, at) or not _is_constant(table, at):
        is_shared = [other.label for other in table.columns].count(column.label) > 1
        return f"{column.label} {column.unit}".rstrip() if is_shared else column.label
    return f"{column.label} {table.rows[0][at]} {column.unit}".rstrip()


def _select(table: Table, columns: list[int]) -> Table:
    return Table(
        tuple(table.columns[at] for at in columns),
        tuple(tuple(row[at] for at in columns) for row in table.rows),
    )


def _heading(table: Table, at: int, *, wrapped: bool) -> str:
    """The column's label, perhaps wrapped to the width of its cells, and the unit below it."""
    column = table.columns[at]
    label = column.label
    if wrapped and label:
        longest = max(map(len, label.split()))
        if column.wrap:
            label = _break_name(label, max(column.wrap, _longest(table, at)))
        else:
            label = "\n".join(textwrap.wrap(label, max(longest, _longest(table, at))))
    return f"{label}\n{column.unit}".rstrip()


def _break_name(name: str, width: int) -> str:
    """The name in lines, broken after spaces, hyphens and slashes if possible."""
    lines = [""]
    for part in re.findall(r"[^\s/_-]*[\s/_-]+|[^\s/_-]+", name):
        for piece in textwrap.wrap(part, width, drop_whitespace=False):
            if len(f"{lines[-1]}{piece}".rstrip()) <= width:
                lines[-1] += piece
            else:
                lines.append(piece)
    return "\n".join(line.strip() for line in lines)


def _wrap_text(table: Table) -> Table:
    """The table with the text of columns that may be wrapped in lines."""
    widths = [0 if column.numeric else column.wrap for column in table.columns]
    rows = [
        tuple(
            _break_name(cell, width) if width else cell
            for cell, width in zip(row, widths, strict=True)
        )
        for row in table.rows
    ]
    return Table(table.columns, tuple(rows))


def _fits(table: Table, headings: list[str], width: int) -> bool:
    """Whether numbers fit without a line break, and text columns are wide enough."""
    needed = 0
    for at, column in enumerate(table.columns):
        longest = _longest(table, at)
        heading = max(map(len, headings[at].split("\n")))
        needed += max(heading, longest if column.numeric else min(longest, TEXT_WIDTH_MIN)) + 2
    return needed <= width


def _as_columns(table: Table, headings: list[str]) -> RichTable:
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
    return lines


def _print_with_sentences(
    table: Table, headings: list[str], sentences: Table, console: Console
) -> None:
    """Each row, and its sentences below it."""
    lines = console.render_lines(_as_columns(table, headings), pad=False)
    *heads, last = range(len(lines) - len(table.rows) + 1)
    for number in heads:
        _print_line(lines[number], console)
    for number, row in enumerate(sentences.rows, last):
        _print_line(lines[number], console)
        for cell in row:
            if cell not in {"", NOTHING}:
                console.print(Padding(Text(cell), (0, 0, 0, 3)))


def _print_line(line: list[Segment], console: Console) -> None:
    console.print(Segments([*line, Segment.line()]), end="")
