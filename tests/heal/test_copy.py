"""Where no kernel interface helps, a copy takes a file's place, only while nobody has it open."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from patients import Healing, Make, Patient

from ssdlab.heal.file import heal_file
from ssdlab.heal.methods import copy as copying
from ssdlab.heal.options import Wish
from ssdlab.heal.outcome import FileOutcome
from ssdlab.heal.pieces import Range

M = 1 << 20
OPENER = "import sys; f = open(sys.argv[1], 'r+b'); f.seek(5); f.write(b'mine'); f.close()"


def heal(healing: Healing) -> FileOutcome:
    return heal_file(healing.path, Wish(everything=True), lambda _label, _done, _total: None)


@pytest.fixture
def on_tables(make_filesystem: Make, patient: Patient) -> Callable[[int], Healing]:
    """A file on ext4 that is mapped by ext2's tables: no extents can be moved."""
    point = make_filesystem("ext4", 200, "-O ^extent,^64bit -b 4096")
    return lambda size: patient(point, size)


def test_all_that_a_file_has_besides_content_is_kept(on_tables: Callable[[int], Healing]) -> None:
    healing = on_tables(4 * M)
    path = healing.path
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
    outcome = heal(healing)
    after = path.stat()
    assert (outcome.way, outcome.why, outcome.left) == ("copy and exchange", "", [])
    assert after.st_ino != before.st_ino
    for what in ("st_mode", "st_uid", "st_gid", "st_size", "st_mtime_ns", "st_blocks", "st_nlink"):
        assert getattr(after, what) == getattr(before, what), what
    assert {name: os.getxattr(path, name) for name in names}["user.colour"] == b"green"
    assert os.listxattr(path) == names
    healing.check(healing.content + bytes(5 * M))


def test_on_xfs_without_shared_blocks_a_file_is_copied(
    make_filesystem: Make, patient: Patient
) -> None:
    healing = patient(make_filesystem("xfs", 400, "-m reflink=0"), 4 * M)
    outcome = heal(healing)
    assert (outcome.way, outcome.moved_bytes) == ("copy and exchange", 4 * M)
    healing.check()


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_space_reserved_within_and_beyond_the_end_stays_reserved(
    kind: str, make_filesystem: Make, patient: Patient
) -> None:
    point = make_filesystem(kind, 400, "-m reflink=0" if kind == "xfs" else "")
    healing = patient(point, 4 * M)
    for words in ("--offset 4MiB --length 3MiB", "--keep-size --offset 7MiB --length 5MiB"):
        subprocess.run(["fallocate", *words.split(), str(healing.path)], check=True)
    before = healing.path.stat()
    whole = Range(0, before.st_size)
    copying.Copy(healing.path, is_xfs=kind == "xfs").rewrite(whole)
    after = healing.path.stat()
    assert after.st_ino != before.st_ino
    assert (after.st_size, after.st_blocks) == (before.st_size, before.st_blocks)
    assert healing.extents[-1].end == 12 * M
    healing.check(healing.content + bytes(3 * M))


def test_a_file_that_somebody_has_open_stays(on_tables: Callable[[int], Healing]) -> None:
    healing = on_tables(4 * M)
    before = healing.path.stat().st_ino
    with healing.path.open("rb"):
        outcome = heal(healing)
    assert (outcome.moved_bytes, outcome.why) == (0, "somebody has it open")
    assert healing.path.stat().st_ino == before
    healing.check()


@pytest.mark.parametrize("moment", ["_fill", "_dress", "_exchange_names"])
def test_whoever_opens_the_file_meanwhile_finds_it_and_loses_nothing(
    moment: str, on_tables: Callable[[int], Healing], monkeypatch: pytest.MonkeyPatch
) -> None:
    healing = on_tables(4 * M)
    openers: list[subprocess.Popen[bytes]] = []
    whole = getattr(copying, moment)

    def with_an_opener(*arguments: object, **named: object) -> object:
        if not openers:
            words = [sys.executable, "-c", OPENER, str(healing.path)]
            openers.append(subprocess.Popen(words))
            while not waits_for_a_lease(openers[0]) and openers[0].poll() is None:
                time.sleep(0.01)
        return whole(*arguments, **named)

    monkeypatch.setattr(copying, moment, with_an_opener)
    outcome = heal(healing)
    assert openers[0].wait(600) == 0
    assert (outcome.moved_bytes, outcome.why) == (0, "somebody wants to open it")
    healing.check(healing.content[:5] + b"mine" + healing.content[9:])


def waits_for_a_lease(process: subprocess.Popen[bytes]) -> bool:
    """A kernel that does not tell lets it in after its /proc/sys/fs/lease-break-time."""
    return "break_lease" in Path(f"/proc/{process.pid}/wchan").read_text()


def test_what_a_killed_run_left_is_removed_and_what_is_in_use_stays(tmp_path: Path) -> None:
    left = tmp_path / ".ssdlab-heal-0123456789ab.tmp"
    left.write_bytes(b"x")
    for name in ("ssdlab-heal-0123456789ab.tmp", ".ssdlab-heal-012345678.tmp", "kept"):
        (tmp_path / name).write_bytes(b"x")
    _, in_use = copying._named_copy(tmp_path)
    try:
        assert copying.remove_leftovers(tmp_path) == [left]
        assert len(list(tmp_path.iterdir())) == 4
    finally:
        os.close(in_use)
