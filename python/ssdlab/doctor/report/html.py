"""The doctor's report as one self-contained HTML page without scripts."""

from __future__ import annotations

from pathlib import Path

from ssdlab.charts import Axis, Chart, bars, rule
from ssdlab.doctor.checks.files import SLOW, reference_mib_per_s, slowdown, speed
from ssdlab.doctor.report.content import MIB, SEVERITY_WORDS, Report, file_line, rows, schedule
from ssdlab.doctor.report.history import endurance, numbers
from ssdlab.report.html import environment, put
from ssdlab.snapshot import File
from ssdlab.view import Column, Picture, Table, draw_figure
from ssdlab.wording import plain


def write_html(report: Report, path: Path) -> None:
    """Write the page atomically.

    Raises:
        UsageError: the file cannot be written.
    """
    put(path, _page(report))


def _page(report: Report) -> str:
    return (
        environment()
        .get_template("doctor.html.j2")
        .render(
            report=report,
            words=SEVERITY_WORDS,
            stack=_stack(report),
            schedule=schedule(report.stack),
            maps=_maps(report),
            histories=[
                (changes, numbers(changes), endurance(changes)) for changes in report.changes
            ],
        )
    )


def _stack(report: Report) -> Table:
    headings = ("layer", "device", "what", "TRIM")
    lines = tuple((row.layer, row.device, row.what, row.trim) for row in rows(report.stack))
    return Table(tuple(Column(heading, numeric=False) for heading in headings), lines)


def _maps(report: Report) -> list[Picture]:
    reference = reference_mib_per_s(report.stack.files)
    if reference is None:
        return []
    pictures: list[Picture] = []
    for number, file in enumerate(report.stack.files, 1):
        if file.pieces:
            drawing = _map(file, reference, number)
            pictures += draw_figure(plain(file.path), _caption(file, reference), drawing.svg)
    return pictures


def _map(file: File, reference: float, number: int) -> Chart:
    """The speed of each piece by file offset; sampled pieces are wide enough to be visible."""
    least = file.size_bytes / 300
    spots = [
        (piece.offset / MIB, (piece.offset + max(piece.length, least)) / MIB, speed(piece))
        for piece in file.pieces
    ]
    groups = [(False, "read", "as fast as usual"), (True, "aged", "slow")]
    marks = [rule(y=reference, dash=(4, 3))]
    for is_slow, role, legend in groups:
        kept = [spot for spot in spots if (spot[2] < SLOW * reference) is is_slow]
        if kept:
            spans = [(left, right) for left, right, _ in kept]
            marks.append(bars(spans, [height for _, _, height in kept], role, legend))
    x = Axis("place in the file, MiB", limits=(0, file.size_bytes / MIB))
    highest = max([reference, *(height for _, _, height in spots)])
    y = Axis("read speed, MiB/s", limits=(0, 1.15 * highest))
    title = f"Read speed by place in {plain(file.path)}"
    return Chart(f"map-{number}", x, y, marks, title, height=150)


def _caption(file: File, reference: float) -> str:
    return (
        f"{file_line(file)}. Reading it takes {slowdown(file, reference):.2f} times as long as at "
        f"{reference:.0f} MiB/s, the 90th percentile of all pieces (dashed)."
    )
