"""`ssdlab twin submit` and `add`: twins with their measurements, to exchange with others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ssdlab import profiles
from ssdlab.cli import options
from ssdlab.cli.output import write_out
from ssdlab.errors import UsageError
from ssdlab.target import parse_profile
from ssdlab.units import format_size

if TYPE_CHECKING:
    from ssdlab.fit.bundle import Accuracy, Bundle

app = typer.Typer(add_completion=False)

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


@app.command(
    name="submit",
    epilog="Example: ssdlab twin submit ssdlab-runs --profile mine.toml --out mine.json",
)
def submit(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN", help="Runs of one drive, or a folder with such runs."),
    ],
    *,
    out: Annotated[Path, typer.Option(help="File for the bundle.")],
    profile: Annotated[
        str | None, typer.Option(metavar="FILE", help="The profile that was fitted to these runs.")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(metavar="PROFILE", help="Without --profile: the profile to start a fit from."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Write an anonymous bundle: a fitted twin, its measurements and its errors.

    The bundle has the drive's model, firmware, capacity and interface, and the numbers of the
    measurements. It has no serial number, no name of a host or user, and no path.
    """
    if (profile is None) == (start is None):
        raise UsageError("give either --profile FILE or --start PROFILE")
    from importlib.metadata import version

    from ssdlab.fit import bundle
    from ssdlab.records import find_runs, read_run

    found = [read_run(folder) for path in runs for folder in find_runs(path)]
    text = _fitted(runs, str(start)) if profile is None else profiles.load(profile)
    made = bundle.make(text, found, version("ssdlab"))
    try:
        out.write_bytes(bundle.encode(made))
    except OSError as error:
        raise UsageError(
            f"{out} cannot be written ({error.strerror}); give another --out"
        ) from error
    if json:
        _print_json({"bundle": str(out), **_summary(made)})
        return
    console = Console()
    _print(made, console)
    console.print(
        f" {out}: the bundle; review it before you share it", markup=False, highlight=False
    )


def _fitted(runs: list[Path], start: str) -> str:
    from ssdlab.fit.fitted import finished_profile
    from ssdlab.fit.results import hold_out, read_results
    from ssdlab.fit.starts import attempts

    fit_input = hold_out(read_results(runs), [])
    source = f"fit of {fit_input.label}"
    best = attempts(parse_profile(start), fit_input, source)[0]
    name = fit_input.drive_name or "unknown drive"
    return finished_profile(best.fitted, name, source, best.text, best.start)


@app.command(name="add", epilog="Example: ssdlab twin add mine.json --name mine")
def add(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A bundle of `twin submit`.")],
    *,
    name: Annotated[
        str | None, typer.Option(help="The twin's name; default: from the drive's model.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Check a bundle and add its twin to your own twins, as twin:NAME.

    Measures the twin again, and prints its errors against the bundle's measurements. Your own twins
    are in $XDG_DATA_HOME/ssdlab/twins, by default in ~/.local/share.
    """
    from ssdlab.fit import bundle

    made = bundle.read(file)
    name = _usable_name(name or _slug(made.model))
    accuracy = bundle.accuracy_of(made.profile, bundle.results_of(made))
    path = _store(name, made, file)
    if json:
        _print_json({"name": name, "profile": str(path), **_summary(made, accuracy)})
        return
    console = Console()
    _print(made, console, accuracy)
    console.print(f" {path}: added as twin:{name}", markup=False, highlight=False, soft_wrap=True)


def _slug(model: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")[:64] or "drive"


def _usable_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise UsageError(f"--name is {name!r}; it must be 1 to 64 lower-case letters, digits and -")
    if name in profiles.names():
        raise UsageError(f"{name} is a shipped twin; give another --name")
    return name


def _store(name: str, made: Bundle, file: Path) -> Path:
    """Writes the profile among the user's own; one with the same content may exist."""
    path = profiles.own_folder() / f"{name}.toml"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and profiles.read(path) != made.profile:
            raise UsageError(f"there is another twin:{name} in {path}; give another --name")
        path.write_text(made.profile, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{path}: {file} cannot be added ({error.strerror}); set XDG_DATA_HOME to a folder "
            "that you may write to"
        ) from error
    return path


def _summary(made: Bundle, accuracy: list[Accuracy] | None = None) -> dict[str, Any]:
    from ssdlab.profiles.toml_edit import inherited_keys

    return {
        "model": made.model,
        "firmware": made.firmware,
        "interface": made.interface,
        "capacity_bytes": made.capacity_bytes,
        "fitted": made.fitted,
        "inherited": inherited_keys(made.profile),
        "accuracy": made.accuracy if accuracy is None else accuracy,
        "runs": [run.experiment for run in made.runs],
    }


def _print(made: Bundle, console: Console, accuracy: list[Accuracy] | None = None) -> None:
    from ssdlab.cli.twin.profiles import print_inherited
    from ssdlab.report.table import print_table
    from ssdlab.view import Column, Table
    from ssdlab.wording import plain

    firmware = f", firmware {plain(made.firmware)}" if made.firmware else ""
    size = format_size(made.capacity_bytes)
    console.print(
        f" {plain(made.model)}{firmware}, {size}, {made.interface}; fitted: "
        f"{', '.join(made.fitted) or 'nothing'}",
        markup=False,
        highlight=False,
    )
    columns = (
        Column("Experiment", numeric=False),
        Column("Values"),
        Column("Mean error"),
        Column("Worst"),
    )
    rows = tuple(
        (one.experiment, str(one.values), f"{one.mean_error:.1%}", f"{one.worst_error:.1%}")
        for one in (made.accuracy if accuracy is None else accuracy)
    )
    print_table(Table(columns, rows), console)
    print_inherited(made.profile, console)


def _print_json(document: dict[str, Any]) -> None:
    from ssdlab.records import encode_json

    write_out(encode_json(document))
