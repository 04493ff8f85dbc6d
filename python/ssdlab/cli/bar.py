"""The progress bar: one line on stderr with the time left; lines if stderr is not a terminal."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from ssdlab.runner.progress import Listener, Report, silent
from ssdlab.units import format_duration

LINE_EVERY_S = 0.5
RESERVED_COLUMNS = 40
"""Reserved for the bar, the percentage and the time left, next to a long title or label."""


@contextlib.contextmanager
def progress_bar(console: Console, title: str, *, quiet: bool) -> Iterator[Listener]:
    """A progress listener that draws a bar; without a terminal it prints a line for each step."""
    if quiet:
        yield silent
    elif console.is_terminal:
        with _bar(console) as progress:
            columns = max(8, (console.width - RESERVED_COLUMNS) // 2)
            short = title if len(title) <= columns else "…" + title[1 - columns :]
            task = progress.add_task(short, total=1.0, label="", left="")
            yield lambda report: _update(progress, task, report, columns)
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


def _update(progress: Progress, task: TaskID, report: Report, columns: int) -> None:
    left = "" if report.left_s is None else f"{format_duration(report.left_s)} left"
    label = report.label if len(report.label) <= columns else report.label[: columns - 1] + "…"
    progress.update(task, completed=report.run_share, label=label, left=left)


class _Lines:
    """Prints a line for each step, at most one per `LINE_EVERY_S`, with the time left if known."""

    def __init__(self, console: Console, title: str) -> None:
        self._console, self._title, self._last = console, title, ""
        self._printed_at = -LINE_EVERY_S

    def __call__(self, report: Report) -> None:
        now = time.monotonic()
        if report.label == self._last or now < self._printed_at + LINE_EVERY_S:
            return
        self._last, self._printed_at = report.label, now
        left = "" if report.left_s is None else f" (about {format_duration(report.left_s)} left)"
        line = f"{self._title}: {report.label}{left}"
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)
