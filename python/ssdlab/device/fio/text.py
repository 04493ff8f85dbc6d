"""Parses a fio job file: sections, option names, and values in fio's units."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ssdlab.errors import UsageError

ALIASES: Final = {
    "readwrite": "rw",
    "blocksize": "bs",
    "io_limit": "io_size",
    "ba": "blockalign",
    "timeout": "runtime",
    "wait_for_previous": "stonewall",
}
SILENT: Final = frozenset(("description", "group_reporting", "registerfiles", "thread"))
"""Options that change fio's output or threads, but no request."""
_WORDS: Final = (
    "blockalign bs bssplit buffer_compress_chunk buffer_compress_percentage buffered direct "
    "fdatasync filename fixedbufs fsync invalidate io_size iodepth ioengine log_avg_msec "
    "norandommap numjobs offset offset_increment random_distribution randrepeat randseed rate "
    "rate_iops rate_process refill_buffers runtime rw rwmixread rwmixwrite size stonewall sync "
    "time_based zero_buffers zonemode zonerange zonesize zoneskip"
)
KNOWN: Final = frozenset(_WORDS.split())

_SIZE: Final = re.compile(r"([0-9]{1,18})([a-z]*)")
_SIZE_RULE: Final = "bytes, or a number and k, m, g, t (x1024) or kib, mib, gib, tib (x1000)"
# With fio's default kb_base=1024, the units have swapped meanings: kb is 1024, kib is 1000.
# The meaning of "ki" without "b" depends on fio's version.
_BYTES: Final[dict[str, int]] = {
    "": 1,
    "b": 1,
    **{f"{unit}{b}": 1024 ** (i + 1) for i, unit in enumerate("kmgt") for b in ("", "b")},
    **{f"{unit}ib": 1000 ** (i + 1) for i, unit in enumerate("kmgt")},
}
_TIME: Final = re.compile(r"([0-9]{1,12})([a-z]*)")
_MICROSECONDS: Final[dict[str, int]] = {
    **dict.fromkeys(("us", "usec"), 1),
    **dict.fromkeys(("ms", "msec"), 1000),
    **dict.fromkeys(("", "s", "sec"), 1_000_000),
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}


def fio_error(section: str, option: str, value: object, allowed: str) -> UsageError:
    """The error for an option or value that cannot be converted."""
    return UsageError(f"fio job {section!r}: {option} is {value}; it must be {allowed}")


class JobSection:
    """The options of one job, each under fio's main name for it."""

    def __init__(self, name: str, options: dict[str, str]) -> None:
        """All names in `options` must be known."""
        self.name = name
        self._options = options

    def __contains__(self, option: str) -> bool:
        return option in self._options

    def error(self, option: str, allowed: str) -> UsageError:
        """The error for the value of an option."""
        return fio_error(self.name, option, self._options.get(option, "left out"), allowed)

    def text(self, option: str, default: str) -> str:
        """The value as text."""
        return self._options.get(option, default)

    def choice(self, option: str, choices: tuple[str, ...]) -> str:
        """One of the choices; the first is the default.

        Raises:
            UsageError: another value.
        """
        word = self._options.get(option, choices[0])
        if word not in choices:
            raise self.error(option, " or ".join(choices))
        return word

    def flag(self, option: str, *, default: bool = False) -> bool:
        """True for 1, or for an option without a value.

        Raises:
            UsageError: the value is neither 0 nor 1.
        """
        value = self._options.get(option, str(int(default)))
        if value not in {"", "0", "1"}:
            raise self.error(option, "0 or 1")
        return value != "0"

    def number(self, option: str, default: int, lowest: int = 0, highest: int = 1 << 62) -> int:
        """An integer without a unit.

        Raises:
            UsageError: not an integer, or out of range.
        """
        text = self._options.get(option, str(default))
        if not re.fullmatch("[0-9]{1,19}", text) or not lowest <= int(text) <= highest:
            raise self.error(option, f"a whole number without a unit, {lowest} to {highest}")
        return int(text)

    def size(self, option: str, default: int) -> int:
        """A size in bytes.

        Raises:
            UsageError: a percentage, separate sizes for reads and writes, or an unknown unit.
        """
        if option not in self._options:
            return default
        size = size_bytes(self._options[option])
        if size is None:
            raise self.error(option, _SIZE_RULE)
        return size

    def microseconds(self, option: str) -> int:
        """A time in microseconds; a number without a unit is seconds.

        Raises:
            UsageError: not a time, or 0, which means no limit in fio.
        """
        match = _TIME.fullmatch(self._options[option].lower())
        scale = _MICROSECONDS.get(match[2]) if match else None
        if match is None or scale is None or int(match[1]) == 0:
            raise self.error(option, "above 0: seconds, or a number and us, ms, s, m, h or d")
        return int(match[1]) * scale


def size_bytes(text: str) -> int | None:
    """Converts a size in fio's notation to bytes; None if the text is not a size."""
    match = _SIZE.fullmatch(text.lower())
    if match is None or match[2] not in _BYTES:
        return None
    return int(match[1]) * _BYTES[match[2]]


def sections(text: str) -> Iterator[JobSection]:
    """The jobs of a job file, each with the options of the [global] section before it.

    Raises:
        UsageError: an unknown option, or an invalid line.
    """
    global_options: dict[str, str] = {}
    name: str | None = None
    options: dict[str, str] = {}
    for line in (*map(_without_comment, text.splitlines()), "[]"):
        if not (line.startswith("[") and line.endswith("]")):
            if line and name is None:
                raise UsageError(f"fio job file: {line!r} is before the first [section]")
            if line and name is not None:
                _add(name, options, line)
            continue
        if name == "global":
            global_options = options
        elif name is not None:
            yield JobSection(name, options)
        name, options = line[1:-1], dict(global_options)
        if name.startswith("global") and name != "global":
            raise UsageError(f"fio job file: [{name}]: a job's name must not begin with global")


def _without_comment(line: str) -> str:
    """The line up to ; or #, stripped; in fio both begin a comment anywhere in a line."""
    return re.split("[;#]", line, maxsplit=1)[0].strip()


def _add(section: str, options: dict[str, str], line: str) -> None:
    written, _, value = (part.strip() for part in line.partition("="))
    option = ALIASES.get(written, written)
    if option in SILENT:
        return
    if option not in KNOWN:
        known = " ".join(sorted(KNOWN | SILENT))
        allowed = f"left out; the supported options are {known}"
        raise fio_error(section, written, value or "given", allowed)
    if "$" in value:
        raise fio_error(section, written, value, "without $: variables are not expanded")
    # Two options make the same choice: the last one counts.
    for one, other in (("direct", "buffered"), ("rwmixread", "rwmixwrite")):
        if option in {one, other}:
            options.pop(one, None)
            options.pop(other, None)
    options[option] = value
