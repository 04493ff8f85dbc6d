"""What the user asked `heal` to do."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PIECE_BYTES: Final = 1 << 20
SLOWER_THAN: Final = 0.8
FREEZE_MS: Final = 200

ProgressCallback = Callable[[str, int, int], object]
"""Called with the name of the phase, the bytes done in it, and its total bytes."""


@dataclass(frozen=True)
class HealOptions:
    """How to heal a file or a device.

    `everything` or `ranges`, (offset, length) in bytes, choose what to rewrite; without either, a
    measurement does: a piece that reads below `slower_than` times the fresh speed is slow.
    `fresh_bytes_per_s` is that speed, if the user knows it. Without `timed`, no speed is
    measured. `shared` allows files that share blocks with others. `state_folder` is where an
    interrupted run records what it has finished.
    """

    dry_run: bool = False
    everything: bool = False
    ranges: tuple[tuple[int, int], ...] = ()
    piece_bytes: int = PIECE_BYTES
    slower_than: float = SLOWER_THAN
    fresh_bytes_per_s: float | None = None
    timed: bool = True
    shared: bool = False
    state_folder: Path | None = None

    @property
    def measures(self) -> bool:
        """Whether a measurement decides what is rewritten."""
        return not (self.everything or self.ranges)


@dataclass(frozen=True)
class DeviceOptions:
    """How to heal a block device.

    `journal` may be None only in a dry run. `freeze_ms` limits each freeze of a mounted file
    system.
    """

    heal: HealOptions
    journal: Path | None
    freeze_ms: int = FREEZE_MS


def default_state_folder() -> Path:
    """The default `state_folder`, in the user's state directory (XDG base directories)."""
    configured = os.environ.get("XDG_STATE_HOME", "")
    root = Path(configured) if configured.startswith("/") else Path.home() / ".local" / "state"
    return root / "ssdlab" / "heal"
