"""Variables of a fit: numbers of the profile that it may change.

A `Scale` multiplies the numbers of a key by a factor; a `Choice` picks one of several values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

from ssdlab.errors import UsageError
from ssdlab.profiles.toml_edit import get_value, set_values
from ssdlab.units import parse_duration, parse_size

KIB: Final = 1 << 10
_LARGEST_UNIT: Final = 16 * KIB
"""Of the mapping units that are tried: a page holds whole ones."""
_READ: Final = "flash.read"
_US: Final = 1e6
_RATIOS: Final = (
    "1",
    "1 : 1.5",
    "1 : 2.5",
    "1 : 1.25 : 1.5",
    "1 : 1.75 : 2.5",
    "1 : 1.2 : 1.4 : 1.6",
    "1 : 1.5 : 2 : 2.5",
)
_PENALTY: Final = 0.5
"""Prior cost of a value that differs from the start profile's."""
FINER: Final = 6
"""Every sixth size of an SLC cache is always tried."""
NEXT_SIZES: Final = 3
"""How many sizes next to the present one are tried, too, in each direction."""
MODE: Final = "slc.mode"
FOLDING: Final = "slc.folding"
WHILE_WRITING: Final = "while writing"
"""A dynamic SLC cache is folded also while the host writes, not only while it is idle."""
SUSPENDED: Final = "20 us"
"""The time to suspend a program that is tried first."""
SUSPENSIONS: Final = (None, "10 us", SUSPENDED, "40 us")
SLC_MODES: Final = ("static", "dynamic")
FOLDINGS: Final = (None, WHILE_WRITING)


_SIZE_UNITS: Final = {"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}
_UNITS: Final = {
    "us": 1e-6,
    "ms": 1e-3,
    "ns": 1e-9,
    "MB/s": 1e6,
    "MiB/s": 2.0**20,
    "GB/s": 1e9,
    **_SIZE_UNITS,
}
_QUANTITY: Final = re.compile(r"\s*([0-9.]+)\s*(\S+)\s*")


@dataclass(frozen=True)
class Scale:
    """Multiplies the numbers of `key` by a factor from `low` to `high`.

    `prior_sigma` is the prior standard deviation of the factor's logarithm. For a time that can be
    zero, the factor applies to time + `offset` (in s). With `of`, the number is the factor times
    that of this other key.
    """

    key: str
    low: float
    high: float
    prior_sigma: float
    offset: float = 0.0
    of: str = ""

    @property
    def base(self) -> str:
        """The key whose numbers are multiplied."""
        return self.of or self.key

    def mean(self, profile: str) -> float:
        """The mean of the numbers for the factor 1, in s, bytes/s or bytes; 1 with `of`."""
        return 1.0 if self.of else mean_of(profile, self.key, self.offset)

    def changes(self, profile: str, factor: float, value: Any = None) -> dict[str, Any]:
        """The new values: each number of `base`, multiplied by the factor.

        `value` is taken for that of the profile if given.
        """
        value = value or get_value(profile, self.base)
        scaled = [_multiply(text, factor, self.offset) for text in _as_list(value)]
        return {self.key: scaled if isinstance(value, list) else scaled[0]}

    def apply(self, profile: str, factor: float, source: str = "") -> str:
        """The profile's text with these changes."""
        return set_values(profile, self.changes(profile, factor), source)


def is_consistent(by_key: Mapping[str, Any]) -> bool:
    """Whether a drive may have these choices.

    A number of portions needs their size, and only a dynamic cache is folded while the host writes.
    """
    if by_key.get("ftl.read_portions") and by_key.get("ftl.read_portion") is None:
        return False
    is_folded_early = by_key.get(FOLDING) == WHILE_WRITING
    return not is_folded_early or bool(by_key.get(MODE) == "dynamic")


@dataclass(frozen=True)
class Choice:
    """Sets `key` to one of `values` (None: absent), each with its prior cost in `penalties`."""

    key: str
    values: tuple[Any, ...]
    penalties: tuple[float, ...]

    def changes(self, _profile: str, value: Any) -> dict[str, Any]:
        """The keys that a value sets."""
        return {self.key: value}

    def value_in(self, profile: str) -> Any:
        """The value that a profile has."""
        return get_value(profile, self.key)

    def near(self, _value: Any) -> tuple[Any, ...]:
        """The values that are tried from this one: all."""
        return self.values

    def apply(self, profile: str, value: Any, source: str = "") -> str:
        """The profile's text with these changes."""
        return set_values(profile, self.changes(profile, value), source)

    def bounds(self, fitting: Sequence[Any]) -> tuple[Any, Any]:
        """The interval of the number, if only these of the values fit, given in their order."""
        return fitting[0], fitting[-1]


class CacheSizes(Choice):
    """Sizes of an SLC cache in small steps: some results depend on what just fits into it."""

    def near(self, value: Any) -> tuple[Any, ...]:
        """Sizes spread over all, and the next smaller and larger ones."""
        at = self.values.index(value)
        near = range(at - NEXT_SIZES, at + NEXT_SIZES + 1)
        return tuple(each for n, each in enumerate(self.values) if n % FINER == 0 or n in near)


class Dies(Choice):
    """Dies of a channel: a drive may have a number of them that is not tried."""

    def bounds(self, fitting: Sequence[Any]) -> tuple[Any, Any]:
        """Half way to the next numbers that were tried and do not fit."""
        below = max((value for value in self.values if value < fitting[0]), default=fitting[0] / 2)
        above = min(
            (value for value in self.values if value > fitting[-1]), default=2 * fitting[-1]
        )
        low, high = (float(below * fitting[0]) ** 0.5, float(above * fitting[-1]) ** 0.5)
        return round(low, 1), round(high, 1)


class Time(Choice):
    """A time, or None if the drive has none; it may have a time that is not tried."""

    REACH: ClassVar[float] = 0.5
    """How far the interval extends to the next times that were tried and do not fit, 0 to 1."""

    def bounds(self, fitting: Sequence[Any]) -> tuple[Any, Any]:
        """The interval, beyond the times that fit by `REACH`; None above if None fits, too."""
        tried, times = (
            sorted(parse_duration(value) for value in values if value is not None)
            for values in (self.values, fitting)
        )
        if not times:
            return None, None
        below = max((each for each in tried if each < times[0]), default=times[0] / 4)
        above = min((each for each in tried if each > times[-1]), default=4 * times[-1])
        low, high = (
            f"{time * (other / time) ** self.REACH * _US:.0f} us"
            for time, other in ((times[0], below), (times[-1], above))
        )
        return low, None if None in fitting else high


class Suspension(Time):
    """The time to suspend a program for a read; None if reads wait for programs."""

    REACH = 1.0

    def near(self, value: Any) -> tuple[Any, ...]:
        """From None a middle time: others are tried only if programs are suspended."""
        return (None, SUSPENDED) if value is None else self.values


@dataclass(frozen=True)
class Flag(Choice):
    """A flag with the value `absent` if the profile does not have it."""

    absent: bool = True

    def value_in(self, profile: str) -> Any:
        """The value that a profile has."""
        value = get_value(profile, self.key)
        return self.absent if value is None else value


class Protection(Flag):
    """Whether capacitors protect the write buffer; a drive that ignores flushes is as fast."""

    def bounds(self, fitting: Sequence[Any]) -> tuple[Any, Any]:
        """Both, unless the drive is known to wait for flash."""
        return False, True in fitting


class MappingUnit(Choice):
    """The mapping unit; memory for the map holds as much of it as before."""

    def changes(self, profile: str, value: Any) -> dict[str, Any]:
        """The unit, and the memory for the map if that is limited."""
        size = get_value(profile, "ftl.map_cache")
        if size is None or value is None:
            return {self.key: value}
        was = parse_size(str(get_value(profile, self.key) or "4 KiB"))
        smaller = parse_size(str(size)) * was // parse_size(value)
        return {self.key: value, "ftl.map_cache": f"{smaller} B"}


class Channels(Choice):
    """The number of channels; the number of dies stays the same."""

    def changes(self, profile: str, value: Any) -> dict[str, Any]:
        """Channels, and dies of each."""
        dies = get_value(profile, "flash.channels") * get_value(profile, "flash.dies_per_channel")
        return {"flash.channels": value, "flash.dies_per_channel": dies // value}


class MultiPlanePage(Choice):
    """Sizes of a page in all planes of a die, as text: only this product matters to the model.

    The number of planes stays as in the start profile if it divides the size, or if they read
    independently.
    """

    @classmethod
    def of_profile(cls, key: str, profile: str, sizes_kib: Sequence[int]) -> Self:
        """These sizes and that of the profile."""
        own = _multi_plane_kib(profile)
        sizes = sorted({own, *sizes_kib})
        penalties = tuple(_PENALTY * (size != own) for size in sizes)
        return cls(key, tuple(f"{size} KiB" for size in sizes), penalties)

    def changes(self, profile: str, value: Any) -> dict[str, Any]:
        """Planes and page."""
        size, unit = parse_size(value), _LARGEST_UNIT
        planes = get_value(profile, "flash.planes") or 1
        is_divided = get_value(profile, "flash.independent_plane_reads")
        if size % (planes * unit) and not is_divided:
            planes = 1
        return {"flash.planes": planes, "flash.page": f"{size // planes // KIB} KiB"}

    def value_in(self, profile: str) -> Any:
        """The profile's multi-plane page."""
        return f"{_multi_plane_kib(profile)} KiB"


class PageTypes(Choice):
    """Ratios of the read times of page types to the shortest, as text; the mean stays the same."""

    @classmethod
    def of_profile(cls, key: str, profile: str) -> Self:
        """The profile's ratios, and those of flash with one to four bits per cell."""
        own = _ratios(profile)
        tried = [own, *(ratios for ratios in _RATIOS if ratios != own)]
        return cls(key, tuple(tried), tuple(_PENALTY * (each != own) for each in tried))

    def changes(self, profile: str, value: Any) -> dict[str, Any]:
        """The times of the page types."""
        if value == _ratios(profile):
            return {}
        ratios = [float(each) for each in value.split(" : ")]
        times = _read_times_us(profile)
        scale = sum(times) / len(times) / (sum(ratios) / len(ratios))
        return {_READ: [f"{scale * ratio:.3f} us" for ratio in ratios]}

    def value_in(self, profile: str) -> Any:
        """The profile's ratios."""
        return _ratios(profile)


def _ratios(profile: str) -> str:
    times = _read_times_us(profile)
    return " : ".join(f"{time / min(times):.3g}" for time in times)


def _read_times_us(profile: str) -> list[float]:
    value = get_value(profile, _READ)
    return [1e6 * parse_duration(time) for time in (value if isinstance(value, list) else [value])]


def _multi_plane_kib(profile: str) -> int:
    planes = get_value(profile, "flash.planes") or 1
    return int(planes * parse_size(str(get_value(profile, "flash.page"))) // KIB)


def _as_list(value: Any) -> list[str]:
    """The value as a list of quantities with units; an absent time is zero."""
    if value is None:
        return ["0 us"]
    return list(value) if isinstance(value, list) else [value]


def quantities(profile: str, key: str, offset: float = 0.0) -> list[float]:
    """The key's numbers in s, bytes/s or bytes; with an offset, an absent one is zero.

    Raises:
        UsageError: one of them is not a number with a unit.
    """
    value = get_value(profile, key)
    matches = [_QUANTITY.fullmatch(str(text)) for text in _as_list(value)]
    is_missing = value is None and offset == 0.0
    if is_missing or any(match is None or match[2] not in _UNITS for match in matches):
        raise UsageError(
            f"{key} is {value} in the start profile; it must be a number with a unit of "
            f"{', '.join(_UNITS)}"
        )
    return [float(match[1]) * _UNITS[match[2]] for match in matches if match is not None]


def mean_of(profile: str, key: str, offset: float = 0.0) -> float:
    """The mean of `quantities`."""
    values = quantities(profile, key, offset)
    return sum(values) / len(values)


def _multiply(text: str, factor: float, offset: float) -> str:
    match = _QUANTITY.fullmatch(text)
    assert match is not None, "`quantities` checked the unit"
    offset /= _UNITS[match[2]]
    scaled = max(0.0, (float(match[1]) + offset) * factor - offset)
    if match[2] in _SIZE_UNITS:
        return f"{round(scaled * _SIZE_UNITS[match[2]] / KIB)} KiB"  # a whole number of bytes
    digits = f"{float(f'{scaled:.4g}'):.3f}"  # a profile does not accept exponents
    return f"{digits.rstrip('0').rstrip('.')} {match[2]}"
