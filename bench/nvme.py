"""A twin over NVMe/TCP against the same twin over NBD: alternating pairs and ratios.

Usage: python bench/nvme.py [--rounds 10] [--seconds 1] [--depth 16] [--profile NAME]

The same client for both, over local TCP: it keeps `--depth` random 4 KiB requests in flight, sends
a request for each answer, and separates answers only by their lengths, so that its cost is the same
for both. Without pacing, with the twin's model. A ratio is the median of the pairs' ratios of
requests per second (NVMe / NBD), with minimum and maximum; the aim is 0.7. `load` is the load
average after the case; above 2 there was other load.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import socket
import statistics
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass

from ssdlab import profiles
from ssdlab.device import ServeOptions, serve

SIZE = 1 << 30
BLOCK = 4096
REQUESTS = 4096
"""Requests prepared in advance, and sent repeatedly."""
CC_ENABLE = 0x460001


@dataclass(frozen=True)
class Connection:
    """A connection, its concatenated requests, and the lengths of a request and an answer."""

    stream: socket.socket
    requests: bytes
    request_bytes: int
    answer_bytes: int


def offsets() -> list[int]:
    """Random offsets of the requests, in bytes."""
    order = random.Random(1)
    return [order.randrange(SIZE // BLOCK) * BLOCK for _ in range(REQUESTS)]


def by_nbd(address: tuple[str, int], *, writes: bool) -> Connection:
    """A connection to the NBD server, with simple replies."""
    stream = connect(address)
    receive(stream, 18)
    # Fixed newstyle without zeros; the export's name is empty.
    stream.sendall(struct.pack(">I", 3) + b"IHAVEOPT" + struct.pack(">II", 1, 0))
    receive(stream, 10)
    payload = bytes(BLOCK) if writes else b""
    requests = b"".join(
        struct.pack(">IHHQQI", 0x25609513, 0, int(writes), number, offset, BLOCK) + payload
        for number, offset in enumerate(offsets())
    )
    return Connection(stream, requests, 28 + len(payload), 16 + (0 if writes else BLOCK))


def by_nvme(address: tuple[str, int], name: str) -> Callable[..., Connection]:
    """Connects an admin queue; returns a function that creates an I/O queue."""
    admin, controller = queue(address, name, 0, 0xFFFF)
    admin.sendall(command(0x7F, {11: 0x14, 12: CC_ENABLE}, b""))
    receive(admin, 24)

    def io(*, writes: bool) -> Connection:
        stream, _ = queue(address, name, 1 if writes else 2, controller)
        payload = bytes(BLOCK) if writes else b""
        requests = b"".join(
            command(1 if writes else 2, {0: number << 16, 1: 1, 10: offset >> 9, 12: 7}, payload)
            for number, offset in enumerate(offsets())
        )
        assert admin.fileno() >= 0, "the admin queue must stay open"
        return Connection(stream, requests, 72 + len(payload), 24 + (0 if writes else BLOCK))

    return io


def queue(
    address: tuple[str, int], name: str, number: int, controller: int
) -> tuple[socket.socket, int]:
    """Connects a queue without flow control; returns the connection and the controller's id."""
    stream = connect(address)
    stream.sendall(struct.pack("<BBBBI120x", 0, 0, 128, 0, 128))
    receive(stream, 128)
    host = struct.pack("<16sH238x256s256s256x", b"7" * 16, controller, name.encode(), b"nqn.h")
    stream.sendall(command(0x7F, {1: 1, 10: number << 16, 11: 127 | 4 << 16}, host))
    result, status = struct.unpack("<8xI10xH", receive(stream, 24))
    assert status == 0, f"connect: {status >> 1:x}"
    return stream, result


def command(opcode: int, dwords: dict[int, int], data: bytes) -> bytes:
    """A command capsule with its data."""
    entry = [0] * 16
    entry[0] = opcode
    entry[8] = len(data) or BLOCK
    entry[9] = (0x01 if data else 0x5A) << 24
    for index, dword in dwords.items():
        entry[index] |= dword
    head = struct.pack("<BBBBI", 4, 0, 72, 72 if data else 0, 72 + len(data))
    return head + struct.pack("<16I", *entry) + data


def connect(address: tuple[str, int]) -> socket.socket:
    """A TCP connection with TCP_NODELAY."""
    stream = socket.create_connection(address, timeout=60)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return stream


def receive(stream: socket.socket, size: int) -> bytes:
    """Receives `size` bytes."""
    received = b""
    while len(received) < size:
        received += stream.recv(size - len(received))
    return received


def requests_per_second(connection: Connection, depth: int, seconds: float) -> float:
    """Sends requests for `seconds`, and waits for all answers."""
    stream, size = connection.stream, connection.request_bytes
    sent = received = 0
    buffer = bytearray(1 << 20)
    begun = time.perf_counter()
    while True:
        done = received // connection.answer_bytes
        now = time.perf_counter()
        more = depth - (sent - done) if now - begun < seconds else 0
        if more:
            at = sent % REQUESTS
            more = min(more, REQUESTS - at)
            stream.sendall(connection.requests[at * size : (at + more) * size])
            sent += more
        elif done == sent:
            return done / (now - begun)
        received += stream.recv_into(buffer)


def main() -> None:
    """Runs the pairs and prints a line for reads and for writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--depth", type=int, default=16)
    parser.add_argument("--profile", default="toshiba-xg5")
    arguments = parser.parse_args()
    options = ServeOptions(
        name=arguments.profile,
        kind="tcp",
        address="127.0.0.1:0",
        nvme_tcp="127.0.0.1:0",
        capacity_bytes=SIZE,
    )
    server = serve(profiles.load(arguments.profile), options)
    assert server.address is not None
    assert server.nvme is not None
    nvme_io = by_nvme(split(server.nvme[0]), server.nvme[1])
    for writes in (True, False):
        nbd, nvme = by_nbd(split(server.address), writes=writes), nvme_io(writes=writes)
        pairs = [
            [
                requests_per_second(connection, arguments.depth, arguments.seconds)
                for connection in (nbd, nvme)
            ]
            for _ in range(arguments.rounds)
        ]
        ratios = [by_second / by_first for by_first, by_second in pairs]
        nbd_rate, nvme_rate = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(
            f"{'writes' if writes else 'reads':6} depth {arguments.depth}: NBD {nbd_rate:8.0f}/s  "
            f"NVMe {nvme_rate:8.0f}/s  ratio {statistics.median(ratios):.2f} "
            f"({min(ratios):.2f} to {max(ratios):.2f})  load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
        nvme.stream.close()
        nbd.stream.close()
    server.stop()


def split(address: str) -> tuple[str, int]:
    """Host and port."""
    match = re.fullmatch(r"(.*):(\d+)", address)
    assert match
    return match[1], int(match[2])


if __name__ == "__main__":
    main()
