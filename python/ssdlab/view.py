"""The parts of an experiment's report: table, figures, method text, labels."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ssdlab.charts import NARROW, WIDE, Size
from ssdlab.records import Run


@dataclass(frozen=True)
class Column:
    """A column of a table; numeric columns are right-aligned."""

    label: str
    unit: str = ""
    numeric: bool = True


@dataclass(frozen=True)
class Table:
    """A table of text cells; each row has one cell per column."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Picture:
    """A figure as SVG in two widths, with a caption that says how to read it."""

    title: str
    caption: str
    wide: str
    narrow: str


@dataclass(frozen=True)
class Method:
    """Sentences: what was done, what the numbers mean, how they can mislead."""

    done: str
    meaning: str
    pitfalls: tuple[str, ...]


def again(run: Run) -> str:
    """The shell command that repeats the run, quoted.

    A block device also needs `--destroy-data`. A comment is appended if the run did not record
    its options (old versions).
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
    """The report of one experiment.

    `overview` draws several runs in one figure and gets the number of the first; `pictures` draws
    one run and gets its number; `command` is the command that repeats a run.
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
    """The figure in both widths; [] if `draw` returns ""."""
    wide = draw(WIDE)
    return [Picture(title, caption, wide, draw(NARROW))] if wide else []
