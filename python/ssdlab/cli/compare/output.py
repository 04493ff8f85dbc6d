"""A comparison on its way out: terminal, page, or one JSON object."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from ssdlab.api.comparison import Comparison
from ssdlab.cli.output import write_out
from ssdlab.records import encode_json
from ssdlab.report import SideBySide, render_asked


@dataclass(frozen=True)
class Telling:
    """How: one JSON object or text, and an HTML file or none."""

    json: bool
    html: Path | None


def tell(comparison: Comparison, telling: Telling) -> None:
    """Tells it.

    Raises:
        UsageError: the page cannot be written.
    """
    if telling.html is not None:
        comparison.save_html(telling.html)
    if telling.json:
        write_out(encode_json(comparison.as_json()))
        return
    console = Console()
    render_asked(SideBySide(comparison.found), console)
    if telling.html is not None:
        path = telling.html.resolve()
        console.print(f" {path}", markup=False, highlight=False, soft_wrap=True)
