"""The progress bar: one line on stderr with the time left; lines if stderr is not a terminal."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from ssdlab.runner.progress import Listener, Report, silent
from ssdlab.units import format_duration, format_size

LINE_EVERY_S = 0.5
RESERVED_COLUMNS = 36
"""Reserved for the bar, the percentage and the time left, next to the title."""


@contextlib.contextmanager
def progress_bar(console: Console, title: str, *, quiet: bool) -> Iterator[Listener]:
    """A progress listener that draws a bar; without a terminal it prints a line for each step."""
    if quiet:
        yield silent
    elif console.is_terminal:
        with _bar(console) as progress:
            columns = max(16, console.width - RESERVED_COLUMNS)
            task = progress.add_task("", total=1.0, left="")
            name = _shorten(title, columns)
            yield lambda report: _update(progress, task, report, name, columns)
    else:
        yield _Lines(console, title)


def _bar(console: Console) -> Progress:
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=12),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[left]}"),
    )
    return Progress(*columns, console=console, transient=True)


def _update(progress: Progress, task: TaskID, report: Report, name: str, columns: int) -> None:
    """The name on the first line, the step and its rate on the second; a twin has no rate."""
    rate, amount = _rate(report), _amount(report)
    if len(report.label) + len(rate) + len(amount) > columns:
        amount = ""
    room = columns - len(rate)
    label = report.label if len(report.label) <= room else report.label[: room - 1] + "…"
    text, left = f"{name}\n{label}{rate}{amount}", time_left(report)
    progress.update(task, completed=report.run_share, description=text, left=left)


def _shorten(title: str, columns: int) -> str:
    """The title with its middle cut out: its first word is the experiment, its end the target."""
    if len(title) <= columns:
        return title
    name = title.partition(" ")[0][: columns // 2]
    return f"{name} …{title[len(name) + 2 - columns :]}"


def _rate(report: Report) -> str:
    if not report.bytes_per_s or report.is_virtual:
        return ""  # the speed of a simulation would look like the twin's
    mib = report.bytes_per_s / (1 << 20)
    return f", {mib:.0f} MiB/s" if mib >= 10 else f", {mib:.1f} MiB/s"


def _amount(report: Report) -> str:
    """What the step has done so far, such as ", 1.5 GiB done" or, of a rest, ", 12 s done"."""
    if not report.done:
        return ""
    if report.bytes_per_s is None:
        return f", {report.done:.0f} s done"
    return f", {format_size(round(report.done / (1 << 20)) << 20)} done"


def time_left(report: Report) -> str:
    """The time left in whole seconds, such as "12 s left"; "" if unknown."""
    if report.left_s is None:
        return ""
    seconds = round(report.left_s)
    return f"{format_duration(seconds) if seconds else 'under 1 s'} left"


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
        left = time_left(report)
        line = f"{self._title}: {report.label}{f' ({left})' if left else ''}"
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)
