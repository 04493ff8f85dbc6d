"""A small model of a host's file system: which blocks files get, and in which order they are sent.

Assumed, and no more: extents are taken from one free pointer that moves on over an empty device
(block groups, journals and metadata are left out, as the study kept them on another disk); without
delayed allocation a block has its address when it is written to the page cache, with it when it is
sent; what is sent without being asked for goes file by file, in order of the files' first dirty
block, in batches; a write is at most 256 KiB of neighbouring blocks of one file. The first block of
each says what it is, by the study's rule: an append after the block before it in the file if the
file had one, an overwrite if the block was on the device, else nothing.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final

from ssdlab.device import WriteHint
from ssdlab.experiments.placement.workloads import LONGEST, MIB, Listing, Pieces, Work

KIB: Final = 1 << 10
BLOCK: Final = 4 * KIB

SQLITE: Final = "sqlite"
SERVER: Final = "file server"
SMALL_SERVER: Final = "file server, small appends"
HOST_WORK: Final = (SQLITE, SERVER, SMALL_SERVER)
ROWS: Final = 256
ROW: Final = 16 * KIB
DUMMY: Final = 100 * KIB
FILES: Final = 100
PREALLOCATED: Final = 128 * KIB
APPENDS: Final = 750
WRITE_BACK: Final = 64
"""Appends that are in the page cache when it is written back."""


@dataclass
class FileSystem:
    """Files as lists of blocks (device offsets), and the dirty ones that were not sent yet.

    `stable` are the blocks that the device has some content of; `sent` is what it was asked for.
    """

    delayed: bool = False
    next: int = 0
    files: list[list[int | None]] = field(default_factory=list)
    dirty: dict[int, list[int]] = field(default_factory=dict)
    stable: set[int] = field(default_factory=set)
    sent: Listing = field(default_factory=list)

    def create(self) -> int:
        """A new file; returns its number."""
        self.files.append([])
        return len(self.files) - 1

    def append(self, file: int, length: int) -> None:
        """Appends to the page cache."""
        blocks = self.files[file]
        for _ in range(length // BLOCK):
            self.dirty.setdefault(file, []).append(len(blocks))
            blocks.append(None if self.delayed else self._take())

    def overwrite(self, file: int, number: int) -> None:
        """Writes over a block of a file in the page cache."""
        self.dirty.setdefault(file, []).append(number)

    def sync(self, file: int) -> None:
        """Sends what of a file is dirty, in its order."""
        blocks, pending = self.files[file], sorted(set(self.dirty.pop(file, [])))
        for number in pending:
            if blocks[number] is None:
                blocks[number] = self._take()
        start = 0
        for at in range(1, len(pending) + 1):
            run = pending[start:at]
            if at < len(pending) and self._goes_on(blocks, pending[at - 1], pending[at], len(run)):
                continue
            self._send(blocks, run)
            start = at

    def write_back(self) -> None:
        """Sends all that is dirty, file by file."""
        for file in list(self.dirty):
            self.sync(file)

    def pieces(self, file: int) -> Pieces:
        """Where a file lies, neighbours joined."""
        found: Pieces = []
        for block in self.files[file]:
            assert block is not None, "the file is on the device"
            if found and sum(found[-1]) == block:
                found[-1] = (found[-1][0], found[-1][1] + BLOCK)
            else:
                found.append((block, BLOCK))
        return found

    def _take(self) -> int:
        self.next += BLOCK
        return self.next - BLOCK

    @staticmethod
    def _goes_on(blocks: list[int | None], last: int, number: int, run: int) -> bool:
        first, second = blocks[last], blocks[number]
        assert first is not None
        fits = (run + 1) * BLOCK <= LONGEST
        return fits and number == last + 1 and second == first + BLOCK

    def _send(self, blocks: list[int | None], run: list[int]) -> None:
        first = blocks[run[0]]
        assert first is not None
        before = blocks[run[0] - 1] if run[0] else None
        said: WriteHint = "nothing" if before is None else {"after": before}
        if first in self.stable:
            said = "overwrite"
        self.stable.update(block for number in run if (block := blocks[number]) is not None)
        self.sent.append((first, len(run) * BLOCK, said))


def made_on_host(name: str, seed: int, *, in_order: bool) -> Work:
    """The writes of an application, and where what it reads lies; `in_order` without gaps."""
    if name == SQLITE:
        return _sqlite(in_order=in_order)
    return _server(16 * KIB if name == SMALL_SERVER else 32 * KIB, seed, in_order=in_order)


def _sqlite(*, in_order: bool) -> Work:
    """Rows of 16 KiB appended and synced, another file of 100 KiB after each; the table is read.

    Each row takes four new pages of 4 KiB; its leaf and the file's first page, which counts the
    changes, are written over.
    """
    system = FileSystem()
    table, other = system.create(), system.create()
    system.append(table, 2 * BLOCK)
    system.sync(table)
    for _ in range(ROWS):
        system.append(table, ROW)
        system.overwrite(table, 0)
        system.overwrite(table, 1)
        system.sync(table)
        if not in_order:
            system.append(other, DUMMY)
            system.sync(other)
    return Work(system.pieces(table), system.sent)


def _server(append: int, seed: int, *, in_order: bool) -> Work:
    """Files of 128 KiB that are appended to in random order; all of them are read, file by file."""
    system, stream = FileSystem(), random.Random(f"file server {seed}")
    files = [system.create() for _ in range(FILES)]
    sizes = [PREALLOCATED] * FILES
    turns = [stream.randrange(FILES) for _ in range(APPENDS)]
    if in_order:
        for file in turns:
            sizes[file] += append
    for file in files:
        system.append(file, sizes[file])
        system.sync(file)
    if not in_order:
        for number, file in enumerate(turns, 1):
            system.append(file, append)
            if number % WRITE_BACK == 0:
                system.write_back()
        system.write_back()
    return Work([piece for file in files for piece in system.pieces(file)], system.sent)


def amount(pieces: Pieces) -> float:
    """MiB of what is read."""
    return sum(length for _, length in pieces) / MIB
