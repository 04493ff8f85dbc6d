"""The watchdog: a process that freezes a file system for one window at a time, and always thaws it.

`python -m ssdlab.heal.device.watchdog MOUNT DEVICE JOURNAL LIMIT_MS` reads, as JSON lines, records
that are prepared in the journal, forks a worker for each, and answers each with one line. The
worker freezes, checks that the whole window is still in use, arms the record with the window's
present content, writes, flushes and thaws. If the worker has not exited after the limit, the
watchdog kills it and thaws.

Why a separate worker: no write may reach the device after the thaw, because a file may have newer
data there by then. A process that was killed and reaped cannot write any more; a stopped or slow
one could. So the thaw waits for writes that the drive has already received, even beyond the limit.
If the heal program exits, the watchdog finishes its window and exits. If the watchdog dies, the
worker finishes and thaws.
"""

from __future__ import annotations

import os
import select
import signal
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, NoReturn

import msgspec

from ssdlab.errors import DeviceFailure, SsdlabError
from ssdlab.heal.device import kernel
from ssdlab.heal.device.drive import DirectDevice, generation_of, mount_id
from ssdlab.heal.device.journal import Journal, Record, checksum

_MESSAGE: Final = struct.Struct("=cQ")
_FREEZING, _FLUSHED, _FINISHED = b"f", b"k", b"s"
_OOM_SCORE_NEVER: Final = "-1000"
READY: Final = "ready\n"
End = Literal["done", "changed", "busy", "late", "failed", "thawed by others"]
_ENDS: Final[tuple[End, ...]] = ("done", "changed", "busy", "late", "failed", "thawed by others")


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
    """Starts the guard process, and sends it messages.

    The guard thaws if the watchdog and its worker are killed at the same time. It reads a pipe to
    which both write what they are about to do. At end of file both have exited, and their writes
    have ended: a killed process waits for its direct I/O before its descriptors are closed.
    If they exited during a freeze, the guard thaws. Then it marks their record in the journal as
    done, so that a recovery need not decide whether later data is newer.

    The guard runs in a session of its own, so that signals to the watchdog's process group or from
    the terminal do not reach it, and the OOM killer spares it. If all processes of the heal or
    their control group are killed, the file system stays frozen until `--recover` thaws it.
    """

    def __init__(self, fd: int, device: DirectDevice, journal: Journal) -> None:
        """Forks the guard; `fd` is a directory of the file system, which is on `device`."""
        read_end, self._write_end = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            os.close(self._write_end)
            _watch(read_end, fd, device, journal)
        os.close(read_end)

    def freezing(self, sequence: int) -> None:
        """Informs the guard that a freeze for this record comes next.

        Raises:
            BrokenPipeError: the guard has exited, so nothing may be frozen.
        """
        os.write(self._write_end, _MESSAGE.pack(_FREEZING, sequence))

    def flushed(self, sequence: int) -> None:
        """Informs the guard that nothing is frozen, and the drive has all data of this record."""
        self._send(_FLUSHED, sequence)

    def finished(self) -> None:
        """Informs the guard that nothing is frozen and the journal has the final state."""
        self._send(_FINISHED, 0)

    def close(self) -> None:
        """Ends the guard, so that it no longer has the file system open."""
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


class Answer(msgspec.Struct, frozen=True):
    """The result for one window, and how many milliseconds it took.

    "changed": a part of the window is now free, metadata or cached; nothing was written. "busy":
    another program has already frozen the file system. "late": the time limit was reached. "thawed
    by others": another program thawed it during the write, which may have overwritten newer data.
    """

    end: End
    took_ms: float


class Watchdog:
    """The descriptors that all workers share, and one worker at a time."""

    def __init__(self, mount: Path, device: Path, journal: Path, limit_s: float) -> None:
        self.fd = os.open(mount, os.O_RDONLY | os.O_DIRECTORY | os.O_NOATIME | os.O_CLOEXEC)
        self.device = DirectDevice(device, exclusive=False)
        self.journal = Journal(journal, shared=True)
        self.limit_s = limit_s
        self.guard = Guard(self.fd, self.device, self.journal)

    def close(self) -> None:
        """Ends the guard and closes all descriptors, so that the file system can be unmounted."""
        self.guard.close()
        self.device.close()
        self.journal.close()
        os.close(self.fd)

    def answer(self, record: Record) -> Answer:
        """As `rewrite`; an error becomes the answer "failed", which the heal program reports."""
        try:
            return self.rewrite(record)
        except (OSError, SsdlabError):
            return Answer("failed", 0.0)

    def rewrite(self, record: Record) -> Answer:
        """Rewrites one window in a worker process."""
        started = time.monotonic()
        worker = os.fork()
        if worker == 0:
            self._run_worker(record)
        end = self._wait_for_worker(worker, record)
        if end in {"done", "late"}:
            # A late worker wrote the same bytes; from now on other programs may write newer bytes.
            self.device.flush()
            self.journal.mark_done(record.sequence)
        self.guard.finished()
        return Answer(end, round((time.monotonic() - started) * 1e3, 1))

    def _wait_for_worker(self, worker: int, record: Record) -> End:
        """Waits for a worker, kills it at the time limit, and thaws if it did not do so itself."""
        in_time = self._exits_in_time(worker)
        if not in_time:
            os.kill(worker, signal.SIGKILL)
        _, status = os.waitpid(worker, 0)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) < len(_ENDS):
            return _ENDS[os.WEXITSTATUS(status)]
        flushed = flush_and_thaw(self.fd, self.device)
        if flushed and not in_time:
            self.guard.flushed(record.sequence)
        return "failed" if in_time else "late"

    def _exits_in_time(self, worker: int) -> bool:
        """Whether a worker exits within the time limit; False if it cannot be watched."""
        try:
            pidfd = os.pidfd_open(worker)
        except OSError:
            return False
        try:
            return bool(select.select([pidfd], [], [], self.limit_s)[0])
        finally:
            os.close(pidfd)

    def _run_worker(self, record: Record) -> NoReturn:
        """Rewrites the window; always ends this process: it must not become a second watchdog."""
        status = 255
        try:
            status = _ENDS.index(self._rewrite_frozen(record))
        finally:
            os._exit(status)

    def _rewrite_frozen(self, record: Record) -> End:
        try:
            self.guard.freezing(record.sequence)
            if not kernel.freeze(self.fd):
                self.guard.finished()
                return "busy"
        except OSError:
            self.guard.finished()
            return "failed"
        end: End = "failed"
        try:
            end = self._write_window(record)
        except (OSError, SsdlabError):
            pass
        finally:
            if not kernel.thaw(self.fd):
                end = "thawed by others"
        if end == "done":
            self.guard.flushed(record.sequence)
        else:
            self.guard.finished()
        return end

    def _write_window(self, record: Record) -> End:
        """Checks, journals and writes the window, while the file system is frozen."""
        window = record.window
        if kernel.cached_pages(self.device.fd, window.ranges):
            return "changed"
        for each in kernel.free_or_metadata(self.fd, window.offset, window.ranges[-1].end):
            if any(each.offset < part.end and part.offset < each.end for part in window.ranges):
                return "changed"
        content = self.device.read(window)
        self.device.flush()  # the superblock of the frozen file system, which a recovery compares
        superblock = self.device.superblock()
        digest = checksum(content)
        armed = msgspec.structs.replace(
            record,
            state="armed",
            generation=generation_of(superblock, ""),
            mount=mount_id(superblock),
            sha256=digest,
        )
        if digest == record.sha256:
            self.journal.update(armed)
        else:  # data has changed since: the freeze also takes the time of this journal write
            self.journal.write(armed, content)
        try:
            self.device.write(window, content)
        except DeviceFailure:
            self._write_again(armed, content)
        return "done"

    def _write_again(self, armed: Record, content: bytes) -> None:
        """Retries a failed write, which may have left garbage, while the file system is frozen.

        Raises:
            DeviceFailure: the retry failed. The record says so, because after the thaw a
                difference could be mistaken for newer data.
        """
        try:
            self.device.write(armed.window, content)
        except DeviceFailure:
            self.journal.update(msgspec.structs.replace(armed, state="torn"))
            raise


def main() -> None:
    """Answers requests until the end of standard input."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    mount, device, journal, limit_ms = sys.argv[1:5]
    watchdog = Watchdog(Path(mount), Path(device), Path(journal), float(limit_ms) / 1e3)
    sys.stdout.write(READY)
    sys.stdout.flush()
    for line in sys.stdin:
        answer = watchdog.answer(msgspec.json.decode(line, type=Record))
        try:
            sys.stdout.write(msgspec.json.encode(answer).decode() + "\n")
            sys.stdout.flush()
        except BrokenPipeError:
            break
    watchdog.close()
    os._exit(0)  # skips flushing stdout, whose reader may have exited


if __name__ == "__main__":
    main()
