"""The progress bar: one line on stderr with the time left; nothing where nobody looks."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from ssdlab.runner.progress import Listener, Report, silent
from ssdlab.units import format_duration

LINE_EVERY_S = 0.5
RESERVED = 40
"""Columns of the bar, the share and the time left: a long target must not push them out."""


@contextlib.contextmanager
def shown(console: Console, title: str, *, quiet: bool) -> Iterator[Listener]:
    """A listener that draws a bar while the block runs.

    On what is no terminal a line for each new step is printed instead.
    """
    if quiet:
        yield silent
    elif console.is_terminal:
        with _bar(console) as progress:
            room = max(8, (console.width - RESERVED) // 2)
            task = progress.add_task(_end(title, room), total=1.0, label="", left="")
            yield lambda report: _update(progress, task, report, room)
    else:
        yield _Lines(console, title)


def _bar(console: Console) -> Progress:
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=12),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.fields[label]}", style="dim", markup=False),
    )
    return Progress(*columns, console=console, transient=True)


def _end(text: str, room: int) -> str:
    return text if len(text) <= room else "…" + text[1 - room :]


def _update(progress: Progress, task: TaskID, report: Report, room: int) -> None:
    left = "" if report.left_s is None else f"{format_duration(report.left_s)} left"
    label = report.label if len(report.label) <= room else report.label[: room - 1] + "…"
    progress.update(task, completed=report.run_share, label=label, left=left)


class _Lines:
    """A line for each step, with the time left where it is known; of short steps only some."""

    def __init__(self, console: Console, title: str) -> None:
        self._console, self._title, self._last = console, title, ""
        self._told_at = -LINE_EVERY_S

    def __call__(self, report: Report) -> None:
        now = time.monotonic()
        if report.label == self._last or now < self._told_at + LINE_EVERY_S:
            return
        self._last, self._told_at = report.label, now
        left = "" if report.left_s is None else f" (about {format_duration(report.left_s)} left)"
        line = f"{self._title}: {report.label}{left}"
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)
