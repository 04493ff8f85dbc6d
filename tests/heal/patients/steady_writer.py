"""A program that writes at random into a file until its input ends, and then tells what it wrote.

`python steady_writer.py PATH buffered|direct|mapped SEED [REST_US [LOG COUNT]]`: blocks of 4 KiB,
each filled with its number and a count, from COUNT on. At the end one JSON object on stdout: the
last count of each block. Into LOG goes a line `block count` for each write that was made durable.
A line `how often` of the input is answered with how often it wrote so far.
"""

from __future__ import annotations

import json
import mmap
import os
import random
import select
import struct
import sys
import time

BLOCK = 4096
STAMP = struct.Struct("=QQ")


def filled(block: int, count: int) -> bytes:
    """A block's content."""
    return STAMP.pack(block, count) * (BLOCK // STAMP.size)


def is_to_end(count: int) -> bool:
    """Whether the input has ended, or says something else than to tell the count."""
    if not select.select([sys.stdin], [], [], 0)[0]:
        return False
    if sys.stdin.readline() != "how often\n":
        return True
    sys.stdout.write(f"{count}\n")
    sys.stdout.flush()
    return False


def main() -> None:
    path, mode, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
    rest_s = int(sys.argv[4]) / 1e6 if len(sys.argv) > 4 else 0.0
    fd = os.open(path, os.O_RDWR | (os.O_DIRECT if mode == "direct" else 0))
    blocks = os.fstat(fd).st_size // BLOCK
    room = mmap.mmap(-1, BLOCK)
    mapped = mmap.mmap(fd, blocks * BLOCK) if mode == "mapped" else None
    chance, last = random.Random(seed), {}
    count = int(sys.argv[6]) if len(sys.argv) > 6 else 0
    log = os.open(sys.argv[5], os.O_WRONLY | os.O_CREAT) if len(sys.argv) > 5 else None
    unsynced = []
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while not is_to_end(count):
        block = chance.randrange(blocks)
        count += 1
        room[:] = filled(block, count)
        if mapped is not None:
            mapped[block * BLOCK : (block + 1) * BLOCK] = room[:]
        elif os.pwrite(fd, room, block * BLOCK) != BLOCK:
            sys.exit("a short write")
        last[block] = count
        unsynced.append(f"{block} {count}\n")
        if len(unsynced) == (500 if log is None else 8):
            os.fdatasync(fd)
            if log is not None:
                os.write(log, "".join(unsynced).encode())
            unsynced = []
        if rest_s:
            time.sleep(rest_s)
    if mapped is not None:
        mapped.flush()
    os.fsync(fd)
    sys.stdout.write(json.dumps({"last": last, "writes": count}))


if __name__ == "__main__":
    main()
