"""What an experiment's report consists of: its words, its table, its figures."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ssdlab.records import Run
from ssdlab.report.figure.canvas import NARROW, WIDE, Size
from ssdlab.report.wording import given


@dataclass(frozen=True)
class Column:
    """A column of a table; numbers stand to the right."""

    label: str
    unit: str = ""
    numeric: bool = True


@dataclass(frozen=True)
class Table:
    """A table as text: every row has a cell for every column."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Picture:
    """A figure in two widths, as SVG for a page, with what to see in it."""

    title: str
    caption: str
    wide: str
    narrow: str


@dataclass(frozen=True)
class Method:
    """What was done, what the numbers mean, and how they can mislead: sentences."""

    done: str
    meaning: str
    pitfalls: tuple[str, ...]


@dataclass(frozen=True)
class View:
    """How the runs of one experiment are shown.

    `overview` draws several runs together and gets the number of the first one; `pictures`
    draws one run with its number; `command` starts such a run again.
    """

    title: str
    table: Callable[[Run], Table]
    method: Callable[[Run], Method]
    pictures: Callable[[Run, int], list[Picture]]
    overview: Callable[[Sequence[Run], int], list[Picture]]
    finding_labels: Mapping[str, str]
    parameter_labels: Mapping[str, str]
    command: Callable[[Run], str]


def drawn(title: str, caption: str, draw: Callable[[Size], str]) -> list[Picture]:
    """The figure in both widths; an empty list where there is nothing to draw."""
    wide = draw(WIDE)
    return [Picture(title, caption, wide, draw(NARROW))] if wide else []


def command_line(run: Run, options: Sequence[str]) -> str:
    """The command that starts such a run again, safe to paste into a shell.

    What a twin was scaled to is its capacity.
    """
    result, device = run.result, run.manifest.device
    if device.get("kind") == "twin" and isinstance(device.get("capacity_bytes"), int):
        options = [*options, "--capacity", f"{device['capacity_bytes']}B"]
    words = ["ssdlab", "run", result.experiment, result.target, *options, "--seed", result.seed]
    return shlex.join(str(word) for word in words)


def sized_command(run: Run, quick_repeats: int) -> str:
    """As `command_line`, for a region of `size_mib` MiB; so many repeats are those of --quick."""
    asked = run.manifest.parameters
    options = ["--size", f"{given(asked['size_mib'])}MiB"]
    if asked.get("repeats") == quick_repeats:
        options.append("--quick")
    return command_line(run, options)
