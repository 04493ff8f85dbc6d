"""Two small clients that pipeline commands: NBD over a Unix socket, NVMe over TCP.

Both write, read and flush mapping units. Each answer is passed to a callback at once, so that the
caller knows what was acknowledged before a connection was lost.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import BinaryIO, Final, Protocol

UNIT_BYTES: Final = 4096
TIMEOUT_S: Final = 60.0
"""Timeout of an answer."""


class Kind(Enum):
    """The kind of a command; the values are NBD's command types."""

    WRITE = 1
    READ = 0
    FLUSH = 3


@dataclass(frozen=True)
class Command:
    """A command on consecutive mapping units; a flush has none."""

    kind: Kind
    units: range = range(0)
    data: bytes = b""
    durable: bool = False


Answered = Callable[[int, bytes], None]
"""Called with the index of a command in its batch, and the data read."""


class CommandError(Exception):
    """The server answered a command with an error status."""


class NotServedError(ConnectionError):
    """The connection was lost before the server accepted any command."""


class DriveClient(Protocol):
    """A connection to a served drive; the constructor sends a first batch.

    Raises:
        NotServedError: in the constructor: no command of the batch was executed.
        OSError: in any method: the connection was lost.
        CommandError: in any method: a command failed.
    """

    def send(self, batch: Sequence[Command]) -> None:
        """Sends all commands of a batch at once."""

    def receive(self, batch: Sequence[Command], answered: Answered) -> None:
        """Waits for the answers to all commands of a batch that was sent."""

    def close(self) -> None:
        """Closes the connection without a disconnect request."""


class NbdClient:
    """A connection to an NBD export; see doc/proto.md of the NBD project."""

    def __init__(self, path: Path, first: Sequence[Command] = ()) -> None:
        """Connects, and sends negotiation and first batch together, without waiting."""
        self._socket = socket.socket(socket.AF_UNIX)
        self._input: BinaryIO = self._socket.makefile("rb")
        try:
            self._greet(path, first)
            kind, acknowledged = 0, 1
            while kind != acknowledged:
                _, _, kind, length = struct.unpack(">QIII", _exactly(self._input, 20))
                _exactly(self._input, length)
        except BaseException:
            self.close()
            raise

    def _greet(self, path: Path, first: Sequence[Command]) -> None:
        go = struct.pack(">I8sIIIH", 3, b"IHAVEOPT", 7, 6, 0, 0)
        try:
            self._socket.settimeout(TIMEOUT_S)
            self._socket.connect(str(path))
            with suppress(OSError):  # the server's greeting decides
                self._socket.sendall(go + b"".join(map(_nbd_request, range(len(first)), first)))
            _exactly(self._input, 18)
        except OSError as error:
            raise NotServedError(str(error)) from error

    def send(self, batch: Sequence[Command]) -> None:
        """As `DriveClient.send`."""
        self._socket.sendall(b"".join(map(_nbd_request, range(len(batch)), batch)))

    def receive(self, batch: Sequence[Command], answered: Answered) -> None:
        """As `DriveClient.receive`."""
        for _ in batch:
            magic, error, number = struct.unpack(">IIQ", _exactly(self._input, 16))
            if magic != 0x67446698:
                raise CommandError(f"reply magic {magic:x}")
            if error:
                raise CommandError(f"NBD error {error}")
            command = batch[number]
            size = len(command.units) * UNIT_BYTES if command.kind is Kind.READ else 0
            answered(number, _exactly(self._input, size))

    def close(self) -> None:
        """As `DriveClient.close`."""
        self._input.close()
        self._socket.close()


def _nbd_request(number: int, command: Command) -> bytes:
    at, size = command.units.start * UNIT_BYTES, len(command.units) * UNIT_BYTES
    kind, flags = command.kind.value, int(command.durable)
    return struct.pack(">IHHQQI", 0x25609513, flags, kind, number, at, size) + command.data


_FABRICS, _ENABLE = 0x7F, 0x460001
_CAPSULE_COMMAND, _CAPSULE_RESPONSE, _H2C_DATA, _C2H_DATA, _R2T = 4, 5, 6, 7, 9
_OPCODES = {Kind.WRITE: 0x01, Kind.READ: 0x02, Kind.FLUSH: 0x00}
_CAPSULE_BYTES, _BLOCK_BYTES = 8192, 512


class NvmeClient:
    """An admin queue and an I/O queue of one controller, over TCP."""

    def __init__(
        self, address: tuple[str, int], subsystem: str, first: Sequence[Command] = ()
    ) -> None:
        """Connects both queues, enables the controller, and sends the first batch."""
        self._admin = _Queue(address)
        self._io: _Queue | None = None
        try:
            self._join(address, subsystem)
            self.send(first)
        except BaseException:
            self.close()
            raise

    def _join(self, address: tuple[str, int], subsystem: str) -> None:
        try:
            controller = self._admin.join(subsystem, 0, 0xFFFF)
            self._admin.one(_entry(_FABRICS, {11: 0x14, 12: _ENABLE}))
            self._io = _Queue(address)
            self._io.join(subsystem, 1, controller)
        except OSError as error:
            raise NotServedError(str(error)) from error

    def send(self, batch: Sequence[Command]) -> None:
        """As `DriveClient.send`."""
        assert self._io is not None
        self._io.send(_entries(batch))

    def receive(self, batch: Sequence[Command], answered: Answered) -> None:
        """As `DriveClient.receive`."""
        assert self._io is not None
        self._io.receive(_entries(batch), answered)

    def close(self) -> None:
        """As `DriveClient.close`."""
        for queue in (self._io, self._admin):
            if queue is not None:
                queue.close()


_Entry = tuple[list[int], bytes, int]
"""A submission queue entry, the data to send, and the bytes sent or read."""


class _Queue:
    """A connection: one queue of a controller."""

    def __init__(self, address: tuple[str, int]) -> None:
        try:
            self._socket = socket.create_connection(address, timeout=TIMEOUT_S)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._input: BinaryIO = self._socket.makefile("rb")
            self._socket.sendall(struct.pack("<BBBBI120x", 0, 0, 128, 0, 128))
            _exactly(self._input, 128)
        except OSError as error:
            raise NotServedError(str(error)) from error

    def join(self, subsystem: str, number: int, controller: int) -> int:
        """Connects the queue; returns the controller's id."""
        host = struct.pack(
            "<16sH238x256s256s256x", b"7" * 16, controller, subsystem.encode(), b"nqn.host"
        )
        entry = _entry(_FABRICS, {1: 1, 10: number << 16, 11: 127})
        return self.one(entry, host) & 0xFFFF

    def one(self, entry: list[int], data: bytes = b"") -> int:
        """Submits one command; returns its result."""
        entries = [(entry, data, len(data))]
        self.send(entries)
        return self.receive(entries, lambda *_: None)

    def send(self, entries: Sequence[_Entry]) -> None:
        """Submits commands."""
        self._socket.sendall(b"".join(_capsule(id_, *each) for id_, each in enumerate(entries)))

    def receive(self, entries: Sequence[_Entry], answered: Answered) -> int:
        """Waits for the completion of all commands sent; returns the last result."""
        received = [b""] * len(entries)
        result, open_commands = 0, len(entries)
        while open_commands:
            kind, _, _, data_at, size = struct.unpack("<BBBBI", _exactly(self._input, 8))
            pdu = _exactly(self._input, size - 8)
            if kind == _CAPSULE_RESPONSE:
                result, _, _, id_, status = struct.unpack("<QHHHH", pdu[:16])
                if status >> 1:
                    raise CommandError(f"NVMe status {status >> 1 & 0x7FF:x}")
                answered(id_, received[id_])
                open_commands -= 1
            elif kind == _C2H_DATA:
                id_ = int.from_bytes(pdu[:2], "little")
                received[id_] += pdu[data_at - 8 :]
            elif kind == _R2T:
                data = entries[int.from_bytes(pdu[:2], "little")][1]
                head = struct.pack("<BBBBI", _H2C_DATA, 4, 24, 24, 24 + len(data))
                self._socket.sendall(head + pdu[:4] + struct.pack("<II4x", 0, len(data)) + data)
            else:
                raise CommandError(f"NVMe/TCP PDU type {kind}")
        return result

    def close(self) -> None:
        """Closes the connection without a disconnect request."""
        self._input.close()
        self._socket.close()


def _entries(batch: Sequence[Command]) -> list[_Entry]:
    return [(_block_command(each), each.data, len(each.units) * UNIT_BYTES) for each in batch]


def _block_command(command: Command) -> list[int]:
    if command.kind is Kind.FLUSH:
        return _entry(0, {1: 1})
    first = command.units.start * UNIT_BYTES // _BLOCK_BYTES
    blocks = len(command.units) * UNIT_BYTES // _BLOCK_BYTES
    durable = 1 << 30 if command.durable else 0
    return _entry(_OPCODES[command.kind], {1: 1, 10: first, 12: blocks - 1 | durable})


def _entry(opcode: int, words: dict[int, int]) -> list[int]:
    entry = [0] * 16
    entry[0] = opcode
    for place, word in words.items():
        entry[place] = word
    return entry


def _capsule(id_: int, entry: list[int], data: bytes, size: int) -> bytes:
    """The PDU of a command, with its data in the capsule if they fit."""
    in_capsule = 0 < len(data) <= _CAPSULE_BYTES
    entry[0] = entry[0] & 0xFFFF | id_ << 16
    entry[8] = size
    entry[9] = (0x01 if in_capsule else 0x5A) << 24
    inline = data if in_capsule else b""
    head = struct.pack("<BBBBI", _CAPSULE_COMMAND, 0, 72, 72 if inline else 0, 72 + len(inline))
    return head + struct.pack("<16I", *entry) + inline


def _exactly(stream: BinaryIO, size: int) -> bytes:
    """Reads `size` bytes.

    Raises:
        ConnectionResetError: the connection was closed.
    """
    data = stream.read(size)
    if len(data) < size:
        raise ConnectionResetError
    return data
