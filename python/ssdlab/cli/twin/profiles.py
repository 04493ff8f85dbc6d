"""`ssdlab twin`: the drives that twins are made of."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from ssdlab import profiles
from ssdlab.cli.output import write_out
from ssdlab.device import describe_twin
from ssdlab.fit.validation import Held, held_against
from ssdlab.profiles.toml_edit import numbers
from ssdlab.records import encode_json
from ssdlab.units import format_size, parse_size

app = typer.Typer(add_completion=False)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
Capacity = Annotated[
    str | None, typer.Option(help="Scale it to this capacity, such as 8GiB; ratios stay.")
]


@app.command(name="list", epilog="Example: ssdlab twin list --json")
def list_twins(*, json: AsJson = False) -> None:
    """List the drives that ssdlab brings along, and how well each is held up.

    A line for each published table that a drive is in. `error` is the mean error of its twin's
    figures there, and the worst one; `fitted` says whether the twin was fitted to that table.
    """
    held = held_against()
    rows = [_listed(name, held[name]) for name in profiles.names()]
    if json:
        write_out(encode_json({"twins": rows}))
        return
    table = Table(box=box.SIMPLE_HEAD, padding=0)
    table.add_column("name", no_wrap=True)
    for title in ("capacity", "spare", "dies"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("table", no_wrap=True)
    table.add_column("error", justify="right", no_wrap=True)
    table.add_column("fitted", no_wrap=True)
    for row in rows:
        table.add_row(
            *(row["name"], format_size(row["capacity_bytes"]), f"{row['spare']:.1%}"),
            *(str(row["dies"]), *_held(held[row["name"]])),
        )
    Console().print(table)


def _listed(name: str, held: list[Held]) -> dict[str, Any]:
    described = describe_twin(name, profiles.load(name))
    return {"name": name, **described, "tables": [asdict(each) for each in held]}


def _held(held: list[Held]) -> tuple[str, str, str]:
    """The last three columns, a line a table."""
    errors = (f"{each.mean_error:.1%} ({each.worst_error:.0%})" for each in held)
    fitted = ("yes" if each.fitted else "no" for each in held)
    return "\n".join(each.table for each in held), "\n".join(errors), "\n".join(fitted)


@app.command(name="show", epilog="Example: ssdlab twin show toshiba-xg5 --capacity 8GiB")
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name of the list, or FILE.toml.")],
    *,
    capacity: Capacity = None,
    json: AsJson = False,
) -> None:
    """Show what a twin is made of, and where each number comes from."""
    text = profiles.load(name)
    scaled = None if capacity is None else parse_size(capacity)
    twin = describe_twin(name, text, scaled)
    found = numbers(text)
    if json:
        write_out(encode_json({"name": name, **twin, "numbers": found}))
        return
    console = Console()
    console.print(f"[bold]{twin['model']}[/bold]  ({name})")
    console.print(_anatomy(twin))
    console.print(_sources(found))


@app.command(name="check", epilog="Example: ssdlab twin check mine.toml")
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A profile in TOML.")],
    *,
    capacity: Capacity = None,
    json: AsJson = False,
) -> None:
    """Check a profile: names the first key that is wrong and what it may be (status 2)."""
    scaled = None if capacity is None else parse_size(capacity)
    twin = describe_twin(str(file), profiles.read(file), scaled)
    if json:
        write_out(encode_json({"name": str(file), **twin}))
        return
    Console().print(
        f"{file} is right: {twin['model']}, {format_size(twin['capacity_bytes'])}, "
        f"spare {twin['spare']:.1%}, {twin['dies']} dies",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


def _anatomy(twin: dict[str, Any]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_row("capacity", format_size(twin["capacity_bytes"]))
    table.add_row("flash", format_size(twin["flash_bytes"]))
    spare = twin["spare"]
    table.add_row("spare (hidden / all flash)", f"{spare:.2%}")
    table.add_row("overprovisioning (hidden / visible)", f"{spare / (1 - spare):.2%}")
    table.add_row("dies", f"{twin['dies']} on {twin['channels']} channels, {twin['planes']} planes")
    for key in ("page", "chunk", "stripe", "superblock", "buffer"):
        table.add_row(key, format_size(twin[f"{key}_bytes"]))
    table.add_row("power-loss protection", "yes" if twin["power_loss_protection"] else "no")
    return table


def _sources(found: list[dict[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for title in ("key", "value", "kind", "source"):
        table.add_column(title, overflow="fold")
    for number in found:
        value = number["value"]
        shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        table.add_row(number["key"], shown, number["kind"], number["source"])
    return table
