"""Prints the statistics of an I/O trace on the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from ssdlab.device import TraceStatistics
from ssdlab.units import format_duration, format_size


def show(name: str, trace: TraceStatistics, console: Console) -> None:
    """Print the statistics, and a bar for each of the most frequent request sizes."""
    console.print(f"{name}: {trace.format}", markup=False, highlight=False)
    table = Table(box=None, show_header=False, pad_edge=True)
    table.add_column(style="dim")
    table.add_column()
    for label, value in _rows(trace):
        table.add_row(label, value)
    console.print(table)
    for label, sizes in (("reads", trace.read_sizes), ("writes", trace.write_sizes)):
        if sizes:
            console.print(_sizes(label, sizes))


def _rows(trace: TraceStatistics) -> list[tuple[str, str]]:
    addressed = trace.requests - trace.flushes
    rows = [
        ("Requests", f"{trace.requests} in {format_duration(trace.span_ns / 1e9)}"),
        ("Reads", _kind(trace.reads, trace.read_bytes, trace.median_read_bytes)),
        ("Writes", _kind(trace.writes, trace.write_bytes, trace.median_write_bytes)),
    ]
    if trace.trims:
        rows.append(("Trims", _kind(trace.trims, trace.trim_bytes, None)))
    if trace.flushes:
        rows.append(("Flushes", str(trace.flushes)))
    reach = format_size(sum(end for _, end in trace.volumes))
    volumes = f"{len(trace.volumes)} volumes" if len(trace.volumes) > 1 else "one volume"
    rows += [
        ("Address range", f"{reach} on {volumes}"),
        ("Footprint", format_size(trace.footprint_bytes)),
        ("Written footprint", format_size(trace.written_footprint_bytes)),
    ]
    if trace.writes_a_unit is not None:
        rows.append(("Writes per written unit", f"{trace.writes_a_unit:.2f}"))
    rows.append(("Skew", f"{trace.hottest_fifth:.0%} of accesses go to the hottest fifth of units"))
    if addressed:
        rows.append(("Aligned to 4 KiB", f"{trace.aligned / addressed:.1%}"))
        rows.append(("Sequential", f"{trace.continuing / addressed:.1%}"))
    if trace.early:
        rows.append(("Out of order", f"{trace.early}, by up to a second"))
    if trace.empty:
        rows.append(("Zero length, skipped", str(trace.empty)))
    return rows


def _kind(count: int, size: int, median: int | None) -> str:
    middle = f", median {format_size(median)}" if median else ""
    return f"{count}, {format_size(size)}{middle}" if count else "none"


def _sizes(label: str, sizes: tuple[tuple[int, int], ...]) -> Table:
    """A table of the most frequent request sizes, with bars."""
    most = sorted(sizes, key=lambda entry: -entry[1])[:8]
    total, top = sum(count for _, count in sizes), most[0][1]
    table = Table(box=None, show_header=False, pad_edge=True, title=f"Sizes of {label}")
    table.title_justify = "left"
    for size, count in sorted(most):
        bar = "█" * max(1, round(24 * count / top))
        table.add_row(format_size(size), f"{count / total:.1%}", bar)
    return table
