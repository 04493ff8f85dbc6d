"""A machine as the collector script recorded it, read into a snapshot.

The text consists of records. A line that begins with "=" starts one, the lines of its content begin
with a space:

    =ssdlab-collector 1 linux        the first line: version and system
    =target /srv                     the target, an absolute path
    =user 0                          whose rights the script had
    =kernel 6.1.0                    the kernel's release
    =file sys/class/...              the content of a file below /
    =link sys/class/...              where a symbolic link leads
    =dir run/systemd/system          a directory that exists
    =run smartctl --json -x /dev/sda what a command printed
    =end                             the last line: the script was not interrupted

`linux` records the files and runs the commands that the doctor itself would: they are put into a
temporary directory and read by the same code. `freebsd` is read by `freebsd`. The script for
Windows writes JSON, which `windows` reads.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final

from ssdlab.doctor.freebsd import read_freebsd
from ssdlab.errors import UsageError
from ssdlab.snapshot import Snapshot
from ssdlab.storage_stack.layers import Roots
from ssdlab.storage_stack.snapshot import Probes, Sizes, read_snapshot
from ssdlab.storage_stack.trim.tables import parse_tables
from ssdlab.storage_stack.zfs import read_pools

SIGNATURE: Final = "=ssdlab-collector "
SYSTEMS: Final = ("linux", "freebsd")
_SCRIPTS: Final = {"linux": "linux.sh", "freebsd": "freebsd.sh", "windows": "windows.ps1"}
_ROOTS: Final = frozenset({"sys", "proc", "etc", "run"})
_STATVFS: Final = "stat -f -c %S %b %a "


@dataclass(frozen=True)
class Recording:
    """The records of one machine; the keys of `files` and `links` are paths relative to /."""

    system: str
    target: str = "/"
    as_root: bool = False
    kernel: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    directories: Sequence[str] = ()
    programs: Mapping[str, str] = field(default_factory=dict)

    def run(self, command: Sequence[str]) -> str | None:
        """What the command printed there; None if it was not run."""
        return self.programs.get(" ".join(command))


def script(system: str) -> str:
    """The collector script for a system.

    Raises:
        UsageError: the system has none.
    """
    if system not in _SCRIPTS:
        raise UsageError(f"{system} has no collector; give {', '.join(_SCRIPTS)}")
    return files("ssdlab.doctor.collector").joinpath(_SCRIPTS[system]).read_text("utf-8")


def is_recording(text: bytes) -> bool:
    """Whether a file is the output of a collector script."""
    return text.startswith(SIGNATURE.encode())


def parse(text: str) -> Recording:
    """The records in the output of a collector script.

    Raises:
        UsageError: it is not one, is of another version, or is incomplete.
    """
    records = list(_records(text))
    head = re.fullmatch(r"ssdlab-collector (\S+) (\S+)", records[0][0]) if records else None
    if head is None or head[1] != "1" or head[2] not in SYSTEMS:
        raise UsageError(
            "this is not a recording that this version of ssdlab can read; record with the script "
            "that `ssdlab doctor --collector linux` prints"
        )
    if records[-1][0] != "end":
        raise UsageError("the recording is incomplete: its last line is not =end; record again")
    found: dict[str, dict[str, str]] = {kind: {} for kind in ("file", "link", "dir", "run")}
    single = {}
    for words, content in records[1:-1]:
        kind, _, rest = words.partition(" ")
        if kind in found:
            found[kind][rest] = content
        else:
            single[kind] = rest
    return Recording(
        system=head[2],
        target=single.get("target", "/"),
        as_root=single.get("user") == "0",
        kernel=single.get("kernel", ""),
        files=found["file"],
        links=found["link"],
        directories=tuple(found["dir"]),
        programs=found["run"],
    )


def _records(text: str) -> Iterator[tuple[str, str]]:
    """The words after "=" of each record, and its content."""
    words: str | None = None
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("="):
            if words is not None:
                yield words, "\n".join(lines)
            words, lines = line[1:], []
        else:
            lines.append(line.removeprefix(" "))
    if words is not None:
        yield words, "\n".join(lines)


def snapshot_of(recording: Recording) -> Snapshot:
    """The storage stack of a recorded machine; Linux is read by the code that reads a live one."""
    if recording.system == "freebsd":
        return read_freebsd(
            recording.target, recording.run, as_root=recording.as_root, kernel=recording.kernel
        )
    if "proc/self/mountinfo" not in recording.files:
        raise UsageError("the recording lacks /proc/self/mountinfo; record again where /proc is")
    with TemporaryDirectory(prefix="ssdlab-recorded-") as name:
        root = Path(name)
        for part in sorted(_ROOTS):
            (root / part).mkdir()
        _lay_out(recording, root)
        roots = Roots(
            *(root / "sys", root / "proc", root / "etc", root / "run"),
            tables=parse_tables(recording.run(("dmsetup", "table")) or ""),
            pools=read_pools(recording.run),
        )
        return read_snapshot(recording.target, roots, _probes(recording))


def _probes(recording: Recording) -> Probes:
    def sizes(point: Path) -> Sizes | None:
        words = recording.programs.get(f"{_STATVFS}{point}", "").split()
        if len(words) != 3 or not all(word.isdecimal() for word in words):
            return None
        block, total, free = map(int, words)
        return Sizes(block, total * block, free * block)

    started = {command.split(" ", maxsplit=1)[0] for command in recording.programs}
    return Probes(
        as_root=recording.as_root,
        kernel=recording.kernel,
        sizes=sizes,
        run=recording.run,
        installed=started.__contains__,
    )


def _lay_out(recording: Recording, root: Path) -> None:
    """Puts files and links below `root`; refuses whatever would lead out of it."""
    for name in recording.directories:
        (root / _inside(name)).mkdir(parents=True, exist_ok=True)
    for name, text in recording.files.items():
        path = root / _inside(name)
        _require_real_parents(path, root)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    for name, target in recording.links.items():
        path = root / _inside(name)
        _require_real_parents(path, root)
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() or path.is_symlink():
            raise UsageError(f"the recording has two records of {name}; record again")
        path.symlink_to(_link_target(path, target, root))


def _inside(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or path.parts[:1] not in {(r,) for r in _ROOTS}:
        raise UsageError(f"the recording has a record of {name}; only /sys, /proc, /etc and /run")
    return path


def _require_real_parents(path: Path, root: Path) -> None:
    if not path.parent.resolve().is_relative_to(root.resolve()):
        raise UsageError(
            f"the recording puts a file behind a symbolic link that points outside: {path.name}"
        )


def _link_target(path: Path, target: str, root: Path) -> str:
    """A link into the laid-out tree; a timer's link is only looked at, not followed."""
    if path.name == "fstrim.timer" and path.is_relative_to(root / "etc" / "systemd"):
        return target
    absolute = root / target.lstrip("/") if target.startswith("/") else path.parent / target
    inside = Path(os.path.normpath(absolute))
    if not inside.is_relative_to(root):
        raise UsageError(
            f"the recording has a symbolic link that points outside: {path.name} -> {target}"
        )
    return str(inside)
