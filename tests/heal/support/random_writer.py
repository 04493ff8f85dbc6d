"""A program that writes random blocks of a file until its input ends, then reports its writes.

`python random_writer.py PATH buffered|direct|mapped SEED [REST_US [LOG COUNT]]`: writes 4 KiB
blocks, each filled with its number and a write count that starts at COUNT. At the end it prints one
JSON object with the last count of each block. LOG gets a line `block count` for each durable write.
It answers an input line `count` with the number of writes so far.
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


def block_content(block: int, count: int) -> bytes:
    """The content of a block."""
    return STAMP.pack(block, count) * (BLOCK // STAMP.size)


def must_end(count: int) -> bool:
    """Whether the input has ended or has another line than `count`, which it answers."""
    if not select.select([sys.stdin], [], [], 0)[0]:
        return False
    if sys.stdin.readline() != "count\n":
        return True
    sys.stdout.write(f"{count}\n")
    sys.stdout.flush()
    return False


def main() -> None:
    path, mode, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
    rest_s = int(sys.argv[4]) / 1e6 if len(sys.argv) > 4 else 0.0
    fd = os.open(path, os.O_RDWR | (os.O_DIRECT if mode == "direct" else 0))
    blocks = os.fstat(fd).st_size // BLOCK
    buffer = mmap.mmap(-1, BLOCK)
    mapped = mmap.mmap(fd, blocks * BLOCK) if mode == "mapped" else None
    rng, last = random.Random(seed), {}
    count = int(sys.argv[6]) if len(sys.argv) > 6 else 0
    log = os.open(sys.argv[5], os.O_WRONLY | os.O_CREAT) if len(sys.argv) > 5 else None
    unsynced = []
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while not must_end(count):
        block = rng.randrange(blocks)
        count += 1
        buffer[:] = block_content(block, count)
        if mapped is not None:
            mapped[block * BLOCK : (block + 1) * BLOCK] = buffer[:]
        elif os.pwrite(fd, buffer, block * BLOCK) != BLOCK:
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
