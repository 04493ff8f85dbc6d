"""A device that is healed as a whole: its file system, its files, and what it takes of flash."""

from __future__ import annotations

import os
import random
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import btrfs_tools

from ssdlab.heal.device.allocated import allocated
from ssdlab.heal.device.whole import DeviceWish, heal_device
from ssdlab.heal.device.windows import GUARDED_BYTES, complement
from ssdlab.heal.options import Wish
from ssdlab.heal.outcome import FileOutcome
from ssdlab.heal.pieces import Range

MKFS = {"xfs": ("-q", "-f"), "btrfs": ("-q", "-f")}
CHECK = {"xfs": ("xfs_repair", "-n")}
PIECE = 1 << 20
PATIENCE_S = 600
PATIENT_MS = 600_000
"""A freeze lasts as long as a busy machine makes it: what is late is left as it is."""


def silent(_label: str, _done: int, _total: int) -> None:
    pass


def _taken(fd: int, each: Range) -> int:
    """Bytes of a range that are no hole."""
    found, at = 0, each.offset
    while at < each.end:
        try:
            start = min(each.end, os.lseek(fd, at, os.SEEK_DATA))
        except OSError:  # only holes from here on
            break
        at = min(each.end, os.lseek(fd, start, os.SEEK_HOLE)) if start < each.end else each.end
        found += max(0, at - start)
    return found


@dataclass
class Device:
    """A file system on a loop device over a sparse file in memory."""

    node: Path
    image: Path
    journal: Path
    point: Path
    kind: str
    content: dict[str, bytes] = field(default_factory=dict)

    def fill(self) -> None:
        """Makes the file system: files, some gone and trimmed, one reserved and never written."""
        flags = MKFS.get(self.kind, ("-q", "-F"))
        made = btrfs_tools.run(f"mkfs.{self.kind}", *flags, str(self.node))
        assert made.returncode == 0, made.stderr
        chance = random.Random(3)
        self.point.mkdir()
        self.mount()
        sizes = [9 << 20, *(3000 * number for number in range(1, 30))]
        for number, size in enumerate(sizes):
            self.content[f"file-{number}"] = chance.randbytes(size)
            (self.point / f"file-{number}").write_bytes(self.content[f"file-{number}"])
        with (self.point / "reserved").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, 5 << 20)
        os.sync()
        for name in list(self.content)[2::3]:
            (self.point / name).unlink()
            del self.content[name]
        subprocess.run(["fstrim", str(self.point)], check=False, capture_output=True)
        self.unmount()

    def mount(self) -> None:
        subprocess.run(["mount", "-t", self.kind, str(self.node), str(self.point)], check=True)

    def unmount(self) -> None:
        """Unmounts it; who is killed is told to be gone before all that it had open is closed."""
        end = time.monotonic() + PATIENCE_S
        while os.path.ismount(self.point):
            done = subprocess.run(
                ["umount", str(self.point)], capture_output=True, text=True, check=False
            )
            assert time.monotonic() < end, done.stderr
            time.sleep(0.02)

    def put(self, image: Path) -> None:
        """The device holds what another image holds."""
        with self.node.open("r+b", buffering=0) as device, image.open("rb") as other:
            while part := other.read(1 << 20):
                device.write(part)
            os.fsync(device.fileno())

    def overwrite(self) -> None:
        """All files get other content in the same blocks."""
        self.mount()
        for name, old in self.content.items():
            self.content[name] = newer = b"newer" * (len(old) // 5)
            with (self.point / name).open("r+b") as file:
                file.truncate(len(newer))
                file.write(newer)
        self.unmount()

    def bytes_on_flash(self) -> int:
        """What the file below takes: blocks that were trimmed or never written take nothing."""
        fd = os.open(self.node, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)
        return self.image.stat().st_blocks * 512

    def free_on_flash(self) -> int:
        """What of the file below is taken by blocks that the file system calls free; at rest."""
        self.bytes_on_flash()
        used = allocated(self.node, self.kind)
        free = complement([Range(0, GUARDED_BYTES), *used.ranges], used.size_bytes)
        fd = os.open(self.image, os.O_RDONLY)
        try:
            return sum(_taken(fd, each) for each in free)
        finally:
            os.close(fd)

    def heal(self, wish: Wish | None = None) -> FileOutcome:
        asked = wish or Wish(everything=True, piece_bytes=PIECE)
        return heal_device(self.node, DeviceWish(asked, self.journal, PATIENT_MS), silent)

    def check(self) -> None:
        """All files are there, byte for byte, and the file system is clean."""
        subprocess.run(
            [*CHECK.get(self.kind, ("e2fsck", "-f", "-n")), str(self.node)],
            check=True,
            capture_output=True,
        )
        self.mount()
        try:
            for name, wanted in self.content.items():
                assert (self.point / name).read_bytes() == wanted, name
        finally:
            self.unmount()
