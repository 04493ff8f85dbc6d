"""Checks crash images of a file system on a twin, made from the log of the server.

A crash after a write of the log may leave: everything; everything without the second half of the
last write; everything without the first write since the last flush. Writes that were flushed, or
made with FUA, are never lost. Each image is recovered as after a crash (e2fsck -p), must then be
clean (e2fsck -fn), and must have the data that fsync acknowledged, as marks in the log show.
"""

from __future__ import annotations

import os
import random
import struct
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

SECTOR: Final = 512
PAGE: Final = 4096
_ZEROS: Final = bytes(PAGE)
FLUSH, FUA, DISCARD, MARK = 1, 2, 4, 8
MADE: Final = "made"
"""The mark after mkfs and the first mount: earlier images are not checked."""


@dataclass(frozen=True)
class Entry:
    """An entry of a log in the format of dm-log-writes; offset and length in bytes."""

    offset: int
    length: int
    flags: int
    data: bytes
    mark: str

    @property
    def may_be_lost(self) -> bool:
        """Whether a crash before the next flush may lose it."""
        return bool(self.length) and not self.flags & FUA


def read_log(path: Path) -> Iterator[Entry]:
    """The entries of a log, in order."""
    with path.open("rb") as file:
        _, _, count = struct.unpack_from("<QQQ", file.read(SECTOR))
        for _ in range(count):
            head = file.read(SECTOR)
            sector, sectors, flags, size = struct.unpack_from("<QQQQ", head)
            length = sectors * SECTOR
            data = bytes(length) if flags & DISCARD else file.read(length)
            yield Entry(sector * SECTOR, length, flags, data, head[32 : 32 + size].decode())


@dataclass
class Workload:
    """Writes files to a directory, each with fsync; `mark` writes a mark to the log."""

    point: Path
    mark: Callable[[str], object]
    seed: int = 1

    def run(self, rounds: int) -> None:
        """In each round: a new file, a file replaced by rename, an append to a third."""
        for number in range(rounds):
            self._write(f"file-{number}", content("file", number, self.seed))
            self.mark(f"file {number}")
            self._write("state.new", content("state", number, self.seed))
            (self.point / "state.new").rename(self.point / "state")
            self._sync_folder()
            self.mark(f"state {number}")
            with (self.point / "log").open("ab") as file:
                file.write(content("log", number, self.seed))
                file.flush()
                os.fsync(file.fileno())
            self._sync_folder()
            self.mark(f"log {number}")

    def _write(self, name: str, text: bytes) -> None:
        with (self.point / name).open("wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        self._sync_folder()

    def _sync_folder(self) -> None:
        fd = os.open(self.point, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)


def content(name: str, number: int, seed: int) -> bytes:
    """The content of a file of the workload."""
    rng = random.Random(f"{name} {number} {seed}")
    return rng.randbytes(rng.randrange(1, 40_000))


@dataclass
class Images:
    """Counts of checked crash images, and a line for each bad one."""

    entries: int = 0
    checked: int = 0
    marks_checked: int = 0
    bad: list[str] = field(default_factory=list)


class Checker:
    """Makes and checks the crash images of a log in a folder, preferably in memory."""

    def __init__(self, size_bytes: int, folder: Path, seed: int = 1) -> None:
        self._durable = bytearray(size_bytes)
        self._touched: set[int] = set()
        self._image, self._folder, self._seed = folder / "image", folder / "dumped", seed
        self._folder.mkdir()
        self._acknowledged: dict[str, int] = {}
        self.images = Images()

    def check(self, log: Path, every: int = 1) -> Images:
        """Checks every `every`-th image after the mark `MADE`."""
        epoch: list[Entry] = []
        image, begun = 0, False
        for number, entry in enumerate(read_log(log)):
            self.images.entries += 1
            if entry.flags & MARK:
                begun = begun or entry.mark == MADE
                kind, _, round_number = entry.mark.partition(" ")
                if round_number:
                    self._acknowledged[kind] = int(round_number)
            elif entry.flags & FLUSH:
                self._keep(epoch)
                epoch = []
            if not entry.length:
                continue
            for loss, writes in _surviving(epoch, entry):
                image += 1
                if begun and image % every == 0:
                    self._check(f"entry {number}, {loss}", writes)
            epoch.append(entry)
        return self.images

    def _keep(self, epoch: list[Entry]) -> None:
        for entry in epoch:
            end = entry.offset + len(entry.data)
            self._durable[entry.offset : end] = entry.data
            self._touched.update(range(entry.offset // PAGE, -(-end // PAGE)))

    def _check(self, name: str, writes: list[Entry]) -> None:
        self.images.checked += 1
        self._make_image(writes)
        error = self._recover() or self._compare_files()
        if error:
            self.images.bad.append(f"{name}: {error}")

    def _make_image(self, writes: list[Entry]) -> None:
        self._image.unlink(missing_ok=True)
        with self._image.open("xb", buffering=0) as file:
            file.truncate(len(self._durable))
            view = memoryview(self._durable)
            for page in self._touched:
                part = view[page * PAGE : (page + 1) * PAGE]
                if part != _ZEROS:
                    os.pwrite(file.fileno(), part, page * PAGE)
            for entry in writes:
                os.pwrite(file.fileno(), entry.data, entry.offset)

    def _recover(self) -> str:
        """Runs e2fsck; returns its error."""
        for words, most in ((("-p",), 1), (("-f", "-n"), 0)):
            done = subprocess.run(
                ["e2fsck", *words, str(self._image)], capture_output=True, text=True, check=False
            )
            if done.returncode > most:
                return f"e2fsck {words}: {done.returncode} {done.stdout}{done.stderr}"
        return ""

    def _compare_files(self) -> str:
        """The first acknowledged file that is missing or differs."""
        files = [f"file-{n}" for n in range(self._acknowledged.get("file", -1) + 1)]
        names = [*files, "state", "log"]
        for name in names:
            (self._folder / name).unlink(missing_ok=True)
        lines = "".join(f"dump /{name} {self._folder / name}\n" for name in names)
        subprocess.run(
            ["debugfs", "-f", "-", str(self._image)],
            input=lines,
            capture_output=True,
            text=True,
            check=True,
        )
        self.images.marks_checked += len(files)
        for number, name in enumerate(files):
            if self._read(name) != content("file", number, self._seed):
                return f"{name} differs or is missing"
        return self._compare_state() or self._compare_log()

    def _compare_state(self) -> str:
        last = self._acknowledged.get("state")
        if last is None:
            return ""
        self.images.marks_checked += 1
        # The next one may be there before its rename is acknowledged.
        allowed = [content("state", number, self._seed) for number in (last, last + 1)]
        return "" if self._read("state") in allowed else f"state is not that of round {last}"

    def _compare_log(self) -> str:
        last = self._acknowledged.get("log")
        if last is None:
            return ""
        self.images.marks_checked += 1
        expected = b"".join(content("log", number, self._seed) for number in range(last + 1))
        return "" if self._read("log").startswith(expected) else f"log lacks round {last}"

    def _read(self, name: str) -> bytes:
        path = self._folder / name
        return path.read_bytes() if path.exists() else b""


def _surviving(epoch: list[Entry], entry: Entry) -> Iterator[tuple[str, list[Entry]]]:
    """The writes since the last flush that may survive a crash after `entry`."""
    yield "all", [*epoch, entry]
    if not entry.may_be_lost:
        return
    half = entry.length // 2 // SECTOR * SECTOR
    torn = Entry(entry.offset, half, entry.flags, entry.data[:half], "")
    yield "the last one torn", [*epoch, torn]
    first = next((at for at, each in enumerate(epoch) if each.may_be_lost), None)
    if first is not None:
        yield "the first one lost", [*epoch[:first], *epoch[first + 1 :], entry]
