"""Parses and formats sizes and durations: "512MiB" as bytes, "1h 30min" as seconds."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Final

from ssdlab.errors import UsageError

_BINARY: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_DECIMAL: Final = ("B", "KB", "MB", "GB", "TB", "PB", "EB")
_BYTES: Final = {
    **{name.lower(): 1024**power for power, name in enumerate(_BINARY)},
    **{name.lower(): 1000**power for power, name in enumerate(_DECIMAL)},
}
_SECOND, _MINUTE, _HOUR, _DAY = 1, 60, 3600, 86_400
_SECONDS: Final = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),  # U+00B5, the micro sign
    "μs": Fraction(1, 10**6),  # U+03BC, the Greek letter mu
    "ms": Fraction(1, 10**3),
    "s": Fraction(_SECOND),
    "min": Fraction(_MINUTE),
    "h": Fraction(_HOUR),
    "d": Fraction(_DAY),
}
# 18 digits are enough for an exbibyte. Without a limit, int() fails beyond 4300 digits.
_NUMBER: Final = r"[0-9]{1,18}(?:\.[0-9]{1,18})?"
_QUANTITY: Final = re.compile(rf"\s*({_NUMBER})\s*([^\W\d_]*)\s*")

_SIZE_RULE: Final = "write a number and one of B, KiB MiB GiB TiB (x1024), KB MB GB TB (x1000)"
_TIME_RULE: Final = "write a number and one of ns us ms s min h d, such as 30s or 1h 30min"


def parse_size(text: str) -> int:
    """Bytes in a size such as "512MiB", "1.5 GB" or "4096 B"; "0" needs no unit.

    Case does not matter; KB, MB, GB are powers of 1000, KiB, MiB, GiB of 1024.

    Raises:
        UsageError: no unit, an unknown unit, a negative size, or a fraction of a byte.
    """
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is not a size: {_SIZE_RULE}")
    number, unit = Fraction(match[1]), match[2].lower()
    if not unit:
        if number == 0:
            return 0
        raise UsageError(f"{text!r}: a size needs a unit: 512MiB; {_SIZE_RULE}")
    if unit not in _BYTES:
        raise UsageError(f"{text!r}: {match[2]!r} is not a unit of size: {_SIZE_RULE}")
    size = number * _BYTES[unit]
    if size.denominator != 1:
        raise UsageError(f"{text!r} is {float(size):.6g} bytes: a size is a whole number of bytes")
    return int(size)


def parse_duration(text: str) -> float:
    """Seconds in a duration such as "30 s", "250us" or "1h 30min"; "0" needs no unit.

    Accepts everything that `format_duration` returns.

    Raises:
        UsageError: no unit, an unknown unit, or a negative time.
    """
    total, position = Fraction(0), 0
    while match := _QUANTITY.match(text, position):
        total += _seconds(text, Fraction(match[1]), match[2])
        position = match.end()
    if not position or position != len(text):
        raise UsageError(f"{text!r} is not a time: {_TIME_RULE}")
    return float(total)


def _seconds(text: str, number: Fraction, unit: str) -> Fraction:
    if unit in _SECONDS:
        return number * _SECONDS[unit]
    if unit:
        raise UsageError(f"{text!r}: {unit!r} is not a unit of time: {_TIME_RULE}")
    if number:
        raise UsageError(f"{text!r}: a time needs a unit: 30s; {_TIME_RULE}")
    return Fraction(0)


def exact_size(size_bytes: int) -> str:
    """A size without rounding, for a command line: "1GiB", "1536KiB", "512GB", "1001B"."""
    texts = [
        f"{size_bytes // base**power}{unit}"
        for base, units in ((1024, _BINARY), (1000, _DECIMAL))
        for power, unit in enumerate(units)
        if size_bytes % base**power == 0 and size_bytes >= base**power
    ]
    return min(texts, key=len, default="0B")


def nearest_multiples(size_bytes: int, step: int, least: int = 0, most: int | None = None) -> str:
    """The multiples of `step` nearest to a size, below and above it: "953MiB or 954MiB".

    Only those from `least` to `most`; "" if there are none.
    """
    first = -(-max(least, 1) // step) * step
    below = size_bytes // step * step
    near = {max(first, size) for size in (below, below + step)}
    if most is not None:
        last = most // step * step
        near = {min(last, size) for size in near} if last >= first else set()
    return " or ".join(map(exact_size, sorted(near)))


def format_size(size_bytes: float) -> str:
    """A size in binary units with at most four digits: 1536 is "1.5 KiB"."""
    sign, rest = ("-", -size_bytes) if size_bytes < 0 else ("", size_bytes)
    for power, unit in enumerate(_BINARY):
        digits = f"{rest / 1024**power:.4g}"
        if float(digits) < 1024:
            return f"{sign}{digits} {unit}"
    return f"{sign}{rest / 1024**6:.0f} {_BINARY[-1]}"


def format_duration(seconds: float) -> str:
    """A duration: "250 us", "1.5 s", "1 min 5 s", "2 h 10 min", "3 d 4 h".

    Below a minute, one unit with three digits; above, two units rounded to the smaller one.
    `seconds` must be finite and not negative.
    """
    assert 0 <= seconds < math.inf, f"not a duration: {seconds}"
    if not seconds:
        return "0 s"
    if round(seconds, 1) < _MINUTE:
        return _below_a_minute(seconds)
    for big, small, limit in ((_MINUTE, _SECOND, _HOUR), (_HOUR, _MINUTE, _DAY)):
        whole = round(seconds / small) * small
        if whole < limit:
            return _two_units(whole, big, small)
    return _two_units(round(seconds / _HOUR) * _HOUR, _DAY, _HOUR)


def _below_a_minute(seconds: float) -> str:
    for unit, scale in (("ns", 1e9), ("us", 1e6), ("ms", 1e3)):
        digits = f"{seconds * scale:.3g}"
        if float(digits) < 1000:
            return f"{digits} {unit}"
    return f"{seconds:.3g} s"


def _two_units(whole: int, big: int, small: int) -> str:
    names = {_SECOND: "s", _MINUTE: "min", _HOUR: "h", _DAY: "d"}
    left = whole % big // small
    return f"{whole // big} {names[big]}" + (f" {left} {names[small]}" if left else "")
