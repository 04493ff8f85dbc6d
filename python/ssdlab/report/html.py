"""Reports runs on one self-contained HTML page, for screen and print.

Its inline script only shows values under the pointer; without it nothing else is missing.
"""

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
from ssdlab.report.group import GroupReport
from ssdlab.report.identity import (
    Row,
    parameter_rows,
    provenance_rows,
    started,
    summary,
    target_rows,
    took,
)
from ssdlab.report.inside import InsideCommand, inside_command
from ssdlab.report.latency import by_step
from ssdlab.report.terminal import ending
from ssdlab.view import KeyNumber, Method, Picture, Table, View
from ssdlab.warning import MeasurementWarning
from ssdlab.wording import finding_interval, finding_value, label, plain

_NO_VERDICT: Final = "No verdict: too little was measured."


@dataclass(frozen=True)
class _FindingText:
    """A finding as text."""

    label: str
    value: str
    interval: str
    why: str


@dataclass(frozen=True)
class _Section:
    """The texts of the page's section on one run."""

    number: int
    colour: str  # CSS variable with the colour of its lines in the figures
    target: str
    virtual: bool
    summary: str
    started: str
    took: str
    ending: str
    verdict: str
    key_number: KeyNumber | None
    findings: list[_FindingText]
    warnings: list[MeasurementWarning]
    table: Table
    latency: Table
    latency_left: int  # rows left out
    pictures: list[Picture]
    method: Method
    command: str
    inside: InsideCommand | None
    identity: list[Row]
    parameters: list[Row]
    provenance: list[Row]
    profile: str | None
    folder: str


@dataclass(frozen=True)
class Chapter:
    """The runs of one experiment, with figures that show all of them."""

    title: str
    overview: list[Picture]
    sections: list[_Section]

    @property
    def anchor(self) -> str:
        """The id of the chapter's heading."""
        return f"experiment-{self.sections[0].number}"


def _destination(path: Path) -> Path:
    """The file to write, with symbolic links resolved; refuses a device or a pipe."""
    try:
        real = path.resolve()
        is_free = real.is_file() or not real.exists()
    except (OSError, RuntimeError) as error:
        raise UsageError(f"{path} is not accessible ({error}); give another path") from error
    if not is_free or not real.name:
        raise UsageError(f"{path} is not a regular file; give the path of a file to write")
    return real


def write_html(runs: list[Run], path: Path, group: GroupReport | None = None) -> None:
    """Write one HTML file about all runs, atomically.

    The report on the group comes first, then the runs, grouped by experiment.

    Raises:
        UsageError: nothing to report on, or the file cannot be written.
    """
    if not runs and group is None:
        raise UsageError(f"{path}: there is no run to report on; give at least one run folder")
    put(path, html_page(runs, group))


def html_page(runs: list[Run], group: GroupReport | None = None) -> str:
    """The text of the page of `write_html`."""
    return _render("report.html.j2", runs, group)


def html_part(runs: list[Run], group: GroupReport | None = None) -> str:
    """The body of the page of `write_html` with its styles, for a notebook."""
    return _render("part.html.j2", runs, group)


def put(path: Path, page: str | bytes) -> None:
    """Write a page, or the content of another file, atomically.

    Raises:
        UsageError: the file cannot be written.
    """
    path = _destination(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        partial.write_bytes(page.encode() if isinstance(page, str) else page)
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise UsageError(
            f"{path}: the report cannot be written ({error.strerror}); give the path of a "
            "file in an existing directory that you may write to"
        ) from error


def environment() -> jinja2.Environment:
    """The template environment; it escapes all text except SVG from the filter `drawing`."""
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("ssdlab.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["plain"] = plain
    templates.filters["drawing"] = Markup  # charts escapes its text
    templates.globals["palette"] = PALETTE
    return templates


def _render(template: str, runs: Sequence[Run], group: GroupReport | None) -> str:
    made = chapters(runs)
    count = sum(len(chapter.sections) for chapter in made)
    return (
        environment()
        .get_template(template)
        .render(
            chapters=made,
            group=group,
            title=_title(made, group),
            with_summary=group is None and count > 1,
            with_contents=count > 1,
        )
    )


def _title(chapters: Sequence[Chapter], group: GroupReport | None) -> str:
    """The heading of the page: of the group, of the only experiment, or what the runs share."""
    if group is not None:
        return group.title
    if len(chapters) == 1:
        return chapters[0].title
    sections = [section for chapter in chapters for section in chapter.sections]
    targets = {section.target for section in sections}
    what = targets.pop() if len(targets) == 1 else f"{len(targets)} targets"
    return f"{len(sections)} runs on {what}"


def chapters(runs: Sequence[Run]) -> list[Chapter]:
    """The runs, grouped by experiment, for the template `content.html.j2`."""
    order = list(dict.fromkeys(run.manifest.experiment for run in runs))
    sorted_runs = sorted(runs, key=lambda run: order.index(run.manifest.experiment))
    numbered = list(enumerate(sorted_runs, 1))
    made = []
    for _, group in groupby(numbered, key=lambda pair: pair[1].manifest.experiment):
        members = list(group)
        view = view_of(members[0][1])
        overview = view.overview([run for _, run in members], members[0][0])
        sections = [_section(run, number, view) for number, run in members]
        made.append(Chapter(view.title, overview, sections))
    return made


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
        key_number=view.key_number(run, view),
        findings=_findings(run, view),
        warnings=[MeasurementWarning(plain(w.code), plain(w.sentence)) for w in result.warnings],
        table=view.table(run),
        latency=latency,
        latency_left=latency_left,
        pictures=view.pictures(run, number),
        method=view.method(run),
        command=plain(view.command(run)),
        inside=inside_command(run),
        identity=target_rows(run),
        parameters=parameter_rows(run, view.parameter_labels),
        provenance=provenance_rows(run),
        profile=None if manifest.profile is None else _lines(manifest.profile),
        folder=plain(run.folder),
    )


def _findings(run: Run, view: View) -> list[_FindingText]:
    return [
        _FindingText(
            label(key, view.finding_labels),
            finding_value(finding),
            finding_interval(finding),
            plain(finding.why),
        )
        for key, finding in run.result.findings.items()
    ]


def _lines(text: str) -> str:
    return "\n".join(plain(line.expandtabs()) for line in text.splitlines())
