"""Standard output: where `--json` and a report go."""

from __future__ import annotations

import errno
import os
import sys

import typer

from ssdlab.errors import UsageError


def write_out(text: str) -> None:
    """Writes text to stdout as it is.

    Raises:
        UsageError: stdout takes no more (a full disk). A reader that went away is typer's affair.
    """
    try:
        typer.echo(text, nl=False)
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise
        # What Python still holds for it goes nowhere, or it would complain again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise UsageError(
            f"standard output cannot be written ({error.strerror}); make room, or send it elsewhere"
        ) from error
