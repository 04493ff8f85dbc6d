"""The profile numbers that a fit may change, their physical bounds and their prior.

The prior is the start profile: deviations from it are penalised, so that a number that the results
do not determine stays at its start value and is reported as not determined.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ssdlab.errors import UsageError
from ssdlab.fit.variables import (
    FOLDING,
    FOLDINGS,
    MODE,
    SLC_MODES,
    SUSPENSIONS,
    CacheSizes,
    Channels,
    Choice,
    Dies,
    Flag,
    MappingUnit,
    MultiPlanePage,
    PageTypes,
    Protection,
    Scale,
    Suspension,
    Time,
    is_consistent,
    quantities,
)
from ssdlab.profiles.toml_edit import get_value
from ssdlab.units import parse_duration, parse_size

Floats = npt.NDArray[np.float64]
LINK_MAX: Final = {"sata": 580e6, "nvme": 14.5e9}
"""Highest link bandwidth in bytes/s, net of protocol overhead: SATA 6 Gbit/s, PCIe 5.0 x4."""
PORTION_SIZES: Final = (None, "64 KiB", "128 KiB", "256 KiB", "512 KiB")
PORTION_COUNTS: Final = (None, 2, 4)
READ_AHEAD_SIZES: Final = (None, "128 KiB", "256 KiB", "512 KiB")
BITS_PER_CELL: Final = (2, 3, 4)
BITS_PER_CELL_DEFAULT: Final = 3
MAPPING_UNITS: Final = ("4 KiB", "8 KiB", "16 KiB")
TRANSFERS: Final = ("128 KiB", "256 KiB", "512 KiB", "1 MiB")
CHUNK: Final = "ftl.chunk"
CHUNKS: Final = ("4 KiB", "8 KiB", "16 KiB", "32 KiB", "64 KiB", "128 KiB", "256 KiB")
_SIZES: Final = (CHUNK, "ftl.mapping_unit", "link.max_transfer")
DELAY_LIMIT: Final = "flash.delay_limit"
DELAY_LIMITS: Final = (None, "500 us", "1 ms", "2 ms", "4 ms")
LIMIT_PENALTY: Final = 4.0
"""Penalty for a limit that the start profile does not have."""
PROTECTED: Final = "buffer.power_loss_protection"
DIES_PENALTY: Final = 2.0
"""Penalty for twice or half as many dies as in the start profile."""
MULTI_PLANE_PAGES: Final = (4, 8, 16, 32, 64, 128)
"""Sizes in KiB of a page in all planes of a die that are tried."""
DIES_MAX: Final = 128
CHANNELS: Final = "flash.channels"
INDEPENDENT: Final = "flash.independent_plane_reads"
REGISTER: Final = "flash.cache_register"
DIES_PER_CHANNEL: Final = "flash.dies_per_channel"
_CHANNEL_COUNTS: Final = (1, 2, 3, 4, 6, 8, 12, 16, 32)


@dataclass(frozen=True)
class Estimate:
    """A number of the profile with its 95 % interval.

    `determined` means that the results constrain it. `start` is the start profile's value.
    `assumes` are keys of the start profile that no result tests and that the value depends on.
    """

    key: str
    value: Any
    low: Any
    high: Any
    determined: bool = True
    start: Any = None
    assumes: tuple[str, ...] = ()


def _dies_of(by_key: Mapping[str, Any]) -> int:
    """The dies of choices that may set them, and the channels."""
    return int(by_key.get(CHANNELS, 1) * by_key.get(DIES_PER_CHANNEL, 1))


@dataclass(frozen=True)
class SearchSpace:
    """All numbers that a fit may change."""

    scales: tuple[Scale, ...]
    choices: tuple[Choice, ...]

    def bounds(self) -> tuple[Floats, Floats]:
        """The lowest and the highest logarithm of each factor."""
        low, high = (np.log([getattr(s, end) for s in self.scales]) for end in ("low", "high"))
        return low, high

    def combinations(
        self, keys: Collection[str], fixed: Mapping[str, Any]
    ) -> Iterator[tuple[Any, ...]]:
        """The consistent combinations of values of `keys` near those in `fixed`; others stay."""
        tried = [
            one.near(fixed[one.key]) if one.key in keys else (fixed[one.key],)
            for one in self.choices
        ]
        names = [choice.key for choice in self.choices]
        for values in itertools.product(*tried):
            by_key = dict(zip(names, values, strict=True))
            if is_consistent(by_key) and _dies_of(by_key) <= max(DIES_MAX, _dies_of(fixed)):
                yield values

    def penalty(self, choices: Sequence[Any]) -> float:
        """The prior's penalty of a combination of the choices."""
        pairs = zip(self.choices, choices, strict=True)
        return sum(choice.penalties[choice.values.index(value)] for choice, value in pairs)


@dataclass(frozen=True)
class _Prior:
    """Physical bounds (s, bytes/s or bytes) and prior of a number; `sigma`, `offset` as in `Scale`.

    `sigma_of_row` applies if there is an ageing row only: it determines so little that a start
    profile far from the drive is of no use. With `of`, bounds and prior are those of the ratio to
    the number of this other key.
    """

    low: float
    high: float
    sigma: float
    sigma_of_row: float = 0.0
    offset: float = 0.0
    of: str = ""


BUFFER: Final = "buffer.size"
WRITE_RATE: Final = "link.write_bandwidth"
_PRIORS: Final = {
    "link.bandwidth": _Prior(20e6, math.inf, 1.0, 0.3),  # at most LINK_MAX
    # Most links are as fast in both directions.
    WRITE_RATE: _Prior(0.3, 1.25, 0.3, of="link.bandwidth"),
    "link.read_overhead": _Prior(0.5e-6, 500e-6, 1.0),
    "link.write_overhead": _Prior(0.5e-6, 500e-6, 1.0),
    "link.read_command": _Prior(0.0, 500e-6, 1.0, offset=0.5e-6),
    "link.write_command": _Prior(0.0, 500e-6, 1.0, offset=0.5e-6),
    "flash.read": _Prior(5e-6, 300e-6, 1.0, 0.2),
    "flash.channel_bandwidth": _Prior(100e6, 3.2e9, 1.0),
    "flash.program": _Prior(50e-6, 5e-3, 1.0),
    "slc.read": _Prior(5e-6, 100e-6, 1.0),
    "slc.program": _Prior(30e-6, 1e-3, 1.0),
    "buffer.flush_overhead": _Prior(0.0, 20e-3, 1.0, offset=100e-6),
    BUFFER: _Prior(2.0**16, 2.0**26, 1.0),  # at most the start profile's, if that is larger
}
_SLC_SCALES: Final = frozenset({"slc.read", "slc.program"})
_SCALES_OF: Final = {
    "aging": ("link.bandwidth", "flash.read"),
    "cache": ("flash.program", "slc.program", "link.bandwidth", WRITE_RATE),
    "fsync": (
        "link.read_overhead",
        "link.write_overhead",
        "flash.read",
        "flash.program",
        "slc.read",
        "slc.program",
        "buffer.flush_overhead",
        BUFFER,
    ),
    "split": (
        "link.bandwidth",
        "link.read_overhead",
        "flash.read",
        "slc.read",
        "flash.channel_bandwidth",
    ),
    "steady": ("flash.program", "link.write_overhead"),
    "stripe": ("flash.read", "slc.read", "link.read_overhead"),
    "workload": ("link.bandwidth", "link.read_overhead", "flash.read", "slc.read"),
    "suite": tuple(key for key in _PRIORS if key != "flash.channel_bandwidth"),
}
"""For each experiment, the scaled profile numbers that its results depend on."""
_SHOW_READ_RATE: Final = frozenset({"aging", "split", "suite", "workload"})
"""Experiments with fast reads. Without them, writes show the link's rate in both directions."""
_DEPEND_ON_DIES: Final = frozenset({"aging", "split", "suite", "workload"})
_DEPEND_ON_PAGE: Final = frozenset({"aging", "split", "suite", "fsync"})
_DEPEND_ON_CACHE: Final = frozenset({"cache", "fsync", "suite"})
PAGE: Final = "flash.planes x flash.page"
"""The key of the estimate of a multi-plane page."""
TYPES: Final = "flash.read of page types"
"""The key of the estimate of the ratios of tR."""
DIES: Final = "flash.channels x flash.dies_per_channel"
"""The key of the estimate of all dies, if their distribution over channels is searched for."""
_EXPERIMENTS_FOR: Final = {
    DIES_PER_CHANNEL: ["stripe", *sorted(_DEPEND_ON_DIES)],
    CHANNELS: ["split", "suite"],
    PAGE: sorted(_DEPEND_ON_PAGE),
    TYPES: ["split"],
    REGISTER: ["split"],
    "flash.keeps_page": ["split"],
    CHUNK: ["stripe"],
    "ftl.read_ahead": ["split"],
    "ftl.read_portion": ["aging"],
    "ftl.read_portions": ["aging"],
    "ftl.spare": ["steady"],
    "slc.size": ["cache"],
    MODE: ["steady"],
    FOLDING: ["steady"],
    "ftl.mapping_unit": ["steady"],
    **{key: [name for name, keys in _SCALES_OF.items() if key in keys] for key in _PRIORS},
    BUFFER: ["cache"],
}


def scales_of(experiments: Iterable[str]) -> set[str]:
    """The scaled profile numbers that results of these experiments depend on: all for `iocost`."""
    return {key for experiment in experiments for key in _SCALES_OF.get(experiment, _PRIORS)}


def experiments_for(key: str) -> list[str]:
    """The experiments whose results can determine a number of the profile."""
    return _EXPERIMENTS_FOR.get(key, [])


def search_space(
    profile: str,
    experiments: Collection[str],
    known: Collection[str] = (),
    cache_sizes: Sequence[str] = (),
    buffer_sizes: Sequence[str] | None = None,
) -> SearchSpace:
    """The numbers that results of these experiments depend on, except the keys already `known`.

    `cache_sizes` are those that an SLC cache may have, `buffer_sizes` the bounds of a buffer.

    Raises:
        UsageError: the profile lacks one of these numbers.
    """
    keys = scales_of(experiments)
    keys -= set(known) - _SLC_SCALES  # the search knows more of these than the rates of `cache`
    if "cache" not in experiments or _SHOW_READ_RATE.isdisjoint(experiments):
        keys.discard(WRITE_RATE)
    keys -= {key for key in _SLC_SCALES if get_value(profile, key) is None}
    only_row = set(experiments) == {"aging"}
    bounds = {} if buffer_sizes is None else {BUFFER: buffer_sizes}
    scales = [
        _scale(profile, key, bounds.get(key), only_row=only_row) for key in _PRIORS if key in keys
    ]
    choices = list(_geometry_choices(profile, experiments, known))
    if cache_sizes:
        choices.append(CacheSizes("slc.size", tuple(cache_sizes), (0.0,) * len(cache_sizes)))
    if "aging" in experiments:
        choices.append(Choice("ftl.read_portion", PORTION_SIZES, (0.0, 0.5, 0.5, 0.5, 0.5)))
        choices.append(Choice("ftl.read_portions", PORTION_COUNTS, (0.0, 0.5, 0.5)))
    return SearchSpace(tuple(scales), tuple(choices))


def _geometry_choices(
    profile: str, experiments: Collection[str], known: Collection[str]
) -> Iterator[Choice]:
    dies_known = DIES_PER_CHANNEL in known
    if not dies_known and not _DEPEND_ON_DIES.isdisjoint(experiments):
        yield _dies_choice(profile, experiments)
    if "split" in experiments:
        start = get_value(profile, CHANNELS)
        counts = sorted({start, *_CHANNEL_COUNTS})
        kind = Choice
        if dies_known:
            kind, dies = Channels, number_of_dies(profile)
            counts = [n for n in counts if dies % n == 0]
        yield kind(CHANNELS, tuple(counts), tuple(0.5 * (n != start) for n in counts))
    if CHUNK not in known and {"stripe", "split"} <= set(experiments) and get_value(profile, CHUNK):
        yield _choice(profile, CHUNK, CHUNKS)
    if get_value(profile, "slc.size") is not None and not _DEPEND_ON_CACHE.isdisjoint(experiments):
        yield _choice(profile, MODE, SLC_MODES, "static")
        yield _choice(profile, FOLDING, FOLDINGS)
        yield _choice(profile, "slc.bits_per_cell", BITS_PER_CELL, BITS_PER_CELL_DEFAULT)
    yield from _rule_choices(profile, experiments, known)
    if "flash.page" not in known and not _DEPEND_ON_PAGE.isdisjoint(experiments):
        yield MultiPlanePage.of_profile(PAGE, profile, MULTI_PLANE_PAGES)


def _rule_choices(
    profile: str, experiments: Collection[str], known: Collection[str]
) -> Iterator[Choice]:
    """The mapping unit, and whether reads wait for programs and for transfers."""
    if "suite" in experiments:
        yield _choice(profile, "link.max_transfer", TRANSFERS, "128 KiB")
    if "suite" in experiments and "ftl.mapping_unit" not in known:
        yield _choice(profile, "ftl.mapping_unit", MAPPING_UNITS, "4 KiB", MappingUnit)
    if "split" in experiments:
        yield _choice(profile, "ftl.read_ahead", READ_AHEAD_SIZES)
        if not get_value(profile, INDEPENDENT):
            yield _flag(profile, REGISTER, absent=True)
        if get_value(profile, "ftl.placement") != "packed":  # which requires it
            yield _flag(profile, "flash.keeps_page", absent=False)
        yield PageTypes.of_profile(TYPES, profile)
    if "fsync" in experiments:
        if PROTECTED not in known:
            protected = _flag(profile, PROTECTED, absent=False)
            yield Protection(protected.key, protected.values, protected.penalties, absent=False)
        yield _choice(profile, "flash.suspend", SUSPENSIONS, kind=Suspension)
        limit = _choice(profile, DELAY_LIMIT, DELAY_LIMITS)
        own = get_value(profile, DELAY_LIMIT)
        penalties = tuple(LIMIT_PENALTY * (value not in (None, own)) for value in limit.values)
        yield Time(limit.key, limit.values, penalties)


def _flag(profile: str, key: str, *, absent: bool) -> Flag:
    """The profile's value, and the other one."""
    value = get_value(profile, key)
    start = absent if value is None else bool(value)
    return Flag(key, (start, not start), (0.0, 0.5), absent)


def _choice(
    profile: str, key: str, values: Sequence[Any], default: Any = None, kind: type[Choice] = Choice
) -> Choice:
    """The profile's value and these, sizes in order; `default` is that of the model."""
    start = get_value(profile, key)
    same = default if start is None else start
    tried = [start, *(value for value in values if value != same)]
    if key in _SIZES:
        tried.sort(key=lambda value: parse_size(str(value or default)))
    return kind(key, tuple(tried), tuple(0.5 * (value != start) for value in tried))


def number_of_dies(profile: str) -> int:
    """The dies of all channels of a profile."""
    return int(get_value(profile, CHANNELS) * get_value(profile, DIES_PER_CHANNEL))


def _scale(profile: str, key: str, bounds: Sequence[str] | None, *, only_row: bool) -> Scale:
    prior = _PRIORS[key]
    if prior.of:
        return Scale(key, prior.low, prior.high, prior.sigma, of=prior.of)
    values = quantities(profile, key, prior.offset)
    low, high = prior.low, prior.high
    if bounds is not None:
        low, high = (float(parse_size(each)) for each in bounds)
    elif key == BUFFER:
        high = max(high, *values)
    if key == "link.bandwidth":
        high = LINK_MAX[get_value(profile, "drive.interface")]
    offset = prior.offset
    low_factor = (low + offset) / (min(values) + offset)
    high_factor = (high + offset) / (max(values) + offset)
    sigma = prior.sigma_of_row if only_row and prior.sigma_of_row else prior.sigma
    return Scale(key, low_factor, high_factor, sigma, offset)


def _dies_choice(profile: str, experiments: Collection[str]) -> Choice:
    dies = get_value(profile, DIES_PER_CHANNEL)
    if dies is None:
        raise UsageError("the start profile has no flash.dies_per_channel; add it")
    counts = tuple(sorted({max(1, dies // 2), dies, dies * 2}))
    if set(experiments) != {"aging"}:
        channels = 1 if "split" in experiments else get_value(profile, CHANNELS)
        tried = sorted({dies, 1, 2, 3, 4, 6, 8, 16})
        counts = tuple(n for n in tried if n * channels <= DIES_MAX or n == dies)
    penalties = tuple(DIES_PENALTY * math.log2(count / dies) ** 2 for count in counts)
    kind = Choice if set(experiments) == {"aging"} else Dies
    return kind(DIES_PER_CHANNEL, counts, penalties)


def within_overheads(profile: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes, with no command that occupies the processor for longer than its overhead."""
    clamped = dict(changes)
    for op in ("read", "write"):
        part, whole = (f"link.{op}_{name}" for name in ("command", "overhead"))
        times = [changes.get(key, get_value(profile, key)) for key in (part, whole)]
        if None not in times and parse_duration(times[0]) > parse_duration(times[1]):
            clamped[part] = times[1]
    return clamped
