"""Rows as a Markdown table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with these titles; `|` in cells is escaped."""
    lines = [_line(titles), _line(["---"] * len(titles))]
    return "\n".join([*lines, *(_line(row) for row in rows)])


def _line(cells: Sequence[str]) -> str:
    escaped = (" ".join(cell.split()).replace("|", "\\|") for cell in cells)
    return "| " + " | ".join(escaped) + " |"
