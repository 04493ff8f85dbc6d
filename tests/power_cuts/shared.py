"""What the processes of a run tell each other: numbers in shared memory."""

from __future__ import annotations

import mmap
from typing import Final

_WORDS: Final = 8
_HEAD: Final = 8
UNKNOWN: Final = (1 << 64) - 1
"""Of a unit whose content depends on a request that was not answered."""


class Board:
    """Numbers that one process writes and others read."""

    def __init__(self, clients: int, units: int) -> None:
        self._words = memoryview(mmap.mmap(-1, _WORDS * (_HEAD + clients + 4 * units))).cast("Q")
        head = self._words[:_HEAD]
        self._head = head
        rest = self._words[_HEAD:]
        self.paused_clients = rest[:clients]
        """1 where a client has reached a pause."""
        rest = rest[clients:]
        self.issued = rest[:units]
        self.durable = rest[units : 2 * units]
        self.current = rest[2 * units : 3 * units]
        self.decided = rest[3 * units :]
        """Found after the last cut, and in the upper half issued before it."""

    @property
    def cuts(self) -> int:
        """Power cuts that are known to be over."""
        return self._head[0]

    @cuts.setter
    def cuts(self, value: int) -> None:
        self._head[0] = value

    @property
    def pausing(self) -> bool:
        """Whether clients are to stop writing."""
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
        """Whether clients are to end."""
        return bool(self._head[3])

    @ending.setter
    def ending(self, value: bool) -> None:
        self._head[3] = value
