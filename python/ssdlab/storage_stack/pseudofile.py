"""Read small files of /sys and /proc as text or numbers."""

from __future__ import annotations

import re
from pathlib import Path

_OCTAL = re.compile(r"\\([0-7]{3})")


def read_text(path: Path) -> str | None:
    """The text without surrounding white space and NULs; None if absent, unreadable or empty.

    Drivers return various errors for attributes that they do not support (EINVAL, ENXIO, EIO), so
    any OSError gives None.
    """
    try:
        text = path.read_bytes().decode("utf-8", "replace").strip(" \t\n\0")
    except OSError:
        return None
    return text or None


def read_int(path: Path) -> int | None:
    """The decimal number in the file; None if it has no number."""
    text = read_text(path)
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def unescape(text: str) -> str:
    r"""Undo the kernel's octal escapes (`\040` is a space) in /proc/mounts and /proc/swaps."""
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)
