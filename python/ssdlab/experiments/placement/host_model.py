"""Applications on a small model of a file system: which blocks they write, in which order.

Modelled: extents come from one free pointer that advances over an empty device. A block gets its
address when it is appended to the page cache (no delayed allocation). Write-back goes file by file,
in the order in which files became dirty. A write is at most 256 KiB of adjacent blocks of one file.
Its first block determines its hint, by the study's rule: an overwrite if the block was on the
device, else an append after the previous block of the file, else nothing.
Not modelled: block groups, metadata, and the journal, which the study kept on another disk.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final

from ssdlab.device import WriteHint
from ssdlab.experiments.placement.workloads import COMMAND_MAX, Pieces, Workload, Writes

KIB: Final = 1 << 10
BLOCK: Final = 4 * KIB

SQLITE: Final = "sqlite"
SERVER: Final = "file server"
SMALL_SERVER: Final = "file server, small appends"
APPLICATIONS: Final = (SQLITE, SERVER, SMALL_SERVER)
ROWS: Final = 256
ROW_BYTES: Final = 16 * KIB
OTHER_FILE_BYTES: Final = 100 * KIB
FILES: Final = 100
PREALLOCATED: Final = 128 * KIB
APPENDS: Final = 750
WRITE_BACK_EVERY: Final = 64
"""Appends between two write-backs of the page cache."""


@dataclass
class FileSystem:
    """Files as lists of block addresses (device offsets), and the dirty blocks of each.

    `on_device` are the addresses written so far; `writes` are the requests to the device.
    """

    next: int = 0
    files: list[list[int]] = field(default_factory=list)
    dirty: dict[int, set[int]] = field(default_factory=dict)
    on_device: set[int] = field(default_factory=set)
    writes: Writes = field(default_factory=list)

    def create(self) -> int:
        """Creates an empty file; returns its number."""
        self.files.append([])
        return len(self.files) - 1

    def append(self, file: int, length: int) -> None:
        """Appends whole blocks to a file in the page cache."""
        for _ in range(length // BLOCK):
            self.overwrite(file, len(self.files[file]))
            self.files[file].append(self.next)
            self.next += BLOCK

    def overwrite(self, file: int, number: int) -> None:
        """Overwrites a block of a file in the page cache."""
        self.dirty.setdefault(file, set()).add(number)

    def sync(self, file: int) -> None:
        """Writes the dirty blocks of a file, in file order."""
        blocks = self.files[file]
        extent: list[int] = []
        for number in sorted(self.dirty.pop(file, ())):
            if extent and not (
                number == extent[-1] + 1
                and blocks[number] == blocks[extent[-1]] + BLOCK
                and (len(extent) + 1) * BLOCK <= COMMAND_MAX
            ):
                self._write(blocks, extent)
                extent = []
            extent.append(number)
        if extent:
            self._write(blocks, extent)

    def write_back(self) -> None:
        """Writes all dirty blocks, file by file."""
        for file in list(self.dirty):
            self.sync(file)

    def pieces(self, file: int) -> Pieces:
        """The extents of a file."""
        extents: Pieces = []
        for block in self.files[file]:
            if extents and sum(extents[-1]) == block:
                extents[-1] = (extents[-1][0], extents[-1][1] + BLOCK)
            else:
                extents.append((block, BLOCK))
        return extents

    def _write(self, blocks: list[int], extent: list[int]) -> None:
        first = blocks[extent[0]]
        hint: WriteHint = {"after": blocks[extent[0] - 1]} if extent[0] else "nothing"
        if first in self.on_device:
            hint = "overwrite"
        self.on_device.update(blocks[number] for number in extent)
        self.writes.append((first, len(extent) * BLOCK, hint))


def make_application(name: str, seed: int, *, in_order: bool) -> Workload:
    """The writes of an application and the pieces it reads; `in_order` leaves out the gaps."""
    if name == SQLITE:
        return _sqlite(in_order=in_order)
    return _server(16 * KIB if name == SMALL_SERVER else 32 * KIB, seed, in_order=in_order)


def _sqlite(*, in_order: bool) -> Workload:
    """Appends and syncs rows of 16 KiB, and writes 100 KiB of another file after each.

    A row takes four new pages of 4 KiB. Its leaf and the file's first page, which holds the change
    counter, are overwritten. The table is read.
    """
    system = FileSystem()
    table, other = system.create(), system.create()
    system.append(table, 2 * BLOCK)
    system.sync(table)
    for _ in range(ROWS):
        system.append(table, ROW_BYTES)
        system.overwrite(table, 0)
        system.overwrite(table, 1)
        system.sync(table)
        if not in_order:
            system.append(other, OTHER_FILE_BYTES)
            system.sync(other)
    return Workload(system.pieces(table), system.writes)


def _server(append_bytes: int, seed: int, *, in_order: bool) -> Workload:
    """Appends to files of 128 KiB in random order; all files are read, one after the other."""
    system, stream = FileSystem(), random.Random(f"file server {seed}")
    files = [system.create() for _ in range(FILES)]
    sizes = [PREALLOCATED] * FILES
    appends = [stream.randrange(FILES) for _ in range(APPENDS)]
    if in_order:
        for file in appends:
            sizes[file] += append_bytes
    for file in files:
        system.append(file, sizes[file])
        system.sync(file)
    if not in_order:
        for number, file in enumerate(appends, 1):
            system.append(file, append_bytes)
            if number % WRITE_BACK_EVERY == 0:
                system.write_back()
        system.write_back()
    return Workload([piece for file in files for piece in system.pieces(file)], system.writes)
