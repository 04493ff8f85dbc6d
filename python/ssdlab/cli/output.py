"""Failed writes to standard output and standard error.

If the reader is gone (`| head`), the program ends by SIGPIPE as other programs do: status 1 would
mean a bad finding. Any other error is one line and status 2. Failed writes to stderr are ignored:
progress and messages must not stop the work.
"""

from __future__ import annotations

import errno
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ssdlab.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class ReaderGone(BaseException):
    """The reader of standard output has closed it (EPIPE)."""


class _Output(io.FileIO):
    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise ReaderGone from error
            raise UsageError(
                f"standard output cannot be written ({error.strerror}); free space, or redirect it "
                "to another file"
            ) from error


class _Messages(io.FileIO):
    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def guard_streams() -> None:
    """Replaces `sys.stdout` and `sys.stderr` by streams that handle errors as above."""
    sys.stdout = _text(_Output(1, "wb", closefd=False), is_error=False)
    sys.stderr = _text(_Messages(2, "wb", closefd=False), is_error=True)


def _text(raw: io.FileIO, *, is_error: bool) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=getattr(sys.stdout, "encoding", None) or "utf-8",
        errors="backslashreplace" if is_error else getattr(sys.stdout, "errors", None),
        line_buffering=is_error or raw.isatty(),
    )


def require_file(option: str, path: Path | None) -> None:
    """Refuses an output that cannot be a file, before the work that it is about.

    Raises:
        UsageError: it is a directory, or in one that does not exist.
    """
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise UsageError(f"{option} is {path}; give a file in an existing directory")


def write_out(text: str) -> None:
    """Writes text to standard output unchanged, and flushes.

    Raises:
        UsageError: the write failed, for example on a full disk.
        ReaderGone: the reader has closed it.
    """
    typer.echo(text, nl=False)
