"""The report of an experiment: table, figures, method text and labels, and how to build them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ssdlab.charts import NARROW, WIDE, Line, Size, over_time
from ssdlab.records import Manifest, Run
from ssdlab.target import parse_profile
from ssdlab.units import exact_size
from ssdlab.wording import column, finding_value, label, plain, quantity, shorten

_NAME_LENGTH: Final = 16
"""Largest length of a target in the name of a line."""


@dataclass(frozen=True)
class Column:
    """A column of a table; numeric columns are right-aligned.

    A narrow terminal drops minor columns first. It wraps headings, and then text, to `wrap`
    characters; 0: to the longest word, and to a width that suits sentences.
    """

    label: str
    unit: str = ""
    numeric: bool = True
    minor: bool = False
    wrap: int = 0


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


def number_column(
    rows: Rows, key: str, label: str, unit: str = "", *, minor: bool = False
) -> tuple[Column, list[str]]:
    """The numbers under `key`, with the same number of decimals; "-" where a row has none."""
    return Column(label, unit, minor=minor), column(row.get(key) for row in rows)


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


def target_options(manifest: Manifest) -> tuple[str, int | None]:
    """The target as the user gave it, and the capacity of a twin that was scaled."""
    opened = manifest.wish
    return opened.get("target", manifest.target), opened.get("capacity_bytes")


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
    target, capacity = target_options(manifest)
    words = ["ssdlab", *verb, target]
    for name, value in options.items():
        words += [name] if value is True else [name, str(value)]
    if capacity is not None:
        words += ["--capacity", exact_size(capacity)]
    line = shlex.join([*words, "--seed", str(manifest.seed)])
    return line if manifest.options is not None else f"{line}  # other options were not recorded"


@dataclass(frozen=True)
class KeyNumber:
    """The one number, or word, that a list of runs shows for a run."""

    label: str
    value: str


def first_finding(run: Run, view: View) -> KeyNumber | None:
    """The first finding that has a value; None if none has."""
    return finding_named(*run.result.findings)(run, view)


def finding_named(*names: str) -> Callable[[Run, View], KeyNumber | None]:
    """A function that returns the first of these findings that has a value."""

    def key_number(run: Run, view: View) -> KeyNumber | None:
        for name in names:
            finding = run.result.findings.get(name)
            if finding is not None and finding.value is not None:
                return KeyNumber(label(name, view.finding_labels), plain(finding_value(finding)))
        return None

    return key_number


@dataclass(frozen=True)
class View:
    """The report of one experiment.

    `pictures` draws one run and gets its number in the report; `overview` draws several runs in one
    figure and gets the number of the first. `finding_labels` and `parameter_labels` are needed only
    if a label differs from the words of its key; the registry adds the labels of options.
    `key_number` chooses what a list of runs shows for a run.
    """

    title: str
    table: Callable[[Run], Table]
    method: Callable[[Run], Method]
    pictures: Callable[[Run, int], list[Picture]]
    overview: Callable[[Sequence[Run], int], list[Picture]]
    finding_labels: Mapping[str, str] = field(default_factory=dict)
    parameter_labels: Mapping[str, str] = field(default_factory=dict)
    command: Callable[[Run], str] = repeat_command
    key_number: Callable[[Run, View], KeyNumber | None] = first_finding


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

    `lines_of` gets a run and the prefix of its labels: its number in the report, such as "3: ". If
    no run has more than one line, the label is the run's short name.
    """
    found = [lines_of(run, f"{at}: ") for at, run in enumerate(runs, first)]
    if all(len(lines) <= 1 for lines in found):
        names = [name for name, _ in short_names(runs, first)]
        pairs = zip(names, found, strict=True)
        return [replace(line, label=name) for name, lines in pairs for line in lines]
    return [line for lines in found for line in lines]


def short_names(runs: Sequence[Run], first: int) -> list[tuple[str, Run]]:
    """Each run with its number in the report and its target, such as "3: toshiba-xg5"."""
    targets = [shorten(parse_profile(plain(run.result.target)), _NAME_LENGTH) for run in runs]
    return [(f"{first + at}: {targets[at]}", run) for at, run in enumerate(runs)]
