"""The real `ssdlab` as a program of its own, and the long runs that several tests look at."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forked import Program, run_ssdlab

TWINS = ("toshiba-xg5", "intel-s3510-480")


def _executable() -> str:
    beside = Path(sys.executable).parent / "ssdlab"
    found = str(beside) if beside.exists() else shutil.which("ssdlab")
    assert found, "ssdlab is not installed: run `make build`"
    return found


@pytest.fixture(scope="session")
def executable() -> str:
    """Path of the installed `ssdlab`."""
    return _executable()


@pytest.fixture
def ssdlab(tmp_path: Path) -> Program:
    """`ssdlab(*words, env=)` -> the finished process; it runs in an empty directory of its own."""
    folder = tmp_path / "working-directory"
    folder.mkdir()

    def run(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
        return run_ssdlab(words, **{"cwd": folder, **options})

    return run


@pytest.fixture
def refused(ssdlab: Program) -> Callable[..., str]:
    """`refused(*words)` -> the one line on stderr; it was bad input, and nothing was left."""

    def run(*words: object, **more: Any) -> str:
        done = ssdlab(*words, **more)
        assert done.returncode == 2, f"status {done.returncode}: {done.stderr}"
        assert done.stdout == ""
        assert done.stderr.endswith("\n")
        assert done.stderr.count("\n") == 1, done.stderr
        assert re.fullmatch(r"ssdlab: [^│╭╰]+\n", done.stderr), done.stderr
        return done.stderr.strip()

    return run


@pytest.fixture(scope="session")
def runs_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results folder of the runs below."""
    return tmp_path_factory.mktemp("full-size")


@pytest.fixture(scope="session")
def full_size(runs_folder: Path) -> dict[str, subprocess.CompletedProcess[str]]:
    """`aging --json` on each shipped twin at full size, by name; one process at a time."""
    return {
        name: run_ssdlab(
            ["run", "aging", f"twin:{name}", "--json", "--out", runs_folder],
            cwd=runs_folder,
            env={**os.environ, "COLUMNS": "200"},
        )
        for name in TWINS
    }


@pytest.fixture(scope="session")
def results(full_size: dict[str, subprocess.CompletedProcess[str]]) -> dict[str, dict[str, Any]]:
    """Their JSON."""
    return {name: json.loads(done.stdout) for name, done in full_size.items()}
