"""The witness's protocol: frames, authenticated in both directions by a shared secret.

A frame is length (u32), type (u8), payload and, after the handshake, 16 bytes of HMAC-SHA256 over
direction, number, type and payload. A host without the secret can neither report a write as
durable nor fetch a journal, and a frame cannot be replayed or dropped unnoticed. The frames are
signed, not encrypted: anyone on the path can read them.

    client                                server
    HELLO  nonce                     ->
                                     <-   CHALLENGE  nonce, HMAC with the secret
    PROOF  HMAC with the secret      ->
    BEGIN  request (JSON)            ->
                                     <-   WELCOME  answer (JSON)
    BATCH  number, messages          ->
                                     <-   DURABLE  number: messages below it are on its disk
    EVENT  (JSON)                    ->
                                     <-   NOTED
    FETCH  run                       ->
                                     <-   LOG  records ..., an empty one at the end
"""

from __future__ import annotations

import contextlib
import enum
import hashlib
import hmac
import os
import socket
import struct
from pathlib import Path
from typing import Any, Final

import msgspec

from ssdlab.errors import UsageError
from ssdlab.input_files import read_bytes

PORT: Final = 5400
"""The port of diskchecker.pl: firewalls opened for it need no new rule."""
VERSION: Final = b"ssdlab witness 1"
NONCE_BYTES: Final = 16
MAC_BYTES: Final = 16
PAYLOAD_MAX: Final = 1 << 22
SECRET_BYTES_MIN: Final = 16
HANDSHAKE_TIMEOUT_S: Final = 10.0
_HEAD: Final = struct.Struct("<IB")
NUMBER: Final = struct.Struct("<Q")


class Frame(enum.IntEnum):
    """A frame's type."""

    HELLO = 1
    CHALLENGE = 2
    PROOF = 3
    BEGIN = 4
    WELCOME = 5
    BATCH = 6
    DURABLE = 7
    EVENT = 8
    NOTED = 9
    FETCH = 10
    LOG = 11
    REFUSED = 12


_FRAME_TYPES: Final = frozenset(int(frame) for frame in Frame)


class ProtocolError(OSError):
    """The peer broke the protocol, does not know the secret, or closed the connection."""


class Session:
    """Frames over a connected socket, signed after the handshake.

    One thread may send while another receives.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._key: bytes | None = None
        self._sent = self._received = 0
        self._is_client = True

    def client_handshake(self, secret: bytes) -> None:
        """Authenticates both sides, as the client.

        Raises:
            ProtocolError: the server does not know the secret, or is not a witness.
        """
        own = os.urandom(NONCE_BYTES)
        self._socket.settimeout(HANDSHAKE_TIMEOUT_S)
        self.send(Frame.HELLO, VERSION + own)
        challenge = self.expect(Frame.CHALLENGE)
        nonces, digest = own + challenge[:NONCE_BYTES], challenge[NONCE_BYTES:]
        if not hmac.compare_digest(digest, _digest(secret, b"server", nonces)):
            raise ProtocolError("the server does not know this secret")
        self.send(Frame.PROOF, _digest(secret, b"client", nonces))
        self._start_signing(_digest(secret, b"session", nonces), is_client=True)

    def server_handshake(self, secret: bytes) -> None:
        """Authenticates both sides, as the server.

        Raises:
            ProtocolError: the client does not know the secret, or is not a witness's client.
        """
        own = os.urandom(NONCE_BYTES)
        self._socket.settimeout(HANDSHAKE_TIMEOUT_S)
        hello = self.expect(Frame.HELLO)
        if not hello.startswith(VERSION) or len(hello) != len(VERSION) + NONCE_BYTES:
            raise ProtocolError("the client has another version of the protocol")
        nonces = hello[len(VERSION) :] + own
        self.send(Frame.CHALLENGE, own + _digest(secret, b"server", nonces))
        if not hmac.compare_digest(self.expect(Frame.PROOF), _digest(secret, b"client", nonces)):
            raise ProtocolError("the client does not know the secret")
        self._start_signing(_digest(secret, b"session", nonces), is_client=False)

    def send(self, kind: Frame, payload: bytes = b"") -> None:
        """Sends a frame.

        Raises:
            OSError: the connection is lost.
        """
        assert len(payload) <= PAYLOAD_MAX, f"{len(payload)} bytes in one frame"
        mac = self._mac(self._is_client, self._sent, kind, payload)
        self._sent += 1
        self._socket.sendall(_HEAD.pack(len(payload), kind) + payload + mac)

    def receive(self) -> tuple[Frame, bytes]:
        """Receives the next frame.

        Raises:
            ProtocolError: the peer closed the connection, or sent an invalid frame.
            OSError: the connection is lost.
        """
        length, kind = _HEAD.unpack(self._receive_exactly(_HEAD.size))
        if length > PAYLOAD_MAX or kind not in _FRAME_TYPES:
            raise ProtocolError("received data that is not a frame of the witness's protocol")
        payload = self._receive_exactly(length)
        mac = self._mac(not self._is_client, self._received, kind, payload)
        self._received += 1
        if not hmac.compare_digest(mac, self._receive_exactly(len(mac))):
            raise ProtocolError("a frame has a wrong signature")
        return Frame(kind), payload

    def expect(self, kind: Frame) -> bytes:
        """Receives a frame that must have this type; returns its payload.

        Raises:
            UsageError: the server refused the request; the message is the reason.
            ProtocolError, OSError: as `receive`; or a frame of another type.
        """
        received, payload = self.receive()
        if received == Frame.REFUSED:
            raise UsageError(payload.decode("utf-8", "replace"))
        if received != kind:
            raise ProtocolError(f"received a frame {received.name}, expected {kind.name}")
        return payload

    def request(self, kind: Frame, body: dict[str, Any], answer: Frame) -> dict[str, Any]:
        """Sends a JSON object and receives one.

        Raises:
            UsageError: the server refused.
            ProtocolError, OSError: as `receive`.
        """
        self.send(kind, msgspec.json.encode(body))
        response: dict[str, Any] = msgspec.json.decode(self.expect(answer) or b"{}")
        return response

    def close(self) -> None:
        """Closes the connection; a thread that waits in `receive` gets an error."""
        with contextlib.suppress(OSError):  # the peer may have closed it
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _start_signing(self, key: bytes, *, is_client: bool) -> None:
        self._key, self._is_client = key, is_client
        self._sent = self._received = 0
        self._socket.settimeout(None)

    def _mac(self, by_client: bool, number: int, kind: int, payload: bytes) -> bytes:
        if self._key is None:
            return b""
        head = struct.pack("<BQB", by_client, number, kind)
        return hmac.digest(self._key, head + payload, hashlib.sha256)[:MAC_BYTES]

    def _receive_exactly(self, size: int) -> bytes:
        return receive_exactly(self._socket, size)


def receive_exactly(connection: socket.socket, size: int) -> bytes:
    """Receives `size` bytes.

    Raises:
        ProtocolError, OSError: the peer closed the connection, or it is lost.
    """
    received = bytearray()
    while len(received) < size:
        part = connection.recv(size - len(received))
        if not part:
            raise ProtocolError("the peer closed the connection")
        received += part
    return bytes(received)


def keep_alive(connection: socket.socket) -> None:
    """Lets the kernel detect a dead peer in 30 s, and send small frames at once. Source: tcp(7)."""
    if connection.family in {socket.AF_INET, socket.AF_INET6}:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (
            (socket.TCP_KEEPIDLE, 10),
            (socket.TCP_KEEPINTVL, 5),
            (socket.TCP_KEEPCNT, 4),
        ):
            connection.setsockopt(socket.IPPROTO_TCP, option, value)


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of HOST or HOST:PORT; an IPv6 address with a port needs brackets.

    Raises:
        UsageError: the text is neither.
    """
    host, colon, port = text.rpartition(":")
    if not colon or (":" in host and not host.startswith("[")):
        host, port = text, str(PORT)
    if not host or not (port.isascii() and port.isdecimal()) or int(port) > 65535:
        raise UsageError(
            f"{text!r} is not an address; give HOST or HOST:PORT, such as 10.0.0.7:{PORT}"
        )
    return host.strip("[]"), int(port)


def make_secret(path: Path) -> None:
    """Writes a new secret that only its owner can read; an existing file is left as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    with os.fdopen(fd, "wb") as file:
        file.write(os.urandom(32).hex().encode() + b"\n")


def read_secret(path: Path) -> bytes:
    """The shared secret in a file, without white space around it.

    Raises:
        UsageError: the file cannot be read, other users can read it, or the secret is too short.
    """
    try:
        mode, secret = path.stat().st_mode, read_bytes(path).strip()
    except OSError as error:
        raise UsageError(
            f"--secret {path} cannot be read ({error.strerror}); copy the file that `ssdlab "
            "witness serve` made"
        ) from error
    if mode & 0o077:
        raise UsageError(f"--secret {path} can be read by other users; run chmod 600 {path}")
    if len(secret) < SECRET_BYTES_MIN:
        raise UsageError(
            f"--secret {path} has {len(secret)} bytes; it needs {SECRET_BYTES_MIN} or more"
        )
    return secret


def _digest(secret: bytes, role: bytes, nonces: bytes) -> bytes:
    return hmac.digest(secret, VERSION + role + nonces, hashlib.sha256)
