"""Drive profiles, one TOML file each; every number states its source and kind."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from ssdlab.errors import TargetError
from ssdlab.input_files import read_text

_FOLDER = Path(__file__).parent


def names() -> list[str]:
    """Names of the shipped profiles, sorted."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def own_folder() -> Path:
    """The folder of the user's own profiles (XDG base directories); it need not exist."""
    configured = os.environ.get("XDG_DATA_HOME", "")
    root = Path(configured) if configured.startswith("/") else Path.home() / ".local" / "share"
    return root / "ssdlab" / "twins"


def own_names() -> list[str]:
    """Names of the user's own profiles, sorted; those of shipped profiles are left out."""
    try:
        found = sorted(path.stem for path in own_folder().glob("*.toml"))
    except (OSError, RuntimeError):  # not readable, or a user without a home directory
        return []
    return [name for name in found if name not in names()]


def tables() -> Path:
    """The folder of the published tables that the shipped twins are compared with."""
    return _FOLDER / "tables"


def load(name: str) -> str:
    """The text of a shipped profile, of one of the user's own, or of a file (`name` ends in .toml).

    Raises:
        TargetError: there is no such profile; otherwise as `read`.
        UsageError: as `read`.
    """
    if name.endswith(".toml"):
        return read(Path(name))
    if name in names():
        return read(_FOLDER / f"{name}.toml")
    if name in own_names():
        return read(own_folder() / f"{name}.toml")
    near = similar(name, 0.4)
    hint = f"did you mean {' or '.join(near)}?" if near else f"the twins are {', '.join(names())}"
    raise TargetError(f"there is no twin called {name!r}; {hint} (or give a file: twin:mine.toml)")


def similar(name: str, similarity_min: float = 0.6) -> list[str]:
    """Names of up to three profiles that are similar (0 to 1), the most similar first."""
    known = [*names(), *own_names()]
    return difflib.get_close_matches(name.lower(), known, n=3, cutoff=similarity_min)


def read(path: Path) -> str:
    """The text of a profile file.

    Raises:
        TargetError: the file cannot be read, or is not UTF-8.
        UsageError: not a regular file, or much too large for a profile.
    """
    try:
        return read_text(path)
    except OSError as error:
        raise TargetError(
            f"{path}: cannot read this profile ({error.strerror}); give a file, such as mine.toml"
        ) from error
    except UnicodeDecodeError as error:
        raise TargetError(
            f"{path}: not UTF-8 text; give a profile, which is a TOML file"
        ) from error
