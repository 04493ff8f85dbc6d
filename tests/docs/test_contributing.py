"""CONTRIBUTING.md, followed to the letter in a copy of the checkout, adds what it promises."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pages.blocks import Block, blocks

CHECKOUT = Path(__file__).resolve().parents[2]
PARTS = ("CONTRIBUTING.md", "pyproject.toml", "python", "tests", "tools")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the checkout, as far as the page uses it; the native module is in `python`."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    parts = [CHECKOUT / part for part in PARTS]
    subprocess.run(["cp", "-r", *parts, folder], check=True)
    return folder


@pytest.fixture
def variables(copy: Path, tmp_path: Path) -> dict[str, str]:
    """An environment in which `ssdlab` and Python use the copy."""
    programs = tmp_path / "programs"
    programs.mkdir()
    start = "from ssdlab.cli import main; main()"
    program = programs / "ssdlab"
    program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c '{start}' \"$@\"\n")
    program.chmod(0o755)
    paths = f"{programs}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = {"PATH": paths, "PYTHONPATH": f"{copy / 'python'}", "PYTHONDONTWRITEBYTECODE": "1"}
    # Not the folder in which all other runs of pytest tidy up at the same time.
    own["PYTEST_DEBUG_TEMPROOT"] = str(programs)
    return {**os.environ, **own, "COLUMNS": "100", "NO_COLOR": "1"}


def section(title: str) -> list[Block]:
    """The blocks of one section of the page that can be run here."""
    page = CHECKOUT / "CONTRIBUTING.md"
    lines = page.read_text(encoding="utf-8").splitlines()
    start = lines.index(f"## {title}")
    following = [at for at in range(start + 1, len(lines)) if lines[at].startswith("## ")]
    end = (following or [len(lines)])[0]
    inside = [block for block in blocks(page) if start < block.line <= end]
    return [block for block in inside if "not run" not in block.marks]


def follow(block: Block, copy: Path, variables: dict[str, str]) -> str:
    """Writes the file that a block is, or runs it; returns what it printed."""
    if name := block.marks.get("file"):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text(block.text, encoding="utf-8")
        return ""
    return run(copy, variables, "bash", "-euc", block.script.replace(".venv/bin/python", "python"))


def run(folder: Path, variables: dict[str, str], *command: str) -> str:
    """What a program prints.

    Raises:
        AssertionError: it fails.
    """
    done = subprocess.run(
        command, cwd=folder, env=variables, stdout=-1, stderr=-2, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


def test_the_experiment_of_the_page_works_and_keeps_the_rules(
    copy: Path, variables: dict[str, str]
) -> None:
    steps = section("Add an experiment in 30 minutes")
    printed = [follow(block, copy, variables) for block in steps]
    every = "\n".join(printed)
    assert "is not slower" in every
    assert "The first read after 3 s without requests takes" in every
    assert "2 passed" in printed[-1]
    made = ["python/ssdlab/experiments", "tests/experiments/wake"]
    run(copy, variables, "ruff", "check", "--no-cache", *made)
    run(copy, variables, "ruff", "format", "--no-cache", "--check", *made)
    run(copy, variables, "lint-imports", "--no-cache", "--no-logo")


def test_the_drive_of_the_page_works(copy: Path, variables: dict[str, str]) -> None:
    printed = [follow(block, copy, variables) for block in section("Add a drive in 10 minutes")]
    assert "My Drive 1TB" in "".join(printed)
    assert "my-drive" in run(copy, variables, "ssdlab", "twin", "list")
