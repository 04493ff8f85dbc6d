"""The verbs together, and how errors leave: one line and an exit status."""

from __future__ import annotations

import os
import signal
import sys
from importlib.metadata import version
from typing import Annotated, NoReturn

import typer

from ssdlab.cli import (
    control,
    doctor,
    provision,
    replay,
    report,
    run,
    runs,
    serve,
    trim,
    twin,
    watch,
    witness,
)
from ssdlab.cli.compare import command as compare
from ssdlab.cli.heal import command as heal
from ssdlab.cli.output import ReaderGone, guard_streams
from ssdlab.cli.sweep import command as sweep
from ssdlab.errors import Interrupted, SsdlabError, UsageError

READER_GONE = 128 + signal.SIGPIPE
TYPER_INTERRUPTED = 130
"""What typer makes of a KeyboardInterrupt that reaches it."""

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
app.add_typer(twin.app, name="twin")
app.add_typer(serve.app)
app.add_typer(doctor.app)
app.add_typer(trim.app)
app.add_typer(provision.app)
app.add_typer(control.app)
app.add_typer(watch.app)
app.add_typer(witness.app, name="witness")
app.add_typer(heal.app)
app.add_typer(replay.app)
app.add_typer(compare.app)
app.add_typer(sweep.app)
app.add_typer(runs.app)
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

    0 done; 1 a bad finding or a failed device; 2 wrong use or bad input; 3 interrupted; killed by
    SIGPIPE if the reader of standard output goes away. An error is one line on stderr.
    """
    guard_streams()
    # A script's background job starts with SIGINT ignored; whoever sends it one means it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores SIGHUP: it stays so
            signal.signal(number, _interrupt)
    _leave(_run())


def _leave(status: int) -> NoReturn:
    """Ends the process at once, with all that was printed on its way.

    All is stored by then. The interpreter's own end would race with threads of the Arrow library
    that are still ending, and lose once in hundreds of runs, by an abort after the work was done.
    """
    try:
        sys.stdout.flush()
    except ReaderGone:
        status = READER_GONE
    except UsageError as error:
        if not status:  # else this, or a worse error, was said before
            status = _fail(str(error), error.exit_status)
    sys.stderr.flush()
    if status == READER_GONE:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGPIPE)
    os._exit(status)


def _run() -> int:
    try:
        status = app(standalone_mode=False)
    except SsdlabError as error:
        return _fail(str(error), error.exit_status)
    except typer.TyperException as error:
        message = _one_line(error)
        return _fail(message, 2) if message else 2  # none: it has just printed the help
    except ReaderGone:
        return READER_GONE
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", Interrupted.exit_status)
    if status == TYPER_INTERRUPTED:
        return _fail("interrupted", Interrupted.exit_status)
    return status if isinstance(status, int) else 0


def _one_line(error: typer.TyperException) -> str:
    message = " ".join(error.format_message().split()).rstrip(".")
    context = getattr(error, "ctx", None)
    return f"{message}; see {context.command_path} --help" if context and message else message


def _fail(message: str, status: int) -> int:
    sys.stderr.write(f"ssdlab: {message}\n")
    return status


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt
