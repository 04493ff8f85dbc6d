"""Reference of the files in a run folder, from `ssdlab/records.py`: `markdown()`."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator

from pages.table import table
from ssdlab import records

_TABLE = re.compile(r"^(\w+): Final = pa\.schema\(\n(.*?)^\)$", re.MULTILINE | re.DOTALL)
_COLUMN = re.compile(r'\("(\w+)", pa\.(\w+)\(\)\),(?:\s*# (.+))?')
_HEADING = re.compile(r"# (.+)")


def markdown() -> str:
    """The contents of a run folder, then a section for each table with its columns."""
    parts = [_folder(), *(_section(name, body) for name, body in tables())]
    return "\n\n".join(parts) + "\n"


def tables() -> list[tuple[str, str]]:
    """Name and source text of each table."""
    return _TABLE.findall(inspect.getsource(records))


def rows(body: str) -> Iterator[tuple[str, str, str]]:
    """Column, type and meaning; a comment above several columns goes to the first of them."""
    above = ""
    for line in map(str.strip, body.splitlines()):
        if column := _COLUMN.match(line):
            meaning = "; ".join(part for part in (above, column[3]) if part)
            yield column[1], column[2], meaning
            above = ""
        elif heading := _HEADING.match(line):
            above = heading[1].rstrip(".")


def _folder() -> str:
    _, _, files = (inspect.getdoc(records) or "").partition("\n\n")
    assert files.startswith("manifest.json"), "the docstring of records lists the files"
    return "A run folder holds\n\n" + textwrap.indent(files, "    ")


def _section(name: str, body: str) -> str:
    shown = ((f"`{column}`", kind, meaning) for column, kind, meaning in rows(body))
    return f"## {name.lower()}.parquet\n\n" + table(("column", "type", "meaning"), shown)
