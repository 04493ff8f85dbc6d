"""The progress bar: name first, then the step and its rate; whole seconds."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from ssdlab.cli.bar import progress_bar, time_left
from ssdlab.runner.progress import Report


@pytest.mark.parametrize(
    ("left_s", "text"),
    [
        *((None, ""), (0.0817, "under 1 s left"), (1.4, "1 s left")),
        *((12.83, "13 s left"), (107.2, "1 min 47 s left")),
    ],
)
def test_the_time_left_is_in_whole_seconds(left_s: float | None, text: str) -> None:
    assert time_left(Report("reading", 0.5, 0.5, left_s)) == text


def test_the_name_comes_first_and_the_step_with_its_rate_below() -> None:
    text = io.StringIO()
    console = Console(file=text, width=80, force_terminal=True, color_system=None)
    title = "aging /srv/a/long/path/to/a/directory/on/the/drive"
    with progress_bar(console, title, quiet=False) as listener:
        listener(Report("reading it, stage 3 of 4", 0.5, 0.14, 35.1, 812.4 * (1 << 20)))
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.getvalue())
    lines = [line.strip() for line in plain.splitlines() if "aging" in line]
    assert lines[-1].startswith("aging …")
    assert "directory/on/the/drive" in lines[-1]
    assert "14 % 35 s left" in lines[-1]
    assert "reading it, stage 3 of 4, 812 MiB/s" in text.getvalue()
