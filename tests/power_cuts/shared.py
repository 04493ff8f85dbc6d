"""Shared memory of the processes of a run."""

from __future__ import annotations

import mmap
from typing import Final

_WORDS: Final = 8
_HEAD: Final = 8
UNKNOWN: Final = (1 << 64) - 1
"""For a unit whose content depends on an unanswered request."""


class Board:
    """State in shared memory; each number has one writer."""

    def __init__(self, clients: int, units: int) -> None:
        self._words = memoryview(mmap.mmap(-1, _WORDS * (_HEAD + clients + 4 * units))).cast("Q")
        head = self._words[:_HEAD]
        self._head = head
        rest = self._words[_HEAD:]
        self.paused_clients = rest[:clients]
        """1 for a client that has paused."""
        rest = rest[clients:]
        self.issued = rest[:units]
        self.durable = rest[units : 2 * units]
        self.current = rest[2 * units : 3 * units]
        self.decided = rest[3 * units :]
        """Lower half: the write found after the last cut; upper half: the last issued before it."""

    @property
    def cuts(self) -> int:
        """Number of completed power cuts."""
        return self._head[0]

    @cuts.setter
    def cuts(self, value: int) -> None:
        self._head[0] = value

    @property
    def pausing(self) -> bool:
        """Whether clients must stop writing."""
        return bool(self._head[1])

    @pausing.setter
    def pausing(self, value: bool) -> None:
        self._head[1] = value

    @property
    def off(self) -> int:
        """Odd while the power is known to be off."""
        return self._head[2]

    @off.setter
    def off(self, value: int) -> None:
        self._head[2] = value

    @property
    def ending(self) -> bool:
        """Whether clients must exit."""
        return bool(self._head[3])

    @ending.setter
    def ending(self, value: bool) -> None:
        self._head[3] = value
