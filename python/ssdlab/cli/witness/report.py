"""`ssdlab witness report`: what all cuts of a witness's journals say together."""

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
from ssdlab.cli.witness.options import FOLDER, named, say
from ssdlab.errors import UsageError
from ssdlab.records import encode_json
from ssdlab.witness.journal import SUFFIX, Record, events, read
from ssdlab.witness.summary import Look, looks_of, summarize

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
    """Count the cuts, bound the rate of loss, give a verdict (status 1 if something was lost)."""
    paths = sorted(journals.glob(f"*{SUFFIX}")) if journals.is_dir() else [journals]
    looks: list[Look] = []
    targets: set[str] = set()
    for path in paths:
        records = read(path)
        name = _target_of(records)
        if target is None or name == named(target):
            looks += looks_of(path.stem, records)
            targets.add(name)
    if not looks:
        raise UsageError(f"{journals} holds no look at a drive; run `ssdlab witness verify` first")
    summary = summarize(looks)
    if len(targets) > 1:
        summary["warnings"].append(
            f"{len(targets)} targets are put together here: give --target for one of them."
        )
    if json:
        write_out(encode_json({"ssdlab": version("ssdlab"), "experiment": "witness", **summary}))
    else:
        _print(summary, sorted(targets))
    return 1 if summary["bad"] else 0


def _target_of(records: list[Record]) -> str:
    rounds = events(records, "round")
    return str(rounds[0]["target"]) if rounds else ""


def _print(summary: dict[str, Any], targets: list[str]) -> None:
    console = Console()
    say(console, ", ".join(targets))
    table = Table(box=box.SIMPLE_HEAD)
    for title in ("finding", "value", "95 %", "why"):
        table.add_column(title, overflow="fold")
    for name, finding in summary["findings"].items():
        low, high = finding["low"], finding["high"]
        bounds = "" if high is None else f"{low or 0:.2g} ... {high:.2g}"
        table.add_row(name, _value(finding["value"]), bounds, finding["why"])
    console.print(table)
    for warning in summary["warnings"]:
        say(console, f"warning: {warning}")
    say(console, summary["verdict"])


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{count} {kind}" for kind, count in value.items()) or "none"
    return "" if value is None else f"{value:.4g}"
