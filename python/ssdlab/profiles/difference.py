"""The keys in which two profiles differ, those that change results most first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from ssdlab.errors import UsageError
from ssdlab.profiles.toml_edit import list_values
from ssdlab.units import parse_duration, parse_size

_IMPORTANCE: Final = (
    # What the drive is, and how much of it can be used.
    *("drive.model", "drive.interface", "drive.capacity", "ftl.spare"),
    # How much it does at a time, and what one operation takes.
    *("flash.channels", "flash.dies_per_channel", "flash.planes", "flash.page"),
    *("flash.program", "flash.read", "flash.channel_bandwidth", "link.bandwidth"),
    # What hides the flash from the host.
    *("buffer.power_loss_protection", "buffer.honours_flush", "buffer.flush_overhead"),
    *("slc.size", "slc.mode", "slc.program", "slc.read", "buffer.size"),
    # What each command costs.
    *("link.read_overhead", "link.write_overhead", "link.read_command", "link.write_command"),
    # Where data is written, and what is moved.
    *("ftl.chunk", "ftl.mapping_unit", "ftl.placement", "ftl.victim", "ftl.map_cache"),
    *("ftl.read_ahead", "ftl.read_portion", "ftl.read_portions"),
)
"""Keys by how much a usual workload depends on them; all others follow in the profiles' order."""
_RATES: Final = {"KB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "MiB/s": 2.0**20, "GiB/s": 2.0**30}


@dataclass(frozen=True)
class KeyDifference:
    """A key with its value in both profiles, None where it is left out, and the kind of each.

    `ratio` is the second value / the first, of a quantity that both have.
    """

    key: str
    first: Any
    second: Any
    first_kind: str
    second_kind: str
    ratio: float | None


def differences(first: str, second: str) -> list[KeyDifference]:
    """The keys whose values differ between two profiles' texts, by importance.

    Values are equal if they are the same quantity, in whatever unit.
    """
    one, two = ({row["key"]: row for row in list_values(text)} for text in (first, second))
    absent = {"value": None, "kind": ""}
    rows = []
    for key in dict.fromkeys((*one, *two)):
        a, b = one.get(key, absent), two.get(key, absent)
        if not _equal(a["value"], b["value"]):
            ratio = _ratio(a["value"], b["value"])
            rows.append(KeyDifference(key, a["value"], b["value"], a["kind"], b["kind"], ratio))
    return sorted(rows, key=lambda row: _rank(row.key))


def _rank(key: str) -> int:
    return _IMPORTANCE.index(key) if key in _IMPORTANCE else len(_IMPORTANCE)


def _equal(one: Any, other: Any) -> bool:
    numbers = _number(one), _number(other)
    return one == other or (None not in numbers and numbers[0] == numbers[1])


def _ratio(one: Any, other: Any) -> float | None:
    a, b = _number(one), _number(other)
    return b / a if a and b is not None else None


def _number(value: Any) -> float | None:
    """The quantity in bytes, seconds or bytes/s; of a list the mean; None for words and flags."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, list):
        parts = [_number(part) for part in value]
        known = [part for part in parts if part is not None]
        return sum(known) / len(known) if known and len(known) == len(parts) else None
    return _quantity(str(value))


def _quantity(text: str) -> float | None:
    number, _, unit = text.partition(" ")
    if unit in _RATES:
        try:
            return float(number) * _RATES[unit]
        except ValueError:
            return None
    parsers: tuple[Callable[[str], float], ...] = (parse_size, parse_duration)
    for parse in parsers:
        try:
            return float(parse(text))
        except UsageError:
            continue
    return None
