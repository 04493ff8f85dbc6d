"""The doctor's report as text on the terminal: the stack, the verdicts, the maps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ssdlab import view
from ssdlab.doctor.checks import Verdict
from ssdlab.doctor.checks.files import reference_mib_per_s, slowdown, speed
from ssdlab.doctor.history import Changes, Entry
from ssdlab.doctor.report.content import SEVERITY_WORDS, Report, columns, file_line, rows, schedule
from ssdlab.report.table import print_table
from ssdlab.snapshot import File
from ssdlab.units import format_size
from ssdlab.wording import NOTHING, plain

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
    earlier = {"first": changes.first, "a month ago": changes.month_ago, "last": changes.last}
    by_entry = {entry: name for name, entry in earlier.items() if entry is not None}
    entries = {name: entry for entry, name in by_entry.items()}
    print_table(_history_table(entries, changes.now), console)
    if changes.months_left is not None:
        left = f"At this rate of wear its endurance lasts {changes.months_left:.0f} more months."
        console.print(Padding(Text(left, "dim"), (0, 0, 0, 3)))
    if not changes.regressions:
        console.print(Padding(Text("Nothing has become worse.", "green"), (0, 0, 0, 3)))
    _print_regressions(changes, console)
    console.print()


def _history_table(entries: Mapping[str, Entry], now: Entry) -> view.Table:
    """A row for each number that is known of any entry."""
    every = [*entries.values(), now]
    shown = [
        (label, [getattr(entry, key) for entry in every], text) for label, key, text in _NUMBERS
    ]
    known = [row for row in shown if any(value is not None for value in row[1])]
    cells = [
        [NOTHING if values[at] is None else text(values[at]) for _, values, text in known]
        for at in range(len(every))
    ]
    heads = [
        view.Column(name, entry.when[:10], minor=name != "last") for name, entry in entries.items()
    ]
    labels = [label for label, _, _ in known]
    return view.Table.of_columns(
        (view.Column("", numeric=False), labels),
        *zip([*heads, view.Column("now")], cells, strict=True),
    )


def _print_regressions(changes: Changes, console: Console) -> None:
    for regression in changes.regressions:
        text = Text.assemble(("WORSE ", "bold red"), plain(f"{changes.drive}: {regression.says}"))
        console.print(Padding(text, (0, 0, 0, 1)))


_NUMBERS: Final[tuple[tuple[str, str, Callable[[float], str]], ...]] = (
    ("wear", "worn", lambda value: f"{value:g} %"),
    ("spare blocks", "spare_blocks", lambda value: f"{value:g} %"),
    ("uncorrectable errors", "media_errors", lambda value: f"{value:g}"),
    ("sectors waiting", "pending", lambda value: f"{value:g}"),
    ("reallocated blocks", "reallocated", lambda value: f"{value:g}"),
    ("errors of the cable", "link_errors", lambda value: f"{value:g}"),
    ("unsafe shutdowns", "unsafe_shutdowns", lambda value: f"{value:g}"),
    ("minutes too hot", "hot_minutes", lambda value: f"{value:g}"),
    ("temperature", "temperature_c", lambda value: f"{value:.0f} °C"),
    ("power-on hours", "power_on_hours", lambda value: f"{value:,g}"),
    ("written by hosts", "host_bytes", format_size),
    ("written to flash", "flash_bytes", format_size),
    ("fast reads", "read_mib_per_s", lambda value: f"{value:.4g} MiB/s"),
)
"""The rows: label, field of `Entry`, and how a value is written."""
