"""A small NVMe/TCP host in user space, with one command at a time."""

from __future__ import annotations

import re
import socket
import struct
from dataclasses import dataclass
from typing import Self

from rig import PATIENCE_S, Served, wait_for

# PDU types, and opcodes by the names of the NVMe specifications.
CAPSULE_COMMAND, CAPSULE_RESPONSE, H2C_DATA, C2H_DATA, R2T = 4, 5, 6, 7, 9
FABRICS, IDENTIFY, GET_LOG_PAGE = 0x7F, 0x06, 0x02
NAMESPACE_MANAGEMENT, NAMESPACE_ATTACHMENT, GET_LBA_STATUS = 0x0D, 0x15, 0x86
FLUSH, WRITE, READ, DATASET_MANAGEMENT = 0x00, 0x01, 0x02, 0x09
IO_MANAGEMENT_RECEIVE, IO_MANAGEMENT_SEND = 0x12, 0x1D
SGL_IN_CAPSULE, SGL_TRANSPORT = 0x01, 0x5A
IN_CAPSULE_BYTES = 8192
CC_ENABLE = 0x460001
BLOCK = 512


@dataclass(frozen=True)
class Answer:
    """The completion of a command: status code (with its type), result, data read."""

    code: int
    result: int
    data: bytes


class Queue:
    """A connection: one queue of a controller."""

    def __init__(self, address: tuple[str, int], name: str, number: int, controller: int) -> None:
        self.stream = socket.create_connection(address, timeout=PATIENCE_S)
        self.stream.sendall(struct.pack("<BBBBI120x", 0, 0, 128, 0, 128))
        assert self._receive(128)[0] == 1
        host = struct.pack("<16sH238x256s256s256x", b"7" * 16, controller, name.encode(), b"nqn.h")
        connected = self.submit(FABRICS, {1: 1, 10: number << 16, 11: 127}, sent=host)
        assert connected.code == 0, f"connect: {connected.code:x}"
        self.controller = connected.result & 0xFFFF

    def submit(
        self, opcode: int, dwords: dict[int, int], *, sent: bytes = b"", read_bytes: int = 0
    ) -> Answer:
        """Submits a command with these command dwords, and waits for its completion."""
        entry = [0] * 16
        entry[0] = opcode
        entry[8] = len(sent) or read_bytes
        in_capsule = 0 < len(sent) <= IN_CAPSULE_BYTES
        entry[9] = (SGL_IN_CAPSULE if in_capsule else SGL_TRANSPORT) << 24
        for index, dword in dwords.items():
            entry[index] |= dword
        data = sent if in_capsule else b""
        head = struct.pack("<BBBBI", CAPSULE_COMMAND, 0, 72, 72 if data else 0, 72 + len(data))
        self.stream.sendall(head + struct.pack("<16I", *entry) + data)
        received = b""
        while True:
            kind, _, header, data_at, size = struct.unpack("<BBBBI", self._receive(8))
            pdu = self._receive(size - 8)
            if kind == CAPSULE_RESPONSE:
                result, _, _, _, status = struct.unpack("<QHHHH", pdu[:16])
                return Answer(status >> 1 & 0x7FF, result, received)
            if kind == C2H_DATA:
                received += pdu[data_at - 8 :]
            else:
                assert (kind, header) == (R2T, 24)
                self.stream.sendall(
                    struct.pack("<BBBBI", H2C_DATA, 4, 24, 24, 24 + len(sent))
                    + pdu[:4]
                    + struct.pack("<II4x", 0, len(sent))
                    + sent
                )

    def write(self, first: int, data: bytes, dwords: dict[int, int] | None = None) -> int:
        """Writes from LBA `first` on; returns the status code."""
        return self.submit(
            WRITE, _lba_dwords(first, len(data) // BLOCK, dwords or {}), sent=data
        ).code

    def read(self, first: int, blocks: int) -> Answer:
        """Reads from LBA `first` on."""
        return self.submit(READ, _lba_dwords(first, blocks, {}), read_bytes=blocks * BLOCK)

    def flush(self) -> None:
        assert self.submit(FLUSH, {1: 1}).code == 0

    def trim(self, first: int, blocks: int) -> None:
        ranges = struct.pack("<IIQ", 0, blocks, first)
        assert self.submit(DATASET_MANAGEMENT, {1: 1, 11: 4}, sent=ranges).code == 0

    def identify(self, cns: int) -> bytes:
        return self.submit(IDENTIFY, {1: 1 if cns != 1 else 0, 10: cns}, read_bytes=4096).data

    def log(self, page: int, size: int) -> bytes:
        dwords = {1: 0xFFFFFFFF, 10: page | (size // 4 - 1) << 16, 11: 1 << 16}
        answer = self.submit(GET_LOG_PAGE, dwords, read_bytes=size)
        assert answer.code == 0, f"log {page:x}: {answer.code:x}"
        return answer.data

    def _receive(self, size: int) -> bytes:
        received = b""
        while len(received) < size:
            part = self.stream.recv(size - len(received))
            if not part:
                raise ConnectionResetError
            received += part
        return received


def _lba_dwords(first: int, blocks: int, dwords: dict[int, int]) -> dict[int, int]:
    low, high = first & 0xFFFFFFFF, first >> 32
    return {1: 1, 10: low, 11: high, **dwords, 12: (blocks - 1) | dwords.get(12, 0)}


class Host:
    """An admin queue and an I/O queue of a served twin."""

    def __init__(self, served: Served) -> None:
        address, name = connect_line(served)
        self.admin = Queue(address, name, 0, 0xFFFF)
        assert self.admin.submit(FABRICS, {11: 0x14, 12: CC_ENABLE}).code == 0
        self.io = Queue(address, name, 1, self.admin.controller)

    def used_blocks(self) -> int:
        """Namespace Utilization (NUSE)."""
        return number(self.admin.identify(0), 16, 8)

    def lba_status(self, action: int) -> list[tuple[int, int]]:
        """Get LBA Status of all blocks: first LBA and number of blocks of each descriptor."""
        dwords = {1: 1, 12: 1023, 13: action << 24}
        data = self.admin.submit(GET_LBA_STATUS, dwords, read_bytes=4096).data
        assert data[4] == 2, "the list is complete"
        offsets = range(8, 8 + 16 * number(data, 0, 4), 16)
        return [(number(data, at, 8), number(data, at + 8, 4)) for at in offsets]

    def shrink(self, blocks: int) -> None:
        """Deletes the namespace; creates and attaches one of this size."""
        size = struct.pack("<QQ4080x", blocks, blocks)
        controllers = struct.pack("<HH4092x", 1, self.admin.controller)
        assert self.admin.submit(NAMESPACE_MANAGEMENT, {1: 1, 10: 1}).code == 0
        assert self.admin.submit(NAMESPACE_MANAGEMENT, {}, sent=size).code == 0
        assert self.admin.submit(NAMESPACE_ATTACHMENT, {1: 1}, sent=controllers).code == 0

    def close(self) -> None:
        self.io.stream.close()
        self.admin.stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect_line(served: Served) -> tuple[tuple[str, int], str]:
    """Address and NQN from the command that the server prints."""
    line = re.compile(r"nvme connect -t tcp -a (\S+) -s (\d+) -n (\S+)( --dhchap-secret SECRET)?\n")
    wait_for(lambda: bool(line.search(served.messages.read_text())), served.messages)
    match = line.search(served.messages.read_text())
    assert match
    return (match[1], int(match[2])), match[3]


def number(data: bytes, at: int, size: int) -> int:
    """The little-endian number of `size` bytes at an offset."""
    return int.from_bytes(data[at : at + size], "little")
