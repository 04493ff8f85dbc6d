"""A twin as an NVMe drive against the same twin over NBD, in one run: pairs that alternate.

Usage: python bench/nvme.py [--rounds 10] [--seconds 1] [--depth 16] [--profile NAME]

One client for both, over TCP on this machine: it keeps so many requests of 4 KiB at random in
flight, sends one for each answer, and tells answers by their lengths, so that it costs both the
same. No pace, the twin's model on. A ratio is the median of the pairs' ratios, NVMe's requests a
second by NBD's, with the least and the greatest; 0.7 is asked for. `load` is the machine's load
average after the case: more than two came from others.
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
# So many requests are made beforehand, and sent again and again.
REQUESTS = 4096
ENABLE = 0x460001


@dataclass(frozen=True)
class Wire:
    """A connection, its requests one after the other, and how long an answer is."""

    stream: socket.socket
    requests: bytes
    request_bytes: int
    answer_bytes: int


def offsets() -> list[int]:
    """Where requests go, in bytes."""
    order = random.Random(1)
    return [order.randrange(SIZE // BLOCK) * BLOCK for _ in range(REQUESTS)]


def by_nbd(address: tuple[str, int], *, writes: bool) -> Wire:
    """Simple replies: to a read its data as well."""
    stream = connected(address)
    take(stream, 18)
    # Fixed newstyle without zeros; the export's name is empty.
    stream.sendall(struct.pack(">I", 3) + b"IHAVEOPT" + struct.pack(">II", 1, 0))
    take(stream, 10)
    payload = bytes(BLOCK) if writes else b""
    requests = b"".join(
        struct.pack(">IHHQQI", 0x25609513, 0, int(writes), number, offset, BLOCK) + payload
        for number, offset in enumerate(offsets())
    )
    return Wire(stream, requests, 28 + len(payload), 16 + (0 if writes else BLOCK))


def by_nvme(address: tuple[str, int], name: str) -> Callable[..., Wire]:
    """A controller; returns what makes an I/O queue of it."""
    admin, controller = queue(address, name, 0, 0xFFFF)
    admin.sendall(command(0x7F, {11: 0x14, 12: ENABLE}, b""))
    take(admin, 24)

    def io(*, writes: bool) -> Wire:
        stream, _ = queue(address, name, 1 if writes else 2, controller)
        payload = bytes(BLOCK) if writes else b""
        requests = b"".join(
            command(1 if writes else 2, {0: number << 16, 1: 1, 10: offset >> 9, 12: 7}, payload)
            for number, offset in enumerate(offsets())
        )
        # The admin queue lives as long as this one.
        assert admin.fileno() >= 0
        return Wire(stream, requests, 72 + len(payload), 24 + (0 if writes else BLOCK))

    return io


def queue(
    address: tuple[str, int], name: str, number: int, controller: int
) -> tuple[socket.socket, int]:
    """A connection that is a queue, without flow control; and its controller's number."""
    stream = connected(address)
    stream.sendall(struct.pack("<BBBBI120x", 0, 0, 128, 0, 128))
    take(stream, 128)
    host = struct.pack("<16sH238x256s256s256x", b"7" * 16, controller, name.encode(), b"nqn.h")
    stream.sendall(command(0x7F, {1: 1, 10: number << 16, 11: 127 | 4 << 16}, host))
    result, status = struct.unpack("<8xI10xH", take(stream, 24))
    assert status == 0, f"connect: {status >> 1:x}"
    return stream, result


def command(opcode: int, words: dict[int, int], data: bytes) -> bytes:
    """A command, with its data in its capsule."""
    submission = [0] * 16
    submission[0] = opcode
    submission[8] = len(data) or BLOCK
    submission[9] = (0x01 if data else 0x5A) << 24
    for place, word in words.items():
        submission[place] |= word
    head = struct.pack("<BBBBI", 4, 0, 72, 72 if data else 0, 72 + len(data))
    return head + struct.pack("<16I", *submission) + data


def connected(address: tuple[str, int]) -> socket.socket:
    """A connection that does not wait for more to send."""
    stream = socket.create_connection(address, timeout=60)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return stream


def take(stream: socket.socket, count: int) -> bytes:
    """So many bytes."""
    taken = b""
    while len(taken) < count:
        taken += stream.recv(count - len(taken))
    return taken


def requests_per_second(wire: Wire, depth: int, seconds: float) -> float:
    """Runs for a while; all that was sent is answered at the end."""
    stream, size = wire.stream, wire.request_bytes
    sent = received = 0
    buffer = bytearray(1 << 20)
    begun = time.perf_counter()
    while True:
        done = received // wire.answer_bytes
        now = time.perf_counter()
        more = depth - (sent - done) if now - begun < seconds else 0
        if more:
            at = sent % REQUESTS
            more = min(more, REQUESTS - at)
            stream.sendall(wire.requests[at * size : (at + more) * size])
            sent += more
        elif done == sent:
            return done / (now - begun)
        received += stream.recv_into(buffer)


def main() -> None:
    """Runs the pairs and prints a line for each kind."""
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
            [requests_per_second(wire, arguments.depth, arguments.seconds) for wire in (nbd, nvme)]
            for _ in range(arguments.rounds)
        ]
        ratios = [ours / theirs for theirs, ours in pairs]
        theirs, ours = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(
            f"{'writes' if writes else 'reads':6} depth {arguments.depth}: NBD {theirs:8.0f}/s  "
            f"NVMe {ours:8.0f}/s  ratio {statistics.median(ratios):.2f} "
            f"({min(ratios):.2f} to {max(ratios):.2f})  load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
        nvme.stream.close()
        nbd.stream.close()
    server.stop()


def split(address: str) -> tuple[str, int]:
    """Host and port."""
    found = re.fullmatch(r"(.*):(\d+)", address)
    assert found
    return found[1], int(found[2])


if __name__ == "__main__":
    main()
