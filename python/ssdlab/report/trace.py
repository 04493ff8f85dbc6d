"""What a trace asks for, as a table on the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from ssdlab.device import TraceStatistics
from ssdlab.units import format_duration, format_size


def show(name: str, found: TraceStatistics, console: Console) -> None:
    """Prints a trace's statistics, and a bar for each of its common sizes."""
    console.print(f"{name}: {found.format}", markup=False, highlight=False)
    table = Table(box=None, show_header=False, pad_edge=True)
    table.add_column(style="dim")
    table.add_column()
    for label, value in _rows(found):
        table.add_row(label, value)
    console.print(table)
    for label, sizes in (("reads", found.read_sizes), ("writes", found.write_sizes)):
        if sizes:
            console.print(_sizes(label, sizes))


def _rows(found: TraceStatistics) -> list[tuple[str, str]]:
    addressed = found.requests - found.flushes
    rows = [
        ("Requests", f"{found.requests} in {format_duration(found.span_ns / 1e9)}"),
        ("Reads", _kind(found.reads, found.read_bytes, found.median_read_bytes)),
        ("Writes", _kind(found.writes, found.write_bytes, found.median_write_bytes)),
    ]
    if found.trims:
        rows.append(("Trims", _kind(found.trims, found.trim_bytes, None)))
    if found.flushes:
        rows.append(("Flushes", str(found.flushes)))
    reach = format_size(sum(end for _, end in found.volumes))
    volumes = f"{len(found.volumes)} volumes" if len(found.volumes) > 1 else "one volume"
    rows += [
        ("Reach", f"{reach} of {volumes}"),
        ("Footprint", format_size(found.footprint_bytes)),
        ("Written footprint", format_size(found.written_footprint_bytes)),
    ]
    if found.writes_a_unit is not None:
        rows.append(("Writes of a written unit", f"{found.writes_a_unit:.2f}"))
    rows.append(("Skew", f"{found.hottest_fifth:.0%} of accesses to the hottest fifth of units"))
    if addressed:
        rows.append(("Aligned to 4 KiB", f"{found.aligned / addressed:.1%}"))
        rows.append(("Going on where the last ended", f"{found.continuing / addressed:.1%}"))
    if found.early:
        rows.append(("Out of order", f"{found.early}, by up to a second"))
    if found.empty:
        rows.append(("Of no bytes, left out", str(found.empty)))
    return rows


def _kind(count: int, size: int, median: int | None) -> str:
    half = f", half of them up to {format_size(median)}" if median else ""
    return f"{count}, {format_size(size)}{half}" if count else "none"


def _sizes(label: str, sizes: tuple[tuple[int, int], ...]) -> Table:
    """The lengths that are asked for most, as bars."""
    most = sorted(sizes, key=lambda each: -each[1])[:8]
    total, top = sum(count for _, count in sizes), most[0][1]
    table = Table(box=None, show_header=False, pad_edge=True, title=f"Sizes of {label}")
    table.title_justify = "left"
    for size, count in sorted(most):
        bar = "█" * max(1, round(24 * count / top))
        table.add_row(format_size(size), f"{count / total:.1%}", bar)
    return table
