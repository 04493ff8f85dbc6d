"""Profiles: drives as data, one TOML file each; every number with its source and kind."""

from __future__ import annotations

import difflib
from pathlib import Path

from ssdlab.errors import TargetError
from ssdlab.input_files import read_text

_FOLDER = Path(__file__).parent


def names() -> list[str]:
    """Names of the drives that ssdlab brings along, in order."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def tables() -> Path:
    """The folder of published tables that profiles are held against."""
    return _FOLDER / "tables"


def load(name: str) -> str:
    """The text of a profile: one that ssdlab brings along, or a path that ends in .toml.

    Raises:
        TargetError: there is none; names those that look like it.
    """
    if name.endswith(".toml"):
        return read(Path(name))
    if name in names():
        return read(_FOLDER / f"{name}.toml")
    near = difflib.get_close_matches(name.lower(), names(), n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(names())}"
    raise TargetError(f"there is no twin called {name!r}; {hint} (or give a file: twin:mine.toml)")


def read(path: Path) -> str:
    """The text of the profile in a file.

    Raises:
        TargetError: it cannot be read, or is no text.
        UsageError: it is no regular file, or far too large for a profile.
    """
    try:
        return read_text(path)
    except OSError as error:
        reason = error.strerror
        raise TargetError(f"{path}: no profile can be read there ({reason})") from error
    except UnicodeDecodeError as error:
        raise TargetError(f"{path}: is no text in UTF-8, so no profile") from error
