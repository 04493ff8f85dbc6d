"""Formats labels, numbers with units, findings and intervals for output."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from ssdlab.units import format_duration, format_size

if TYPE_CHECKING:  # records load the Arrow library
    from ssdlab.records import Finding

NOTHING: Final = "-"
UNKNOWN: Final = "not known"
_CONTROL: Final = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_KEY: Final = re.compile(
    r"(?:(?=mib_per_s)|(?P<name>.*?)_)(?P<unit>mib_per_s|bytes|[kmg]ib|ns|us|ms|s|percent)"
    r"(?:_(?P<part>p\d+|all|max|min|mean))?"
)
_ABBREVIATIONS: Final = {"iops": "IOPS", "waf": "WAF"}
_UNITS: Final = {
    "mib_per_s": "MiB/s",
    "bytes": "bytes",
    "kib": "KiB",
    "mib": "MiB",
    "gib": "GiB",
    "percent": "%",
}


def plain(value: object) -> str:
    """`value` as text, with control and bidirectional characters replaced.

    Text from outside then cannot control a terminal or break an HTML page.
    """
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", str(value))


def shorten(text: str, length: int) -> str:
    """A path or name in at most `length` characters, cut at the start."""
    return text if len(text) <= length else "…" + text[1 - length :]


def cut(text: str, length: int) -> str:
    """A label in at most `length` characters, cut at the end."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def number(value: float) -> str:
    """A measured number with at least three digits, without exponent: 1.90, 10.7, 5050."""
    if not math.isfinite(value):
        return NOTHING
    if isinstance(value, int) or (value == int(value) and abs(value) < 1e15):
        return f"{int(value)}"
    return f"{value:.{decimals([value])}f}"


def format_number(value: float) -> str:
    """A parameter without trailing zeros or exponent: 50, 6.25."""
    if not math.isfinite(value):
        return NOTHING
    digits = f"{value:.{max(2, decimals([value]))}f}"
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def decimals(values: Iterable[float]) -> int:
    """Decimal places that show three digits of the smallest nonzero value."""
    sizes = [abs(value) for value in values if value and math.isfinite(value)]
    if not sizes:
        return 0
    return min(12, max(0, 2 - math.floor(math.log10(float(f"{min(sizes):.3g}")))))


def column(values: Iterable[float | None]) -> list[str]:
    """Numbers of a table column: all with the same number of decimal places."""
    numbers = [None if value is None or not math.isfinite(value) else value for value in values]
    digits = decimals([value for value in numbers if value is not None])
    return [NOTHING if value is None else f"{value:.{digits}f}" for value in numbers]


def unit_of(key: str) -> str:
    """The unit at the end of a name: "MiB/s" for `read_mib_per_s`; "" if it has none."""
    match = _KEY.fullmatch(key)
    return _UNITS.get(match["unit"], match["unit"]) if match else ""


def label(key: str, known: Mapping[str, str] | None = None) -> str:
    """A label: `known[key]`, or the words of the key without its unit."""
    if known and key in known:
        return known[key]
    match = _KEY.fullmatch(key)
    words = key
    if match:
        words = f"{match['name'] or 'throughput'} {_percentile(match['part'] or '')}"
    words = " ".join(_ABBREVIATIONS.get(word, word) for word in plain(words).split("_"))
    return (words[:1].upper() + words[1:]).strip()


def _percentile(part: str) -> str:
    """p999 as "p99.9"; other parts unchanged."""
    is_fine = part.startswith("p") and len(part) > 3
    return f"{part[:3]}.{part[3:]}" if is_fine else part


def quantity(key: str, value: Any) -> str:
    """A value with the unit that its name ends in."""
    if value is None or value == "":
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(quantity(key, item) for item in value) or "none"
    if isinstance(value, int | float) and math.isfinite(value):
        return _with_unit(unit_of(key), value)
    return plain(value)


def _with_unit(unit: str, value: float) -> str:
    if unit == "bytes":
        return format_size(value)
    if unit == "s" and value >= 0:
        return format_duration(value)
    return f"{format_number(value)} {unit}".rstrip()


WIDE: Final = 10
"""Bounds of an interval get two digits if the upper one is more than ten times the lower one."""
WIDE_RATIO: Final = 2
"""If the upper bound of a ratio's interval is more than twice the lower one and 1 is between them,
the ratio shows nothing."""


def finding_value(finding: Finding) -> str:
    """A finding's value with its unit: "3.58x", "no", "32 KiB".

    "not shown" for a ratio whose interval is wide and includes 1.
    """
    value = finding.value
    if _is_noise(finding):
        return "not shown"
    if isinstance(value, bool | str) or value is None:
        return quantity("", value)
    return _join(number(value), finding.unit)


def finding_interval(finding: Finding) -> str:
    """The interval of a finding, such as "3.40 to 3.70x"; "" if it has none."""
    if finding.low is None and finding.high is None:
        return ""
    if finding.high is None:
        return f"at least {_join(number(finding.low or 0), finding.unit)}"
    if finding.low is None:
        return f"at most {_join(number(finding.high), finding.unit)}"
    if finding.low == finding.high == finding.value:
        return "exactly"
    if 0 < finding.low * WIDE < finding.high:
        low, high = (f"{bound:.2g}" for bound in (finding.low, finding.high))
    else:
        low, high = column([finding.low, finding.high])
    return f"{low} to {_join(high, finding.unit)}"


def _is_noise(finding: Finding) -> bool:
    if finding.unit != "x" or finding.low is None or finding.high is None:
        return False
    return 0 < finding.low < 1 < finding.high and finding.high > WIDE_RATIO * finding.low


def _join(digits: str, unit: str) -> str:
    return f"{digits}x" if unit == "x" else f"{digits} {plain(unit)}".rstrip()


def positive(value: Any, *, zero: bool = False) -> float | None:
    """`value` where it is a finite number above zero (or zero, if allowed), else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    usable = math.isfinite(value) and (value > 0 or (zero and value == 0))
    return float(value) if usable else None
