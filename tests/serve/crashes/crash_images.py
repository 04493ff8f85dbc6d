"""All crash images of a file system on a twin, out of the log that the server writes.

Up to each write of the log a crash may leave: all of it; all but the second half of the last
write; all but the first write since the last flush. What was flushed before, or written with FUA,
is never lost. Each image is recovered as after a crash (e2fsck -p), must then be clean (e2fsck
-fn), and must hold what fsync had acknowledged before, which marks in the log say.
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
"""The mark behind mkfs and the first mount: before, there is nothing to recover."""


@dataclass(frozen=True)
class Entry:
    """One of a log in the format of dm-log-writes; a range in bytes."""

    offset: int
    length: int
    flags: int
    data: bytes
    mark: str

    @property
    def may_be_lost(self) -> bool:
        """Whether a crash before the next flush may undo it."""
        return bool(self.length) and not self.flags & FUA


def read_log(path: Path) -> Iterator[Entry]:
    """Its entries, in order."""
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
    """Files that are made durable one after the other, in a directory; `mark` names moments."""

    point: Path
    mark: Callable[[str], object]
    seed: int = 1

    def run(self, rounds: int) -> None:
        """Each round: a new file, a file replaced by a rename, a line at the end of another."""
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
    """What a file of the workload holds."""
    chance = random.Random(f"{name} {number} {seed}")
    return chance.randbytes(chance.randrange(1, 40_000))


@dataclass
class Images:
    """Crash images that were checked, and what was wrong with some."""

    entries: int = 0
    checked: int = 0
    marks_checked: int = 0
    bad: list[str] = field(default_factory=list)


class Checker:
    """Makes and checks the crash images of a log, in a folder that should lie in memory."""

    def __init__(self, size_bytes: int, folder: Path, seed: int = 1) -> None:
        self._flushed = bytearray(size_bytes)
        self._touched: set[int] = set()
        self._image, self._folder, self._seed = folder / "image", folder / "dumped", seed
        self._folder.mkdir()
        self._acknowledged: dict[str, int] = {}
        self.found = Images()

    def check(self, log: Path, every: int = 1) -> Images:
        """All of them behind the mark `MADE`, or every so many."""
        epoch: list[Entry] = []
        turn, begun = 0, False
        for number, entry in enumerate(read_log(log)):
            self.found.entries += 1
            if entry.flags & MARK:
                begun = begun or entry.mark == MADE
                kind, _, told = entry.mark.partition(" ")
                if told:
                    self._acknowledged[kind] = int(told)
            elif entry.flags & FLUSH:
                self._keep(epoch)
                epoch = []
            if not entry.length:
                continue
            for what, left in _left(epoch, entry):
                turn += 1
                if begun and turn % every == 0:
                    self._check(f"entry {number}, {what}", left)
            epoch.append(entry)
        return self.found

    def _keep(self, epoch: list[Entry]) -> None:
        for entry in epoch:
            end = entry.offset + len(entry.data)
            self._flushed[entry.offset : end] = entry.data
            self._touched.update(range(entry.offset // PAGE, -(-end // PAGE)))

    def _check(self, what: str, left: list[Entry]) -> None:
        self.found.checked += 1
        self._make(left)
        why = self._recovered() or self._differs()
        if why:
            self.found.bad.append(f"{what}: {why}")

    def _make(self, left: list[Entry]) -> None:
        self._image.unlink(missing_ok=True)
        with self._image.open("xb", buffering=0) as file:
            file.truncate(len(self._flushed))
            view = memoryview(self._flushed)
            for page in self._touched:
                part = view[page * PAGE : (page + 1) * PAGE]
                if part != _ZEROS:
                    os.pwrite(file.fileno(), part, page * PAGE)
            for entry in left:
                os.pwrite(file.fileno(), entry.data, entry.offset)

    def _recovered(self) -> str:
        for words, most in ((("-p",), 1), (("-f", "-n"), 0)):
            done = subprocess.run(
                ["e2fsck", *words, str(self._image)], capture_output=True, text=True, check=False
            )
            if done.returncode > most:
                return f"e2fsck {words}: {done.returncode} {done.stdout}{done.stderr}"
        return ""

    def _differs(self) -> str:
        """What of the acknowledged files is not there."""
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
        self.found.marks_checked += len(files)
        for number, name in enumerate(files):
            if self._read(name) != content("file", number, self._seed):
                return f"{name} differs or is missing"
        return self._state_differs() or self._log_differs()

    def _state_differs(self) -> str:
        least = self._acknowledged.get("state")
        if least is None:
            return ""
        self.found.marks_checked += 1
        # A later one may be there before its rename is acknowledged.
        known = [content("state", number, self._seed) for number in (least, least + 1)]
        return "" if self._read("state") in known else f"state is not that of round {least}"

    def _log_differs(self) -> str:
        last = self._acknowledged.get("log")
        if last is None:
            return ""
        self.found.marks_checked += 1
        wanted = b"".join(content("log", number, self._seed) for number in range(last + 1))
        return "" if self._read("log").startswith(wanted) else f"log lacks round {last}"

    def _read(self, name: str) -> bytes:
        path = self._folder / name
        return path.read_bytes() if path.exists() else b""


def _left(epoch: list[Entry], entry: Entry) -> Iterator[tuple[str, list[Entry]]]:
    """What of the writes since the last flush a crash right behind `entry` may leave."""
    yield "all", [*epoch, entry]
    if not entry.may_be_lost:
        return
    half = entry.length // 2 // SECTOR * SECTOR
    torn = Entry(entry.offset, half, entry.flags, entry.data[:half], "")
    yield "the last one torn", [*epoch, torn]
    first = next((at for at, each in enumerate(epoch) if each.may_be_lost), None)
    if first is not None:
        yield "the first one lost", [*epoch[:first], *epoch[first + 1 :], entry]
