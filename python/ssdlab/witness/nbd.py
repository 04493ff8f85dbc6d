"""A served twin as target: a small NBD client, which needs neither root nor a kernel driver.

Several threads share one connection. Supports fixed newstyle negotiation with NBD_OPT_GO, simple
replies, NBD_CMD_FLUSH and FUA. Source: doc/proto.md of the NBD project.
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
from ssdlab.witness.limits import SECTOR, SYNC_PER_WRITE, Sync
from ssdlab.witness.protocol import receive_exactly

_GREETING: Final = struct.Struct(">8s8sH")
_OPTION: Final = struct.Struct(">8sII")
_OPTION_REPLY: Final = struct.Struct(">QIII")
_REQUEST: Final = struct.Struct(">IHHQQI")
_REQUEST_MAGIC: Final = 0x25609513
_SIMPLE_REPLY: Final = struct.Struct(">IIQ")
_SIMPLE_REPLY_MAGIC: Final = 0x67446698
_OPT_GO, _REP_ACK, _REP_INFO, _INFO_EXPORT = 7, 1, 3, 0
_READ, _WRITE, _CLOSE, _FLUSH = 0, 1, 2, 3
_FUA: Final = 1
_HAS_FLUSH, _HAS_FUA = 1 << 2, 1 << 3


@dataclass
class _Pending:
    done: threading.Event
    size: int = 0
    data: bytes = b""
    error: str | None = None


class NbdTarget:
    """An NBD export, as `Target`."""

    def __init__(self, uri: str, sync: Sync) -> None:
        """Connects.

        Raises:
            TargetError: no server answers, or the export supports no flush (FUA for dsync, fua).
        """
        self.block_bytes = SECTOR
        self._fua = sync in SYNC_PER_WRITE
        self._pending: dict[int, _Pending] = {}
        self._last_cookie = 0
        self._guard = threading.Lock()
        self._failure: str | None = None
        with contextlib.ExitStack() as on_error:
            try:
                self._socket = on_error.enter_context(_connect(uri))
                size, flags = self._negotiate(unquote(urlsplit(uri).path.lstrip("/")))
            except OSError as error:
                raise TargetError(f"{uri} cannot be reached ({error.strerror or error})") from error
            if not flags & _HAS_FLUSH or (self._fua and not flags & _HAS_FUA):
                missing = "FUA" if flags & _HAS_FLUSH else "flush"
                raise TargetError(
                    f"{uri} supports no {missing}: no write to it can be made durable"
                )
            on_error.pop_all()
        self.size_bytes = size // SECTOR * SECTOR
        threading.Thread(target=self._receive_replies, name="nbd replies", daemon=True).start()

    def write(self, offset: int, data: memoryview) -> None:
        """As `Target.write`."""
        self._command(_WRITE, offset, len(data), data, fua=self._fua)

    def flush(self) -> None:
        """As `Target.flush`."""
        self._command(_FLUSH, 0, 0)

    def read(self, offset: int, size: int) -> memoryview:
        """As `Target.read`."""
        return memoryview(self._command(_READ, offset, size))

    def close(self) -> None:
        """As `Target.close`."""
        with contextlib.suppress(OSError):
            self._socket.sendall(_REQUEST.pack(_REQUEST_MAGIC, 0, _CLOSE, 0, 0, 0))
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
                if self._failure is not None:
                    raise DeviceFailure(self._failure)
                self._last_cookie += 1
                self._pending[self._last_cookie] = pending
                flags = _FUA if fua else 0
                head = _REQUEST.pack(_REQUEST_MAGIC, flags, kind, self._last_cookie, offset, size)
                self._socket.sendall(head if data is None else head + bytes(data))
        except OSError as error:
            raise DeviceFailure(_lost_connection(error)) from error
        pending.done.wait()
        if pending.error is not None:
            raise DeviceFailure(pending.error)
        return pending.data

    def _receive_replies(self) -> None:
        """Completes commands until the connection is lost, then fails those still pending."""
        try:
            while True:
                reply = self._receive_exactly(_SIMPLE_REPLY.size)
                magic, error, cookie = _SIMPLE_REPLY.unpack(reply)
                _require(magic == _SIMPLE_REPLY_MAGIC, "invalid reply")
                pending = self._pending.pop(cookie)
                if error:
                    pending.error = f"the drive returned error {error}"
                elif pending.size:
                    pending.data = self._receive_exactly(pending.size)
                pending.done.set()
        except OSError as error:
            with self._guard:
                self._failure = _lost_connection(error)
            for pending in list(self._pending.values()):
                pending.error = self._failure
                pending.done.set()

    def _negotiate(self, name: str) -> tuple[int, int]:
        """Size and flags of the export."""
        magic, option_magic, _ = _GREETING.unpack(self._receive_exactly(_GREETING.size))
        _require((magic, option_magic) == (b"NBDMAGIC", b"IHAVEOPT"), "not an NBD server")
        self._socket.sendall(struct.pack(">I", 3))  # fixed newstyle, no padding
        export = name.encode()
        body = struct.pack(">I", len(export)) + export + struct.pack(">H", 0)
        self._socket.sendall(_OPTION.pack(b"IHAVEOPT", _OPT_GO, len(body)) + body)
        export_info = (0, 0)
        while True:
            head = self._receive_exactly(_OPTION_REPLY.size)
            _, _, kind, length = _OPTION_REPLY.unpack(head)
            payload = self._receive_exactly(length)
            if kind == _REP_ACK:
                return export_info
            _require(kind == _REP_INFO, f"the server refused the export {name!r}")
            if struct.unpack_from(">H", payload)[0] == _INFO_EXPORT:
                _, size, flags = struct.unpack(">HQH", payload)
                export_info = (size, flags)

    def _receive_exactly(self, size: int) -> bytes:
        return receive_exactly(self._socket, size)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise OSError(message)


def _lost_connection(error: OSError) -> str:
    return f"the connection to the drive was lost ({error.strerror or error})"


def _connect(uri: str) -> socket.socket:
    parts = urlsplit(uri)
    if parts.scheme == "nbd+unix":
        paths = parse_qs(parts.query).get("socket")
        if not paths:
            raise TargetError(f"{uri} names no socket: write nbd+unix:///?socket=PATH")
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(paths[0])
        except OSError:
            connection.close()
            raise
        return connection
    connection = socket.create_connection((parts.hostname or "localhost", parts.port or 10809))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection
