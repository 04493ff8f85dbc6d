"""The test file: always removed; no other file is ever touched."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from ssdlab.errors import TargetError
from ssdlab.runner.testfile import TestFile, remove_leftovers

MIB = 1 << 20
NAME = "ssdlab-test-0123456789ab.tmp"
HOLD = """
import sys
from pathlib import Path
from ssdlab.runner.testfile import TestFile
with TestFile(Path(sys.argv[1]), 1 << 20) as file:
    print(file.path.name, flush=True)
    sys.stdin.read()
"""


def _holder(directory: Path) -> subprocess.Popen[str]:
    """Starts a process that creates a test file in this directory and prints its name."""
    command = [sys.executable, "-c", HOLD, str(directory)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_the_file_is_preallocated_and_removed_at_the_end(tmp_path: Path) -> None:
    with TestFile(tmp_path, 4 * MIB) as file:
        status = os.fstat(file.fd)
        assert (status.st_size, status.st_blocks * 512 >= 4 * MIB) == (4 * MIB, True)
        assert status.st_mode & 0o077 == 0
        assert list(tmp_path.iterdir()) == [file.path]
    assert list(tmp_path.iterdir()) == []


def test_a_later_run_recognises_the_name(tmp_path: Path) -> None:
    with TestFile(tmp_path, 1) as file:
        assert re.fullmatch(r"ssdlab-test-[0-9a-f]{12}\.tmp", file.path.name)
        copy = tmp_path / "copy"
        os.link(file.path, copy)
        name = file.path.name
    copy.rename(tmp_path / name)
    assert remove_leftovers(tmp_path) == [tmp_path / name]


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
def test_the_file_is_removed_after_an_exception(tmp_path: Path, kind: type[BaseException]) -> None:
    with pytest.raises(kind), TestFile(tmp_path, 1):
        raise kind
    assert list(tmp_path.iterdir()) == []


def test_removing_a_file_that_is_already_removed_is_not_an_error(tmp_path: Path) -> None:
    with TestFile(tmp_path, 1) as file:
        file.path.unlink()
        file.remove()
    assert list(tmp_path.iterdir()) == []


def test_the_file_of_a_killed_process_is_removed_and_that_of_a_running_one_kept(
    tmp_path: Path,
) -> None:
    with _holder(tmp_path) as killed, _holder(tmp_path) as running:
        assert killed.stdout is not None
        assert running.stdout is not None
        left, held = killed.stdout.readline().strip(), running.stdout.readline().strip()
        assert remove_leftovers(tmp_path) == []
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert remove_leftovers(tmp_path) == [tmp_path / left]
        assert [path.name for path in tmp_path.iterdir()] == [held]
        running.communicate("")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name",
    [
        "ssdlab-test-0123456789ab.tmp.bak",
        "ssdlab-test-0123456789AB.tmp",
        "ssdlab-test-0123456789a.tmp",
        "my-ssdlab-test-0123456789ab.tmp",
        "ssdlab-test-.tmp",
        "ssdlab-test-0123456789abc.tmp",
        "ssdlab-test-0123456789ab.tmp\n",
    ],
)
def test_a_file_with_a_similar_name_is_kept(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("precious")
    (tmp_path / NAME).write_text("left")
    assert remove_leftovers(tmp_path) == [tmp_path / NAME]
    assert (tmp_path / name).read_text() == "precious"


def test_a_link_a_directory_and_a_pipe_named_like_a_test_file_are_kept(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("precious")
    directory = tmp_path / "directory"
    directory.mkdir()
    (directory / NAME).symlink_to(outside)
    (directory / NAME.replace("0", "1")).mkdir()
    os.mkfifo(directory / NAME.replace("0", "2"))
    assert remove_leftovers(directory) == []
    assert len(list(directory.iterdir())) == 3
    assert outside.read_text() == "precious"


def test_the_file_of_another_user_is_kept(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: it gives a file away")
    (tmp_path / NAME).write_text("theirs")
    os.chown(tmp_path / NAME, 65534, 65534)
    assert remove_leftovers(tmp_path) == []
    assert (tmp_path / NAME).exists()


def test_a_file_in_a_subdirectory_is_kept(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / NAME).write_text("left")
    assert remove_leftovers(tmp_path) == []
    assert (tmp_path / "below" / NAME).exists()


def test_removing_leftovers_never_removes_a_file_during_its_creation(tmp_path: Path) -> None:
    done = threading.Event()

    def tidy() -> None:
        while not done.is_set():
            remove_leftovers(tmp_path)

    threads = [threading.Thread(target=tidy) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(300):
            with TestFile(tmp_path, 1) as file:
                assert os.fstat(file.fd).st_nlink == 1
                assert file.path.exists()
    finally:
        done.set()
        for thread in threads:
            thread.join()


def test_a_file_removed_as_a_leftover_before_its_lock_is_created_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = fcntl.flock
    removed: list[Path] = []

    def lock_late(fd: int, operation: int) -> None:
        if not removed:
            removed.extend(tmp_path.iterdir())
            removed[0].unlink()
        lock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", lock_late)
    with TestFile(tmp_path, 1) as file:
        assert removed
        assert file.path != removed[0]
        assert file.path.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_missing_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=r"no test file can be created there \(No such file"):
        TestFile(tmp_path / "missing", 1)


def test_a_size_without_room_is_refused_and_leaves_nothing_behind(
    make_filesystem: Callable[..., Path],
) -> None:
    for kind in ("ext4", "xfs", "btrfs", "tmpfs"):
        top = make_filesystem(kind, 64)
        before = sorted(top.iterdir())
        with pytest.raises(TargetError, match=r"no room for a test file of 8 GiB"):
            TestFile(top, 8 << 30)
        assert sorted(top.iterdir()) == before
