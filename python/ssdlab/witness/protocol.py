"""The witness's protocol: frames, and a session that both sides prove by a shared secret.

A frame is its length (u32), its type (u8), its payload, and once the session is proven 16 bytes of
HMAC-SHA256 over direction, number, type and payload. So a stranger can neither claim that something
is durable nor read what was, and a frame can be neither repeated nor left out. Nothing is secret:
the frames are signed, not encrypted.

    client                                server
    HELLO  nonce                     ->
                                     <-   CHALLENGE  nonce, proof that it knows the secret
    PROOF  proof                     ->
    BEGIN  what is asked (JSON)      ->
                                     <-   WELCOME  the answer (JSON)
    BATCH  number, messages          ->
                                     <-   DURABLE  number: all before is on the server's disk
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
"""diskchecker's, so that a firewall that let it through lets this through."""
VERSION: Final = b"ssdlab witness 1"
NONCE_BYTES: Final = 16
MAC_BYTES: Final = 16
PAYLOAD_MAX: Final = 1 << 22
SECRET_LEAST: Final = 16
HANDSHAKE_S: Final = 10.0
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


_KNOWN: Final = frozenset(int(each) for each in Frame)


class ProtocolError(OSError):
    """The other side broke the protocol, does not know the secret, or went away."""


class Session:
    """Frames over a connected socket; signed once `greet` or `admit` has proven the other side.

    One thread may send while another receives.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._key: bytes | None = None
        self._sent = self._received = 0
        self._is_client = True

    def greet(self, secret: bytes) -> None:
        """The client's side of the proof.

        Raises:
            ProtocolError: the server does not know the secret, or is none.
        """
        mine = os.urandom(NONCE_BYTES)
        self._socket.settimeout(HANDSHAKE_S)
        self.send(Frame.HELLO, VERSION + mine)
        theirs, proof = _split(self.expect(Frame.CHALLENGE), NONCE_BYTES)
        if not hmac.compare_digest(proof, _proof(secret, b"server", mine + theirs)):
            raise ProtocolError("the server does not know this secret")
        self.send(Frame.PROOF, _proof(secret, b"client", mine + theirs))
        self._begin(_proof(secret, b"session", mine + theirs), is_client=True)

    def admit(self, secret: bytes) -> None:
        """The server's side of the proof.

        Raises:
            ProtocolError: the client does not know the secret, or is none.
        """
        mine = os.urandom(NONCE_BYTES)
        self._socket.settimeout(HANDSHAKE_S)
        version, theirs = _split(self.expect(Frame.HELLO), len(VERSION))
        if version != VERSION or len(theirs) != NONCE_BYTES:
            raise ProtocolError("a client of another version")
        self.send(Frame.CHALLENGE, mine + _proof(secret, b"server", theirs + mine))
        if not hmac.compare_digest(
            self.expect(Frame.PROOF), _proof(secret, b"client", theirs + mine)
        ):
            raise ProtocolError("a client that does not know the secret")
        self._begin(_proof(secret, b"session", theirs + mine), is_client=False)

    def send(self, kind: Frame, payload: bytes = b"") -> None:
        """Sends a frame.

        Raises:
            OSError: the connection is gone.
        """
        assert len(payload) <= PAYLOAD_MAX, f"{len(payload)} bytes in one frame"
        mac = self._mac(self._is_client, self._sent, kind, payload)
        self._sent += 1
        self._socket.sendall(_HEAD.pack(len(payload), kind) + payload + mac)

    def receive(self) -> tuple[Frame, bytes]:
        """The next frame.

        Raises:
            ProtocolError: the connection ended, or what came is no frame of this session.
            OSError: the connection is gone.
        """
        length, number = _HEAD.unpack(self._exactly(_HEAD.size))
        if length > PAYLOAD_MAX or number not in _KNOWN:
            raise ProtocolError("what came is no frame of a witness")
        payload = self._exactly(length)
        mac = self._mac(not self._is_client, self._received, number, payload)
        self._received += 1
        if not hmac.compare_digest(mac, self._exactly(len(mac))):
            raise ProtocolError("a frame with a wrong signature")
        return Frame(number), payload

    def expect(self, kind: Frame) -> bytes:
        """The payload of the next frame, which must be of this type.

        Raises:
            UsageError: the server refused, and says why.
            ProtocolError, OSError: as `receive`; another type.
        """
        found, payload = self.receive()
        if found == Frame.REFUSED:
            raise UsageError(payload.decode("utf-8", "replace"))
        if found != kind:
            raise ProtocolError(f"a frame {found.name} where {kind.name} was due")
        return payload

    def ask(self, kind: Frame, question: dict[str, Any], answer: Frame) -> dict[str, Any]:
        """Sends JSON and takes JSON.

        Raises:
            UsageError: the server refused.
            ProtocolError, OSError: as `receive`.
        """
        self.send(kind, msgspec.json.encode(question))
        found: dict[str, Any] = msgspec.json.decode(self.expect(answer) or b"{}")
        return found

    def close(self) -> None:
        """Ends the connection, also for a thread that waits in it."""
        with contextlib.suppress(OSError):  # it may have ended already
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _begin(self, key: bytes, *, is_client: bool) -> None:
        self._key, self._is_client = key, is_client
        self._sent = self._received = 0
        self._socket.settimeout(None)

    def _mac(self, by_client: bool, number: int, kind: int, payload: bytes) -> bytes:
        if self._key is None:
            return b""
        head = struct.pack("<BQB", by_client, number, kind)
        return hmac.digest(self._key, head + payload, hashlib.sha256)[:MAC_BYTES]

    def _exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self._socket.recv(size - len(parts))
            if not part:
                raise ProtocolError("the connection ended")
            parts += part
        return bytes(parts)


def keep_alive(connection: socket.socket) -> None:
    """A peer that lost its power is noticed within about half a minute; small frames leave at once.

    Source: tcp(7).
    """
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
    """Host and port of HOST or HOST:PORT; an IPv6 address stands in brackets if a port follows.

    Raises:
        UsageError: it is neither.
    """
    host, colon, port = text.rpartition(":")
    if not colon or (":" in host and not host.startswith("[")):
        host, port = text, str(PORT)
    if not host or not (port.isascii() and port.isdecimal()) or int(port) > 65535:
        raise UsageError(f"{text!r} is no address: give HOST or HOST:PORT, such as 10.0.0.7:{PORT}")
    return host.strip("[]"), int(port)


def read_secret(path: Path) -> bytes:
    """The shared secret of a file, without blanks at its ends.

    Raises:
        UsageError: it cannot be read, others may read it, or it is too short.
    """
    try:
        mode, secret = path.stat().st_mode, read_bytes(path).strip()
    except OSError as error:
        raise UsageError(
            f"--secret {path} cannot be read ({error.strerror}); copy the file that `ssdlab "
            "witness serve` has made"
        ) from error
    if mode & 0o077:
        raise UsageError(f"--secret {path} can be read by others: chmod 600 {path}")
    if len(secret) < SECRET_LEAST:
        raise UsageError(f"--secret {path} holds {len(secret)} bytes; give {SECRET_LEAST} or more")
    return secret


def _proof(secret: bytes, role: bytes, nonces: bytes) -> bytes:
    return hmac.digest(secret, VERSION + role + nonces, hashlib.sha256)


def _split(payload: bytes, at: int) -> tuple[bytes, bytes]:
    return payload[:at], payload[at:]
