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


@pytest.mark.parametrize(
    ("label", "rate", "done", "shown"),
    [
        ("writing 4 GiB", 350.0 * (1 << 20), 1.5 * (1 << 30), ", 350 MiB/s, 1.5 GiB done"),
        ("resting 30 s", None, 12.3, "resting 30 s, 12 s done"),
        ("a label as long as there is room for it", 9.9 * (1 << 20), 1.5e9, ", 9.9 MiB/s"),
    ],
)
def test_what_a_step_has_done_follows_its_rate_where_there_is_room(
    label: str, rate: float | None, done: float, shown: str
) -> None:
    text = io.StringIO()
    console = Console(file=text, width=80, force_terminal=True, color_system=None)
    with progress_bar(console, "aging /srv", quiet=False) as listener:
        listener(Report(label, 0.4, 0.1, 35.1, rate, done))
    assert shown in text.getvalue()
    assert ("done" in text.getvalue()) == shown.endswith("done")


def test_the_speed_of_a_simulation_is_not_shown_as_that_of_the_twin() -> None:
    text = io.StringIO()
    console = Console(file=text, width=50, force_terminal=True, color_system=None)
    report = Report("reading it", 0.4, 0.1, 35.1, 28923.0 * (1 << 20), 1e9, is_virtual=True)
    with progress_bar(console, "aging twin:toshiba-xg5", quiet=False) as listener:
        listener(report)
    assert "MiB/s" not in text.getvalue()
    assert "reading it" in text.getvalue()
