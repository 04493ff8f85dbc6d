"""Prints a checkup on a terminal of any width: lights, table, and where the details are."""

from __future__ import annotations

import shlex
from typing import Final

from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from ssdlab.checkup.lights import Light
from ssdlab.checkup.report.content import Content, speed_text, when
from ssdlab.report.table import print_table
from ssdlab.view import Column, Table
from ssdlab.wording import plain

_STYLES: Final = {"red": "bold red", "yellow": "bold yellow", "green": "green", "grey": "dim"}
_SIGNS: Final = {"red": "●", "yellow": "●", "green": "●", "grey": "○"}
_WORD_WIDTH: Final = 9
_TITLE_WIDTH: Final = 20
SIDE_BY_SIDE_MIN: Final = 72
"""On a narrower terminal, sentences are printed below the titles."""


def render(content: Content, console: Console) -> None:
    """Print a checkup. The last line is its folder, unwrapped, so that it can be copied."""
    _print_head(content, console)
    for light in content.lights:
        _print_light(light, console)
    console.print()
    if content.measures:
        print_table(_table(content), console)
    for note in filter(None, (content.table_warning, *content.notes)):
        console.print(Padding(Text(plain(note), "dim"), (0, 0, 0, 1)))
    _print_end(content, console)


def _print_head(content: Content, console: Console) -> None:
    console.print()
    head = Text.assemble(("checkup", "bold"), "  ", (plain(content.target), "bold cyan"))
    if content.virtual:
        head.append("  (twin, virtual time)")
    console.print(Padding(head, (0, 0, 0, 1)))
    console.print(Padding(Text(plain(content.drive)), (0, 0, 0, 1)))
    console.print(Padding(Text(when(content), "dim"), (0, 0, 0, 1)))
    console.print()
    console.print(Padding(Text(f"=> {plain(content.verdict)}", "bold"), (0, 0, 0, 1)))
    console.print()


def _print_light(light: Light, console: Console) -> None:
    sign = Text(f"{_SIGNS[light.colour]} {light.colour:<{_WORD_WIDTH - 2}}", _STYLES[light.colour])
    title, says = Text(light.title, "bold"), Text(plain(light.says))
    is_wide = console.width >= SIDE_BY_SIDE_MIN
    if is_wide:
        grid = RichTable.grid(padding=(0, 1))
        grid.add_column(width=_WORD_WIDTH)
        grid.add_column(width=_TITLE_WIDTH)
        grid.add_column()
        grid.add_row(sign, title, says)
        console.print(Padding(grid, (0, 0, 0, 1)))
    else:
        console.print(Padding(Text.assemble(sign, " ", title), (0, 0, 0, 1)))
        console.print(Padding(says, (0, 0, 0, 3)))
    if light.next:
        _print_command(light.next, _WORD_WIDTH + _TITLE_WIDTH + 3 if is_wide else 3, console)


def _print_command(text: str, indent: int, console: Console) -> None:
    """Print a command on one line, so that it can be copied; further left if it is too long."""
    line = f"-> {plain(text)}"
    if indent + len(line) > console.width:
        indent = max(3, min(indent, console.width - len(line)))
    console.print(" " * indent + line, style="cyan", markup=False, highlight=False, soft_wrap=True)


def _table(content: Content) -> Table:
    rows = content.measures
    return Table.of_columns(
        (Column("Test", numeric=False), [row.test for row in rows]),
        (Column("Read", "MB/s"), [speed_text(row.read_mb_per_s) for row in rows]),
        (Column("Write", "MB/s"), [speed_text(row.write_mb_per_s) for row in rows]),
    )


def _print_end(content: Content, console: Console) -> None:
    folder = shlex.quote(plain(content.folder))
    if content.notes or content.table_warning:
        console.print()
    again = f"ssdlab checkup --recorded {folder} --html checkup.html --card checkup.png"
    for line in (
        f"details: ssdlab report {folder}",
        f"as a page, and a picture to share: {again}",
    ):
        console.print(f" {line}", style="dim", markup=False, highlight=False, soft_wrap=True)
    console.print(Text(f" {plain(content.folder)}", "dim"), soft_wrap=True)
