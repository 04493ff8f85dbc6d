"""What a killed server leaves: its sockets, and at its directory what `serve --mount` made."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import socket
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ssdlab.attach.device import FOLDER_PREFIX, detach_loop, unmount_folder
from ssdlab.attach.programs import run
from ssdlab.errors import UsageError
from ssdlab.storage_stack.holders import holders
from ssdlab.storage_stack.mounts import PROC, read_mounts

_URI: Final = re.compile(r"nbd\+unix:///\?socket=(.+)")


@dataclass(frozen=True)
class Remains:
    """A mounted twin: its directory, loop device and nbdfuse's folder.

    `socket` is the server's; None if nbdfuse has ended, too.
    """

    directory: Path
    device: int
    node: Path
    folder: Path
    socket: Path | None

    @property
    def is_served(self) -> bool:
        """Whether its server still listens."""
        return self.socket is not None and _connect(self.socket) == 0

    def remove(self, say: Callable[[str], None]) -> None:
        """Unmounts it, detaches the loop device and ends nbdfuse.

        Raises:
            UsageError: something uses it.
        """
        done = run("umount", str(self.directory))
        if done.returncode:
            users = holders(self.directory, self.device)
            why = f"in use by {', '.join(users)}" if users else " ".join(done.stderr.split())
            raise UsageError(
                f"--mount {self.directory} is mounted from a twin whose server was killed, and "
                f"cannot be unmounted ({why}); end what uses it and try again, or give another "
                "directory"
            )
        detach_loop(str(self.node))
        unmount_folder(self.folder)
        with contextlib.suppress(OSError):
            self.folder.rmdir()
        if self.socket is not None:
            for path in (self.socket, Path(f"{self.socket}.control")):
                path.unlink(missing_ok=True)
        say(
            f"{self.directory} was still mounted from a twin whose server was killed: unmounted "
            f"it, and detached {self.node}"
        )


def remove_remains(directory: Path, say: Callable[[str], None]) -> None:
    """Undoes what a killed `serve --mount` left at a directory, if anything.

    Raises:
        UsageError: its server still runs, or something uses the mount.
    """
    found = find_remains(directory)
    if found is None:
        return
    if found.is_served:
        raise UsageError(
            f"--mount {directory} has a twin mounted that is being served at {found.socket}; end "
            "that server with Ctrl-C, or give another directory"
        )
    found.remove(say)


def find_remains(directory: Path) -> Remains | None:
    """The twin that is mounted at a directory by `serve --mount`, dead or not."""
    point = Path(os.path.realpath(directory.parent)) / directory.name  # its own root may be dead
    mount = next((each for each in read_mounts() if each.mount_point == point), None)
    if mount is None:
        return None
    node = Path(mount.source)
    backing = Path("/sys/block", node.name, "loop/backing_file")
    try:
        folder = Path(backing.read_text(encoding="utf-8").rstrip("\n")).parent
    except OSError:  # not a loop device
        return None
    if folder.parent != Path(tempfile.gettempdir()) or not folder.name.startswith(FOLDER_PREFIX):
        return None
    device = os.makedev(mount.major, mount.minor)
    return Remains(point, device, node, folder, _socket_of(folder))


def free_socket(option: str, path: Path) -> None:
    """Removes the socket of a server that was killed, so that a new one can be made there.

    Raises:
        UsageError: a server listens on it, or it is not a socket; `option` is what named it.
    """
    if path.is_socket():
        if _connect(path) != errno.ECONNREFUSED:
            raise UsageError(
                f"{option} {path} is the socket of a running server; give another path, or end "
                "that server with Ctrl-C"
            )
        path.unlink()
    elif path.exists():
        raise UsageError(f"{option} {path} exists and is not a socket; give another path")


def _connect(path: Path) -> int:
    """0 if a server listens on a socket, otherwise an error number."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path))


def _socket_of(folder: Path) -> Path | None:
    """The socket that the nbdfuse of a folder was given; None if it does not run."""
    for process in PROC.glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:  # it has ended
            continue
        if str(folder) in words:
            for word in words:
                if match := _URI.fullmatch(word):
                    return Path(match[1])
    return None
