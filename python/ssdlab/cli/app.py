"""The verbs together, and how errors leave: one line and an exit status."""

from __future__ import annotations

import signal
import sys
from importlib.metadata import version
from typing import Annotated

import click
import typer

from ssdlab.cli import report, run
from ssdlab.errors import SsdlabError

app = typer.Typer(
    name="ssdlab",
    help="Measure an SSD, build its twin, and tell what will make it fast again.",
    epilog="Example: ssdlab run aging /mnt/data --size 1GiB --quick",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
app.add_typer(run.app, name="run")
app.command(name="report", epilog="Example: ssdlab report ssdlab-runs --html report.html")(
    report.report
)


def _print_version(*, wanted: bool) -> None:
    if wanted:
        typer.echo(f"ssdlab {version('ssdlab')}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=lambda v: _print_version(wanted=v),
            is_eager=True,
            help="Print the version and end.",
        ),
    ] = False,
) -> None:
    """Measure an SSD, build its twin, and tell what will make it fast again."""


def main() -> None:
    """Runs a verb; ends the process with its status.

    0 done; 1 a bad finding or a failed device; 2 wrong use or bad input; 3 interrupted. An error
    is one line on stderr.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    sys.exit(_run())


def _run() -> int:
    try:
        status = app(standalone_mode=False)
    except SsdlabError as error:
        return _fail(str(error), error.exit_status)
    except click.exceptions.NoArgsIsHelpError as error:
        sys.stderr.write(error.format_message() + "\n")
        return 2
    except click.ClickException as error:
        return _fail(_one_line(error), 2)
    except (KeyboardInterrupt, click.Abort):
        return _fail("interrupted", 3)
    except BrokenPipeError:
        return _fail("the reader of the output went away", 1)
    return status if isinstance(status, int) else 0


def _one_line(error: click.ClickException) -> str:
    message = " ".join(error.format_message().split())
    context = getattr(error, "ctx", None)
    return f"{message} See: {context.command_path} --help" if context else message


def _fail(message: str, status: int) -> int:
    sys.stderr.write(f"ssdlab: {message}\n")
    return status


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt
