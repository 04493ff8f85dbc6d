"""What an experiment's report consists of: its words, its table, its figures."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ssdlab.charts import NARROW, WIDE, Size
from ssdlab.records import Run


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


def again(run: Run) -> str:
    """The command that starts such a run again, safe to paste into a shell.

    A block device needs `--destroy-data` besides. Runs of old versions did not record their
    options; then a comment says so.
    """
    manifest = run.manifest
    options = dict(manifest.options or {})
    verb = ["run", manifest.experiment]
    if "TRACE" in options:
        verb = ["replay", str(options.pop("TRACE"))]
    words = ["ssdlab", *verb, manifest.target]
    for name, value in options.items():
        words += [name] if value is True else [name, str(value)]
    if (capacity := manifest.wish.get("capacity_bytes")) is not None:
        words += ["--capacity", f"{capacity}B"]
    line = shlex.join([*words, "--seed", str(manifest.seed)])
    return line if manifest.options is not None else f"{line}  # other options were not recorded"


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
    command: Callable[[Run], str] = again


def drawn(title: str, caption: str, draw: Callable[[Size], str]) -> list[Picture]:
    """The figure in both widths; an empty list where there is nothing to draw."""
    wide = draw(WIDE)
    return [Picture(title, caption, wide, draw(NARROW))] if wide else []
