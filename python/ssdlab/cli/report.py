"""`ssdlab report`: finished runs on the terminal, or as one self-contained HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from ssdlab.cli.output import write_out
from ssdlab.records import Run, encode_json, find_runs, read_run
from ssdlab.report import render, write_html


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN", help="Run folders, or results folders with runs in them."),
    ],
    *,
    html: Annotated[
        Path | None, typer.Option(help="Write ONE HTML file and print its path.")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the results as one JSON object on stdout.")
    ] = False,
) -> None:
    """Show finished runs: tables, curves, verdicts and warnings. Computes nothing."""
    found = [read_run(folder) for path in runs for folder in find_runs(path)]
    if html is not None:
        write_html(found, html)
    if json:
        write_out(_as_json(found))
    elif html is not None:
        typer.echo(html.resolve())
    else:
        for run in found:
            render(run, Console())


def _as_json(runs: list[Run]) -> str:
    if len(runs) == 1:
        return encode_json(runs[0].result)
    return encode_json({"runs": [msgspec.to_builtins(run.result) for run in runs]})
