"""Standard output and error: what a failed write to them means, in one place.

A reader that went away (`| head`) ends the program by SIGPIPE, as it ends other programs: status 1
would say that a finding is bad. Any other failure is one line and status 2. Progress and messages
that stderr does not take are dropped: they must not stop the work.
"""

from __future__ import annotations

import errno
import io
import sys
from typing import TYPE_CHECKING

import typer

from ssdlab.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class ReaderGone(BaseException):
    """Nobody reads standard output any more."""


class _Output(io.FileIO):
    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise ReaderGone from error
            raise UsageError(
                f"standard output cannot be written ({error.strerror}); make room, or send it "
                "elsewhere"
            ) from error


class _Messages(io.FileIO):
    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def guard_streams() -> None:
    """From here on, failed writes to `sys.stdout` and `sys.stderr` are treated as said above."""
    sys.stdout = _text(_Output(1, "wb", closefd=False), is_error=False)
    sys.stderr = _text(_Messages(2, "wb", closefd=False), is_error=True)


def _text(raw: io.FileIO, *, is_error: bool) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=getattr(sys.stdout, "encoding", None) or "utf-8",
        errors="backslashreplace" if is_error else getattr(sys.stdout, "errors", None),
        line_buffering=is_error or raw.isatty(),
    )


def write_out(text: str) -> None:
    """Writes text to standard output as it is, at once.

    Raises:
        UsageError: it cannot be written, as on a full disk.
        ReaderGone: its reader went away.
    """
    typer.echo(text, nl=False)
