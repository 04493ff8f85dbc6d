"""Prints a run on the terminal: measures, latency, findings, verdict and warnings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from ssdlab.experiments.registry import view_of
from ssdlab.records import Finding, Run
from ssdlab.report.identity import summary, when
from ssdlab.report.latency import by_kind
from ssdlab.report.table import print_table
from ssdlab.wording import finding_interval, finding_value, label, plain

EVIDENCE_WIDTH_MIN: Final = 30
"""With less room on its right in characters, the evidence of a finding is printed below it."""


def render(run: Run, console: Console) -> None:
    """Print a run. The last line is its folder, unwrapped, so that it can be copied."""
    view = view_of(run)
    _print_head(run, console)
    if run.result.measures:
        print_table(view.table(run), console)
    _print_latency(run, console)
    if run.result.findings:
        labels = {key: label(key, view.finding_labels) for key in run.result.findings}
        _print_findings(run.result.findings, labels, console)
    _print_verdict(run, console)
    for warning in run.result.warnings:
        text = Text.assemble((f"! {plain(warning.code)}: ", "bold yellow"), plain(warning.sentence))
        console.print(Padding(text, (0, 0, 0, 1)))
    if run.result.warnings:
        console.print()
    console.print(Text(f" {plain(run.folder)}", "dim"), soft_wrap=True)


def ending(run: Run) -> str:
    """A note that the run is not complete; "" if it is."""
    if run.manifest.outcome == "complete":
        return ""
    return f"{plain(run.manifest.outcome)}: the results cover only the part that was measured"


def _print_head(run: Run, console: Console) -> None:
    manifest = run.manifest
    head = Text.assemble(
        (plain(manifest.experiment), "bold"), "  ", (plain(manifest.target), "bold cyan")
    )
    if manifest.virtual:
        head.append("  (twin, virtual time)")
    console.print()
    console.print(Padding(head, (0, 0, 0, 1)))
    console.print(Padding(Text(summary(run)), (0, 0, 0, 1)))
    console.print(Padding(Text(when(run), "dim"), (0, 0, 0, 1)))
    if note := ending(run):
        console.print(Padding(Text(note.upper()[:1] + note[1:], "bold yellow"), (0, 0, 0, 1)))
    console.print()


def _print_latency(run: Run, console: Console) -> None:
    table, left = by_kind(run)
    if table.rows:
        print_table(table, console)
    if left:
        console.print(Text(f" {left} more rows: use --html to see them", "dim"))
        console.print()


def _print_findings(findings: dict[str, Finding], labels: dict[str, str], console: Console) -> None:
    rows = [
        (labels[key], plain(finding_value(one)), plain(finding_interval(one)), plain(one.why))
        for key, one in findings.items()
    ]
    widths = [max(len(row[at]) for row in rows) for at in range(3)]
    if console.width - sum(widths) - 8 >= EVIDENCE_WIDTH_MIN:
        console.print(_findings_table(rows))
        console.print()
        return
    fit = sum(widths) + 6 <= console.width
    for name, value, interval, why in rows:
        padding = [width - len(cell) for width, cell in zip(widths, (name, value), strict=False)]
        gaps = ["  " + " " * count * fit for count in padding]
        line = Text.assemble(name, gaps[0], (value, "bold"), gaps[1], interval)
        console.print(Padding(line, (0, 0, 0, 1)))
        console.print(Padding(Text(why, "dim"), (0, 0, 0, 3)))
    console.print()


def _findings_table(rows: Sequence[tuple[str, ...]]) -> RichTable:
    lines = RichTable(box=None, show_header=False, padding=(0, 1), pad_edge=True)
    for style in ("", "bold", "", "dim")[: len(rows[0])]:
        lines.add_column(style=style, overflow="fold")
    for row in rows:
        lines.add_row(*map(Text, row))
    return lines


def _print_verdict(run: Run, console: Console) -> None:
    verdict = plain(run.result.verdict) or "No verdict: too little was measured."
    console.print(Padding(Text(f"=> {verdict}", "bold"), (0, 0, 0, 1)))
    console.print()
