"""The guard: a process that thaws if the watchdog and its worker are killed at the same time.

It reads a pipe to which both write what they are about to do. At the end of the pipe both have
exited, and their writes have ended: a killed process waits for its direct I/O before its
descriptors are closed. If they exited during a freeze, the guard thaws. Then it marks their record
in the journal as done, so that a recovery need not decide whether later data is newer.

It runs in a session of its own, so that signals to the watchdog's process group or from the
terminal do not reach it, and the OOM killer spares it. If all processes of the heal are killed, or
a whole control group, the file system stays frozen until `--recover` thaws it.
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

_MESSAGE: Final = struct.Struct("=cQ")
_FREEZING, _FLUSHED, _FINISHED = b"f", b"k", b"s"
_OOM_SCORE_NEVER: Final = "-1000"


def flush_and_thaw(fd: int, device: DirectDevice) -> bool:
    """Flushes the device, then thaws the file system; returns whether the flush succeeded.

    In this order, because a recovery assumes that the window was on the drive before the thaw. The
    file system is thawed even if the flush fails.
    """
    try:
        device.flush()
    except DeviceFailure:
        return False
    finally:
        kernel.thaw(fd)
    return True


class Guard:
    """Starts the guard process, and sends it messages."""

    def __init__(self, fd: int, device: DirectDevice, journal: Journal) -> None:
        """Forks it; `fd` is a directory of the file system, `device` the device below."""
        read_end, self._write_end = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            os.close(self._write_end)
            _watch(read_end, fd, device, journal)
        os.close(read_end)

    def freezing(self, sequence: int) -> None:
        """Says that a freeze for this record comes next.

        Raises:
            BrokenPipeError: the guard has exited, so nothing may be frozen.
        """
        os.write(self._write_end, _MESSAGE.pack(_FREEZING, sequence))

    def flushed(self, sequence: int) -> None:
        """Says that nothing is frozen, and the drive has all data of this record."""
        self._send(_FLUSHED, sequence)

    def finished(self) -> None:
        """Says that nothing is frozen, and the journal has the final state of the record."""
        self._send(_FINISHED, 0)

    def close(self) -> None:
        """Ends the process, so that it no longer has the file system open."""
        os.close(self._write_end)
        os.waitpid(self.process, 0)

    def _send(self, state: bytes, sequence: int) -> None:
        with suppress(BrokenPipeError):
            os.write(self._write_end, _MESSAGE.pack(state, sequence))


def _watch(pipe: int, fd: int, device: DirectDevice, journal: Journal) -> NoReturn:
    """Waits until the watchdog and its worker have exited; always ends this process."""
    status = 1
    try:
        os.setsid()
        with suppress(OSError):  # needs root
            Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE_NEVER)
        state, sequence = _FINISHED, 0
        while message := os.read(pipe, _MESSAGE.size):
            state, sequence = _MESSAGE.unpack(message)
        if state == _FREEZING and flush_and_thaw(fd, device):
            state = _FLUSHED
        if state == _FLUSHED:
            _mark_done(journal, sequence)
        status = 0
    finally:
        os._exit(status)


def _mark_done(journal: Journal, sequence: int) -> None:
    """Marks an armed record as done; a prepared one has overwritten nothing."""
    if any((each.sequence, each.state) == (sequence, "armed") for each, _ in journal.records()):
        journal.mark_done(sequence)
