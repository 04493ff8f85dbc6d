"""A third process, which thaws if the watchdog and its hand are killed at the same moment.

It holds the read end of a pipe of which both have the write end, and is told there what they are
about. When the pipe ends, both are gone, and with them every write that they had begun: a process
that is killed waits for its direct I/O before its descriptors are closed. If they were within a
freeze, it thaws. Then it ends their record in the journal, so that no recovery has to ask whether
what others wrote since is newer.

It leads a session of its own, so that neither a signal to the watchdog's group nor the end of a
terminal is meant for it, and the kernel spares it when memory runs out. What is left: somebody who
kills all processes of this program, or a whole control group; then `--recover` thaws.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn

from ssdlab.errors import DeviceFailure
from ssdlab.heal.device import kernel
from ssdlab.heal.device.drive import DirectDevice
from ssdlab.heal.device.journal import Journal

_NEWS: Final = struct.Struct("=cQ")
_FREEZING, _KEPT, _SETTLED = b"f", b"k", b"s"
_NEVER_FOR_MEMORY: Final = "-1000"


def release(fd: int, device: DirectDevice) -> bool:
    """Has the drive keep what was written, then thaws; whether the drive did.

    In this order: a recovery takes it that a window was on the drive before the file system went
    on. What the drive cannot keep is no reason to leave it frozen.
    """
    try:
        device.flush()
    except DeviceFailure:
        return False
    finally:
        kernel.thaw(fd)
    return True


class Guard:
    """The process, and what it is told."""

    def __init__(self, fd: int, device: DirectDevice, journal: Journal) -> None:
        """Starts it; `fd` is of a directory of the file system, `device` is what it is on."""
        told, self._tell = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            os.close(self._tell)
            _watch(told, fd, device, journal)
        os.close(told)

    def freezing(self, sequence: int) -> None:
        """Tells that a freeze for this record is next.

        Raises:
            BrokenPipeError: it is gone, so nothing may be frozen.
        """
        os.write(self._tell, _NEWS.pack(_FREEZING, sequence))

    def kept(self, sequence: int) -> None:
        """Tells that nothing is frozen, and the drive has all of this record."""
        self._say(_KEPT, sequence)

    def settled(self) -> None:
        """Tells that nothing is frozen, and the journal says how the record ended."""
        self._say(_SETTLED, 0)

    def close(self) -> None:
        """Ends it: nothing is frozen, and it holds the file system no more."""
        os.close(self._tell)
        os.waitpid(self.process, 0)

    def _say(self, what: bytes, sequence: int) -> None:
        with suppress(BrokenPipeError):
            os.write(self._tell, _NEWS.pack(what, sequence))


def _watch(told: int, fd: int, device: DirectDevice, journal: Journal) -> NoReturn:
    """Until all who may freeze are gone; whatever happens, this process ends here."""
    status = 1
    try:
        os.setsid()
        with suppress(OSError):  # it takes root
            Path("/proc/self/oom_score_adj").write_text(_NEVER_FOR_MEMORY)
        what, sequence = _SETTLED, 0
        while news := os.read(told, _NEWS.size):
            what, sequence = _NEWS.unpack(news)
        if what == _FREEZING and release(fd, device):
            what = _KEPT
        if what == _KEPT:
            _end(journal, sequence)
        status = 0
    finally:
        os._exit(status)


def _end(journal: Journal, sequence: int) -> None:
    """Ends a record that was armed: one that was only prepared was not begun."""
    if any((each.sequence, each.state) == (sequence, "armed") for each, _ in journal.records()):
        journal.done(sequence)
