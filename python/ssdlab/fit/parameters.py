"""The profile numbers that a fit may change, their physical bounds and their prior.

A `Scale` multiplies the numbers of a key by a factor; a `Choice` picks one of several values. The
prior is the start profile: deviations from it are penalised, so a number that the results do not
determine stays at its start value and is reported as not determined.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

from ssdlab.errors import UsageError
from ssdlab.profiles.toml_edit import get_value, set_value

LINK_MAX: Final = {"sata": 580e6, "nvme": 7.2e9}
"""Highest link bandwidth in bytes/s, net of protocol overhead: SATA 6 Gbit/s, PCIe 3.0 x8."""
_UNITS: Final = {"us": 1e-6, "ms": 1e-3, "ns": 1e-9, "MB/s": 1e6, "MiB/s": 2.0**20, "GB/s": 1e9}
_QUANTITY: Final = re.compile(r"\s*([0-9.]+)\s*(\S+)\s*")
PORTION_SIZES: Final = (None, "64 KiB", "128 KiB", "256 KiB", "512 KiB")
PORTION_COUNTS: Final = (None, 2, 4)
READ_AHEAD_SIZES: Final = (None, "256 KiB")
DIES_PENALTY: Final = 2.0
"""Penalty for twice or half as many dies as in the start profile."""


@dataclass(frozen=True)
class Estimate:
    """A number of the profile with its 95 % interval.

    `determined` means that the results constrain it. `start` is the start profile's value.
    """

    key: str
    value: Any
    low: Any
    high: Any
    determined: bool = True
    start: Any = None


@dataclass(frozen=True)
class Scale:
    """Multiplies the numbers of `key` by a factor from `low` to `high`.

    `prior_sigma` is the prior standard deviation of the factor's logarithm. For a time that can be
    zero, the factor applies to time + `offset` (in s).
    """

    key: str
    low: float
    high: float
    prior_sigma: float
    offset: float = 0.0

    def apply(self, profile: str, factor: float, source: str = "") -> str:
        """The profile's text with each number of the key multiplied by the factor."""
        value = get_value(profile, self.key)
        scaled = [_multiply(text, factor, self.offset) for text in _as_list(value)]
        return set_value(
            profile, self.key, scaled if isinstance(value, list) else scaled[0], source
        )


@dataclass(frozen=True)
class Choice:
    """Sets `key` to one of `values` (None: absent), each with its prior cost in `penalties`."""

    key: str
    values: tuple[Any, ...]
    penalties: tuple[float, ...]

    def apply(self, profile: str, value: Any, source: str = "") -> str:
        """The profile's text with the key set to this value."""
        return set_value(profile, self.key, value, source)


@dataclass(frozen=True)
class SearchSpace:
    """All numbers that a fit may change."""

    scales: tuple[Scale, ...]
    choices: tuple[Choice, ...]

    def combinations(self) -> Iterator[tuple[tuple[Any, ...], float]]:
        """Every consistent combination of choices, with its penalty."""
        keys = [choice.key for choice in self.choices]
        pairs = [zip(choice.values, choice.penalties, strict=True) for choice in self.choices]
        for picked in itertools.product(*pairs):
            values = tuple(value for value, _ in picked)
            by_key = dict(zip(keys, values, strict=True))
            if by_key.get("ftl.read_portion") is None and by_key.get("ftl.read_portions"):
                continue  # a number of portions needs their size
            yield values, sum(penalty for _, penalty in picked)


@dataclass(frozen=True)
class _Prior:
    """Physical bounds (s or bytes/s) and prior of a number; `sigma`, `offset` as in `Scale`."""

    low: float
    high: float
    sigma: float
    offset: float = 0.0


_PRIORS: Final = {
    "link.bandwidth": _Prior(20e6, math.inf, 0.3),  # at most LINK_MAX
    "link.read_overhead": _Prior(0.5e-6, 500e-6, 0.7),
    "link.write_overhead": _Prior(0.5e-6, 500e-6, 0.7),
    "flash.read": _Prior(20e-6, 150e-6, 0.2),
    "flash.channel_bandwidth": _Prior(100e6, 3.2e9, 0.4),
    "flash.program": _Prior(100e-6, 5e-3, 0.4),
    "buffer.flush_overhead": _Prior(0.0, 20e-3, 1.0, offset=100e-6),
}
_SCALES_OF: Final = {
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
    "suite": tuple(key for key in _PRIORS if key != "flash.channel_bandwidth"),
}
"""For each experiment, the scaled profile numbers that its results depend on."""
_DEPEND_ON_DIES: Final = frozenset({"aging", "split", "suite"})
_EXPERIMENTS_FOR: Final = {
    "flash.dies_per_channel": ["stripe", *sorted(_DEPEND_ON_DIES)],
    "ftl.read_ahead": ["split"],
    "slc.program": [],
    "ftl.read_portion": ["aging"],
    "ftl.read_portions": ["aging"],
    "ftl.spare": ["steady"],
    **{key: [name for name, keys in _SCALES_OF.items() if key in keys] for key in _PRIORS},
}


def experiments_for(key: str) -> list[str]:
    """The experiments whose results can determine a number of the profile."""
    return _EXPERIMENTS_FOR.get(key, list(_SCALES_OF))


def search_space(
    profile: str, experiments: Collection[str], known: Collection[str] = ()
) -> SearchSpace:
    """The numbers that results of these experiments depend on, except the keys already `known`.

    Raises:
        UsageError: the profile lacks one of these numbers.
    """
    keys = {key for experiment in experiments for key in _SCALES_OF[experiment]} - set(known)
    scales = [_scale(profile, key) for key in _PRIORS if key in keys]
    choices: list[Choice] = []
    if "flash.dies_per_channel" not in known and not _DEPEND_ON_DIES.isdisjoint(experiments):
        choices.append(_dies_choice(profile))
    if "aging" in experiments:
        choices.append(Choice("ftl.read_portion", PORTION_SIZES, (0.0, 0.5, 0.5, 0.5, 0.5)))
        choices.append(Choice("ftl.read_portions", PORTION_COUNTS, (0.0, 0.5, 0.5)))
    if "split" in experiments:
        start = get_value(profile, "ftl.read_ahead")
        sizes = tuple(dict.fromkeys((start, *READ_AHEAD_SIZES)))
        choices.append(Choice("ftl.read_ahead", sizes, (0.0, *(0.5 for _ in sizes[1:]))))
    return SearchSpace(tuple(scales), tuple(choices))


def _scale(profile: str, key: str) -> Scale:
    values, prior = _quantities(profile, key), _PRIORS[key]
    high = prior.high
    if key == "link.bandwidth":
        high = LINK_MAX[get_value(profile, "drive.interface")]
    offset = prior.offset
    low_factor = (prior.low + offset) / (min(values) + offset)
    high_factor = (high + offset) / (max(values) + offset)
    return Scale(key, low_factor, high_factor, prior.sigma, offset)


def _dies_choice(profile: str) -> Choice:
    dies = get_value(profile, "flash.dies_per_channel")
    if dies is None:
        raise UsageError("the start profile has no flash.dies_per_channel; add it")
    counts = tuple(sorted({max(1, dies // 2), dies, dies * 2}))
    penalties = tuple(DIES_PENALTY * math.log2(count / dies) ** 2 for count in counts)
    return Choice("flash.dies_per_channel", counts, penalties)


def _as_list(value: Any) -> list[str]:
    """The value as a list of quantities with units; an absent time is zero."""
    if value is None:
        return ["0 us"]
    return list(value) if isinstance(value, list) else [value]


def _quantities(profile: str, key: str) -> list[float]:
    value = get_value(profile, key)
    matches = [_QUANTITY.fullmatch(str(text)) for text in _as_list(value)]
    is_missing = value is None and _PRIORS[key].offset == 0.0
    if is_missing or any(match is None or match[2] not in _UNITS for match in matches):
        raise UsageError(
            f"{key} is {value} in the start profile; it must be a number with a unit of "
            f"{', '.join(_UNITS)}"
        )
    return [float(match[1]) * _UNITS[match[2]] for match in matches if match is not None]


def _multiply(text: str, factor: float, offset: float) -> str:
    match = _QUANTITY.fullmatch(text)
    assert match is not None, "`_quantities` checked the unit"
    offset /= _UNITS[match[2]]
    scaled = max(0.0, (float(match[1]) + offset) * factor - offset)
    digits = f"{float(f'{scaled:.4g}'):.3f}"  # a profile does not accept exponents
    return f"{digits.rstrip('0').rstrip('.')} {match[2]}"
