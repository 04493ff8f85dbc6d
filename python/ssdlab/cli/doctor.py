"""`ssdlab doctor`: checks the storage stack below a path; changes nothing."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ssdlab.cli.options import Json
from ssdlab.cli.output import write_out
from ssdlab.errors import UsageError
from ssdlab.units import parse_size

if TYPE_CHECKING:
    from ssdlab.doctor.report import Report

app = typer.Typer(add_completion=False)


@app.command(name="doctor", epilog="Example: ssdlab doctor /var/lib/postgresql")
def doctor(
    target: Annotated[
        str, typer.Argument(metavar="PATH|DEVICE", help="A file, a directory or a block device.")
    ] = ".",
    *,
    files: Annotated[
        list[Path] | None,
        typer.Option("--map", metavar="FILE", help="Map this file, not the largest; repeatable."),
    ] = None,
    read: Annotated[
        str, typer.Option(help="Maximum file data to read, bypassing the page cache; 0: none.")
    ] = "512MiB",
    html: Annotated[
        Path | None, typer.Option(help="Also write one HTML file, and print its path on stderr.")
    ] = None,
    recorded: Annotated[
        Path | None,
        typer.Option(
            "--recorded",
            metavar="JSON",
            help="Check saved --json output, or what a --collector script printed elsewhere.",
        ),
    ] = None,
    collector: Annotated[
        str,
        typer.Option(
            metavar="linux|freebsd|windows", help="Print a script for --recorded, and exit."
        ),
    ] = "",
    remember: Annotated[
        bool,
        typer.Option(
            "--remember",
            help="Keep wear, errors and read speed of each drive, and show what has changed.",
        ),
    ] = False,
    json: Json = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="No progress; print only problems (BAD, WARN).")
    ] = False,
) -> int:
    """Check the storage stack below a path: read-only, at most a minute, root optional.

    Checks TRIM through each layer, alignment, write cache, health, spare, fragments, and which
    regions of files read slowly. The worst problems come first, with what to do. Exit status 1 if
    a problem is BAD, or with --remember if something has become worse.
    """
    if collector:
        return _print_collector(collector)
    if remember and recorded is not None:
        raise UsageError("--remember is for this machine's drives now; leave --recorded out")
    read_bytes = parse_size(read)
    from ssdlab.doctor.examine import MapOptions, make_report, read_recorded, read_stack
    from ssdlab.doctor.report import write_html

    started = time.monotonic()
    options = MapOptions(target, tuple(files or ()), read_bytes)
    progress = _silent if quiet or json else _print_progress
    stack = read_stack(options, progress) if recorded is None else read_recorded(recorded)
    report = make_report(stack, time.monotonic() - started, keep=remember)
    if html is not None:
        write_html(report, html)
        typer.echo(html.resolve(), err=True)
    _print_report(report, json=json, quiet=quiet)
    return int(report.is_bad)


def _print_report(report: Report, *, json: bool, quiet: bool) -> None:
    from rich.console import Console

    from ssdlab.doctor.report import render
    from ssdlab.records import encode_json

    if json:
        write_out(encode_json(report))
    else:
        render(report, Console(), quiet=quiet)


def _print_collector(system: str) -> int:
    from ssdlab.doctor.collected import script

    write_out(script(system))
    return 0


def _print_progress(text: str) -> None:
    from rich.console import Console

    stderr = Console(stderr=True)
    stderr.print(f"doctor: {text}", markup=False, highlight=False, soft_wrap=True)


def _silent(_text: str) -> None:
    """No progress."""
