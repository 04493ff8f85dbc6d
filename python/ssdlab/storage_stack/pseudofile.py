"""Read one small file of /sys or /proc: its text, a number, or None where the kernel has none."""

from __future__ import annotations

import re
from pathlib import Path

_OCTAL = re.compile(r"\\([0-7]{3})")


def read_text(path: Path) -> str | None:
    """The text without surrounding blanks and NULs; None if absent, unreadable or empty.

    Reading an attribute may fail for the driver's own reasons (EINVAL, ENXIO, EIO), so every
    OSError means "the kernel does not say".
    """
    try:
        text = path.read_bytes().decode("utf-8", "replace").strip(" \t\n\0")
    except OSError:
        return None
    return text or None


def read_int(path: Path) -> int | None:
    """The decimal number in the file; None if there is none."""
    text = read_text(path)
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def unescape(text: str) -> str:
    r"""Undo the kernel's octal escapes (`\040` is a blank) in /proc/mounts and /proc/swaps."""
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)
