"""Runs, or a report on several, as Markdown; and rows as CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ssdlab.experiments.registry import view_of
from ssdlab.records import Run
from ssdlab.report.group import GroupReport
from ssdlab.report.identity import summary, when
from ssdlab.report.terminal import ending
from ssdlab.view import Column, Table
from ssdlab.wording import finding_interval, finding_value, label, plain

_SPECIAL: Final = re.compile(r"[\\`*_\[\]<>|#]")
_FINDINGS: Final = (
    Column("Finding", numeric=False),
    Column("Value"),
    Column("95 % interval"),
    Column("Evidence", numeric=False),
)


def as_markdown(runs: Sequence[Run], group: GroupReport | None = None) -> str:
    """The report on the group, or else on each run, with the verdict first."""
    parts = _of_group(group) if group is not None else _of_runs(runs)
    return "\n\n".join(parts) + "\n"


def rows_as_csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows as CSV, with a column for each name in any row; lists are separated by spaces."""
    listed = list(rows)
    names = list(dict.fromkeys(name for row in listed for name in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_csv_cell(row.get(name)) for name in names] for row in listed)
    return text.getvalue()


def measures_of(runs: Iterable[Run]) -> Iterator[dict[str, Any]]:
    """The measures of all runs, each row with its run, experiment and target."""
    for run in runs:
        manifest = run.manifest
        names = ("run", "experiment", "target")
        head = {name: getattr(manifest, name) for name in names}
        for row in run.result.measures:
            yield head | dict(row)


def _csv_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return " ".join(map(_csv_cell, value))
    return plain(value)


def _of_group(group: GroupReport) -> Iterator[str]:
    yield f"# {_escape(group.title)}"
    for subject, verdict in group.verdicts:
        yield f"**{_escape(subject)}**: {_escape(verdict)}"
    for heading, table in group.tables:
        if heading:
            yield f"## {_escape(heading)}"
        if table.rows:
            yield _table(table)
    if group.notes:
        yield _list(group.notes)


def _of_runs(runs: Sequence[Run]) -> Iterator[str]:
    for run in runs:
        yield from _of_run(run)


def _of_run(run: Run) -> Iterator[str]:
    view, manifest, result = view_of(run), run.manifest, run.result
    yield f"# {_escape(view.title)}: {_escape(manifest.target)}"
    yield f"**{_escape(result.verdict or 'No verdict: too little was measured.')}**"
    if note := ending(run):
        yield f"*{_escape(note[:1].upper() + note[1:])}.*"
    clock = "; a twin, in virtual time" if manifest.virtual else ""
    yield f"{_escape(summary(run))}{clock}. {_escape(when(run))}."
    table = view.table(run)
    if result.measures and table.rows:
        yield _table(table)
    if result.findings:
        rows = [
            (label(key, view.finding_labels), finding_value(f), finding_interval(f), plain(f.why))
            for key, f in result.findings.items()
        ]
        yield _table(Table(_FINDINGS, tuple(rows)))
    if result.warnings:
        yield _list([(warning.code, warning.sentence) for warning in result.warnings])
    yield f"Run again: {_code(view.command(run))}"


def _table(table: Table) -> str:
    heads = [f"{one.label} ({one.unit})" if one.unit else one.label for one in table.columns]
    lines = [[_escape(head) for head in heads]]
    lines.append(["---:" if column.numeric else "---" for column in table.columns])
    lines += [[_escape(cell) for cell in row] for row in table.rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _list(pairs: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"- **{_escape(code)}**: {_escape(sentence)}" for code, sentence in pairs)


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", plain(text))


def _code(text: str) -> str:
    """Inline code; the fence is longer than any run of backticks in the text."""
    text = plain(text)
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{text}{fence}" if len(fence) == 1 else f"{fence} {text} {fence}"
