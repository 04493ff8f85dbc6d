"""`ssdlab twin validate`: published figures of real drives against their twins."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console
from rich.text import Text

from ssdlab.cli import options
from ssdlab.cli.output import write_out
from ssdlab.report.table import print_table
from ssdlab.view import Column, Table

if TYPE_CHECKING:
    from ssdlab.fit.validation import Comparison, Summary

app = typer.Typer(add_completion=False)
_COLUMNS: Final = (
    Column("figure", numeric=False),
    Column("published", minor=True),
    Column("twin", minor=True),
    Column("error"),
    Column("role", numeric=False),
)


@app.command(name="validate", epilog="Example: ssdlab twin validate samsung-980-pro --table stripe")
def validate(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Twins or drives of the tables; default: all."),
    ] = None,
    *,
    table: Annotated[
        list[str] | None,
        typer.Option(metavar="TABLE", help="Only this table, such as aging; may be repeated."),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Compare published figures of real drives with those of their twins.

    Each figure is *fitted* (the twin was made from this table), or *predicted*. All tables take a
    few minutes.
    """
    from ssdlab.fit.validation import compare_all, select, summaries

    pairs = select(names or (), table or ())
    console, comparisons = Console(stderr=True), []
    for comparison in compare_all(pairs, min(len(pairs), os.cpu_count() or 1)):
        comparisons.append(comparison)
        if not quiet:
            done = f"{len(comparisons)} of {len(pairs)}: {comparison.table}, {comparison.drive}"
            console.print(done, markup=False, highlight=False)
    order = {pair: at for at, pair in enumerate(pairs)}
    comparisons.sort(key=lambda each: order[each.table, each.name])
    if json:
        from ssdlab.records import encode_json

        write_out(encode_json(_document(comparisons, summaries(comparisons))))
        return
    _print(comparisons, summaries(comparisons))


def _document(comparisons: list[Comparison], totals: list[Summary]) -> dict[str, Any]:
    figures = [
        {
            "name": each.name,
            "drive": each.drive,
            "table": each.table,
            **asdict(figure),
            "error": figure.error,
            "command": each.command,
        }
        for each in comparisons
        for figure in each.figures
    ]
    return {"figures": figures, "summary": [asdict(total) for total in totals]}


def _print(comparisons: list[Comparison], totals: list[Summary]) -> None:
    console = Console(file=sys.stdout)
    for each in comparisons:
        console.print(Text(f"{each.drive}: {each.command}", "bold"))
        rows = [
            (
                figure.label,
                f"{figure.published:.4g}",
                f"{figure.twin:.4g}",
                f"{figure.error:+.1%}",
                figure.role,
            )
            for figure in each.figures
        ]
        print_table(Table(_COLUMNS, tuple(rows)), console)
    for total in totals:
        console.print(
            f"{total.role}: figures {total.figures}, drives {total.drives}, mean error "
            f"{total.mean_error:.1%}, worst {total.worst_error:.1%}",
            highlight=False,
        )
