"""`ssdlab witness report`: findings and verdict over all cuts in a folder of journals."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from ssdlab.cli.output import write_out
from ssdlab.cli.witness import options
from ssdlab.cli.witness.options import FOLDER, full_name, print_line
from ssdlab.errors import UsageError
from ssdlab.witness.limits import SUFFIX

app = typer.Typer(add_completion=False)


@app.command(name="report", epilog="Example: ssdlab witness report ssdlab-witness")
def report(
    journals: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder of journals, or one journal.")
    ] = FOLDER,
    *,
    target: Annotated[str | None, typer.Option(help="Only runs of this target.")] = None,
    json: options.Json = False,
) -> int:
    """Count the cuts, bound the loss rate, give a verdict (status 1 if data was lost)."""
    from ssdlab.records import encode_json
    from ssdlab.witness.journal import events, read
    from ssdlab.witness.summary import summarize, verifications_of

    paths = sorted(journals.glob(f"*{SUFFIX}")) if journals.is_dir() else [journals]
    verifications = []
    targets: set[str] = set()
    for path in paths:
        records = read(path)
        rounds = events(records, "round")
        name = str(rounds[0]["target"]) if rounds else ""
        if target is None or name == full_name(target):
            verifications += verifications_of(path.stem, records)
            targets.add(name)
    if not verifications:
        raise UsageError(f"{journals} has no verification; run `ssdlab witness verify` first")
    summary = summarize(verifications)
    if len(targets) > 1:
        summary["warnings"].append(
            f"The counts cover {len(targets)} targets; give --target for one of them."
        )
    if json:
        write_out(encode_json({"ssdlab": version("ssdlab"), "experiment": "witness", **summary}))
    else:
        _print(summary, sorted(targets))
    return 1 if summary["bad"] else 0


def _print(summary: dict[str, Any], targets: list[str]) -> None:
    console = Console()
    print_line(console, ", ".join(targets))
    table = Table(box=box.SIMPLE_HEAD)
    for title in ("finding", "value", "95 %", "why"):
        table.add_column(title, overflow="fold")
    for name, finding in summary["findings"].items():
        low, high = finding["low"], finding["high"]
        bounds = "" if high is None else f"{low or 0:.2g} ... {high:.2g}"
        table.add_row(name, _value(finding["value"]), bounds, finding["why"])
    console.print(table)
    for warning in summary["warnings"]:
        print_line(console, f"warning: {warning}")
    print_line(console, summary["verdict"])


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{count} {kind}" for kind, count in value.items()) or "none"
    return "" if value is None else f"{value:.4g}"
