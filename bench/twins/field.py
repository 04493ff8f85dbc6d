"""The field case: a long-used database and a fresh file, on a full-size XG5 twin.

Usage: python bench/twins/field.py [--small] [--ways]

A published note reports that the tables of a MySQL database of about 100 GB on a Toshiba XG5 (512
GB) read at about 600 MB/s, and other large files of the same file system at over 2 GB/s. Here the
twin has both: a database of 100 GB, rewritten at random in pages of 4 KiB and of 16 KiB (InnoDB's),
and a file that was written once. The first 8 GB of each are read sequentially in 1 MiB requests.
--small: everything at a hundredth of the size. --ways (also at a hundredth): the note does not say
how the database was written, so this tries 16 KiB pages with a log of 4 KiB writes and a
doublewrite buffer between them, a full drive with garbage collection, and pages of 8 KiB.
"""

from __future__ import annotations

import random
import sys
from typing import Final

from ssdlab import profiles
from ssdlab.device import Drive, Job, open_twin, run_job
from ssdlab.device.kinds import Listed, WriteHint

TWIN: Final = "toshiba-xg5"
MIB: Final = 1 << 20
CAPACITY: Final = 512_000_000_000
DATABASE: Final = 100_000_000_000
OTHER: Final = 20_000_000_000
READ: Final = 8_000_000_000
TIMES: Final = (0.0, 0.01, 0.1, 1.0, 3.0)
"""Multiples of the database that were rewritten before it is read."""
PAGES: Final = (4096, 16384)
LOG: Final = 4096
RING: Final = 8 * MIB
"""Size of the log and of the doublewrite buffer, which are written cyclically."""
SMALL: Final = 0.01


class Disk:
    """A twin with a database at its start, followed by another file."""

    def __init__(self, share: float, other_bytes: int = OTHER) -> None:
        """Writes both sequentially."""
        capacity = int(CAPACITY * share) // MIB * MIB
        text = profiles.load(TWIN)
        self.drive: Drive = open_twin(TWIN, text, capacity if share < 1 else None)
        self.database, other, self.part = (
            int(size * share) // MIB * MIB for size in (DATABASE, other_bytes, READ)
        )
        whole = self.end = self.database + other
        fill = Job(op="write", length_bytes=whole, block_bytes=MIB, amount_bytes=whole)
        run_job(self.drive, fill)

    def rewrite(self, page: int, amount: int, seed: int) -> None:
        """Writes random pages of the database, and flushes."""
        job = Job(
            op="write",
            pattern="random",
            length_bytes=self.database,
            block_bytes=page,
            amount_bytes=amount // page * page,
            seed=seed,
            interval_us=60_000_000,
        )
        run_job(self.drive, job)
        run_job(self.drive, Job(op="flush"))

    def rewrite_with_log(self, page: int, amount: int, seed: int) -> None:
        """The same, but before each page a log entry and a copy in the doublewrite buffer."""
        chance, places = random.Random(seed), self.database // page
        requests: list[tuple[int, int, WriteHint]] = []
        for n in range(amount // page):
            log, copy = n * LOG % RING, RING + n * page % RING
            requests.append((self.end + log, LOG, "nothing"))
            requests.append((self.end + copy, page, "nothing"))
            requests.append((chance.randrange(places) * page, page, "nothing"))
        job = Job(
            op="write",
            pattern=Listed(tuple(requests)),
            length_bytes=self.end + 2 * RING,
            block_bytes=page,
            amount_bytes=sum(length for _, length, _ in requests),
            interval_us=60_000_000,
        )
        run_job(self.drive, job)
        run_job(self.drive, Job(op="flush"))

    def read(self, start: int) -> float:
        """MB/s of a sequential read of the file's first part."""
        job = Job(
            op="read",
            offset_bytes=start,
            length_bytes=self.part,
            block_bytes=MIB,
            amount_bytes=self.part,
        )
        result = run_job(self.drive, job)
        return result.bytes / 1e6 / result.seconds


def print_rows(page: int, share: float) -> None:
    """Prints the read rates of both files after each amount of rewriting."""
    disk, done = Disk(share), 0.0
    for seed, times in enumerate(TIMES):
        if times > done:
            disk.rewrite(page, int((times - done) * disk.database), seed)
            done = times
        database, other = disk.read(0), disk.read(disk.database)
        print(f"| {page // 1024} KiB | {times:g} | {database:.0f} | {other:.0f} |", flush=True)


def print_ways() -> None:
    """Prints the read rates of both files for each way of writing the database."""
    print("| written | rewritten, times | database, MB/s | other file, MB/s |")
    print("|---|---|---|---|")
    full = CAPACITY - DATABASE - 20_000_000_000
    for label, page, times, other in (
        ("pages of 16 KiB", 16384, 1, OTHER),
        ("with log and doublewrite", 16384, 1, OTHER),
        ("on a full drive", 16384, 20, full),
        ("pages of 8 KiB", 8192, 1, OTHER),
        ("pages of 4 KiB", 4096, 1, OTHER),
    ):
        disk = Disk(SMALL, other)
        rewrite = disk.rewrite_with_log if "log" in label else disk.rewrite
        rewrite(page, times * disk.database, 0)
        row = f"{disk.read(0):.0f} | {disk.read(disk.database):.0f}"
        print(f"| {label} | {times} | {row} |", flush=True)


def main(share: float) -> None:
    """Prints the table, at a share of the full size."""
    print("| pages | rewritten, times | database, MB/s | other file, MB/s |")
    print("|---|---|---|---|")
    for page in PAGES:
        print_rows(page, share)


if __name__ == "__main__":
    if "--ways" in sys.argv[1:]:
        print_ways()
    else:
        main(SMALL if "--small" in sys.argv[1:] else 1.0)
