"""Without a kernel interface, a copy replaces the file, only while no program has it open."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sample_file import MakeFileSystem, MakeSample, SampleFile

from ssdlab.heal.file import heal_file
from ssdlab.heal.methods import copy as copying
from ssdlab.heal.options import HealOptions
from ssdlab.heal.outcome import FileOutcome
from ssdlab.heal.pieces import Range

M = 1 << 20
OPENER = "import sys; f = open(sys.argv[1], 'r+b'); f.seek(5); f.write(b'mine'); f.close()"


def heal(sample: SampleFile) -> FileOutcome:
    return heal_file(sample.path, HealOptions(everything=True), lambda _label, _done, _total: None)


@pytest.fixture
def make_unmovable(
    make_filesystem: MakeFileSystem, make_sample: MakeSample
) -> Callable[[int], SampleFile]:
    """`make_unmovable(size)` -> a file on an ext4 without extents, which cannot be moved."""
    point = make_filesystem("ext4", 200, "-O ^extent,^64bit -b 4096")
    return lambda size: make_sample(point, size)


def test_all_metadata_of_the_file_is_kept(
    make_unmovable: Callable[[int], SampleFile],
) -> None:
    sample = make_unmovable(4 * M)
    path = sample.path
    with path.open("r+b") as file:
        file.truncate(9 * M)
    path.chmod(0o4751)
    os.chown(path, 1234, 2345)
    path.chmod(0o4751)
    os.setxattr(path, "user.colour", b"green")
    if shutil.which("setfacl"):
        subprocess.run(["setfacl", "-m", "u:77:r", str(path)], check=True)
    names = os.listxattr(path)
    os.utime(path, ns=(1_000_000_000_123_456_789, 1_100_000_000_987_654_321))
    before = path.stat()
    outcome = heal(sample)
    after = path.stat()
    assert (outcome.way, outcome.why, outcome.left) == ("copy and exchange", "", [])
    assert after.st_ino != before.st_ino
    for field in ("st_mode", "st_uid", "st_gid", "st_size", "st_mtime_ns", "st_blocks", "st_nlink"):
        assert getattr(after, field) == getattr(before, field), field
    assert {name: os.getxattr(path, name) for name in names}["user.colour"] == b"green"
    assert os.listxattr(path) == names
    sample.check(sample.content + bytes(5 * M))


def test_on_xfs_without_shared_blocks_a_file_is_copied(
    make_filesystem: MakeFileSystem, make_sample: MakeSample
) -> None:
    sample = make_sample(make_filesystem("xfs", 400, "-m reflink=0"), 4 * M)
    outcome = heal(sample)
    assert (outcome.way, outcome.moved_bytes) == ("copy and exchange", 4 * M)
    sample.check()


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_space_allocated_inside_and_beyond_the_file_stays_allocated(
    kind: str, make_filesystem: MakeFileSystem, make_sample: MakeSample
) -> None:
    point = make_filesystem(kind, 400, "-m reflink=0" if kind == "xfs" else "")
    sample = make_sample(point, 4 * M)
    for arguments in ("--offset 4MiB --length 3MiB", "--keep-size --offset 7MiB --length 5MiB"):
        subprocess.run(["fallocate", *arguments.split(), str(sample.path)], check=True)
    before = sample.path.stat()
    whole = Range(0, before.st_size)
    copying.Copy(sample.path, is_xfs=kind == "xfs").rewrite(whole)
    after = sample.path.stat()
    assert after.st_ino != before.st_ino
    assert (after.st_size, after.st_blocks) == (before.st_size, before.st_blocks)
    assert sample.extents[-1].end == 12 * M
    sample.check(sample.content + bytes(3 * M))


def test_a_file_that_another_program_has_open_is_not_replaced(
    make_unmovable: Callable[[int], SampleFile],
) -> None:
    sample = make_unmovable(4 * M)
    before = sample.path.stat().st_ino
    with sample.path.open("rb"):
        outcome = heal(sample)
    assert (outcome.moved_bytes, outcome.why) == (0, "another program has it open")
    assert sample.path.stat().st_ino == before
    sample.check()


@pytest.mark.parametrize("moment", ["_copy_content", "_copy_metadata", "_exchange_names"])
def test_a_program_that_opens_the_file_during_the_heal_loses_no_data(
    moment: str, make_unmovable: Callable[[int], SampleFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = make_unmovable(4 * M)
    openers: list[subprocess.Popen[bytes]] = []
    real_function = getattr(copying, moment)

    def open_first(*arguments: object, **named: object) -> object:
        if not openers:
            command = [sys.executable, "-c", OPENER, str(sample.path)]
            openers.append(subprocess.Popen(command))
            end = time.monotonic() + 60
            while not waits_for_a_lease(openers[0]) and openers[0].poll() is None:
                assert time.monotonic() < end, "it does not wait for a lease"
                time.sleep(0.01)
        return real_function(*arguments, **named)

    monkeypatch.setattr(copying, moment, open_first)
    outcome = heal(sample)
    assert openers[0].wait(600) == 0
    assert (outcome.moved_bytes, outcome.why) == (0, "another program is opening it")
    sample.check(sample.content[:5] + b"mine" + sample.content[9:])


def waits_for_a_lease(process: subprocess.Popen[bytes]) -> bool:
    """If wchan is not available, the open succeeds after /proc/sys/fs/lease-break-time."""
    return "break_lease" in Path(f"/proc/{process.pid}/wchan").read_text()


def test_copies_left_by_a_killed_run_are_removed_unless_in_use(tmp_path: Path) -> None:
    leftover = tmp_path / ".ssdlab-heal-0123456789ab.tmp"
    leftover.write_bytes(b"x")
    for name in ("ssdlab-heal-0123456789ab.tmp", ".ssdlab-heal-012345678.tmp", "kept"):
        (tmp_path / name).write_bytes(b"x")
    _, in_use = copying._create_temporary(tmp_path)
    try:
        assert copying.remove_leftovers(tmp_path) == [leftover]
        assert len(list(tmp_path.iterdir())) == 4
    finally:
        os.close(in_use)
