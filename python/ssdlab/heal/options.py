"""What the user asked of a heal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PIECE_BYTES: Final = 1 << 20
SLOWER_THAN: Final = 0.8

Watch = Callable[[str, int, int], object]
"""Told what is being done, bytes of it done, bytes of it in all."""


@dataclass(frozen=True)
class Wish:
    """How to heal.

    `chosen` are (offset, length) ranges in bytes to rewrite without measuring which are slow, an
    empty one with `everything` for all. A piece that reads below `slower_than` of the fresh speed
    is slow; `fresh_bytes_per_s` is that speed where it is known. `shared` allows files whose blocks
    others share. `state` is a folder for what an interrupted run leaves to remember.
    """

    dry_run: bool = False
    everything: bool = False
    chosen: tuple[tuple[int, int], ...] = ()
    piece_bytes: int = PIECE_BYTES
    slower_than: float = SLOWER_THAN
    fresh_bytes_per_s: float | None = None
    shared: bool = False
    state: Path | None = None

    @property
    def measures(self) -> bool:
        """Whether a measurement decides what is rewritten."""
        return not (self.everything or self.chosen)
