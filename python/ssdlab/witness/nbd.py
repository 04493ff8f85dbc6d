"""A served twin as the witness's target: a small client of the network block device protocol.

Enough of it to write, read and flush by several threads on one connection: newstyle negotiation
with NBD_OPT_GO, simple replies, FLUSH and FUA. Source: doc/proto.md of the NBD project.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

from ssdlab.errors import DeviceFailure, TargetError
from ssdlab.witness.stamps import SECTOR
from ssdlab.witness.target import EACH, Sync

SCHEMES: Final = ("nbd://", "nbd+unix://")
_GREETING: Final = struct.Struct(">8s8sH")
_OPTION: Final = struct.Struct(">8sII")
_REPLY: Final = struct.Struct(">QIII")
_REQUEST: Final = struct.Struct(">IHHQQI")
_ANSWER: Final = struct.Struct(">IIQ")
_OPT_GO, _REP_ACK, _REP_INFO, _INFO_EXPORT = 7, 1, 3, 0
_READ, _WRITE, _CLOSE, _FLUSH = 0, 1, 2, 3
_FUA: Final = 1
_HAS_FLUSH, _HAS_FUA = 1 << 2, 1 << 3


@dataclass
class _Pending:
    """A command on its way."""

    done: threading.Event
    size: int = 0
    data: bytes = b""
    error: str | None = None


class NbdTarget:
    """A drive behind a network block device's socket, as `Target`."""

    def __init__(self, uri: str, sync: Sync) -> None:
        """Connects.

        Raises:
            TargetError: nobody serves there, or it takes no flush.
        """
        self.block_bytes = SECTOR
        self._sync = sync
        self._pending: dict[int, _Pending] = {}
        self._next = 0
        self._guard = threading.Lock()
        self._gone: str | None = None
        try:
            self._socket = _connect(uri)
            whole, flags = self._negotiate(unquote(urlsplit(uri).path.lstrip("/")))
        except OSError as error:
            raise TargetError(f"{uri} cannot be reached ({error.strerror or error})") from error
        if not flags & _HAS_FLUSH or (sync in EACH and not flags & _HAS_FUA):
            raise TargetError(f"{uri} takes no flush: nothing on it can be durable")
        self.size_bytes = whole // SECTOR * SECTOR
        threading.Thread(target=self._collect, name="nbd replies", daemon=True).start()

    def write(self, offset: int, data: memoryview) -> None:
        """As `Target.write`."""
        self._command(_WRITE, offset, len(data), data, fua=self._sync in EACH)

    def flush(self) -> None:
        """As `Target.flush`."""
        self._command(_FLUSH, 0, 0)

    def read(self, offset: int, size: int) -> memoryview:
        """As `Target.read`."""
        return memoryview(self._command(_READ, offset, size))

    def close(self) -> None:
        """As `Target.close`."""
        with contextlib.suppress(OSError):
            self._socket.sendall(_REQUEST.pack(0x25609513, 0, _CLOSE, 0, 0, 0))
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _command(
        self,
        kind: int,
        offset: int,
        size: int,
        data: memoryview | None = None,
        *,
        fua: bool = False,
    ) -> bytes:
        pending = _Pending(threading.Event(), size if kind == _READ else 0)
        try:
            with self._guard:
                if self._gone is not None:
                    raise DeviceFailure(self._gone)
                self._next += 1
                self._pending[self._next] = pending
                flags = _FUA if fua else 0
                head = _REQUEST.pack(0x25609513, flags, kind, self._next, offset, size)
                self._socket.sendall(head if data is None else head + bytes(data))
        except OSError as error:
            raise DeviceFailure(f"the drive is gone ({error.strerror or error})") from error
        pending.done.wait()
        if pending.error is not None:
            raise DeviceFailure(pending.error)
        return pending.data

    def _collect(self) -> None:
        """Takes replies until the drive is gone; then nobody waits any more."""
        try:
            while True:
                magic, error, cookie = _ANSWER.unpack(self._exactly(_ANSWER.size))
                _require(magic == 0x67446698, "what came is no reply")
                pending = self._pending.pop(cookie)
                if error:
                    pending.error = f"the drive answered with error {error}"
                elif pending.size:
                    pending.data = self._exactly(pending.size)
                pending.done.set()
        except OSError as error:
            with self._guard:
                self._gone = f"the drive is gone ({error.strerror or error})"
            for pending in list(self._pending.values()):
                pending.error = self._gone
                pending.done.set()

    def _negotiate(self, name: str) -> tuple[int, int]:
        """Size and flags of the export."""
        magic, option_magic, _ = _GREETING.unpack(self._exactly(_GREETING.size))
        _require((magic, option_magic) == (b"NBDMAGIC", b"IHAVEOPT"), "no such server")
        self._socket.sendall(struct.pack(">I", 3))  # fixed newstyle, no padding
        export = name.encode()
        body = struct.pack(">I", len(export)) + export + struct.pack(">H", 0)
        self._socket.sendall(_OPTION.pack(b"IHAVEOPT", _OPT_GO, len(body)) + body)
        found = (0, 0)
        while True:
            _, _, kind, length = _REPLY.unpack(self._exactly(_REPLY.size))
            payload = self._exactly(length)
            if kind == _REP_ACK:
                return found
            _require(kind == _REP_INFO, f"the server refused the export {name!r}")
            if struct.unpack_from(">H", payload)[0] == _INFO_EXPORT:
                _, size, flags = struct.unpack(">HQH", payload)
                found = (size, flags)

    def _exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self._socket.recv(size - len(parts))
            if not part:
                raise OSError("the connection ended")
            parts += part
        return bytes(parts)


def _require(is_so: bool, why: str) -> None:
    if not is_so:
        raise OSError(why)


def _connect(uri: str) -> socket.socket:
    parts = urlsplit(uri)
    if parts.scheme == "nbd+unix":
        paths = parse_qs(parts.query).get("socket")
        if not paths:
            raise TargetError(f"{uri} names no socket: write nbd+unix:///?socket=PATH")
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(paths[0])
        return connection
    connection = socket.create_connection((parts.hostname or "localhost", parts.port or 10809))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection
