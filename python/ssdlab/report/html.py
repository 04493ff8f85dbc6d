"""Runs as ONE self-contained HTML page: no script, nothing loaded, for desk, phone and paper."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final

import jinja2
from markupsafe import Markup

from ssdlab.charts import PALETTE, run_colour
from ssdlab.errors import UsageError
from ssdlab.experiments.registry import view_of
from ssdlab.records import Run
from ssdlab.report.identity import (
    Row,
    parameter_rows,
    provenance_rows,
    started,
    summary,
    target_rows,
    took,
)
from ssdlab.report.latency import by_step
from ssdlab.report.several import Asked
from ssdlab.report.terminal import ending
from ssdlab.view import Method, Picture, Table, View
from ssdlab.warning import MeasurementWarning
from ssdlab.wording import finding_interval, finding_value, label, plain

_NO_VERDICT: Final = "No verdict: too little was measured."


@dataclass(frozen=True)
class _Found:
    """A finding as text."""

    label: str
    value: str
    interval: str
    why: str


@dataclass(frozen=True)
class _Section:
    """All that the page says of one run, as text."""

    number: int
    colour: str  # of its lines in the figures: the name of a CSS variable
    target: str
    virtual: bool
    summary: str
    started: str
    took: str
    ending: str
    verdict: str
    findings: list[_Found]
    warnings: list[MeasurementWarning]
    table: Table
    latency: Table
    latency_left: int  # rows that were too many
    pictures: list[Picture]
    method: Method
    command: str
    identity: list[Row]
    parameters: list[Row]
    provenance: list[Row]
    profile: str | None
    folder: str


@dataclass(frozen=True)
class _Chapter:
    """The runs of one experiment, with the figures that hold them together."""

    title: str
    overview: list[Picture]
    sections: list[_Section]


def _destination(path: Path) -> Path:
    """The file to be written: what a link points to, and nothing that is no plain file.

    A report takes the place of what is there, and must not take that of a device or a pipe.
    """
    try:
        real = path.resolve()
        is_free = real.is_file() or not real.exists()
    except (OSError, RuntimeError) as error:
        raise UsageError(f"{path} cannot be reached ({error}); give a path you may use") from error
    if not is_free or not real.name:
        raise UsageError(f"{path} is no plain file; give the path of an HTML file to be written")
    return real


def write_html(runs: list[Run], path: Path, asked: Asked | None = None) -> None:
    """Writes one HTML file about all runs; it appears whole or not at all.

    Runs of the same experiment stand together, otherwise in the order given. What was asked of
    them together stands at the top.

    Raises:
        UsageError: nothing to report on, or the file cannot be written there.
    """
    if not runs and asked is None:
        raise UsageError(f"{path}: there is no run to report on; give at least one run folder")
    put(path, _page(_chapters(runs), asked))


def html_part(runs: list[Run], asked: Asked | None = None) -> str:
    """What `write_html` has between its head and its foot, with its looks, for a notebook."""
    template = environment().get_template("part.html.j2")
    return template.render(chapters=_chapters(runs), asked=asked)


def put(path: Path, page: str) -> None:
    """Writes a page; it appears whole or not at all.

    Raises:
        UsageError: it cannot be written there.
    """
    path = _destination(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        partial.write_text(page, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise UsageError(
            f"{path}: the report cannot be written there ({error.strerror}); give the path of a "
            "file in an existing directory that you may write to"
        ) from error


def environment() -> jinja2.Environment:
    """Where templates are, and how text is escaped; `drawing` is for our own SVG."""
    found = jinja2.Environment(
        loader=jinja2.PackageLoader("ssdlab.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["plain"] = plain
    found.filters["drawing"] = Markup  # its text is already escaped
    found.globals["palette"] = PALETTE
    return found


def _page(chapters: list[_Chapter], asked: Asked | None) -> str:
    template = environment().get_template("report.html.j2")
    return template.render(chapters=chapters, asked=asked)


def _chapters(runs: Sequence[Run]) -> list[_Chapter]:
    order = list(dict.fromkeys(run.manifest.experiment for run in runs))
    together = sorted(runs, key=lambda run: order.index(run.manifest.experiment))
    numbered = list(enumerate(together, 1))
    chapters = []
    for _, group in groupby(numbered, key=lambda pair: pair[1].manifest.experiment):
        members = list(group)
        view = view_of(members[0][1])
        overview = view.overview([run for _, run in members], members[0][0])
        sections = [_section(run, number, view) for number, run in members]
        chapters.append(_Chapter(view.title, overview, sections))
    return chapters


def _section(run: Run, number: int, view: View) -> _Section:
    manifest, result = run.manifest, run.result
    latency, latency_left = by_step(run)
    return _Section(
        number=number,
        colour=run_colour(number),
        target=plain(manifest.target),
        virtual=manifest.virtual,
        summary=summary(run),
        started=started(manifest),
        took=took(run),
        ending=ending(run),
        verdict=plain(result.verdict) or _NO_VERDICT,
        findings=_findings(run, view),
        warnings=[MeasurementWarning(plain(w.code), plain(w.sentence)) for w in result.warnings],
        table=view.table(run),
        latency=latency,
        latency_left=latency_left,
        pictures=view.pictures(run, number),
        method=view.method(run),
        command=plain(view.command(run)),
        identity=target_rows(run),
        parameters=parameter_rows(run, view.parameter_labels),
        provenance=provenance_rows(run),
        profile=None if manifest.profile is None else _lines(manifest.profile),
        folder=plain(run.folder),
    )


def _findings(run: Run, view: View) -> list[_Found]:
    return [
        _Found(
            label(key, view.finding_labels),
            finding_value(finding),
            finding_interval(finding),
            plain(finding.why),
        )
        for key, finding in run.result.findings.items()
    ]


def _lines(text: str) -> str:
    return "\n".join(plain(line.expandtabs()) for line in text.splitlines())
