"""What a heal is tried on: a file with known content beside another, and a program that writes."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ssdlab.storage_stack.extents import Extent, read_extents

SCRIPT = Path(__file__).with_name("steady_writer.py")
BLOCK = 4096
PATIENCE_S = 600


@dataclass
class Healing:
    """A file to be healed, what is in it, and a bystander that must stay as it is."""

    path: Path
    content: bytes
    bystander: Path
    other: bytes

    @property
    def extents(self) -> tuple[Extent, ...]:
        """Where it is now, read past what is in memory."""
        fd = os.open(self.path, os.O_RDONLY)
        try:
            return read_extents(fd) or ()
        finally:
            os.close(fd)

    def check(self, content: bytes | None = None) -> None:
        """Content as on the drive is what it was, the bystander's too, and nothing else came."""
        for path in (self.path, self.bystander):
            drop(path)
        wanted = self.content if content is None else content
        found = self.path.read_bytes()
        assert len(found) == len(wanted)
        differing = [
            at
            for at in range(0, len(wanted), BLOCK)
            if found[at : at + BLOCK] != wanted[at : at + BLOCK]
        ]
        assert differing == []
        assert self.bystander.read_bytes() == self.other
        names = {entry.name for entry in self.path.parent.iterdir()} - {"lost+found"}
        assert names == {self.path.name, self.bystander.name}


def drop(path: Path) -> None:
    """Takes a file from the page cache."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)


class Writer:
    """`steady_writer.py` at work."""

    def __init__(self, healing: Healing, mode: str, rest_us: int) -> None:
        self._healing = healing
        words = [sys.executable, str(SCRIPT), str(healing.path), mode, "1", str(rest_us)]
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def writes(self) -> int:
        """How often it wrote so far."""
        asked, told = self.process.stdin, self.process.stdout
        assert asked is not None
        assert told is not None
        asked.write("how often\n")
        asked.flush()
        assert select.select([told], [], [], PATIENCE_S)[0], "it goes on writing"
        return int(told.readline())

    def end(self) -> tuple[int, bytes]:
        """Ends it; returns how often it wrote, and what the file must hold."""
        out, _ = self.process.communicate("end\n", timeout=PATIENCE_S)
        told = json.loads(out)
        wanted = bytearray(self._healing.content)
        for block, count in told["last"].items():
            stamp = int(block).to_bytes(8, sys.byteorder) + count.to_bytes(8, sys.byteorder)
            wanted[int(block) * BLOCK : (int(block) + 1) * BLOCK] = stamp * (BLOCK // len(stamp))
        return told["writes"], bytes(wanted)


Patient = Callable[[Path, int], Healing]
Make = Callable[..., Path]
