"""Prints a sweep's results: for the terminal, as an HTML file, or as one JSON object."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from ssdlab.api.sweep import Sweep
from ssdlab.cli.output import write_out
from ssdlab.records import encode_json
from ssdlab.report import render_group
from ssdlab.sweep.report import SweepPage


def print_sweep(sweep: Sweep, *, json: bool, html: Path | None) -> None:
    """Prints the summary, or the JSON object; writes the page if `html` is given.

    Raises:
        UsageError: the page cannot be written.
    """
    if html is not None:
        sweep.save_html(html)
    if json:
        write_out(encode_json(sweep.as_json()))
        return
    console = Console()
    render_group(SweepPage(sweep.summary), console)
    for path in [sweep.folder] if html is None else [sweep.folder, html.resolve()]:
        console.print(f" {path}", markup=False, highlight=False, soft_wrap=True)
