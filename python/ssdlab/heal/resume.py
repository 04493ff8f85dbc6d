"""The ranges that an interrupted run already rewrote, in the user's state directory.

One text file for each healed file, named by device number and inode: one line `offset length` for
each finished range. It is removed when the heal is complete. A run that measures does not need it:
rewritten pieces read fast and are not chosen again.
"""

from __future__ import annotations

import os
from pathlib import Path

from ssdlab.heal.pieces import Range, merge


def default_state_folder() -> Path:
    """The folder below the user's state directory (XDG base directories)."""
    configured = os.environ.get("XDG_STATE_HOME", "")
    root = Path(configured) if configured.startswith("/") else Path.home() / ".local" / "state"
    return root / "ssdlab" / "heal"


class CompletedRanges:
    """The finished ranges of one file, kept in `folder`; None keeps nothing."""

    def __init__(self, folder: Path | None, device_number: int, inode: int) -> None:
        self._path = None if folder is None else folder / f"{device_number:x}-{inode:x}"

    def ranges(self) -> list[Range]:
        """The ranges on record; an incomplete last line is ignored."""
        if self._path is None or not self._path.exists():
            return []
        lines = self._path.read_text().split("\n")[:-1]
        words = [line.split() for line in lines]
        return merge(
            Range(int(pair[0]), int(pair[1]))
            for pair in words
            if len(pair) == 2 and pair[0].isdecimal() and pair[1].isdecimal()
        )

    def add(self, completed: Range) -> None:
        """Records a range; after a failed write, nothing more is recorded."""
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a") as file:
                file.write(f"{completed.offset} {completed.length}\n")
        except OSError:
            self._path = None

    def clear(self) -> None:
        """Removes the record."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
