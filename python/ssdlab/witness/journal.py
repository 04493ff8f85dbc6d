"""The witness's journal: one append-only file per run.

A file is `MAGIC` and records: length (u32), type (u8), CRC-32 of type and payload (u32), payload.
A record left incomplete by a crash of the witness's machine is truncated on the next open.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from ssdlab.errors import UsageError
from ssdlab.input_files import MAX_TABLE_BYTES, read_bytes
from ssdlab.witness.ledger import MESSAGE, Ledger, ReceivedMessages
from ssdlab.witness.limits import SUFFIX

MAGIC: Final = b"ssdlab witness journal 1\n"
EVENT, BATCH = 1, 2
_HEAD: Final = struct.Struct("<IBI")
_BATCH: Final = struct.Struct("<dIQ")


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages of a round, from `number` on, which arrived at `time_s`, in seconds since 1970."""

    time_s: float
    round: int
    number: int
    messages: bytes

    @property
    def end(self) -> int:
        """The number of the next message."""
        return self.number + len(self.messages) // MESSAGE.itemsize


Record = Batch | dict[str, Any]


def pack(record: Record) -> bytes:
    """Encodes a record in the format of the file."""
    if isinstance(record, Batch):
        kind = BATCH
        head = _BATCH.pack(record.time_s, record.round, record.number)
        payload = head + record.messages
    else:
        kind, payload = EVENT, msgspec.json.encode(record)
    return _HEAD.pack(len(payload), kind, zlib.crc32(payload, kind)) + payload


def unpack(data: bytes) -> Iterator[tuple[Record, int]]:
    """Records and their end offsets (without `MAGIC`); stops at the first incomplete record."""
    at = 0
    while at + _HEAD.size <= len(data):
        length, kind, checksum = _HEAD.unpack_from(data, at)
        payload = data[at + _HEAD.size : at + _HEAD.size + length]
        if len(payload) < length or zlib.crc32(payload, kind) != checksum:
            return
        at += _HEAD.size + length
        if kind == BATCH:
            time_s, round_number, number = _BATCH.unpack_from(payload)
            yield Batch(time_s, round_number, number, payload[_BATCH.size :]), at
        else:
            yield msgspec.json.decode(payload), at


def read(path: Path) -> list[Record]:
    """All complete records of a journal.

    Raises:
        UsageError: the file cannot be read, or is not a journal.
    """
    try:
        data = read_bytes(path, MAX_TABLE_BYTES)
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror})") from error
    if not data.startswith(MAGIC):
        raise UsageError(f"{path} is not a journal of a witness; give a *{SUFFIX} file")
    return [record for record, _ in unpack(data[len(MAGIC) :])]


def ledger_of(records: list[Record]) -> Ledger:
    """The ledger of a run's records."""
    return Ledger(
        ReceivedMessages(record.time_s, record.messages)
        for record in records
        if isinstance(record, Batch)
    )


def events(records: list[Record], name: str) -> list[dict[str, Any]]:
    """The events with this name, in order."""
    dicts = (record for record in records if isinstance(record, dict))
    return [event for event in dicts if event.get("event") == name]


class Journal:
    """A journal open for appending. A record is durable after `sync`."""

    def __init__(self, path: Path) -> None:
        """Opens or creates the file; truncates an incomplete record at its end."""
        is_new = not path.exists() or path.stat().st_size < len(MAGIC)
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_APPEND, 0o644)
        self.path = path
        self.rounds = 0
        self.session = ""
        self.received = 0
        self.is_closed = False
        if is_new:
            os.ftruncate(self._fd, 0)
            os.write(self._fd, MAGIC)
            self.sync()
            _sync_folder(path.parent)
        else:
            self._recover()

    def append(self, record: Record) -> None:
        """Appends a record, which is not yet durable.

        Raises:
            OSError: the write failed, as on a full disk.
        """
        data = pack(record)
        written = os.write(self._fd, data)
        if written != len(data):
            raise OSError(f"{self.path}: only {written} of {len(data)} bytes were written")
        self._apply(record)

    def sync(self) -> None:
        """Makes all appended records durable."""
        os.fdatasync(self._fd)

    def close(self) -> None:
        """Closes the file. A later `append` fails: it must not reach a reused file descriptor."""
        fd, self._fd = self._fd, -1
        os.close(fd)

    def _recover(self) -> None:
        data = self.path.read_bytes()
        if not data.startswith(MAGIC):
            raise UsageError(f"{self.path} is not a journal of a witness; move it away")
        complete = 0
        for record, end in unpack(data[len(MAGIC) :]):
            self._apply(record)
            complete = end
        os.ftruncate(self._fd, len(MAGIC) + complete)
        self.sync()

    def _apply(self, record: Record) -> None:
        """Updates round, session and number of messages received."""
        if isinstance(record, Batch):
            self.received = record.end
        elif record.get("event") == "round":
            self.rounds, self.session, self.received = record["round"], record["session"], 0
        elif record.get("event") == "verified" and record["judgement"]["kinds"]:
            self.is_closed = True


def _sync_folder(folder: Path) -> None:
    """Makes the directory entry of a new file durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
