"""The report of an experiment: table, figures, method text and labels, and how to build them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ssdlab.charts import NARROW, WIDE, Line, Size, over_time
from ssdlab.records import Run
from ssdlab.target import parse_profile
from ssdlab.units import exact_size
from ssdlab.wording import column, plain, quantity


@dataclass(frozen=True)
class Column:
    """A column of a table; numeric columns are right-aligned.

    A narrow terminal drops minor columns first.
    """

    label: str
    unit: str = ""
    numeric: bool = True
    minor: bool = False


@dataclass(frozen=True)
class Table:
    """A table of text cells; each row has one cell per column."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]

    @classmethod
    def of_columns(cls, *columns: tuple[Column, Sequence[str]]) -> Table:
        """A table from its columns, each with its cells."""
        heads, cells = zip(*columns, strict=True)
        return cls(heads, tuple(zip(*cells, strict=True)))


Rows = Sequence[Mapping[str, Any]]
"""Rows of a run's measures."""


def text_column(rows: Rows, key: str, label: str) -> tuple[Column, list[str]]:
    """The texts under `key`; empty cells where a row has none."""
    texts = [row.get(key) for row in rows]
    return Column(label, numeric=False), [plain("" if text is None else text) for text in texts]


def number_column(rows: Rows, key: str, label: str, unit: str = "") -> tuple[Column, list[str]]:
    """The numbers under `key`, with the same number of decimals; "-" where a row has none."""
    return Column(label, unit), column(row.get(key) for row in rows)


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


def parameter_texts(run: Run) -> Callable[[str], str]:
    """A function from the key of a run's parameter to its value with the unit, for method texts."""
    return lambda key: quantity(key, run.manifest.parameters.get(key))


def repeat_command(run: Run) -> str:
    """The shell command that repeats the run, quoted.

    A block device also needs `--destroy-data`. A comment is appended if the run did not record
    its options (old versions).
    """
    manifest = run.manifest
    options = dict(manifest.options or {})
    verb = ["run", manifest.experiment]
    if "TRACE" in options:
        verb = ["replay", str(options.pop("TRACE"))]
    opened = manifest.wish
    words = ["ssdlab", *verb, opened.get("target", manifest.target)]
    for name, value in options.items():
        words += [name] if value is True else [name, str(value)]
    if (capacity := opened.get("capacity_bytes")) is not None:
        words += ["--capacity", exact_size(capacity)]
    line = shlex.join([*words, "--seed", str(manifest.seed)])
    return line if manifest.options is not None else f"{line}  # other options were not recorded"


@dataclass(frozen=True)
class View:
    """The report of one experiment.

    `pictures` draws one run and gets its number in the report; `overview` draws several runs in one
    figure and gets the number of the first. `finding_labels` and `parameter_labels` are needed only
    if a label differs from the words of its key; the registry adds the labels of options.
    """

    title: str
    table: Callable[[Run], Table]
    method: Callable[[Run], Method]
    pictures: Callable[[Run, int], list[Picture]]
    overview: Callable[[Sequence[Run], int], list[Picture]]
    finding_labels: Mapping[str, str] = field(default_factory=dict)
    parameter_labels: Mapping[str, str] = field(default_factory=dict)
    command: Callable[[Run], str] = repeat_command


def draw_figure(title: str, caption: str, draw: Callable[[Size], str]) -> list[Picture]:
    """The figure in both widths; [] if `draw` returns ""."""
    wide = draw(WIDE)
    return [Picture(title, caption, wide, draw(NARROW))] if wide else []


def draw_throughput(run: Run, number: int, hint: str = "") -> list[Picture]:
    """The throughput of the whole run; `hint` is one more sentence of the caption."""
    caption = f"All requests of the run, in order; dotted lines are idle periods. {hint}".rstrip()
    return draw_figure("Throughput during the run", caption, over_time(run, number).svg)


def lines_of_runs(
    runs: Sequence[Run], first: int, lines_of: Callable[[Run, str], Sequence[Line]]
) -> list[Line]:
    """The lines of several runs for one chart.

    `lines_of` gets a run and the prefix of its labels: its number in the report, such as "3: ".
    """
    return [line for at, run in enumerate(runs, first) for line in lines_of(run, f"{at}: ")]


def short_names(runs: Sequence[Run], first: int) -> list[tuple[str, Run]]:
    """Each run with its number in the report and its target, such as "3: toshiba-xg5"."""
    targets = [parse_profile(run.result.target) for run in runs]
    return [(f"{first + at}: {targets[at]}", run) for at, run in enumerate(runs)]
