"""What a fit may change of a profile, and within which physical bounds.

A `Scale` multiplies numbers by a factor; a `Choice` takes one of a few values. Both know what is
usual: the start profile's value is the best guess, and `spread` how far a drive may well be from
it. So a number that the results do not tell stays where it was, and is said to be undetermined.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

from ssdlab.errors import UsageError
from ssdlab.profiles.toml_edit import number, with_number

LINK_MAX: Final = {"sata": 580e6, "nvme": 7.2e9}
"""Bytes a second: SATA 6 Gbit/s less its protocol; PCI Express 3.0, eight lanes, likewise."""
_UNITS: Final = {"us": 1e-6, "ms": 1e-3, "ns": 1e-9, "MB/s": 1e6, "MiB/s": 2.0**20, "GB/s": 1e9}
_NUMBER: Final = re.compile(r"\s*([0-9.]+)\s*(\S+)\s*")
NO_TIME: Final = "0 us"
PORTIONS: Final = (None, "64 KiB", "128 KiB", "256 KiB", "512 KiB")
ROOMS: Final = (None, 2, 4)
AHEAD: Final = (None, "256 KiB")
ODD_DIES: Final = 2.0
"""The cost of twice as many dies that read at a time as were thought, or half of them."""


@dataclass(frozen=True)
class Scale:
    """A factor on `key`: from `low` to `high`; `spread` is of its logarithm, before any result.

    A number that may be nothing has a `floor`, in its unit without prefix (s): number and floor
    together are multiplied.
    """

    key: str
    low: float
    high: float
    spread: float
    floor: float = 0.0

    def apply(self, profile: str, factor: float, source: str = "") -> str:
        """The profile's text with each number of the key multiplied."""
        value = number(profile, self.key)
        scaled = [_scaled(text, factor, self.floor) for text in _listed(value)]
        return with_number(
            profile, self.key, scaled if isinstance(value, list) else scaled[0], source
        )


@dataclass(frozen=True)
class Choice:
    """One of `values` for `key` (None: left out); `costs` is how unusual each is, in squares."""

    key: str
    values: tuple[Any, ...]
    costs: tuple[float, ...]

    def apply(self, profile: str, value: Any, source: str = "") -> str:
        """The profile's text with this value."""
        return with_number(profile, self.key, value, source)


@dataclass(frozen=True)
class Freedom:
    """All that a fit may change."""

    scales: tuple[Scale, ...]
    choices: tuple[Choice, ...]

    def combinations(self) -> Iterator[tuple[tuple[Any, ...], float]]:
        """Each sensible combination of choices, with its cost."""
        keys = [choice.key for choice in self.choices]
        pairs = [zip(choice.values, choice.costs, strict=True) for choice in self.choices]
        for picked in itertools.product(*pairs):
            values = tuple(value for value, _ in picked)
            named = dict(zip(keys, values, strict=True))
            if named.get("ftl.read_portion") is None and named.get("ftl.read_portions"):
                continue  # no portions, so none to make room for
            yield values, sum(cost for _, cost in picked)


@dataclass(frozen=True)
class _Range:
    """Between which values a key's numbers may be (in s or bytes/s), spread before, and floor."""

    low: float
    high: float
    spread: float
    floor: float = 0.0


_RANGES: Final = {
    "link.bandwidth": _Range(20e6, math.inf, 0.3),  # at most what the interface carries
    "link.read_overhead": _Range(0.5e-6, 500e-6, 0.7),
    "link.write_overhead": _Range(0.5e-6, 500e-6, 0.7),
    "flash.read": _Range(20e-6, 150e-6, 0.2),
    "flash.channel_bandwidth": _Range(100e6, 3.2e9, 0.4),
    "flash.program": _Range(100e-6, 5e-3, 0.4),
    "buffer.flush_overhead": _Range(0.0, 20e-3, 1.0, floor=100e-6),
}
_TOLD_BY: Final = {
    "aging": ("link.bandwidth", "flash.read"),
    "cache": ("flash.program",),
    "fsync": (
        "link.read_overhead",
        "link.write_overhead",
        "flash.read",
        "flash.program",
        "buffer.flush_overhead",
    ),
    "split": ("link.bandwidth", "link.read_overhead", "flash.read", "flash.channel_bandwidth"),
    "steady": ("flash.program", "link.write_overhead"),
    "stripe": ("flash.read", "link.read_overhead"),
    "suite": tuple(key for key in _RANGES if key != "flash.channel_bandwidth"),
}
"""Which factors the results of an experiment can tell something of."""
_TELL_DIES: Final = frozenset({"aging", "split", "suite"})


def of_ageing(profile: str) -> Freedom:
    """What an ageing row alone can tell something of: link, tR, dies, portions of a read.

    Raises:
        UsageError: the profile lacks one of these numbers.
    """
    return freedom_of(profile, ("aging",))


def freedom_of(profile: str, experiments: Collection[str], known: Collection[str] = ()) -> Freedom:
    """What the results of these experiments can tell something of, without keys that are known.

    Raises:
        UsageError: the profile lacks one of these numbers.
    """
    keys = {key for each in experiments for key in _TOLD_BY[each]} - set(known)
    scales = [_scale(profile, key) for key in _RANGES if key in keys]
    choices: list[Choice] = []
    if "flash.dies_per_channel" not in known and not _TELL_DIES.isdisjoint(experiments):
        choices.append(_dies(profile))
    if "aging" in experiments:
        choices.append(Choice("ftl.read_portion", PORTIONS, (0.0, 0.5, 0.5, 0.5, 0.5)))
        choices.append(Choice("ftl.read_portions", ROOMS, (0.0, 0.5, 0.5)))
    if "split" in experiments:
        usual = number(profile, "ftl.read_ahead")
        ahead = tuple(dict.fromkeys((usual, *AHEAD)))
        choices.append(Choice("ftl.read_ahead", ahead, (0.0, *(0.5 for _ in ahead[1:]))))
    return Freedom(tuple(scales), tuple(choices))


def _scale(profile: str, key: str) -> Scale:
    values, allowed = _quantities(profile, key), _RANGES[key]
    high = allowed.high
    if key == "link.bandwidth":
        high = LINK_MAX[number(profile, "drive.interface")]
    floor = allowed.floor
    ends = (allowed.low + floor) / (min(values) + floor), (high + floor) / (max(values) + floor)
    return Scale(key, *ends, allowed.spread, floor)


def _dies(profile: str) -> Choice:
    dies = number(profile, "flash.dies_per_channel")
    if dies is None:
        raise UsageError("flash.dies_per_channel: is missing in the profile to start from")
    near = tuple(sorted({max(1, dies // 2), dies, dies * 2}))
    return Choice(
        "flash.dies_per_channel",
        near,
        tuple(ODD_DIES * math.log2(each / dies) ** 2 for each in near),
    )


def _listed(value: Any) -> list[str]:
    """Texts with units; a time that is not given is none."""
    if value is None:
        return [NO_TIME]
    return list(value) if isinstance(value, list) else [value]


def _quantities(profile: str, key: str) -> list[float]:
    value = number(profile, key)
    found = [_NUMBER.fullmatch(str(text)) for text in _listed(value)]
    missing = value is None and _RANGES[key].floor == 0.0
    if missing or any(match is None or match[2] not in _UNITS for match in found):
        raise UsageError(
            f"{key}: is {value} in the profile to start from; may be a number with a "
            f"unit of {', '.join(_UNITS)}"
        )
    return [float(match[1]) * _UNITS[match[2]] for match in found if match is not None]


def _scaled(text: str, factor: float, floor: float) -> str:
    match = _NUMBER.fullmatch(text)
    assert match is not None, "checked when the freedom was made"
    floor /= _UNITS[match[2]]
    scaled = max(0.0, (float(match[1]) + floor) * factor - floor)
    digits = f"{float(f'{scaled:.4g}'):.3f}"  # never with an exponent, which a profile may not have
    return f"{digits.rstrip('0').rstrip('.')} {match[2]}"
