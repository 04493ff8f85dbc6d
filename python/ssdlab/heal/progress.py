"""What an interrupted run rewrote already: a few lines beside the user's other state, not the file.

One file of text for each healed file, named by its device and inode: a line `offset length` for
each range that has its new place. It goes when all is done. A run that measures has no use for it:
what was rewritten is fast, and is not chosen again.
"""

from __future__ import annotations

import os
from pathlib import Path

from ssdlab.heal.pieces import Range, joined


def state_folder() -> Path:
    """Where programs of this user keep such things (XDG base directories)."""
    given = os.environ.get("XDG_STATE_HOME", "")
    root = Path(given) if given.startswith("/") else Path.home() / ".local" / "state"
    return root / "ssdlab" / "heal"


class Remembered:
    """What is known of one file; in `folder`, or nothing where that is None."""

    def __init__(self, folder: Path | None, device_number: int, inode: int) -> None:
        self._path = None if folder is None else folder / f"{device_number:x}-{inode:x}"

    def ranges(self) -> list[Range]:
        """What was rewritten; a torn last line counts for nothing."""
        if self._path is None or not self._path.exists():
            return []
        lines = self._path.read_text().split("\n")[:-1]
        words = [line.split() for line in lines]
        return joined(
            Range(int(pair[0]), int(pair[1]))
            for pair in words
            if len(pair) == 2 and pair[0].isdecimal() and pair[1].isdecimal()
        )

    def add(self, done: Range) -> None:
        """Remembers a range; where that cannot be written, nothing is remembered."""
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a") as file:
                file.write(f"{done.offset} {done.length}\n")
        except OSError:
            self._path = None

    def forget(self) -> None:
        """All is done."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
