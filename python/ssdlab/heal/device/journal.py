"""The journal: a file on another drive with a copy of the data that is about to be overwritten.

Its two slots are used alternately. Each has a head of 64 KiB (a line of text, the SHA-256 of the
JSON that follows, the JSON) and the data. A record is flushed before the first byte of the device
is overwritten. The next record goes to the other slot, after the device was flushed. So if a slot
is torn, its window was not overwritten yet, and no data is lost.
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
    """The file system and the device that a journal belongs to."""

    kind: str
    uuid: str
    size_bytes: int
    serial: str | None = None
    model: str | None = None


class Record(msgspec.Struct, frozen=True):
    """One window: `ranges` are (offset, length), `sha256` hashes their contents in this order.

    States: "prepared", nothing was overwritten yet; "armed", the device may be torn there; "torn",
    the device failed to write it, and the file system was thawed; "done", the device has all data.
    `generation` changes when the file system is used. `session` changes when the machine or the
    drive restarts. `request` is what the user asked for: a run with the same request continues
    where this one ended. `mount` identifies the mount of a frozen ext4.
    """

    sequence: int
    state: State
    identity: Identity
    generation: str
    session: str
    request: str = msgspec.field(name="wish")
    ranges: tuple[tuple[int, int], ...]
    sha256: str
    mount: str = ""

    @property
    def window(self) -> Window:
        """The record's ranges as a window."""
        return Window(tuple(Range(*each) for each in self.ranges))


class Journal:
    """The journal file, locked by one run at a time."""

    def __init__(self, path: Path, *, shared: bool = False) -> None:
        """Opens or creates the file, with all blocks allocated; `shared`: without taking the lock.

        Raises:
            TargetError: it cannot be created, is not a journal, or another run has locked it.
        """
        self.path = path
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._fd = os.open(path, flags, 0o600)
            try:
                if not shared:
                    fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._initialize()
            except BaseException:  # otherwise the lock would outlive this object
                os.close(self._fd)
                raise
        except OSError as error:
            raise TargetError(f"{path} cannot hold the journal ({error.strerror})") from error

    def _initialize(self) -> None:
        """Initializes a file that is new or was only partly initialized; refuses any other file."""
        size = os.fstat(self._fd).st_size
        starts = [self._read_all(slot * SLOT_BYTES, len(_FIRST)) for slot in range(SLOTS)]
        if size == JOURNAL_BYTES and starts == [_FIRST] * SLOTS:
            return
        rest = self._read_all(0, JOURNAL_BYTES).replace(_FIRST, b"")  # a crash may leave only one
        if size not in {0, JOURNAL_BYTES} or any(rest):
            raise TargetError(f"{self.path} is not a journal: give --journal another path")
        try:
            os.posix_fallocate(self._fd, 0, JOURNAL_BYTES)
            for slot in reversed(range(SLOTS)):
                self._write_all(_FIRST, slot * SLOT_BYTES)
            self._sync()
            _sync_directory(self.path)
        except OSError:
            self.path.unlink()  # it has no data, and a partial one would be refused next time
            raise

    def records(self) -> list[tuple[Record, bytes]]:
        """The records with their data, latest first; torn and empty slots are left out."""
        records = [each for slot in range(SLOTS) if (each := self._read(slot)) is not None]
        return sorted(records, key=lambda each: -each[0].sequence)

    def write(self, record: Record, content: bytes) -> None:
        """Writes a record and its data, and flushes them.

        Raises:
            DeviceFailure: the journal's drive failed; nothing may be overwritten.
        """
        start = record.sequence % SLOTS * SLOT_BYTES
        try:
            self._write_all(content, start + HEAD_BYTES)
            self._write_all(_head(record), start)
            self._sync()
        except OSError as error:
            raise DeviceFailure(f"{self.path} cannot be written ({error.strerror})") from error

    def update(self, record: Record) -> None:
        """Writes the head of a record whose data is already in the slot, and flushes it.

        Raises:
            DeviceFailure: as `write`.
        """
        try:
            self._write_all(_head(record), record.sequence % SLOTS * SLOT_BYTES)
            self._sync()
        except OSError as error:
            raise DeviceFailure(f"{self.path} cannot be written ({error.strerror})") from error

    def mark_done(self, sequence: int) -> None:
        """Records that the device has all data of this record.

        Raises:
            DeviceFailure: as `write`.
        """
        record = self._read_head(sequence % SLOTS)
        if record is not None and record.sequence == sequence:
            self.update(msgspec.structs.replace(record, state="done"))

    def mark_all_done(self) -> None:
        """Records that the device has all data of all records: any later write is newer.

        Raises:
            DeviceFailure: as `write`.
        """
        for record, _ in self.records():
            self.update(msgspec.structs.replace(record, state="done"))

    def remove(self) -> None:
        """Removes the file."""
        self.path.unlink(missing_ok=True)
        _sync_directory(self.path)

    def close(self) -> None:
        """Closes the file and releases its lock."""
        os.close(self._fd)

    def _write_all(self, content: bytes, offset: int) -> None:
        """Writes all bytes: a write to a full disk can be short without an error."""
        written = 0
        while written < len(content):
            written += os.pwrite(self._fd, content[written:], offset + written)

    def _read_all(self, offset: int, length: int) -> bytes:
        """Reads all bytes up to the end of the file: a short read would look like a torn slot."""
        content = b""
        while part := os.pread(self._fd, length - len(content), offset + len(content)):
            content += part
        return content

    def _sync(self) -> None:
        os.fsync(self._fd)

    def _read_head(self, slot: int) -> Record | None:
        head = self._read_all(slot * SLOT_BYTES, HEAD_BYTES)
        first, _, rest = head.partition(b"\n")
        digest, _, rest = rest.partition(b"\n")
        text = rest.rstrip(b"\0")
        if first + b"\n" != _FIRST or checksum(text) != digest.decode("ascii", "replace"):
            return None
        return msgspec.json.decode(text, type=Record)

    def _read(self, slot: int) -> tuple[Record, bytes] | None:
        record = self._read_head(slot)
        if record is None:
            return None
        content = self._read_all(slot * SLOT_BYTES + HEAD_BYTES, record.window.length)
        return None if checksum(content) != record.sha256 else (record, content)


def checksum(content: bytes) -> str:
    """SHA-256 in hexadecimal, as in `Record.sha256`."""
    return hashlib.sha256(content).hexdigest()


def _head(record: Record) -> bytes:
    text = msgspec.json.encode(record)
    head = _FIRST + checksum(text).encode() + b"\n" + text
    assert len(head) <= HEAD_BYTES, f"a record of {len(head)} bytes"
    return head.ljust(HEAD_BYTES, b"\0")


def _sync_directory(path: Path) -> None:
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
