"""A captured machine: the parts of /sys and /proc that `storage_stack` reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

QUEUE = {
    "queue/rotational": "0",
    "queue/logical_block_size": "512",
    "queue/physical_block_size": "4096",
    "queue/scheduler": "[none] mq-deadline",
    "queue/write_cache": "write back",
    "queue/discard_max_bytes": "2147450880",
    "queue/discard_granularity": "512",
    "removable": "0",
    "ro": "0",
}


class CapturedMachine:
    """Builds /sys and /proc with the kernel's layout of directories and links."""

    def __init__(self, root: Path) -> None:
        """A machine with one mount, no devices and no swap."""
        self.sys = root / "sys"
        self.proc = root / "proc"
        self.etc = root / "etc"
        self.run = root / "run"
        (self.proc / "self").mkdir(parents=True)
        self.mountinfo("1 0 0:2 / / rw - rootfs rootfs rw")
        self.swaps()

    def disk(
        self, name: str, number: str, where: str, files: Mapping[str, str] | None = None
    ) -> Path:
        """A disk of 1 GiB in /sys/`where`/`name` with the queue of an SSD, and `files`."""
        directory = self.sys / where / name
        self._write(directory, {"dev": number, "size": "2097152", **QUEUE, **(files or {})})
        (directory / "holders").mkdir()
        (directory / "slaves").mkdir()
        self._link(directory, number)
        return directory

    def partition(self, disk: Path, name: str, number: str, start: int = 2048) -> Path:
        """A partition of 512 MiB."""
        directory = disk / name
        texts = {"dev": number, "size": "1048576", "partition": "1", "start": str(start), "ro": "0"}
        self._write(directory, texts)
        (directory / "holders").mkdir()
        self._link(directory, number)
        return directory

    def rests_on(self, upper: Path, lower: Path) -> None:
        """Makes `upper` a holder of `lower`, and `lower` a slave of `upper`."""
        (upper / "slaves" / lower.name).symlink_to(lower)
        (lower / "holders" / upper.name).symlink_to(upper)

    def btrfs(self, uuid: str, *members: Path) -> None:
        """A mounted btrfs file system on these devices."""
        directory = self.sys / "fs" / "btrfs" / uuid / "devices"
        directory.mkdir(parents=True)
        for member in members:
            (directory / member.name).symlink_to(member)

    def mountinfo(self, *lines: str) -> None:
        """Replaces all mounts."""
        (self.proc / "self" / "mountinfo").write_text("".join(f"{line}\n" for line in lines))

    def swaps(self, *lines: str) -> None:
        """Replaces all swap spaces."""
        head = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
        (self.proc / "swaps").write_text(head + "".join(f"{line}\n" for line in lines))

    def files(self, where: str, texts: Mapping[str, str]) -> None:
        """Writes files in `where`: "sys/...", "proc/...", "etc/..." or "run/..."."""
        self._write(self.sys.parent / where, texts)

    def weekly_trim(self, fstab: str = "") -> None:
        """Adds systemd with fstrim.timer enabled."""
        wants = self.etc / "systemd/system/timers.target.wants"
        wants.mkdir(parents=True)
        (wants / "fstrim.timer").symlink_to("/usr/lib/systemd/system/fstrim.timer")
        (self.run / "systemd/system").mkdir(parents=True)
        (self.etc / "fstab").write_text(fstab)

    def _write(self, directory: Path, texts: Mapping[str, str]) -> None:
        for name, text in texts.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n")

    def _link(self, directory: Path, number: str) -> None:
        for link in (f"dev/block/{number}", f"class/block/{directory.name}"):
            path = self.sys / link
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(directory)
