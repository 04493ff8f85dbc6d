"""`ssdlab checkup` as a program: terminal, JSON, page, card and refusals."""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forked import Program

TWIN = ("twin:toshiba-xg5", "--capacity", "1GiB")
TESTS = ["SEQ1M Q8T1", "SEQ1M Q1T1", "RND4K Q32T1", "RND4K Q1T1"]


@pytest.fixture
def folder(ssdlab: Program, tmp_path: Path) -> Path:
    """The folder of a finished checkup of a twin."""
    done = ssdlab("checkup", *TWIN, "--json", "--quiet", "--out", tmp_path / "runs")
    assert done.returncode == 1, done.stderr
    assert done.stderr == ""
    printed: dict[str, Any] = json.loads(done.stdout)
    assert [row["test"] for row in printed["measures"]] == TESTS
    assert {run["experiment"] for run in printed["runs"]} == {
        *("suite", "fsync", "trim", "aging", "cache")
    }
    assert printed["lights"][0]["colour"] == "red"
    return Path(printed["folder"])


def test_a_recorded_checkup_is_shown_at_any_width_with_its_page_and_card(
    ssdlab: Program, folder: Path, tmp_path: Path
) -> None:
    page, card, drawing = (tmp_path / name for name in ("a.html", "a.png", "a.svg"))
    for width in (80, 50):
        done = ssdlab(
            *("checkup", "--recorded", folder, "--html", page, "--card", card),
            env={**os.environ, "COLUMNS": str(width)},
        )
        assert done.returncode == 1, done.stderr
        assert "● red" in done.stdout
        assert all(test in done.stdout for test in TESTS)
        copied = ("->", "details:", "as a page", str(folder))
        lines = [line for line in done.stdout.splitlines() if not line.strip().startswith(copied)]
        assert max(map(len, lines)) <= width
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"<link|src=|url\(http", text)
    assert text.count('class="light ') == 5
    assert 'href="#run-' in text
    assert "Findings" in text
    content = card.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", content[16:24]) == (2400, 1260)
    done = ssdlab("checkup", "--recorded", folder, "--card", drawing)
    assert done.returncode == 1
    assert drawing.read_text().lstrip().startswith("<?xml")


def test_reports_and_lists_find_the_runs_of_a_checkup(ssdlab: Program, folder: Path) -> None:
    assert ssdlab("report", folder).stdout.count("=> ") == 5
    assert ssdlab("report", folder.parent).stdout.count("=> ") == 5
    listed = ssdlab("runs", folder.parent, "--label", "checkup")
    assert listed.returncode == 0
    assert "aging" in listed.stdout


def test_wrong_use_is_one_line(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "give only one of" in refused("checkup", tmp_path, "--recorded", tmp_path)
    assert "ends in .png or .svg" in refused("checkup", *TWIN, "--card", "a.jpg")
    assert "in an existing directory" in refused("checkup", *TWIN, "--card", "none/a.png")
    assert "in an existing directory" in refused("checkup", *TWIN, "--html", "none/a.html")
    assert "is not the folder of a checkup" in refused("checkup", "--recorded", tmp_path)
    assert "is not the folder of a checkup" in refused("checkup", "--resume", tmp_path)
    missing = refused("checkup", tmp_path / "none")
    assert "No such file or directory; give a directory on the drive, or twin:NAME" in missing
    assert "the target is empty; give a directory on the drive, or twin" in refused("checkup", "")
    assert "--capacity scales a twin" in refused("checkup", tmp_path, "--capacity", "1GiB")
