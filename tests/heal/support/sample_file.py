"""A file with known content to be healed, another beside it, and a program that writes to it."""

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

SCRIPT = Path(__file__).with_name("random_writer.py")
BLOCK = 4096
PATIENCE_S = 60


@dataclass
class SampleFile:
    """A file to be healed with its content, and a bystander that must not change."""

    path: Path
    content: bytes
    bystander: Path
    bystander_content: bytes

    @property
    def extents(self) -> tuple[Extent, ...]:
        """Its current extents."""
        fd = os.open(self.path, os.O_RDONLY)
        try:
            return read_extents(fd) or ()
        finally:
            os.close(fd)

    def check(self, content: bytes | None = None) -> None:
        """Both files have their content on the drive, and the directory has no other file."""
        for path in (self.path, self.bystander):
            drop(path)
        expected = self.content if content is None else content
        actual = self.path.read_bytes()
        assert len(actual) == len(expected)
        differing = [
            at
            for at in range(0, len(expected), BLOCK)
            if actual[at : at + BLOCK] != expected[at : at + BLOCK]
        ]
        assert differing == []
        assert self.bystander.read_bytes() == self.bystander_content
        names = {entry.name for entry in self.path.parent.iterdir()} - {"lost+found"}
        assert names == {self.path.name, self.bystander.name}


def drop(path: Path) -> None:
    """Flushes a file and drops it from the page cache."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)


class RandomWriter:
    """A running `random_writer.py`."""

    def __init__(self, sample: SampleFile, mode: str, rest_us: int) -> None:
        self._sample = sample
        words = [sys.executable, str(SCRIPT), str(sample.path), mode, "1", str(rest_us)]
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def writes(self) -> int:
        """The number of writes so far."""
        requests, answers = self.process.stdin, self.process.stdout
        assert requests is not None
        assert answers is not None
        requests.write("count\n")
        requests.flush()
        assert select.select([answers], [], [], PATIENCE_S)[0], "it does not answer"
        return int(answers.readline())

    def end(self) -> tuple[int, bytes]:
        """Ends it; returns the number of writes, and the expected content of the file."""
        out, _ = self.process.communicate("end\n", timeout=PATIENCE_S)
        report = json.loads(out)
        expected = bytearray(self._sample.content)
        for block, count in report["last"].items():
            stamp = int(block).to_bytes(8, sys.byteorder) + count.to_bytes(8, sys.byteorder)
            expected[int(block) * BLOCK : (int(block) + 1) * BLOCK] = stamp * (BLOCK // len(stamp))
        return report["writes"], bytes(expected)


MakeSample = Callable[[Path, int], SampleFile]
MakeFileSystem = Callable[..., Path]
