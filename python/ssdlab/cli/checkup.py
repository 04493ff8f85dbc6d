"""`ssdlab checkup`: the doctor and the quick experiments in five minutes, on one page."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ssdlab.cli import options
from ssdlab.cli.output import require_file, write_out
from ssdlab.errors import Interrupted, UsageError
from ssdlab.target import RESULTS, parse_target

if TYPE_CHECKING:
    from ssdlab.checkup.record import Checkup
    from ssdlab.cli.run_experiment import TerminalObserver

app = typer.Typer(add_completion=False)


@app.command(name="checkup", epilog="Example: ssdlab checkup /mnt/data --card checkup.png")
def run(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="DIR",
            help="A directory on the drive (default: the current one), or twin:NAME.",
            autocompletion=options.complete_twin,
        ),
    ] = None,
    *,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write one HTML file.")
    ] = None,
    card: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write a picture to share: FILE.png or FILE.svg."),
    ] = None,
    recorded: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Measure nothing: show the checkup in this folder."),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Finish an interrupted checkup, in its folder."),
    ] = None,
    capacity: options.Capacity = None,
    out: options.Out = RESULTS,
    seed: options.Seed = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Is this drive all right? A few lights, the usual benchmark table, and what to do next.

    Takes at most five minutes. Runs the doctor and quick versions of suite, fsync, trim, aging and
    cache, in a way that is safe in a directory in use: test files leave space free and are removed.
    Without root, checks that need it are left out. Exit status 1 if a light is red.
    """
    pairs = (("DIR", target), ("--recorded", recorded), ("--resume", resume))
    given = [name for name, value in pairs if value is not None]
    if len(given) > 1:
        raise UsageError("give only one of DIR, --recorded FOLDER and --resume FOLDER")
    _check_files(html, card)
    from ssdlab.checkup.execute import cost, options_for, perform_checkup, resume_checkup
    from ssdlab.checkup.record import read_checkup
    from ssdlab.cli.run_experiment import TerminalObserver

    observer = TerminalObserver(options.OutputOptions(out, json, quiet))
    if recorded is not None:
        return _show(read_checkup(recorded), html, card, json=json)
    if resume is not None:
        return _finish(resume_checkup(resume, observer), observer, html, card, json=json)
    parsed = parse_target(
        "." if target is None else target,
        options.size_of(capacity),
        allowed="a directory on the drive, or twin:NAME",
    )
    wanted = options_for(parsed, out, seed)
    observer.message(cost(wanted))
    return _finish(perform_checkup(wanted, observer), observer, html, card, json=json)


def _check_files(html: Path | None, card: Path | None) -> None:
    """Refuses files that cannot be written, before five minutes are spent."""
    require_file("--html", html)
    if card is not None:
        from ssdlab.checkup.report.card import card_kind

        card_kind(card)


def _finish(
    checkup: Checkup,
    observer: TerminalObserver,
    html: Path | None,
    card: Path | None,
    *,
    json: bool,
) -> int:
    status = _show(checkup, html, card, json=json)
    if checkup.is_complete:
        return status
    folder = shlex.quote(str(checkup.folder))
    observer.message(f"to resume: ssdlab checkup --resume {folder}")
    return Interrupted.exit_status


def _show(checkup: Checkup, html: Path | None, card: Path | None, *, json: bool) -> int:
    """Prints the checkup and writes its files; returns 1 if a light is red."""
    from rich.console import Console

    from ssdlab.checkup.report import content_of, render, write_card, write_html
    from ssdlab.records import encode_json

    content = content_of(checkup)
    if json:
        write_out(encode_json(content))
    else:
        render(content, Console())
    if html is not None:
        write_html(checkup, content, html)
    if card is not None:
        write_card(content, card)
    for path in (html, card):
        if path is not None:
            typer.echo(path.resolve(), err=True)
    return int(content.is_bad)
