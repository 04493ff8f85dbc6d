"""`ssdlab serve --mount`: the served twin as a mounted file system."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from ssdlab.errors import UsageError

if TYPE_CHECKING:
    from ssdlab.device import ServeOptions

Mount = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Also attach the twin, make a file system on it and mount that here, as root.",
    ),
]
FileSystem = Annotated[
    str | None, typer.Option("--fs", help="With --mount: ext4 (default), xfs or btrfs.")
]


@dataclass(frozen=True)
class Mounting:
    """The directory and file system of --mount."""

    directory: Path
    kind: str

    @property
    def default_socket(self) -> Path:
        """The twin's socket without --unix; only root can write in /run."""
        return Path(f"/run/ssdlab-{os.getpid()}.sock")

    def serve(self, options: ServeOptions, *, quiet: bool) -> None:
        """Mounts the twin, and again after each power cut; Ctrl-C unmounts it.

        `quiet` prints no commands, but still what happens to the mount.

        Raises:
            TargetError: a program failed.
        """
        from ssdlab.attach import MountedTwin

        assert options.address is not None, "--mount has a Unix socket"
        assert options.control is not None, "a Unix socket has a control socket"
        socket, control = Path(options.address), Path(options.control)
        twin = MountedTwin(self.directory, self.kind, _say)
        with twin.mounted(socket, control, compensate=options.pace is not None) as lead_us:
            directory, path = shlex.quote(str(twin.directory)), shlex.quote(str(control))
            lines = [
                f"mounted at {directory}: {self.kind} on {twin.node}, until Ctrl-C",
                f"  watch it            ssdlab watch {path}",
                f"  cut its power       ssdlab control {path} power-cut on=true",
                f"  trim free space     fstrim {directory}",
            ]
            if lead_us:
                lines.append(
                    f"  replies are sent {lead_us:.0f} us early, to offset the latency of nbdfuse "
                    "and the loop device"
                )
            for line in [] if quiet else lines:
                _say(line)
            twin.watch(socket, control)


def _say(sentence: str) -> None:
    Console(stderr=True).print(sentence, markup=False, highlight=False, soft_wrap=True)


def mounting_of(
    directory: Path | None, kind: str | None, tcp: str | None, tls: Path | None
) -> Mounting | None:
    """The options of --mount, checked before the twin is served; None without --mount.

    A mount that a killed server left at the directory is undone.

    Raises:
        UsageError: no root, a program is missing, the directory cannot be used, or another option
            does not fit.
    """
    if directory is None:
        if kind is not None:
            raise UsageError(f"--fs {kind} needs --mount DIR")
        return None
    if tcp is not None or tls is not None:
        option = "--tcp" if tcp is not None else "--tls-certificates"
        raise UsageError(f"--mount attaches the twin by a Unix socket; leave out {option}")
    from ssdlab.attach import check_mount

    check_mount(directory, kind or "ext4", _say)
    return Mounting(directory, kind or "ext4")
