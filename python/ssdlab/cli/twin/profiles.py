"""`ssdlab twin list`, `show` and `check`: the profiles of twins."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table as RichTable

from ssdlab import profiles
from ssdlab.cli import options
from ssdlab.cli.output import write_out
from ssdlab.errors import UsageError
from ssdlab.units import format_size
from ssdlab.wording import NOTHING

if TYPE_CHECKING:
    from ssdlab.fit.published import TableErrors
    from ssdlab.view import Table

_NAME_WRAP: Final = 14
"""Width to which a narrow terminal wraps names: the errors then fit on 50 columns."""
app = typer.Typer(add_completion=False)


@app.command(name="list", epilog="Example: ssdlab twin list --json")
def list_twins(*, json: options.Json = False) -> None:
    """List the shipped twins and their errors in published tables, then your own twins.

    One line for each published table that contains the drive. `error` is the mean error of the
    twin's values, with the worst one in parentheses; `fitted` says whether the twin was fitted to
    that table.
    """
    from ssdlab.device import describe_twin
    from ssdlab.fit.published import stored_errors
    from ssdlab.report.table import print_table
    from ssdlab.view import Column, Table

    errors = stored_errors()
    names = [*profiles.names(), *profiles.own_names()]
    errors |= {name: [] for name in profiles.own_names()}
    twins = {name: describe_twin(name, profiles.load(name)) for name in names}
    if json:
        rows = [
            {"name": name, **twin, "tables": [asdict(error) for error in errors[name]]}
            for name, twin in twins.items()
        ]
        _print_json({"twins": rows})
        return
    columns = (
        Column("name", numeric=False, wrap=_NAME_WRAP),
        Column("capacity", minor=True),
        Column("spare", minor=True),
        Column("dies", minor=True),
        Column("table", numeric=False),
        Column("error"),
        Column("fitted", numeric=False),
    )
    cells = [row for name, twin in twins.items() for row in _rows(name, twin, errors[name])]
    print_table(Table(columns, tuple(cells)), Console())


def _rows(name: str, twin: dict[str, Any], errors: list[TableErrors]) -> Iterator[tuple[str, ...]]:
    """A row for each published table of a twin; only the first one names the twin."""
    size, spare = format_size(twin["capacity_bytes"]), f"{twin['spare']:.1%}"
    head: tuple[str, ...] = (name, size, spare, str(twin["dies"]))
    if not errors:
        yield (*head, NOTHING, NOTHING, NOTHING)
    for error in errors:
        value = f"{error.mean_error:.1%} ({error.worst_error:.0%})"
        yield (*head, error.table, value, "yes" if error.fitted else "no")
        head = ("",) * len(head)


@app.command(name="show", epilog="Example: ssdlab twin show toshiba-xg5 --capacity 8GiB")
def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A name from `ssdlab twin list`, or FILE.toml.",
            autocompletion=options.complete_twin,
        ),
    ],
    *,
    capacity: options.Capacity = None,
    toml: Annotated[
        bool, typer.Option("--toml", help="Print the profile itself, to copy and change.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Show a twin's numbers, and the source of each.

    Kinds: datasheet, measured, fitted (to results of this drive), guessed (usual for such drives),
    inherited (from the profile that a fit started from: no result of this drive determined it).
    """
    text, scaled = profiles.load(name), options.size_of(capacity)
    if toml:
        if json or capacity:
            raise UsageError(
                "--toml prints the profile as it is; give it without --json and --capacity"
            )
        write_out(text)
        return
    from ssdlab.device import describe_twin
    from ssdlab.profiles.toml_edit import list_values
    from ssdlab.report.table import print_table

    twin = describe_twin(name, text, scaled)
    numbers = list_values(text)
    if json:
        _print_json({"name": name, **twin, "numbers": numbers})
        return
    console = Console()
    console.print(f"[bold]{twin['model']}[/bold]  ({name})")
    console.print(_summary_table(twin))
    print_table(_sources_table(numbers), console)
    print_inherited(text, console)


def print_inherited(profile: str, console: Console) -> None:
    """Says which values of a fitted profile are not of its drive; nothing if there are none."""
    from ssdlab.profiles.toml_edit import inherited_keys

    if keys := inherited_keys(profile):
        console.print(
            f"Inherited from the start profile, so they may be wrong for this drive: "
            f"{', '.join(keys)}.",
            markup=False,
            highlight=False,
        )


@app.command(name="check", epilog="Example: ssdlab twin check mine.toml")
def check(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A profile in TOML, or a name from `twin list`.")
    ],
    *,
    capacity: options.Capacity = None,
    json: options.Json = False,
) -> None:
    """Check a profile: report the first invalid key and the values allowed (status 2)."""
    is_file = os.path.exists(file)  # noqa: PTH110 -- Path.exists raises for a name that is too long
    text = profiles.read(Path(file)) if is_file else profiles.load(file)
    scaled = options.size_of(capacity)
    from ssdlab.device import describe_twin
    from ssdlab.profiles.toml_edit import inherited_keys

    twin = describe_twin(file, text, scaled)
    if json:
        _print_json({"name": file, **twin, "inherited": inherited_keys(text)})
        return
    console = Console()
    console.print(
        f"{file} is valid: {twin['model']}, {format_size(twin['capacity_bytes'])}, "
        f"spare {twin['spare']:.1%}, {twin['dies']} dies",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    print_inherited(text, console)


def _print_json(document: dict[str, Any]) -> None:
    from ssdlab.records import encode_json

    write_out(encode_json(document))


def _summary_table(twin: dict[str, Any]) -> RichTable:
    table = RichTable(box=None, show_header=False, padding=(0, 2, 0, 0))
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


def _sources_table(numbers: list[dict[str, Any]]) -> Table:
    from ssdlab.view import Column, Table

    columns = [Column(title, numeric=False) for title in ("key", "value", "kind", "source")]
    rows = []
    for entry in numbers:
        value = entry["value"]
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        rows.append((entry["key"], text, entry["kind"], entry["source"]))
    return Table(tuple(columns), tuple(rows))
