"""The text of a fio job file: sections, option names and values in fio's units."""

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
"""They change what fio prints or how it runs, and no request."""
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
# fio's default is kb_base=1024, in which the units mean the opposite of what they say elsewhere.
# What "ki" means without a "b" depends on fio's version.
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


def refusal(section: str, option: str, given: object, allowed: str) -> UsageError:
    """The one line for what cannot be said: where, which option, what was given, what may be."""
    return UsageError(f"fio job {section!r}: {option} is {given}; may be {allowed}")


class Given:
    """The options of one job, by fio's first name for each."""

    def __init__(self, section: str, options: dict[str, str]) -> None:
        """`options` were checked by name."""
        self.section = section
        self._options = options

    def __contains__(self, option: str) -> bool:
        return option in self._options

    def refuse(self, option: str, allowed: str) -> UsageError:
        """What to raise for the value of an option."""
        return refusal(self.section, option, self._options.get(option, "left out"), allowed)

    def text(self, option: str, default: str) -> str:
        """Its value as it stands there."""
        return self._options.get(option, default)

    def choice(self, option: str, choices: tuple[str, ...]) -> str:
        """One of these words; the first where the option is left out.

        Raises:
            UsageError: another word.
        """
        word = self._options.get(option, choices[0])
        if word not in choices:
            raise self.refuse(option, " or ".join(choices))
        return word

    def flag(self, option: str, *, default: bool = False) -> bool:
        """Whether it is 1, or stands there without a value.

        Raises:
            UsageError: neither 0 nor 1.
        """
        value = self._options.get(option, str(int(default)))
        if value not in {"", "0", "1"}:
            raise self.refuse(option, "0 or 1")
        return value != "0"

    def number(self, option: str, default: int, lowest: int = 0, highest: int = 1 << 62) -> int:
        """A whole number without a unit.

        Raises:
            UsageError: none, or out of range.
        """
        text = self._options.get(option, str(default))
        if not re.fullmatch("[0-9]{1,19}", text) or not lowest <= int(text) <= highest:
            raise self.refuse(option, f"a whole number without a unit, {lowest} to {highest}")
        return int(text)

    def size(self, option: str, default: int) -> int:
        """Bytes.

        Raises:
            UsageError: no size: a percentage, a list for reads and writes, an unknown unit.
        """
        if option not in self._options:
            return default
        found = size_bytes(self._options[option])
        if found is None:
            raise self.refuse(option, _SIZE_RULE)
        return found

    def microseconds(self, option: str) -> int:
        """A time; a number without a unit is seconds.

        Raises:
            UsageError: no time, or 0, which fio takes for no limit.
        """
        match = _TIME.fullmatch(self._options[option].lower())
        scale = _MICROSECONDS.get(match[2]) if match else None
        if match is None or scale is None or int(match[1]) == 0:
            raise self.refuse(option, "above 0: seconds, or a number and us, ms, s, m, h or d")
        return int(match[1]) * scale


def size_bytes(text: str) -> int | None:
    """Bytes in a size as fio writes it; None if it is none."""
    match = _SIZE.fullmatch(text.lower())
    if match is None or match[2] not in _BYTES:
        return None
    return int(match[1]) * _BYTES[match[2]]


def sections(text: str) -> Iterator[Given]:
    """The jobs of a job file, each with what the [global] sections before it say.

    Raises:
        UsageError: an option that is not known, or a line that is none of fio's.
    """
    everywhere: dict[str, str] = {}
    name: str | None = None
    options: dict[str, str] = {}
    for line in (*map(_bare, text.splitlines()), "[]"):
        if not (line.startswith("[") and line.endswith("]")):
            if line and name is None:
                raise UsageError(f"fio job file: {line!r} stands before the first [section]")
            if line and name is not None:
                _add(name, options, line)
            continue
        if name == "global":
            everywhere = options
        elif name is not None:
            yield Given(name, options)
        name, options = line[1:-1], dict(everywhere)
        if name.startswith("global") and name != "global":
            raise UsageError(f"fio job file: [{name}]: a job's name may not begin with global")


def _bare(line: str) -> str:
    """Without comment and blanks; fio ends a line at either sign, wherever it stands."""
    return re.split("[;#]", line, maxsplit=1)[0].strip()


def _add(section: str, options: dict[str, str], line: str) -> None:
    written, _, value = (part.strip() for part in line.partition("="))
    option = ALIASES.get(written, written)
    if option in SILENT:
        return
    if option not in KNOWN:
        known = " ".join(sorted(KNOWN | SILENT))
        raise refusal(section, written, value or "given", f"left out, as it is not among {known}")
    if "$" in value:
        raise refusal(section, written, value, "a value without $: nothing is filled in")
    # Two names of one choice: whichever comes last counts.
    for one, other in (("direct", "buffered"), ("rwmixread", "rwmixwrite")):
        if option in {one, other}:
            options.pop(one, None)
            options.pop(other, None)
    options[option] = value
