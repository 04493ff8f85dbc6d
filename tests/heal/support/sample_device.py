"""A device to be healed as a whole, with a file system and files."""

from __future__ import annotations

import os
import random
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import btrfs_tools

from ssdlab.heal.device.allocated import read_file_system
from ssdlab.heal.device.whole import heal_device
from ssdlab.heal.device.windows import PROTECTED_BYTES, complement
from ssdlab.heal.options import DeviceOptions, HealOptions
from ssdlab.heal.outcome import FileOutcome
from ssdlab.heal.pieces import Range

MKFS = {"xfs": ("-q", "-f"), "btrfs": ("-q", "-f")}
CHECK = {"xfs": ("xfs_repair", "-n")}
PIECE = 1 << 20
UNMOUNT_TIMEOUT_S = 60
FREEZE_MS = 600_000
"""No limit in practice: on a busy machine, a late window would be left unchanged."""


def silent(_label: str, _done: int, _total: int) -> None:
    pass


def _data_bytes(fd: int, each: Range) -> int:
    """Bytes of a range that are not holes."""
    count, position = 0, each.offset
    while position < each.end:
        try:
            start = min(each.end, os.lseek(fd, position, os.SEEK_DATA))
        except OSError:  # only holes from here on
            break
        if start == each.end:
            break
        position = min(each.end, os.lseek(fd, start, os.SEEK_HOLE))
        count += position - start
    return count


@dataclass
class Device:
    """A file system on a loop device; its sparse image is in memory."""

    node: Path
    image: Path
    journal: Path
    point: Path
    kind: str
    content: dict[str, bytes] = field(default_factory=dict)

    def fill(self) -> None:
        """Makes the file system: files, some deleted and trimmed, one allocated but unwritten."""
        flags = MKFS.get(self.kind, ("-q", "-F"))
        made = btrfs_tools.run(f"mkfs.{self.kind}", *flags, str(self.node))
        assert made.returncode == 0, made.stderr
        rng = random.Random(3)
        self.point.mkdir()
        self.mount()
        sizes = [9 << 20, *(3000 * number for number in range(1, 30))]
        for number, size in enumerate(sizes):
            self.content[f"file-{number}"] = content = rng.randbytes(size)
            with (self.point / f"file-{number}").open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, size)  # in one extent where that is possible
                file.write(content)
        with (self.point / "allocated").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, 5 << 20)
        os.sync()
        for name in list(self.content)[2::3]:
            (self.point / name).unlink()
            del self.content[name]
        subprocess.run(["fstrim", str(self.point)], check=False, capture_output=True)
        self.unmount()

    def mount(self) -> None:
        command = ["mount", "-t", self.kind, str(self.node), str(self.point)]
        mounted = subprocess.run(command, capture_output=True, text=True, check=False)
        assert mounted.returncode == 0, mounted.stderr

    def unmount(self) -> None:
        """Unmounts it, with retries: files of a killed process are closed after its exit."""
        end = time.monotonic() + UNMOUNT_TIMEOUT_S
        while os.path.ismount(self.point):
            done = subprocess.run(
                ["umount", str(self.point)], capture_output=True, text=True, check=False
            )
            assert time.monotonic() < end, done.stderr
            time.sleep(0.02)

    def put(self, image: Path) -> None:
        """Overwrites the device with the content of an image."""
        with self.node.open("r+b", buffering=0) as device, image.open("rb") as other:
            while part := other.read(1 << 20):
                device.write(part)
            os.fsync(device.fileno())

    def overwrite(self) -> None:
        """Gives all files other content in the same blocks."""
        self.mount()
        for name, old in self.content.items():
            self.content[name] = newer = b"newer" * (len(old) // 5)
            with (self.point / name).open("r+b") as file:
                file.truncate(len(newer))
                file.write(newer)
        self.unmount()

    def image_bytes(self) -> int:
        """Bytes allocated to the image: trimmed and unwritten blocks take none."""
        fd = os.open(self.node, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)
        return self.image.stat().st_blocks * 512

    def untrimmed_free_bytes(self) -> int:
        """Bytes allocated to the image for free blocks of the file system; unmounted only."""
        self.image_bytes()
        used = read_file_system(self.node, self.kind)
        free = complement([Range(0, PROTECTED_BYTES), *used.ranges], used.size_bytes)
        fd = os.open(self.image, os.O_RDONLY)
        try:
            return sum(_data_bytes(fd, each) for each in free)
        finally:
            os.close(fd)

    def heal(self, options: HealOptions | None = None) -> FileOutcome:
        options = options or HealOptions(everything=True, piece_bytes=PIECE)
        return heal_device(self.node, DeviceOptions(options, self.journal, FREEZE_MS), silent)

    def check(self) -> None:
        """All files have their content, and the file system is clean."""
        subprocess.run(
            [*CHECK.get(self.kind, ("e2fsck", "-f", "-n")), str(self.node)],
            check=True,
            capture_output=True,
        )
        self.mount()
        try:
            for name, expected in self.content.items():
                assert (self.point / name).read_bytes() == expected, name
        finally:
            self.unmount()
