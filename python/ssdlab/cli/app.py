"""The commands of `ssdlab`; errors become one line on stderr and an exit status."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from typing import Annotated, ClassVar, NoReturn

import typer

from ssdlab.cli.lazy import LazyGroup, Member
from ssdlab.cli.output import ReaderGone, guard_streams
from ssdlab.errors import Interrupted, SsdlabError, UsageError

READER_GONE = 128 + signal.SIGPIPE
TYPER_INTERRUPTED = 130
"""Returned by typer for a KeyboardInterrupt."""


class _Commands(LazyGroup):
    members: ClassVar[Mapping[str, Member]] = {
        "checkup": Member(
            "ssdlab.cli.checkup",
            "Is this drive all right? A few lights, the usual benchmark table, and what to do "
            "next.",
        ),
        "report": Member(
            "ssdlab.cli.report",
            "Show finished runs: tables, curves, verdicts and warnings.",
        ),
        "run": Member(
            "ssdlab.cli.run", "Run an experiment on a real drive, a directory or a twin."
        ),
        "twin": Member("ssdlab.cli.twin", "List, show, check, make and fit the profiles of twins."),
        "serve": Member(
            "ssdlab.cli.serve",
            "Serve a twin as a network block device (NBD), or as an NVMe drive, until Ctrl-C.",
        ),
        "doctor": Member(
            "ssdlab.cli.doctor",
            "Check the storage stack below a path: read-only, at most a minute, root optional.",
        ),
        "trim": Member(
            "ssdlab.cli.trim",
            "Discard the free space of a file system, as fstrim does, and show what reached the "
            "drive.",
        ),
        "provision": Member(
            "ssdlab.cli.provision",
            "Show a drive's spare, what more spare costs and gains, and how to set it aside.",
        ),
        "control": Member(
            "ssdlab.cli.control",
            "Send a request to a served twin: counters, power, faults; docs/serve.md lists all.",
        ),
        "watch": Member(
            "ssdlab.cli.control",
            "Show a served twin's rates, latencies, write amplification and queue until Ctrl-C.",
        ),
        "top": Member(
            "ssdlab.cli.top",
            "Show a real drive's rates, latencies, temperature and write amplification until "
            "Ctrl-C.",
        ),
        "witness": Member(
            "ssdlab.cli.witness",
            "Does a drive keep acknowledged writes? A second machine records them; you cut power.",
        ),
        "heal": Member(
            "ssdlab.cli.heal",
            "Make randomly written files read fast again, even while they are in use.",
        ),
        "replay": Member(
            "ssdlab.cli.replay",
            "Replay a recorded I/O trace on a drive, a directory or a twin.",
        ),
        "compare": Member(
            "ssdlab.cli.compare",
            "Compare runs, drives or settings: faster, slower, or no difference shown.",
        ),
        "sweep": Member(
            "ssdlab.cli.sweep",
            "Run many twins: a grid or a sample over profile, policy and load, with repeats and "
            "seeds.",
        ),
        "studio": Member(
            "ssdlab.cli.studio",
            "Write one HTML page that runs twins and shows what happens inside a drive.",
        ),
        "runs": Member(
            "ssdlab.cli.runs",
            "List the runs of a results folder, oldest first, each with its verdict.",
        ),
    }


app = typer.Typer(
    name="ssdlab",
    cls=_Commands,
    help="Measure an SSD, simulate it as a twin, and find what makes it fast again.",
    epilog="Example: ssdlab run aging /mnt/data --size 1GiB --quick",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _print_version(*, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version
        from importlib.util import find_spec

        from ssdlab.device import NativeBuild

        dask = "with" if find_spec("distributed") else "without"
        typer.echo(f"ssdlab {version('ssdlab')} ({NativeBuild()}, {dask} dask)")
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
            help="Print the version, commit and build, and exit.",
        ),
    ] = False,
) -> None:
    """Measure an SSD, simulate it as a twin, and find what makes it fast again."""


def main() -> None:
    """Runs a command and exits with its status.

    Status 0: done; 1: a bad finding or a failed device; 2: wrong use or bad input; 3: interrupted;
    killed by SIGPIPE if the reader of standard output is gone. An error is one line on stderr.
    """
    guard_streams()
    # Shells start background jobs with SIGINT ignored; a SIGINT sent to one is meant for it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores SIGHUP: keep that
            signal.signal(number, _interrupt)
    _exit(_run())


def _exit(status: int) -> NoReturn:
    """Flushes the output and ends the process without the interpreter's shutdown.

    All results are stored by then. The shutdown races with threads of the Arrow library that are
    still ending, and aborts once in hundreds of runs.
    """
    try:
        sys.stdout.flush()
    except ReaderGone:
        status = READER_GONE
    except UsageError as error:
        if not status:  # otherwise an error was printed before
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
        return _fail(message, 2) if message else 2  # without a message it has printed the help
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
