"""Shipped twins beside every table that their drives were published in: the errors of `twin list`.

Usage: python bench/twins/held.py [--write] [TABLE...]

Tables: aging, fsync, suite, stripe, fragments, provisioning; all takes some minutes. With --write
what came out replaces the stored errors of these tables.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from ssdlab import profiles
from ssdlab.fit.published.tables import SOURCE_PHRASES, compare_twin, twins_of
from ssdlab.fit.validation import STORED, TableErrors, stored_errors, table_errors

HEAD = """\
# How far each shipped twin is off in each table that its drive was published in: relative errors,
# the mean of their absolute values and the worst. Written by `python bench/twins/held.py --write`.
"""


def measured(tables: list[str]) -> Iterator[tuple[str, TableErrors]]:
    """Prints every figure of these tables, and gives each twin's errors."""
    for table in tables:
        for twin in twins_of(table):
            found = compare_twin(table, twin)
            held = table_errors(table, twin, found)
            print(f"{table}: {twin}, mean {held.mean_error:.1%}, worst {held.worst_error:.1%}")
            for figure in found:
                line = f"{figure.label:30} {figure.measured:9.2f} {figure.twin:9.2f}"
                print(f"    {line} {figure.error:+7.1%}", flush=True)
            yield twin, held


def write(rows: list[tuple[str, TableErrors]], tables: list[str]) -> None:
    """Stores the errors of these tables beside what was stored of others."""
    kept = [(name, each) for name, held in stored_errors().items() for each in held]
    rows = rows + [row for row in kept if row[1].table not in tables]
    order = list(SOURCE_PHRASES)
    rows.sort(key=lambda row: (order.index(row[1].table), twins_of(row[1].table).index(row[0])))
    lines = [
        f'{{ table = "{held.table}", twin = "{name}", '
        f"mean_error = {held.mean_error:.4f}, worst_error = {held.worst_error:.4f} }},"
        for name, held in rows
    ]
    text = HEAD + "\nheld = [\n" + "".join(f"    {line}\n" for line in lines) + "]\n"
    (profiles.tables() / STORED).write_text(text, encoding="utf-8")


def main(words: list[str]) -> None:
    """Prints, and writes where that is asked for."""
    tables = [word for word in words if word != "--write"] or list(SOURCE_PHRASES)
    rows = list(measured(tables))
    if "--write" in words:
        write(rows, tables)


if __name__ == "__main__":
    main(sys.argv[1:])
