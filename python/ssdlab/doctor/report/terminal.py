"""The doctor's report as text on the terminal: the stack, the verdicts, the maps."""

from __future__ import annotations

from typing import Final

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ssdlab.doctor.checks import Verdict
from ssdlab.doctor.checks.files import reference_mib_per_s, slowdown, speed
from ssdlab.doctor.history import Changes
from ssdlab.doctor.report.content import SEVERITY_WORDS, Report, columns, file_line, rows, schedule
from ssdlab.doctor.report.history import endurance, numbers
from ssdlab.report.table import print_table
from ssdlab.snapshot import File
from ssdlab.wording import plain

_STYLES: Final = {"bad": "bold red", "warn": "bold yellow", "note": "cyan", "good": "green"}
_TRIM_STYLES: Final = {"STOPS": "bold red", "passes": "green", "not known": "yellow"}
_LABEL: Final = 7


def render(report: Report, console: Console, *, quiet: bool) -> None:
    """Print the report; `quiet` prints only verdicts of severity bad and warn."""
    if quiet:
        for verdict in report.verdicts:
            if verdict.severity in {"bad", "warn"}:
                _print_verdict(verdict, console)
        for changes in report.changes:
            _print_regressions(changes, console)
        return
    console.print()
    head = Text.assemble(("doctor", "bold"), "  ", (plain(report.target), "bold cyan"))
    console.print(Padding(head, (0, 0, 0, 1)))
    console.print()
    _print_stack(report, console)
    for verdict in report.verdicts:
        if verdict.severity != "good":
            _print_verdict(verdict, console)
    _print_good(report, console)
    _print_maps(report, console)
    _print_unread(report, console)
    for changes in report.changes:
        _print_changes(changes, console)
    console.print(Padding(Text(f"=> {plain(report.verdict)}", "bold"), (0, 0, 0, 1)))
    console.print()


def _print_stack(report: Report, console: Console) -> None:
    lines = Table(box=None, padding=(0, 1), header_style="dim", pad_edge=True)
    for heading in ("Layer", "Device", "What", "TRIM"):
        lines.add_column(heading, overflow="fold", no_wrap=heading != "What")
    for row in rows(report.stack):
        trim = Text(row.trim, _TRIM_STYLES.get(row.trim, ""))
        lines.add_row(Text(row.layer), Text(row.device), Text(row.what), trim)
    console.print(lines)
    for line in schedule(report.stack):
        console.print(Padding(Text(f"TRIM schedule, {line}", "dim"), (0, 0, 0, 1)))
    console.print()


def _print_verdict(verdict: Verdict, console: Console) -> None:
    head = Text.assemble(
        (f"{SEVERITY_WORDS[verdict.severity]:<5}", _STYLES[verdict.severity]),
        (plain(verdict.code), "bold"),
        (f"  {plain(verdict.where)}", "dim"),
    )
    console.print(Padding(head, (0, 0, 0, 1)))
    console.print(Padding(Text(plain(verdict.says)), (0, 0, 0, 6)))
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=_LABEL, style="dim")
    grid.add_column(overflow="fold")
    for label, text, style in (
        ("seen", verdict.evidence, ""),
        ("costs", verdict.costs, ""),
        ("do", verdict.remedy, "bold"),
        ("risk", verdict.risk, "yellow"),
        ("proof", verdict.proof, ""),
    ):
        if text:
            lines = "\n".join(plain(line) for line in text.splitlines())
            grid.add_row(label, Text(lines, style))
    console.print(Padding(grid, (0, 0, 0, 6)))
    console.print()


def _print_good(report: Report, console: Console) -> None:
    good = [verdict for verdict in report.verdicts if verdict.severity == "good"]
    for verdict in good:
        text = Text.assemble(
            ("good ", "green"), (plain(verdict.code), "bold"), f"  {plain(verdict.says)}"
        )
        text.append(f" {plain(verdict.evidence)}", "dim")
        console.print(Padding(text, (0, 0, 0, 1)))
    if good:
        console.print()


def _print_maps(report: Report, console: Console) -> None:
    files = report.stack.files
    reference = reference_mib_per_s(files)
    if not files:
        return
    full = "" if reference is None else f" (full height: {reference:.0f} MiB/s)"
    console.print(Padding(Text(f"Read speed by position in the file{full}", "bold"), (0, 0, 0, 1)))
    for file in files:
        console.print(Padding(Text(plain(file.path)), (0, 0, 0, 1)))
        console.print(Padding(Text(file_line(file), "dim"), (0, 0, 0, 3)))
        if reference is not None and file.pieces:
            _print_map(file, reference, console)
    console.print()


def _print_map(file: File, reference: float, console: Console) -> None:
    line = Text()
    for column in columns(file, reference, max(10, console.width - 8)):
        line.append(column.sign, "red" if column.is_slow else "green")
    console.print(Padding(Text.assemble("|", line, "|"), (0, 0, 0, 3)))
    speeds = sorted(speed(piece) for piece in file.pieces)
    median = speeds[len(speeds) // 2]
    summary = (
        f"{len(speeds)} pieces: slowest {speeds[0]:.0f}, median {median:.0f}, fastest "
        f"{speeds[-1]:.0f} MiB/s; {slowdown(file, reference):.2f} x the time of its fast parts"
    )
    console.print(Padding(Text(summary, "dim"), (0, 0, 0, 3)))


def _print_unread(report: Report, console: Console) -> None:
    for warning in report.warnings:
        text = Text.assemble((f"! {plain(warning.code)}: ", "bold yellow"), plain(warning.sentence))
        console.print(Padding(text, (0, 0, 0, 1)))
    if report.warnings:
        console.print()


def _print_changes(changes: Changes, console: Console) -> None:
    """The drive now, next to its first and last entries and that of a month ago."""
    title = Text(f"History of {plain(changes.drive)}", "bold")
    console.print(Padding(title, (0, 0, 0, 1)))
    if changes.last is None:
        start = Text(f"This is its first entry, in {plain(changes.file)}", "dim")
        console.print(Padding(start, (0, 0, 1, 3)))
        return
    print_table(numbers(changes), console)
    if left := endurance(changes):
        console.print(Padding(Text(left, "dim"), (0, 0, 0, 3)))
    if not changes.regressions:
        console.print(Padding(Text("Nothing has become worse.", "green"), (0, 0, 0, 3)))
    _print_regressions(changes, console)
    console.print()


def _print_regressions(changes: Changes, console: Console) -> None:
    for regression in changes.regressions:
        text = Text.assemble(("WORSE ", "bold red"), plain(f"{changes.drive}: {regression.says}"))
        console.print(Padding(text, (0, 0, 0, 1)))
