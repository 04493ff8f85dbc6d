"""Reading what a user names: regular files of bounded size, so no read waits or fills the memory.

A FIFO, a terminal or /dev/zero never ends, and a sparse file may claim any size. Files of /proc and
/sys are read by `stack.pseudofile`.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from ssdlab.errors import UsageError
from ssdlab.units import format_size

TEXT_BYTES_MOST: Final = 64 << 20
TABLE_BYTES_MOST: Final = 4 << 30
"""Of recorded tables and of a witness's journals, which are read as a whole too."""
_CHUNK: Final = 16 << 20
_KINDS: Final = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
    (stat.S_ISSOCK, "a socket"),
)


def read_bytes(path: Path, most_bytes: int = TEXT_BYTES_MOST) -> bytes:
    """The content of a regular file.

    Raises:
        UsageError: it is no regular file, or larger than `most_bytes`.
        OSError: it cannot be read.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a FIFO would wait here
    try:
        status = os.fstat(fd)
        _require_regular(path, status)
        size, parts = status.st_size, []
        while size <= most_bytes and (part := os.read(fd, _CHUNK)):
            parts.append(part)
            size = max(size, sum(map(len, parts)))
    finally:
        os.close(fd)
    if size > most_bytes:
        raise UsageError(
            f"{path} has {format_size(size)}; at most {format_size(most_bytes)} are read here: is "
            "it the right file?"
        )
    return b"".join(parts)


def read_text(path: Path) -> str:
    """The text of a regular file.

    Raises:
        UsageError, OSError: as `read_bytes`.
        UnicodeDecodeError: it is not in UTF-8.
    """
    return read_bytes(path).decode()


def require_regular(path: Path) -> None:
    """Refuses what `read_bytes` would, for a file that is read piece by piece.

    Raises:
        UsageError: it is there and no regular file.
    """
    if path.exists():
        _require_regular(path, path.stat())


def _require_regular(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(status.st_mode)), "no file")
        raise UsageError(f"{path} is {kind}; give a regular file")
