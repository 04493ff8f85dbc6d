"""Computes the errors that `ssdlab twin list` prints: shipped twins against published tables.

Usage: python bench/twins/held.py [--write] [TABLE...]

TABLE is aging, fsync, suite, stripe, fragments or provisioning; without one, all are computed,
which takes minutes. --write stores the errors.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from ssdlab import profiles
from ssdlab.fit.published import (
    SOURCE_PHRASES,
    STORED,
    TableErrors,
    compare_twin,
    stored_errors,
    table_errors,
    twins_of,
)

HEAD = """\
# Relative errors of each shipped twin in each published table of its drive: mean of the absolute
# values, and worst. Written by `python bench/twins/held.py --write`.
"""


def compute(tables: list[str]) -> Iterator[tuple[str, TableErrors]]:
    """Prints every value of these tables, and yields each twin's errors."""
    for table in tables:
        for twin in twins_of(table):
            values = compare_twin(table, twin)
            errors = table_errors(table, twin, values)
            print(f"{table}: {twin}, mean {errors.mean_error:.1%}, worst {errors.worst_error:.1%}")
            for value in values:
                line = f"{value.label:30} {value.measured:9.2f} {value.twin:9.2f}"
                print(f"    {line} {value.error:+7.1%}", flush=True)
            yield twin, errors


def write(rows: list[tuple[str, TableErrors]], tables: list[str]) -> None:
    """Stores the errors of these tables, and keeps those of the others."""
    stored = [(name, each) for name, all_ in stored_errors().items() for each in all_]
    rows = rows + [row for row in stored if row[1].table not in tables]
    order = list(SOURCE_PHRASES)
    rows.sort(key=lambda row: (order.index(row[1].table), twins_of(row[1].table).index(row[0])))
    lines = [
        f'{{ table = "{errors.table}", twin = "{name}", '
        f"mean_error = {errors.mean_error:.4f}, worst_error = {errors.worst_error:.4f} }},"
        for name, errors in rows
    ]
    text = HEAD + "\nheld = [\n" + "".join(f"    {line}\n" for line in lines) + "]\n"
    (profiles.tables() / STORED).write_text(text, encoding="utf-8")


def main(arguments: list[str]) -> None:
    """Prints the errors, and stores them with --write."""
    tables = [name for name in arguments if name != "--write"] or list(SOURCE_PHRASES)
    rows = list(compute(tables))
    if "--write" in arguments:
        write(rows, tables)


if __name__ == "__main__":
    main(sys.argv[1:])
