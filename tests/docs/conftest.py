"""What the tests of the documentation share: an `ssdlab` to run its blocks with."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import short_rests
from built import built, copied
from reader import Reader

import ssdlab


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables in which `ssdlab` is the package that these tests import, and `python` theirs.

    Root needs no sudo, and may not have it.
    """
    programs = tmp_path_factory.mktemp("programs")
    package = Path(ssdlab.__file__).parents[1]
    program = Path(short_rests.__file__)
    paths = f"PYTHONPATH='{package}'${{PYTHONPATH:+:$PYTHONPATH}}"
    _program(programs / "ssdlab", f"{paths} exec '{sys.executable}' '{program}'")
    _program(programs / "python", f"{paths} exec '{sys.executable}'")
    if os.geteuid() == 0:
        _program(programs / "sudo", "exec")
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1"}


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, made from a copy of this checkout's pages."""
    copy = copied(tmp_path_factory.mktemp("checkout"))
    done = built(copy)
    assert done.returncode == 0, done.stdout
    return copy / "site"


def _program(file: Path, command: str) -> None:
    file.write_text(f'#!/bin/sh\n{command} "$@"\n')
    file.chmod(0o755)


@pytest.fixture
def reader(
    request: pytest.FixtureRequest, tmp_path: Path, environment: dict[str, str]
) -> Iterator[Reader]:
    """Somebody who types what a page shows, in an empty folder."""

    def on_drive() -> Path:
        directory: Path = request.getfixturevalue("drive_directory")
        return directory

    def ext4() -> Path:
        make: Callable[..., Path] = request.getfixturevalue("make_filesystem")
        return make("ext4", 2048, direct_io=True)

    def loop() -> Path:
        attach: Callable[..., Path] = request.getfixturevalue("loop_device")
        return attach(256, direct_io=True)

    folder = tmp_path / "folder"
    folder.mkdir()
    drives = {"DATA": on_drive, "EXT4": ext4, "LOOP": loop}
    somebody = Reader(folder, dict(environment), drives)
    yield somebody
    somebody.leave()
