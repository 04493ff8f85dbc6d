"""The field case: a database that was rewritten for long beside a fresh file, on a full-size XG5.

Usage: python bench/twins/field.py [--small] [--ways]

A published note: the tables of a MySQL database of about 100 GB on a Toshiba XG5 (512 GB) read at
about 600 MB/s, other large files of the same file system at over 2 GB/s. Here the twin holds both:
100 GB of database, rewritten at random in pages of 4 KiB and of 16 KiB (InnoDB's), and a file that
was written once. The first 8 GB of both are read in order, 1 MiB at a time, one after the other.
--small: a hundredth of it all. --ways (of a hundredth, too): the note does not say how the
database was written, so pages of 16 KiB also with a log of 4 KiB writes and a doublewrite buffer
between them, on a full drive that has to collect, and pages of 8 KiB.
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
"""How often the database has been rewritten when it is read."""
PAGES: Final = (4096, 16384)
LOG: Final = 4096
AROUND: Final = 8 * MIB
"""Log and doublewrite buffer are so long, and written around and around."""
SMALL: Final = 0.01


class Disk:
    """A twin with a database at its start and another file behind it."""

    def __init__(self, share: float, other_bytes: int = OTHER) -> None:
        """Writes both in order."""
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
        """Writes pages of the database at random, and flushes."""
        job = Job(
            op="write",
            pattern="random",
            length_bytes=self.database,
            block_bytes=page,
            amount_bytes=amount // page * page,
            seed=seed,
            interval_ms=60_000,
        )
        run_job(self.drive, job)
        run_job(self.drive, Job(op="flush"))

    def rewrite_with_log(self, page: int, amount: int, seed: int) -> None:
        """The same, each page after an entry of the log and its copy in the doublewrite buffer."""
        chance, places = random.Random(seed), self.database // page
        requests: list[tuple[int, int, WriteHint]] = []
        for n in range(amount // page):
            log, copy = n * LOG % AROUND, AROUND + n * page % AROUND
            requests.append((self.end + log, LOG, "nothing"))
            requests.append((self.end + copy, page, "nothing"))
            requests.append((chance.randrange(places) * page, page, "nothing"))
        job = Job(
            op="write",
            pattern=Listed(tuple(requests)),
            length_bytes=self.end + 2 * AROUND,
            block_bytes=page,
            amount_bytes=sum(length for _, length, _ in requests),
            interval_ms=60_000,
        )
        run_job(self.drive, job)
        run_job(self.drive, Job(op="flush"))

    def read(self, start: int) -> float:
        """MB/s of the first part of a file, read in order."""
        job = Job(
            op="read",
            offset_bytes=start,
            length_bytes=self.part,
            block_bytes=MIB,
            amount_bytes=self.part,
        )
        found = run_job(self.drive, job)
        return found.bytes / 1e6 / found.seconds


def rows(page: int, share: float) -> None:
    """Prints what both files are read with, the more of the database was rewritten."""
    disk, done = Disk(share), 0.0
    for seed, times in enumerate(TIMES):
        if times > done:
            disk.rewrite(page, int((times - done) * disk.database), seed)
            done = times
        database, other = disk.read(0), disk.read(disk.database)
        print(f"| {page // 1024} KiB | {times:g} | {database:.0f} | {other:.0f} |", flush=True)


def ways() -> None:
    """Prints a row a way of writing: the database, once rewritten, and the other file."""
    print("| written | rewritten, times | database, MB/s | other file, MB/s |")
    print("|---|---|---|---|")
    full = CAPACITY - DATABASE - 20_000_000_000
    for words, page, times, other in (
        ("pages of 16 KiB", 16384, 1, OTHER),
        ("with log and doublewrite", 16384, 1, OTHER),
        ("on a full drive", 16384, 20, full),
        ("pages of 8 KiB", 8192, 1, OTHER),
        ("pages of 4 KiB", 4096, 1, OTHER),
    ):
        disk = Disk(SMALL, other)
        rewrite = disk.rewrite_with_log if "log" in words else disk.rewrite
        rewrite(page, times * disk.database, 0)
        row = f"{disk.read(0):.0f} | {disk.read(disk.database):.0f}"
        print(f"| {words} | {times} | {row} |", flush=True)


def main(share: float) -> None:
    """Prints a row an amount."""
    print("| pages | rewritten, times | database, MB/s | other file, MB/s |")
    print("|---|---|---|---|")
    for page in PAGES:
        rows(page, share)


if __name__ == "__main__":
    if "--ways" in sys.argv[1:]:
        ways()
    else:
        main(SMALL if "--small" in sys.argv[1:] else 1.0)
