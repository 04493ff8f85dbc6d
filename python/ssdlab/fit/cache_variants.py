"""Drives with and without an SLC cache, and its sizes, where `cache` does not determine it.

If the link is slower than the flash, or a buffer cannot be distinguished from the cache, `cache`
gives bounds or nothing. But the cache also decides how long reads wait for writes, and which data
is read fast, so that other experiments show it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ssdlab.device import describe_twin
from ssdlab.fit.direct_estimates import SLC, cache_times
from ssdlab.fit.intervals import DETERMINED_RATIO
from ssdlab.fit.measurement import Measurement
from ssdlab.fit.parameters import Estimate
from ssdlab.profiles.toml_edit import get_value, remove_table, set_value
from ssdlab.units import parse_size

MIB: Final = 1 << 20
SIZES: Final = 9
"""How many sizes are tried; the interval ends half way to the next one."""
SHARES: Final = (0.02, 0.32)
"""Of the capacity: the sizes that are tried if nothing is known of them."""


@dataclass(frozen=True)
class Variant:
    """A start profile, and the sizes of its SLC cache that are tried; none if that is fixed."""

    start: str
    sizes: tuple[str, ...] = ()
    has_cache: bool | None = None
    """Whether it has an SLC cache, if the variants differ in that."""

    def of_size(self, estimate: Estimate) -> Estimate:
        """The estimate of the size, from one of the sizes that were tried, with wider bounds."""
        tried = [_mib(each) for each in self.sizes]
        low, high = (tried.index(_mib(each)) for each in (estimate.low, estimate.high))
        bounds = (
            (tried[low] * tried[max(0, low - 1)]) ** 0.5,
            (tried[high] * tried[min(len(tried) - 1, high + 1)]) ** 0.5,
        )
        least, most = (f"{round(each)} MiB" for each in bounds)
        determined = bounds[1] <= DETERMINED_RATIO * bounds[0]
        return replace(estimate, low=least, high=most, determined=determined)


def variants(
    start: str, known: Mapping[str, Estimate], results: Sequence[Measurement]
) -> list[Variant]:
    """The variants of a start profile; only itself if `cache` was not run, or was clear."""
    cache = next((one for one in results if one.experiment == "cache"), None)
    finding = None if cache is None else cache.findings.get("slc_mib")
    size = known.get(SLC)
    if cache is None or finding is None or finding.value == 0 or (size and size.determined):
        return [Variant(start)]
    capacity = float(describe_twin("the profile", start)["capacity_bytes"]) / MIB
    low, high = (share * capacity for share in SHARES)
    if size is not None:
        low, high = max(_mib(size.low), low / 2), _mib(size.high)
    sizes = tuple(f"{round(each)} MiB" for each in np.geomspace(low, max(low, high), SIZES))
    sizes = tuple(dict.fromkeys(sizes))
    cached = set_value(start, SLC, sizes[len(sizes) // 2])
    for estimate in cache_times(cached, cache):
        cached = set_value(cached, estimate.key, estimate.value)
    found = [Variant(cached, sizes, has_cache=True)]
    if size is None or _mib(size.low) == 0:
        bare = start if get_value(start, SLC) is None else remove_table(start, "slc")
        found.append(Variant(bare, has_cache=False))
    return found


def _mib(size: object) -> float:
    return parse_size(str(size)) / MIB
