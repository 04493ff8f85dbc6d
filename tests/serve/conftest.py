"""Fixtures: served twins, block devices and file systems on them; all are removed at the end."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType

import pytest
from rig import (
    TWIN,
    Attach,
    Attached,
    Mounted,
    Serve,
    Served,
    end_fuse,
    executable,
    loop_of,
    need,
    run,
    unmount,
    wait_for,
)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """`serve(*words, capacity=, program=, more=, protected=, honest=)` -> a served twin.

    `more` is added to its profile: keys by section. It runs at full speed, unless `words` has
    --pace.
    """
    with ExitStack() as undo:

        def start(
            *words: str,
            capacity: str = "256 MiB",
            program: str = "500 us",
            more: Mapping[str, str] = MappingProxyType({}),
            **manner: bool,
        ) -> Served:
            number = len(list(tmp_path.glob("twin-*.toml")))
            profile = tmp_path / f"twin-{number}.toml"
            flags = {"protected": False, "honest": True, **manner}
            switches = {key: str(value).lower() for key, value in flags.items()}
            text = TWIN.format(capacity=capacity, program=program, **switches)
            for section, keys in more.items():
                text = text.replace(f"[{section}]\n", f"[{section}]\n{keys}\n")
            profile.write_text(text)
            socket = tmp_path / f"{number}.sock"
            command = [executable(), "serve", str(profile), "--unix", str(socket), "--json"]
            command += ["--pace", "none", *words]
            messages = tmp_path / f"{number}.messages"
            with messages.open("w") as stderr:
                process = subprocess.Popen(
                    command, stdout=subprocess.PIPE, stderr=stderr, text=True
                )
            served = Served(socket, process, messages)
            undo.callback(served.stop)
            # The server prints the commands to attach it once it listens.
            wait_for(lambda: "losetup" in messages.read_text(), served.messages)
            return served

        yield start


@pytest.fixture
def attach(tmp_path: Path) -> Iterator[Attach]:
    """`attach(served)` -> a block device; skips without root, nbdfuse or losetup."""
    need("nbdfuse", "losetup", "umount", root=True)
    with ExitStack() as all_undo:

        def make(served: Served) -> Attached:
            folder = tmp_path / f"fuse-{len(list(tmp_path.glob('fuse-*')))}"
            folder.mkdir()
            undo = all_undo.enter_context(ExitStack())
            fuse = subprocess.Popen(
                ["nbdfuse", str(folder), served.uri], stderr=subprocess.PIPE, text=True
            )
            undo.callback(end_fuse, fuse, folder)
            file = folder / "nbd"
            wait_for(lambda: os.path.ismount(folder) and file.exists(), "nbdfuse")
            device = loop_of(file, undo)
            return Attached(device, undo)

        yield make


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Mounted]:
    """`mounted(device, kind)` -> its mount point, unmounted at the end of the test."""
    with ExitStack() as undo:

        def mount(device: str, kind: str) -> Path:
            point = tmp_path / f"mount-{len(list(tmp_path.glob('mount-*')))}"
            point.mkdir()
            done = run("mount", "-t", kind, device, str(point), check=False)
            if "unknown filesystem" in done.stderr:
                pytest.skip(f"{kind} cannot be mounted here: {done.stderr.strip()}")
            assert done.returncode == 0, done.stderr
            undo.callback(unmount, point)
            return point

        yield mount
