"""A small NVMe/TCP host: one command at a time, in user space, for what a drive says and does."""

from __future__ import annotations

import re
import socket
import struct
from dataclasses import dataclass
from typing import Self

from rig import PATIENCE_S, Served, wait_for

COMMAND, RESPONSE, DATA_SENT, DATA_RECEIVED, READY = 4, 5, 6, 7, 9
FABRICS, IDENTIFY, GET_LOG = 0x7F, 0x06, 0x02
MANAGE, ATTACH, BLOCKS = 0x0D, 0x15, 0x86
FLUSH, WRITE, READ, DATASET, MANAGEMENT_RECEIVE = 0x00, 0x01, 0x02, 0x09, 0x12
MANAGEMENT_SEND = 0x1D
IN_CAPSULE, BY_TRANSPORT = 0x01, 0x5A
CAPSULE = 8192
ENABLE = 0x460001
BLOCK = 512


@dataclass(frozen=True)
class Answer:
    """How a command ended: its status code, its result, its data."""

    code: int
    result: int
    data: bytes


class Queue:
    """A connection that is a queue of a controller."""

    def __init__(self, address: tuple[str, int], name: str, number: int, controller: int) -> None:
        self.stream = socket.create_connection(address, timeout=PATIENCE_S)
        self.stream.sendall(struct.pack("<BBBBI120x", 0, 0, 128, 0, 128))
        assert self._take(128)[0] == 1
        host = struct.pack("<16sH238x256s256s256x", b"7" * 16, controller, name.encode(), b"nqn.h")
        joined = self.ask(FABRICS, {1: 1, 10: number << 16, 11: 127}, sent=host)
        assert joined.code == 0, f"connect: {joined.code:x}"
        self.controller = joined.result & 0xFFFF

    def ask(
        self, opcode: int, words: dict[int, int], *, sent: bytes = b"", room: int = 0
    ) -> Answer:
        """Submits a command, and waits for its end."""
        submission = [0] * 16
        submission[0] = opcode
        submission[8] = len(sent) or room
        in_capsule = 0 < len(sent) <= CAPSULE
        submission[9] = (IN_CAPSULE if in_capsule else BY_TRANSPORT) << 24
        for place, word in words.items():
            submission[place] |= word
        data = sent if in_capsule else b""
        head = struct.pack("<BBBBI", COMMAND, 0, 72, 72 if data else 0, 72 + len(data))
        self.stream.sendall(head + struct.pack("<16I", *submission) + data)
        received = b""
        while True:
            kind, _, header, data_at, whole = struct.unpack("<BBBBI", self._take(8))
            unit = self._take(whole - 8)
            if kind == RESPONSE:
                result, _, _, _, status = struct.unpack("<QHHHH", unit[:16])
                return Answer(status >> 1 & 0x7FF, result, received)
            if kind == DATA_RECEIVED:
                received += unit[data_at - 8 :]
            else:
                assert (kind, header) == (READY, 24)
                self.stream.sendall(
                    struct.pack("<BBBBI", DATA_SENT, 4, 24, 24, 24 + len(sent))
                    + unit[:4]
                    + struct.pack("<II4x", 0, len(sent))
                    + sent
                )

    def on(self, opcode: int, first: int, blocks: int, words: dict[int, int]) -> dict[int, int]:
        """The words of a command on blocks."""
        assert opcode in (READ, WRITE)
        low, high = first & 0xFFFFFFFF, first >> 32
        return {1: 1, 10: low, 11: high, **words, 12: (blocks - 1) | words.get(12, 0)}

    def write(self, first: int, data: bytes, words: dict[int, int] | None = None) -> int:
        """Writes blocks; returns the status code."""
        at = self.on(WRITE, first, len(data) // BLOCK, words or {})
        return self.ask(WRITE, at, sent=data).code

    def read(self, first: int, blocks: int) -> Answer:
        """Reads blocks."""
        return self.ask(READ, self.on(READ, first, blocks, {}), room=blocks * BLOCK)

    def flush(self) -> None:
        assert self.ask(FLUSH, {1: 1}).code == 0

    def trim(self, first: int, blocks: int) -> None:
        ranges = struct.pack("<IIQ", 0, blocks, first)
        assert self.ask(DATASET, {1: 1, 11: 4}, sent=ranges).code == 0

    def identify(self, which: int) -> bytes:
        return self.ask(IDENTIFY, {1: 1 if which != 1 else 0, 10: which}, room=4096).data

    def log(self, which: int, size: int) -> bytes:
        words = {1: 0xFFFFFFFF, 10: which | (size // 4 - 1) << 16, 11: 1 << 16}
        answer = self.ask(GET_LOG, words, room=size)
        assert answer.code == 0, f"log {which:x}: {answer.code:x}"
        return answer.data

    def _take(self, count: int) -> bytes:
        taken = b""
        while len(taken) < count:
            some = self.stream.recv(count - len(taken))
            if not some:
                raise ConnectionResetError
            taken += some
        return taken


class Host:
    """An admin queue and an I/O queue at a served twin."""

    def __init__(self, served: Served) -> None:
        address, name = connect_line(served)
        self.admin = Queue(address, name, 0, 0xFFFF)
        assert self.admin.ask(FABRICS, {11: 0x14, 12: ENABLE}).code == 0
        self.io = Queue(address, name, 1, self.admin.controller)

    def used_blocks(self) -> int:
        """NUSE."""
        return number(self.admin.identify(0), 16, 8)

    def runs(self, action: int) -> list[tuple[int, int]]:
        """Get LBA Status of all blocks: where runs begin and how many blocks they have."""
        words = {1: 1, 12: 1023, 13: action << 24}
        told = self.admin.ask(BLOCKS, words, room=4096).data
        assert told[4] == 2, "there are no more"
        places = range(8, 8 + 16 * number(told, 0, 4), 16)
        return [(number(told, at, 8), number(told, at + 8, 4)) for at in places]

    def shrink(self, blocks: int) -> None:
        """Deletes the namespace, and creates and attaches one of so many blocks."""
        wanted = struct.pack("<QQ4080x", blocks, blocks)
        controllers = struct.pack("<HH4092x", 1, self.admin.controller)
        assert self.admin.ask(MANAGE, {1: 1, 10: 1}).code == 0
        assert self.admin.ask(MANAGE, {}, sent=wanted).code == 0
        assert self.admin.ask(ATTACH, {1: 1}, sent=controllers).code == 0

    def close(self) -> None:
        self.io.stream.close()
        self.admin.stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect_line(served: Served) -> tuple[tuple[str, int], str]:
    """The address and the name that a server prints."""
    line = re.compile(r"nvme connect -t tcp -a (\S+) -s (\d+) -n (\S+)( --dhchap-secret SECRET)?\n")
    wait_for(lambda: bool(line.search(served.messages.read_text())), served.messages)
    found = line.search(served.messages.read_text())
    assert found
    return (found[1], int(found[2])), found[3]


def number(of: bytes, at: int, size: int) -> int:
    """A little-endian number in a structure."""
    return int.from_bytes(of[at : at + size], "little")
