"""What came of a heal, for people: a line a file, the map as a strip, the gain in one sentence."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from rich.console import Console
from rich.table import Table

from ssdlab.heal.outcome import FileOutcome, Healed, MapRow
from ssdlab.units import format_size
from ssdlab.wording import plain

STRIP: Final = 64
"""Columns of a map."""
STEPS: Final = "▁▂▃▄▅▆▇█"


def render(healed: Healed, console: Console) -> None:
    """Prints it all."""
    for each in healed.files:
        _file(each, healed, console)
    if healed.small_files:
        _say(console, f"{healed.small_files} files of less than 1 MiB were left out.")
    for gone in healed.leftovers:
        _say(console, f"{gone}, left by a run that was killed, was removed.")
    console.print(plain(healed.verdict), style="bold", markup=False, highlight=False)


def _file(each: FileOutcome, healed: Healed, console: Console) -> None:
    console.print(plain(each.path), style="bold", markup=False, highlight=False, soft_wrap=True)
    if each.refused is not None:
        _say(console, f"  stays as it is: {each.refused.sentence}")
        return
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 2))
    for name, value in _rows(each, dry_run=healed.dry_run):
        table.add_row(name, plain(value))
    console.print(table)


def _rows(each: FileOutcome, *, dry_run: bool) -> list[tuple[str, str]]:
    what = "device" if (each.way or "").startswith("in place") else "file"
    rows = [
        (what, f"{format_size(each.size_bytes)}, {each.file_system}, way: {each.way}"),
        ("fresh speed", f"{_speed(each.fresh_mib_per_s)} (from {each.fresh_from})"),
        ("before", f"{_speed(each.before_mib_per_s)}  {_strip(each, after=False)}"),
    ]
    if each.after_mib_per_s is not None:
        rows.append(("after", f"{_speed(each.after_mib_per_s)}  {_strip(each, after=True)}"))
    share = each.planned_bytes / each.size_bytes if each.size_bytes else 0.0
    plan = (
        f"{format_size(each.planned_bytes)} in {len(each.plan)} ranges, {share:.1%} of the {what}"
    )
    rows.append(("to be rewritten", plan))
    if each.days_of_endurance is not None:
        worth = f"{each.days_of_endurance:.2g} days of the drive's warranted writing"
        rows.append(("wear", worth))
    if each.restored_bytes:
        rows.append(("put back", f"{format_size(each.restored_bytes)} that a crash had torn"))
    if not dry_run and each.planned_bytes:
        rows.append(("rewritten", _written(each)))
    if each.longest_freeze_ms is not None:
        rows.append(("frozen", f"at most {each.longest_freeze_ms:.0f} ms at a time"))
    if each.why:
        rows.append(("left", f"{format_size(sum(n for _, n in each.left))}: {each.why}"))
    return rows


def _written(each: FileOutcome) -> str:
    words = f"{format_size(each.moved_bytes)} by {format_size(each.written_bytes)} of writes"
    if each.extents_after is None:
        return words
    return f"{words}, {each.extents_before} to {each.extents_after} extents"


def _strip(each: FileOutcome, *, after: bool) -> str:
    """The map: a column for each equal part of the pieces, as high as its slowest piece is fast."""
    fresh = each.fresh_mib_per_s
    if not each.map or not fresh:
        return ""
    columns = min(STRIP, len(each.map))
    edges = [len(each.map) * number // columns for number in range(columns + 1)]
    return "".join(_column(each.map[a:b], fresh, after=after) for a, b in pairwise(edges))


def _column(rows: list[MapRow], fresh: float, *, after: bool) -> str:
    speeds = [row.after_mib_per_s if after else row.before_mib_per_s for row in rows]
    known = [speed for speed in speeds if speed is not None]
    if not known:
        return " "
    step = int(min(known) / fresh * (len(STEPS) - 1) + 0.5)
    return STEPS[max(0, min(len(STEPS) - 1, step))]


def _speed(mib_per_s: float | None) -> str:
    return "not measured" if mib_per_s is None else f"{mib_per_s:.0f} MiB/s"


def _say(console: Console, text: str) -> None:
    console.print(plain(text), markup=False, highlight=False, soft_wrap=True)
