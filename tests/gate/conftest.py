"""Fixtures of the gate's tests: the checkout, and a way to run tools on copies of it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The root of this checkout."""
    return Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def run() -> Run:
    """Runs a program in a folder; `stdout` of the result also has its standard error.

    `variables` are added to the environment. Programs of this virtual environment come first.
    """

    def run_in(
        folder: Path, *command: str | Path, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "NO_COLOR": "1", **variables}
        return subprocess.run(
            [str(word) for word in command],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=900,
        )

    return run_in
