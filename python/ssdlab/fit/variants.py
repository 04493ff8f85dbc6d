"""Start profiles that a fit searches from, where one experiment leaves several possible.

If the link is slower than the flash, or a buffer cannot be distinguished from the SLC cache,
`cache` gives bounds of that cache or nothing. But it also decides how long reads wait for writes,
and which data is read fast, so that other experiments show it.

`stripe` counts what reads in parallel. If planes read independently, the drive has fewer dies, and
its multi-plane page is larger. Its chunks may be larger, too: the pieces of one that are in
different planes look like chunks. Other results show the difference only where a program occupies
all planes of a die.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ssdlab.device import describe_twin
from ssdlab.errors import TargetError, UsageError
from ssdlab.fit.direct_estimates import MIB, SLC, cache_times, enlarge_buffer
from ssdlab.fit.intervals import DETERMINED_RATIO
from ssdlab.fit.measurement import Measurement
from ssdlab.fit.objective import CAPACITY
from ssdlab.fit.parameters import (
    CHANNELS,
    CHUNK,
    DIES_PER_CHANNEL,
    INDEPENDENT,
    REGISTER,
    Estimate,
    SearchSpace,
    number_of_dies,
)
from ssdlab.fit.variables import FINER, KIB, Choice
from ssdlab.profiles.toml_edit import get_value, remove_table, set_value, set_values
from ssdlab.units import format_size, parse_size

SIZES: Final = 8 * FINER + 1
"""How many sizes of an SLC cache the search may try."""
SHARES: Final = (0.02, 0.32)
"""Of the capacity: the sizes that are tried if nothing is known of them."""
PLANES: Final = (2, 4)
"""Numbers of planes that are tried."""
PENALTY: Final = 4.0
"""Prior cost of planes that read independently: few drives have them."""
_MORE_SPARE: Final = 1.1
_SPARE_STEPS: Final = 40


@dataclass(frozen=True)
class Variant:
    """A start profile, and the sizes of its SLC cache that are tried; none if that is fixed."""

    start: str
    sizes: tuple[str, ...] = ()
    has_cache: bool | None = None
    """Whether it has an SLC cache, if the variants differ in that."""
    chunks: tuple[str, ...] = ()
    """If planes read independently, the chunks that look like that of `stripe`."""

    def of_size(self, estimate: Estimate) -> Estimate:
        """The estimate of the size, from one of the sizes that were tried, with wider bounds."""
        tried = [_mib(each) for each in self.sizes]
        low, high = (tried.index(_mib(each)) for each in (estimate.low, estimate.high))
        # Half way to the next of those that are tried wherever the search is.
        bounds = tried[max(0, low - FINER // 2)], tried[min(len(tried) - 1, high + FINER // 2)]
        least, most = (f"{round(each)} MiB" for each in bounds)
        determined = bounds[1] <= DETERMINED_RATIO * bounds[0]
        return replace(estimate, low=least, high=most, determined=determined)


def cache_variants(
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


def plane_variants(variant: Variant, source: str) -> Iterator[Variant]:
    """The variants in which planes read independently, of a drive with known dies and chunk."""
    text = variant.start
    dies, chunk, page = number_of_dies(text), get_value(text, CHUNK), get_value(text, "flash.page")
    whole = (get_value(text, "flash.planes") or 1) * parse_size(str(page))
    unit = parse_size(str(get_value(text, "ftl.mapping_unit") or "4 KiB"))
    for planes in PLANES:
        left = dies // planes
        if dies % planes:
            continue
        most = get_value(text, CHANNELS)
        channels = max(n for n in range(1, most + 1) if left % n == 0)
        changes = {
            CHANNELS: channels,
            DIES_PER_CHANNEL: left // channels,
            "flash.planes": planes,
            "flash.page": f"{max(whole // planes, unit) // KIB} KiB",
            REGISTER: True,
            INDEPENDENT: True,
        }
        sizes = [parse_size(str(chunk)) << n for n in range(planes.bit_length())]
        chunks = tuple(f"{size // KIB} KiB" for size in sizes)
        try:
            start = enlarge_buffer(set_values(text, changes, source), source)
        except (TargetError, UsageError):  # for example blocks that cannot be scaled
            continue
        yield replace(variant, start=start, chunks=chunks)


def with_chunks(space: SearchSpace, chunks: Sequence[str]) -> SearchSpace:
    """The space of a variant in which planes read independently, with these chunks."""
    sizes = Choice(CHUNK, tuple(chunks), (0.0,) * len(chunks))
    independent = Choice(INDEPENDENT, (True,), (PENALTY,))
    return replace(space, choices=(*space.choices, sizes, independent))


def enlarge_spare(profile: str, source: str) -> str:
    """The profile with as much spare as collection needs in a candidate, which is small."""
    for _ in range(_SPARE_STEPS):
        try:
            describe_twin("the candidate", profile, CAPACITY)
        except TargetError as error:
            spare = get_value(profile, "ftl.spare")
            is_room = any(key in str(error) for key in ("drive.capacity", "ftl.spare"))
            if spare is None or not is_room:
                break
            why = f"as little as a twin of {format_size(CAPACITY)} can have; {source}"
            profile = set_value(profile, "ftl.spare", round(_MORE_SPARE * spare, 4), why)
        else:
            break
    return profile


def _mib(size: object) -> float:
    return parse_size(str(size)) / MIB
