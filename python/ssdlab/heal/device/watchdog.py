"""A process that freezes a file system for one window at a time, and thaws it whatever happens.

`python -m ssdlab.heal.device.watchdog MOUNT DEVICE JOURNAL BOUND_MS`: reads records that
are prepared in the journal, one a line, and answers each with one line. For each it forks a hand:
the hand freezes, looks whether all of it is still in use, arms the record, with the content that is
there now, writes, flushes and thaws. A hand that is not done after the bound is killed, and its
file system thawed.

Why a hand of its own: a write must never reach the device after the thaw, when a file may have
newer data there. A process that is killed and waited for can write no more; one that is stopped, or
slow, could. So the thaw waits for what the drive has in hand, and that may exceed the bound: what
the drive does not finish, no one else could write either. If the program that asks dies, this
process finishes its window and ends; if this process dies, the hand finishes and thaws.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import Final, Literal, NoReturn

import msgspec

from ssdlab.errors import DeviceFailure, SsdlabError
from ssdlab.heal.device import kernel
from ssdlab.heal.device.drive import DirectDevice, generation_of, mount_of
from ssdlab.heal.device.guard import Guard, release
from ssdlab.heal.device.journal import Journal, Record, sum_of

READY: Final = "ready\n"
End = Literal["done", "changed", "busy", "late", "failed", "thawed by others"]
_ENDS: Final[tuple[End, ...]] = ("done", "changed", "busy", "late", "failed", "thawed by others")


class Answer(msgspec.Struct, frozen=True):
    """How a window ended, and how long it was in hand, frozen or not.

    "changed": what of it is in use is no more what was recorded, and was not touched. "busy":
    somebody else had frozen the file system. "late": the bound was reached. "thawed by others":
    somebody thawed it in between, so what was written may have met newer data.
    """

    end: End
    took_ms: float


class Keeper:
    """The descriptors that all hands share."""

    def __init__(self, mount: Path, device: Path, journal: Path, bound_s: float) -> None:
        self.fd = os.open(mount, os.O_RDONLY | os.O_DIRECTORY | os.O_NOATIME | os.O_CLOEXEC)
        self.device = DirectDevice(device, exclusive=False)
        self.journal = Journal(journal, shared=True)
        self.bound_s = bound_s
        self.guard = Guard(self.fd, self.device, self.journal)

    def close(self) -> None:
        """Ends the guard, so that nobody holds the file system."""
        self.guard.close()
        self.device.close()
        self.journal.close()
        os.close(self.fd)

    def answer(self, record: Record) -> Answer:
        """As `rewrite`; whatever fails is an answer, which the program that asked reports."""
        try:
            return self.rewrite(record)
        except (OSError, SsdlabError):
            return Answer("failed", 0.0)

    def rewrite(self, record: Record) -> Answer:
        """One window by a hand, watched."""
        started = time.monotonic()
        hand = os.fork()
        if hand == 0:
            self._as_hand(record)
        end = self._watched(hand, record)
        if end in {"done", "late"}:
            # What a late hand wrote of it are the same bytes; from here on others may write newer.
            self.device.flush()
            self.journal.done(record.sequence)
        self.guard.settled()
        return Answer(end, round((time.monotonic() - started) * 1e3, 1))

    def _watched(self, hand: int, record: Record) -> End:
        """Waits for a hand at most as long as the bound; then nothing is frozen any more."""
        in_time = self._ends_in_time(hand)
        if not in_time:
            os.kill(hand, signal.SIGKILL)
        _, status = os.waitpid(hand, 0)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) < len(_ENDS):
            return _ENDS[os.WEXITSTATUS(status)]
        kept = release(self.fd, self.device)
        if kept and not in_time:
            self.guard.kept(record.sequence)
        return "failed" if in_time else "late"

    def _ends_in_time(self, hand: int) -> bool:
        """Whether a hand ends within the bound; one that cannot be watched counts as late."""
        try:
            ends = os.pidfd_open(hand)
        except OSError:
            return False
        try:
            return bool(select.select([ends], [], [], self.bound_s)[0])
        finally:
            os.close(ends)

    def _as_hand(self, record: Record) -> NoReturn:
        """Whatever happens, this process ends here: there must be one watchdog alone."""
        status = 255
        try:
            status = _ENDS.index(self._by_hand(record))
        finally:
            os._exit(status)

    def _by_hand(self, record: Record) -> End:
        try:
            self.guard.freezing(record.sequence)
            if not kernel.freeze(self.fd):
                self.guard.settled()
                return "busy"
        except OSError:
            self.guard.settled()
            return "failed"
        end: End = "failed"
        try:
            end = self._frozen(record)
        except (OSError, SsdlabError):
            pass
        finally:
            if not kernel.thaw(self.fd):
                end = "thawed by others"
        if end == "done":
            self.guard.kept(record.sequence)
        else:
            self.guard.settled()
        return end

    def _frozen(self, record: Record) -> End:
        """What is done while nothing else can write to the device."""
        window = record.window
        if kernel.in_cache(self.device.fd, window.ranges):
            return "changed"
        for each in kernel.untouchable(self.fd, window.offset, window.ranges[-1].end):
            if any(each.offset < one.end and one.offset < each.end for one in window.ranges):
                return "changed"
        content = self.device.read(window)
        self.device.flush()  # of the superblock, as frozen: it is what a recovery goes by
        superblock = self.device.superblock()
        found = sum_of(content)
        armed = msgspec.structs.replace(
            record,
            state="armed",
            generation=generation_of(superblock, ""),
            mount=mount_of(superblock),
            sha256=found,
        )
        if found == record.sha256:
            self.journal.turn(armed)
        else:  # somebody wrote meanwhile: the freeze is longer by the journal's writing
            self.journal.write(armed, content)
        try:
            self.device.write(window, content)
        except DeviceFailure:
            self._write_again(armed, content)
        return "done"

    def _write_again(self, armed: Record, content: bytes) -> None:
        """A failed write may have left anything there: once more, while it is still frozen.

        Raises:
            DeviceFailure: it failed again. The record says so: after the thaw a difference could
                be taken for newer data.
        """
        try:
            self.device.write(armed.window, content)
        except DeviceFailure:
            self.journal.turn(msgspec.structs.replace(armed, state="torn"))
            raise


def main() -> None:
    """Answers until its input ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    mount, device, journal, bound_ms = sys.argv[1:5]
    keeper = Keeper(Path(mount), Path(device), Path(journal), float(bound_ms) / 1e3)
    sys.stdout.write(READY)
    sys.stdout.flush()
    for line in sys.stdin:
        answer = keeper.answer(msgspec.json.decode(line, type=Record))
        try:
            sys.stdout.write(msgspec.json.encode(answer).decode() + "\n")
            sys.stdout.flush()
        except BrokenPipeError:
            break
    keeper.close()
    os._exit(0)  # its output may be gone: nothing is left to be written there


if __name__ == "__main__":
    main()
