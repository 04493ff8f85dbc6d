"""What is about to be overwritten, kept in a file on another drive until the drive has it again.

Two slots, used in turn: a head of 64 KiB (a line of text, the SHA-256 of the JSON that follows, the
JSON) and the bytes themselves. A record is on its drive before the first byte of the device is
overwritten; the next record goes to the other slot, after the device has flushed. So a torn slot
was not begun, and nothing is lost with it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from pathlib import Path
from typing import Final, Literal

import msgspec

from ssdlab.errors import DeviceFailure, TargetError
from ssdlab.heal.device.windows import WINDOW_BYTES, Window
from ssdlab.heal.pieces import Range

HEAD_BYTES: Final = 64 << 10
SLOT_BYTES: Final = HEAD_BYTES + WINDOW_BYTES
SLOTS: Final = 2
JOURNAL_BYTES: Final = SLOTS * SLOT_BYTES
_FIRST: Final = b"ssdlab heal --device journal 1\n"

State = Literal["prepared", "armed", "torn", "done"]


class Identity(msgspec.Struct, frozen=True):
    """Which file system on which device, so that no other is ever written to."""

    kind: str
    uuid: str
    size_bytes: int
    serial: str | None = None
    model: str | None = None


class Record(msgspec.Struct, frozen=True):
    """One window: `ranges` are (offset, length), `sha256` is of what they hold, in their order.

    "prepared": nothing was overwritten yet. "armed": the device may be torn there. "torn": the
    device failed to write it, and the file system went on. "done": it has all of it. `generation`
    tells whether the file system was in use since; `wish` is what was asked for, so that a run can
    go on where one ended.
    """

    sequence: int
    state: State
    identity: Identity
    generation: str
    session: str
    wish: str
    ranges: tuple[tuple[int, int], ...]
    sha256: str
    mount: str = ""

    @property
    def window(self) -> Window:
        """Its ranges."""
        return Window(tuple(Range(*each) for each in self.ranges))


class Journal:
    """The file, opened for one run at a time."""

    def __init__(self, path: Path, *, shared: bool = False) -> None:
        """Opens it, or makes it with all its blocks; `shared` with the program that has it.

        Raises:
            TargetError: it cannot be made, is another file, or another run has it.
        """
        self.path = path
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._fd = os.open(path, flags, 0o600)
            try:
                if not shared:
                    fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._begin()
            except BaseException:  # else the lock would outlive this journal
                os.close(self._fd)
                raise
        except OSError as error:
            raise TargetError(f"{path} cannot hold the journal ({error.strerror})") from error

    def _begin(self) -> None:
        """Makes what is new, or was never finished, a journal; another file is kept."""
        size = os.fstat(self._fd).st_size
        starts = [self._get(slot * SLOT_BYTES, len(_FIRST)) for slot in range(SLOTS)]
        if size == JOURNAL_BYTES and starts == [_FIRST] * SLOTS:
            return
        whole = self._get(0, JOURNAL_BYTES).replace(_FIRST, b"")  # a crash may leave one of two
        if size not in {0, JOURNAL_BYTES} or any(whole):
            raise TargetError(f"{self.path} is no journal: give a path that is free")
        try:
            os.posix_fallocate(self._fd, 0, JOURNAL_BYTES)
            for slot in reversed(range(SLOTS)):
                self._put(_FIRST, slot * SLOT_BYTES)
            self._sync()
            _sync_folder(self.path)
        except OSError:
            self.path.unlink()  # it held nothing, and half of it would be refused the next time
            raise

    def records(self) -> list[tuple[Record, bytes]]:
        """What the slots hold, the latest first; a slot that is torn or empty has nothing."""
        found = [each for slot in range(SLOTS) if (each := self._read(slot)) is not None]
        return sorted(found, key=lambda each: -each[0].sequence)

    def write(self, record: Record, content: bytes) -> None:
        """Keeps a record; it is on the drive when this returns.

        Raises:
            DeviceFailure: the journal's drive failed; nothing may be overwritten.
        """
        start = record.sequence % SLOTS * SLOT_BYTES
        try:
            self._put(content, start + HEAD_BYTES)
            self._put(_head(record), start)
            self._sync()
        except OSError as error:
            raise DeviceFailure(f"{self.path} cannot be written ({error.strerror})") from error

    def turn(self, record: Record) -> None:
        """Keeps a new state of a record that is there; it is on the drive when this returns.

        Raises:
            DeviceFailure: as `write`.
        """
        try:
            self._put(_head(record), record.sequence % SLOTS * SLOT_BYTES)
            self._sync()
        except OSError as error:
            raise DeviceFailure(f"{self.path} cannot be written ({error.strerror})") from error

    def done(self, sequence: int) -> None:
        """The device has all of that record; its content is not read again.

        Raises:
            DeviceFailure: as `write`.
        """
        record = self._told(sequence % SLOTS)
        if record is not None and record.sequence == sequence:
            self.turn(msgspec.structs.replace(record, state="done"))

    def settle(self) -> None:
        """The device has all that the slots hold: what others write from now on is newer.

        Raises:
            DeviceFailure: as `write`.
        """
        for record, _ in self.records():
            self.turn(msgspec.structs.replace(record, state="done"))

    def remove(self) -> None:
        """All is done: the file goes."""
        self.path.unlink(missing_ok=True)
        _sync_folder(self.path)

    def close(self) -> None:
        """Ends; the file stays."""
        os.close(self._fd)

    def _put(self, content: bytes, offset: int) -> None:
        """Writes all of it: a disk that fills up takes a part and no error."""
        put = 0
        while put < len(content):
            put += os.pwrite(self._fd, content[put:], offset + put)

    def _get(self, offset: int, length: int) -> bytes:
        """What is there, to the end of the file: a record must not seem torn that is not."""
        got = b""
        while part := os.pread(self._fd, length - len(got), offset + len(got)):
            got += part
        return got

    def _sync(self) -> None:
        os.fsync(self._fd)

    def _told(self, slot: int) -> Record | None:
        head = self._get(slot * SLOT_BYTES, HEAD_BYTES)
        first, _, rest = head.partition(b"\n")
        told, _, rest = rest.partition(b"\n")
        text = rest.rstrip(b"\0")
        if first + b"\n" != _FIRST or _sum(text) != told.decode("ascii", "replace"):
            return None
        return msgspec.json.decode(text, type=Record)

    def _read(self, slot: int) -> tuple[Record, bytes] | None:
        record = self._told(slot)
        if record is None:
            return None
        content = self._get(slot * SLOT_BYTES + HEAD_BYTES, record.window.length)
        return None if _sum(content) != record.sha256 else (record, content)


def sum_of(content: bytes) -> str:
    """What `Record.sha256` holds."""
    return _sum(content)


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _head(record: Record) -> bytes:
    text = msgspec.json.encode(record)
    head = _FIRST + _sum(text).encode() + b"\n" + text
    assert len(head) <= HEAD_BYTES, f"a record of {len(head)} bytes"
    return head.ljust(HEAD_BYTES, b"\0")


def _sync_folder(path: Path) -> None:
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
