"""A served twin as a block device: nbdfuse shows it as a file, a loop device makes it a drive."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from ssdlab.attach.programs import find, run, run_or_fail
from ssdlab.errors import TargetError
from ssdlab.storage_stack.mounts import read_mounts

FOLDER_PREFIX: Final = "ssdlab-nbdfuse-"
"""How the names of nbdfuse's folders begin."""
_LOOPS_MAX: Final = 16
_START_S: Final = 30.0
_END_S: Final = 30.0
_POLL_S: Final = 0.02


class AttachedTwin:
    """The block device of the twin behind a Unix socket; `detach` undoes everything."""

    def __init__(self, socket: Path) -> None:
        """Attaches it.

        Raises:
            TargetError: a program failed, or no loop device is free.
        """
        with ExitStack() as undo:
            folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX))
            undo.callback(folder.rmdir)
            self._fuse = _start_fuse(socket, folder)
            undo.callback(_end_fuse, self._fuse, folder)
            self.node = _loop_of(folder / "nbd", undo)
            self._undo = undo.pop_all()

    @property
    def is_alive(self) -> bool:
        """Whether nbdfuse still runs."""
        return self._fuse.poll() is None

    def detach(self) -> None:
        """Detaches the loop device and ends nbdfuse; call it when nothing is mounted."""
        self._undo.close()


def _start_fuse(socket: Path, folder: Path) -> subprocess.Popen[bytes]:
    """nbdfuse in a session of its own: Ctrl-C must not end it before the file system."""
    program = find("nbdfuse")
    assert program is not None, "checked before"
    fuse = subprocess.Popen(
        [program, str(folder), f"nbd+unix:///?socket={socket.absolute()}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    with ExitStack() as undo:
        undo.callback(_end_fuse, fuse, folder)
        _wait_for_fuse(fuse, folder)
        undo.pop_all()
    return fuse


def _wait_for_fuse(fuse: subprocess.Popen[bytes], folder: Path) -> None:
    end = time.monotonic() + _START_S
    while not (os.path.ismount(folder) and (folder / "nbd").exists()):
        if fuse.poll() is not None or time.monotonic() > end:
            raise TargetError(f"nbdfuse did not attach the twin: {_last_words(fuse)}")
        time.sleep(_POLL_S)


def _last_words(fuse: subprocess.Popen[bytes]) -> str:
    fuse.kill()
    _, errors = fuse.communicate()
    return " ".join(errors.decode(errors="replace").split()) or "no message"


def _end_fuse(fuse: subprocess.Popen[bytes], folder: Path) -> None:
    unmount_folder(folder)
    try:
        fuse.communicate(timeout=_END_S)
    except subprocess.TimeoutExpired:
        fuse.kill()
        fuse.communicate()


def unmount_folder(folder: Path) -> None:
    """Unmounts nbdfuse's folder, which ends it: not every system has fusermount."""
    end = time.monotonic() + _END_S
    while is_mounted(folder) and run("umount", str(folder)).returncode:
        if time.monotonic() > end:
            run("umount", "--lazy", str(folder))
            break
        time.sleep(_POLL_S)


def is_mounted(folder: Path) -> bool:
    """By the kernel's list: a stat of a file system whose server is gone fails."""
    return any(mount.mount_point == folder for mount in read_mounts())


def _loop_of(file: Path, undo: ExitStack) -> Path:
    """A loop device that passes discards: one that was used before may have them turned off.

    Those without discards stay attached until another one is found, as losetup would choose them
    again.
    """
    with ExitStack() as others:
        for _ in range(_LOOPS_MAX):
            node = run_or_fail("losetup", "--find", "--show", "--direct-io=on", str(file)).strip()
            with ExitStack() as own:
                own.callback(detach_loop, node)
                if _passes_discards(node):
                    undo.push(own.pop_all())
                    return Path(node)
                others.push(own.pop_all())
    raise TargetError(
        f"{_LOOPS_MAX} loop devices pass no discards; see them with losetup --list, and "
        "detach those that nothing uses: losetup --detach /dev/loopN"
    )


def _passes_discards(node: str) -> bool:
    limit = Path("/sys/block", Path(node).name, "queue/discard_max_bytes")
    return limit.read_text(encoding="ascii").strip() != "0"


def detach_loop(node: str) -> None:
    """Detaches a loop device; the kernel releases it when its last user closes it."""
    run("losetup", "--detach", node)
    end = time.monotonic() + _END_S
    backing = Path("/sys/block", Path(node).name, "loop/backing_file")
    while backing.exists() and time.monotonic() < end:
        time.sleep(_POLL_S)
