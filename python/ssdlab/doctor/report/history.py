"""The history of a drive as a table, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ssdlab.doctor.history import Changes
from ssdlab.units import format_size
from ssdlab.view import Column, Table
from ssdlab.wording import NOTHING

_NUMBERS: Final[tuple[tuple[str, str, Callable[[float], str]], ...]] = (
    ("wear", "worn", lambda value: f"{value:g} %"),
    ("spare blocks", "spare_blocks", lambda value: f"{value:g} %"),
    ("uncorrectable errors", "media_errors", lambda value: f"{value:g}"),
    ("sectors waiting", "pending", lambda value: f"{value:g}"),
    ("reallocated blocks", "reallocated", lambda value: f"{value:g}"),
    ("cable errors", "link_errors", lambda value: f"{value:g}"),
    ("unsafe shutdowns", "unsafe_shutdowns", lambda value: f"{value:g}"),
    ("minutes too hot", "hot_minutes", lambda value: f"{value:g}"),
    ("temperature", "temperature_c", lambda value: f"{value:.0f} °C"),
    ("power-on hours", "power_on_hours", lambda value: f"{value:,g}"),
    ("written by hosts", "host_bytes", format_size),
    ("written to flash", "flash_bytes", format_size),
    ("fast reads", "read_mib_per_s", lambda value: f"{value:.4g} MiB/s"),
)
"""The rows: label, field of `Entry`, and how a value is written."""


def numbers(changes: Changes) -> Table:
    """A drive now, next to its first and last entries and that of a month ago."""
    earlier = {"first": changes.first, "a month ago": changes.month_ago, "last": changes.last}
    by_entry = {entry: name for name, entry in earlier.items() if entry is not None}
    entries = {name: entry for entry, name in by_entry.items()}
    every = [*entries.values(), changes.now]
    shown = [
        (label, [getattr(entry, key) for entry in every], text) for label, key, text in _NUMBERS
    ]
    known = [row for row in shown if any(value is not None for value in row[1])]
    cells = [
        [NOTHING if values[at] is None else text(values[at]) for _, values, text in known]
        for at in range(len(every))
    ]
    heads = [Column(name, entry.when[:10], minor=name != "last") for name, entry in entries.items()]
    labels = [label for label, _, _ in known]
    return Table.of_columns(
        (Column("", numeric=False), labels),
        *zip([*heads, Column("now")], cells, strict=True),
    )


def endurance(changes: Changes) -> str:
    """How long the rated endurance lasts; "" if that is not known."""
    if changes.months_left is None:
        return ""
    return f"At this rate of wear its endurance lasts {changes.months_left:.0f} more months."
