"""Reads files given by users: regular files up to a size limit.

This way a read neither blocks (a FIFO, a terminal) nor exhausts memory (/dev/zero, a sparse file).
`storage_stack.pseudofile` reads /proc and /sys.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from ssdlab.errors import UsageError
from ssdlab.units import format_size

MAX_TEXT_BYTES: Final = 64 << 20
MAX_TABLE_BYTES: Final = 4 << 30
"""The size limit for recorded tables and the witness's journals."""
_CHUNK: Final = 16 << 20
_KINDS: Final = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
    (stat.S_ISSOCK, "a socket"),
)


def read_bytes(path: Path, max_bytes: int = MAX_TEXT_BYTES) -> bytes:
    """The content of a regular file.

    Raises:
        UsageError: it is not a regular file, or larger than `max_bytes`.
        OSError: it cannot be read.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a FIFO would block here
    try:
        status = os.fstat(fd)
        _require_regular(path, status)
        size, parts = status.st_size, []
        while size <= max_bytes and (part := os.read(fd, _CHUNK)):
            parts.append(part)
            size = max(size, sum(map(len, parts)))
    finally:
        os.close(fd)
    if size > max_bytes:
        raise UsageError(
            f"{path} has {format_size(size)}, more than the limit of {format_size(max_bytes)}; "
            "check that it is the right file"
        )
    return b"".join(parts)


def read_text(path: Path) -> str:
    """The text of a regular file.

    Raises:
        UsageError, OSError: as `read_bytes`.
        UnicodeDecodeError: it is not UTF-8.
    """
    return read_bytes(path).decode()


def require_regular(path: Path) -> None:
    """Refuses what `read_bytes` refuses, for a file that is read in parts.

    Raises:
        UsageError: it exists and is not a regular file.
    """
    if path.exists():
        _require_regular(path, path.stat())


def _require_regular(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(status.st_mode)), "not a file")
        raise UsageError(f"{path} is {kind}; give a regular file")
