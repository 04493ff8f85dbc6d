"""`ssdlab twin validate`: published figures of real drives against their twins."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ssdlab.cli import options
from ssdlab.cli.output import require_file, write_out

if TYPE_CHECKING:
    from ssdlab.fit.validation.comparison import Comparison, Item
    from ssdlab.fit.validation.report import ValidationReport

app = typer.Typer(add_completion=False)


@app.command(name="validate", epilog="Example: ssdlab twin validate samsung-980-pro --table stripe")
def validate(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME|FILE",
            help="Drives of the tables (default: all), your own profile, or your own table.",
        ),
    ] = None,
    *,
    table: Annotated[
        list[str] | None,
        typer.Option(metavar="TABLE", help="Only this table, such as aging; may be repeated."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the tables and pictures to a page.")
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Compare published figures of real drives with those of their twins.

    Each figure is *fitted* (the twin was made from it), or *predicted*. A profile is compared with
    the tables of its model, or with the rows that are named. All tables take less than a minute.
    """
    from ssdlab.fit.validation.comparison import select
    from ssdlab.fit.validation.report import ValidationReport
    from ssdlab.report import render_group, write_html

    items = select(names or (), table or ())
    require_file("--html", html)
    report = ValidationReport(_compare(items, quiet=quiet))
    if html is not None:
        write_html([], html, report)
    if json:
        from ssdlab.records import encode_json

        write_out(encode_json(_document(report)))
        return
    console = Console()
    render_group(report, console)
    if html is not None:
        console.print(f" {html.resolve()}", markup=False, highlight=False, soft_wrap=True)


def _compare(items: list[Item], *, quiet: bool) -> list[Comparison]:
    """The comparisons in the order of the items; prints each as it is complete."""
    from ssdlab.fit.validation.comparison import compare_all

    console, done = Console(stderr=True), {}
    for comparison in compare_all(items, min(len(items), os.cpu_count() or 1)):
        done[comparison.command] = comparison
        if not quiet:
            text = f"{len(done)} of {len(items)}: {comparison.table}, {comparison.drive}"
            console.print(text, markup=False, highlight=False)
    return [done[item.command] for item in items]


def _document(report: ValidationReport) -> dict[str, Any]:
    figures = [
        {
            "name": each.name,
            "drive": each.drive,
            "table": each.table,
            **asdict(figure),
            "error": figure.error,
            "source": each.source,
            "command": each.command,
        }
        for each in report.comparisons
        for figure in each.figures
    ]
    drives = len({each.drive for each in report.comparisons})
    summary = [asdict(total) for total in report.totals]
    return {"figures": figures, "drives": drives, "summary": summary}
