"""A checkup as one self-contained HTML page: lights, table, then all reports."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from ssdlab.checkup.lights import Light
from ssdlab.checkup.record import Checkup
from ssdlab.checkup.report.content import Content, speed_text, when
from ssdlab.doctor.report.content import SEVERITY_WORDS
from ssdlab.report.html import Chapter, chapters, environment, put


@dataclass(frozen=True)
class _Cell:
    """A value of the tile, and the length of its bar in per cent of the cell."""

    text: str
    bar: int


def write_html(checkup: Checkup, content: Content, path: Path) -> None:
    """Write the page atomically.

    Raises:
        UsageError: the file cannot be written.
    """
    made = chapters(list(checkup.runs.values()))
    page = (
        environment()
        .get_template("checkup.html.j2")
        .render(
            content=content,
            when=when(content),
            lights=[(light, _anchor(light, content, made)) for light in content.lights],
            rows=tile(content),
            chapters=made,
            group=None,
            title="",
            with_summary=False,
            with_contents=len(made) > 1,
            report=checkup.doctor,
            words=SEVERITY_WORDS,
        )
    )
    put(path, page)


def _anchor(light: Light, content: Content, made: list[Chapter]) -> str:
    """The place of the details on the page: "#run-3"; "" if there are none."""
    if light.experiment == "doctor":
        return "#doctor" if content.doctor is not None else ""
    for result in content.runs:
        if result.experiment == light.experiment:
            numbers = {
                section.folder: section.number for chapter in made for section in chapter.sections
            }
            number = numbers.get(result.folder)
            return "" if number is None else f"#run-{number}"
    return ""


def tile(content: Content) -> list[tuple[str, _Cell, _Cell]]:
    """The rows of the table with bars on a logarithmic scale, as the values span decades."""
    return [
        (row.test, _cell(row.read_mb_per_s), _cell(row.write_mb_per_s)) for row in content.measures
    ]


def _cell(value: float | None) -> _Cell:
    return _Cell(speed_text(value), bar_percent(value))


def bar_percent(value: float | None) -> int:
    """The length of a bar: 0 at 1 MB/s, 100 at 10 000 MB/s."""
    if value is None or value <= 1:
        return 0
    return min(100, round(25 * math.log10(value)))
