"""Profile numbers that follow from one experiment's findings, without a search.

These are chunk size, number of dies, buffer size, SLC cache size, spare, and what the write cache
guarantees. Chunk size and dies are exact. Buffer size and spare are biased: `steady`, for example,
never sees the superblocks that garbage collection keeps in reserve. The same experiment on a
candidate twin shows the bias, which is then added to the estimate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ssdlab.device import describe_twin
from ssdlab.errors import TargetError, UsageError
from ssdlab.experiments.fsync.analysis import UNDECIDED
from ssdlab.experiments.steady.map_pages import MAP_ENTRY_BYTES
from ssdlab.fit.measurement import Measurement
from ssdlab.fit.objective import CAPACITY, measure_cache, measure_spare
from ssdlab.fit.parameters import INDEPENDENT, LINK_MAX, REGISTER, Estimate
from ssdlab.profiles.toml_edit import get_value, remove_table, set_value, set_values
from ssdlab.records import Finding
from ssdlab.units import format_size, parse_duration, parse_size

KIB: Final = 1 << 10
MIB: Final = 1 << 20
SLC: Final = "slc.size"
MAPPING_UNIT: Final = "ftl.mapping_unit"
UNIT_LEAST_KIB: Final = 4.0
MAP_CACHE: Final = "ftl.map_cache"
_A_LITTLE: Final = 1.125  # a step from a measured size to one that is large enough
ENLARGED_MOST: Final = 256.0
"""The largest factor for a buffer that cannot hold the open pages of all dies."""
RESERVE: Final = 3.0
"""Superblocks that collection and those being filled hold."""
PLANES_PER_DIE: Final = range(2, 7)
"""Numbers of planes of flash that reads them independently."""
PAGE_MAX_KIB: Final = 64
PROGRAM_MIN_US: Final = 30.0
"""The shortest program time of flash with one bit per cell."""
DETERMINED_RATIO: Final = 1.25
"""The spare counts as determined if its upper bound is at most this times its lower bound."""
_WRITE_CACHE_CLASSES: Final = {
    "protected": {"buffer.power_loss_protection": True, "buffer.honours_flush": True},
    "volatile": {"buffer.power_loss_protection": False, "buffer.honours_flush": True},
    "ignores flush": {"buffer.power_loss_protection": False, "buffer.honours_flush": False},
}


def with_capacity(profile: str, capacity_bytes: int | None, source: str) -> str:
    """The profile with the capacity that the drive reports, if that is known.

    The spare stays as it is, and the blocks follow from both. They are smaller if a drive of this
    capacity would have too few of them.

    Raises:
        TargetError: the start profile makes no twin of this capacity.
    """
    if capacity_bytes is None:
        return profile
    twin = describe_twin("the start profile", profile)
    scaled = describe_twin("the start profile", profile, capacity_bytes)
    smaller = int(twin["superblock_bytes"]) // int(scaled["superblock_bytes"])
    if smaller > 1:
        pages = get_value(profile, "flash.pages_per_block") // smaller
        erase_us = 1e6 * parse_duration(str(get_value(profile, "flash.erase"))) / smaller
        why = f"blocks of a drive of {format_size(capacity_bytes)}; {source}"
        changes = {"flash.pages_per_block": pages, "flash.erase": f"{erase_us:.0f} us"}
        profile = set_values(profile, changes, why)
    if get_value(profile, "ftl.spare") is None:
        profile = set_value(profile, "ftl.spare", round(float(twin["spare"]), 4))
    profile = set_value(profile, "flash.blocks_per_plane", None)
    is_same = int(twin["capacity_bytes"]) == capacity_bytes
    value = get_value(profile, "drive.capacity") if is_same else None
    reported = f"reported by the drive; {source}"
    return set_value(
        profile, "drive.capacity", value or f"{capacity_bytes} B", reported, "measured"
    )


def initial_estimates(
    profile: str, results: Sequence[Measurement], layout: Layout | None = None
) -> Iterator[Estimate]:
    """Estimates that need no candidate twin; the search starts with them.

    These are the chunk size and dies of a regular stripe, the uncorrected buffer size, the SLC
    cache or its absence, and the class of the write cache. `layout` is one of `plane_layouts`.
    """
    yield from _interface(profile, results)
    for measurement in results:
        chunk, units = measurement.number("chunk_kib"), measurement.number("units")
        if (measurement.number("chunks_per_unit") or 1) > 1:
            if layout is not None:
                yield from _of_layout(profile, layout, measurement.where)
        elif measurement.experiment == "stripe" and chunk is not None:
            yield _exact("ftl.chunk", f"{chunk:g} KiB")
            if units is not None:
                yield from _dies(profile, int(units), measurement.where)
        yield from _first_buffer(measurement)
        if measurement.number("slc_mib") == 0 and get_value(profile, SLC) is not None:
            yield _exact(SLC, None)
        yield from _slc(profile, measurement, drive_bytes(results))
        if unit_kib := _mapping_unit_kib(measurement):
            yield _exact(MAPPING_UNIT, f"{unit_kib:g} KiB")
        yield from _map_cache(profile, measurement)
        if measurement.experiment == "fsync":
            yield from _write_cache(measurement.text("class") or "")


def _mapping_unit_kib(results: Measurement) -> float | None:
    """The mapping unit; None if it is only known not to be larger than the writes of `steady`."""
    finding, unit_kib = results.findings.get("mapping_unit_kib"), results.number("mapping_unit_kib")
    if finding is None or unit_kib is None:
        return None
    return unit_kib if finding.low is not None or unit_kib <= UNIT_LEAST_KIB else None


def _map_cache(profile: str, results: Measurement) -> Iterator[Estimate]:
    """Memory for the map: what misses it are reads of the rest, if they are all over the drive."""
    finding, misses = results.findings.get("map_misses"), results.number("map_misses")
    if finding is None or misses is None:
        return
    if misses == 0:
        if get_value(profile, MAP_CACHE) is not None:
            yield _exact(MAP_CACHE, None)
        return
    unit = int(KIB * (_mapping_unit_kib(results) or 0))
    unit = unit or parse_size(str(get_value(profile, MAPPING_UNIT) or "4 KiB"))
    whole = MAP_ENTRY_BYTES * _capacity(profile) // unit
    low, high = _interval(finding)
    value, least, most = (
        f"{max(1, round(whole * (1 - share / 100) / KIB))} KiB" for share in (misses, high, low)
    )
    yield Estimate(MAP_CACHE, value, least, most, (100 - low) <= DETERMINED_RATIO * (100 - high))


def with_unknown_unit(estimates: Sequence[Estimate]) -> list[Estimate]:
    """The estimates; memory for the map with bounds for each mapping unit that the drive may have.

    `steady` shows what share of the map fits. With units twice as large, the map is half as large.
    Without an estimate of the unit, the memory is right only for that of the start profile.
    """
    by_key = {one.key: one for one in estimates}
    unit, cache = by_key.get(MAPPING_UNIT), by_key.get(MAP_CACHE)
    if cache is None or cache.value is None or (unit is not None and unit.determined):
        return list(estimates)
    if unit is None:
        unsure = replace(cache, determined=False, assumes=(MAPPING_UNIT,))
    else:
        sizes = (unit.low, unit.value, unit.high)
        low, value, high = (parse_size(str(size or "4 KiB")) for size in sizes)
        least, most = (parse_size(str(end)) * value for end in (cache.low, cache.high))
        ends = f"{least // high // KIB} KiB", f"{most // low // KIB} KiB"
        unsure = replace(cache, low=ends[0], high=ends[1], determined=False)
    return [unsure if one.key == MAP_CACHE else one for one in estimates]


def _write_cache(name: str) -> Iterator[Estimate]:
    """The guarantees of a write cache of this class.

    A flush that costs nothing has the same timing with protection and without any effect. The twin
    gets the protection, and the number counts as not determined.
    """
    if name == UNDECIDED:
        yield Estimate("buffer.power_loss_protection", True, False, True, determined=False)
        yield Estimate("buffer.honours_flush", True, False, True, determined=False)
    for key, value in _WRITE_CACHE_CLASSES.get(name, {}).items():
        yield _exact(key, value)


def _dies(profile: str, units: int, where: str) -> Iterator[Estimate]:
    """Distributes dies (`units`) evenly over as many of the profile's channels as possible."""
    channels = get_value(profile, "flash.channels")
    if not isinstance(channels, int) or units < 1:
        raise UsageError(
            f"{where}: {units} units on {channels} channels; give 1 unit or more, and a start "
            "profile with flash.channels"
        )
    used = max(n for n in range(1, min(channels, units) + 1) if units % n == 0)
    if used != channels:
        yield _exact("flash.channels", used)
    yield _exact("flash.dies_per_channel", units // used)


@dataclass(frozen=True)
class Layout:
    """Geometry of a drive whose planes read independently."""

    dies: int
    planes: int
    page_kib: int
    chunk_kib: int


def plane_layouts(results: Sequence[Measurement]) -> list[Layout]:
    """The possible layouts of a drive whose units have several chunks of a stripe.

    The units are planes that read independently. Either a chunk of the drive has several pages in
    each plane of a die, one plane after the other, or a page has several chunks, one die after the
    other.
    """
    names = ("chunk_kib", "stripe_kib", "chunks_per_unit", "chunk_distance_kib")
    for stripe in results:
        numbers = [int(number) for name in names if (number := stripe.number(name))]
        if len(numbers) < len(names) or numbers[2] == 1:
            continue
        chunk, whole, count, distance = numbers
        in_turn, groups = distance // chunk, whole // (count * distance)
        possible = (
            Layout(groups, in_turn, chunk, count * distance),
            Layout(in_turn, groups, count * chunk, chunk),
        )
        return [
            one for one in possible if one.planes in PLANES_PER_DIE and one.page_kib <= PAGE_MAX_KIB
        ]
    return []


def _of_layout(profile: str, layout: Layout, where: str) -> Iterator[Estimate]:
    yield _exact("ftl.chunk", f"{layout.chunk_kib} KiB")
    yield from _dies(profile, layout.dies, where)
    yield _exact("flash.planes", layout.planes)
    yield _exact("flash.page", f"{layout.page_kib} KiB")
    yield _exact(INDEPENDENT, True)
    if get_value(profile, REGISTER) is False:  # the model requires one then
        yield _exact(REGISTER, True)


def _exact(key: str, value: Any) -> Estimate:
    return Estimate(key, value, value, value)


def apply_estimates(profile: str, estimates: Sequence[Estimate], source: str) -> str:
    """The profile's text with the estimates set; unchanged values keep their source.

    A measured buffer may be slightly too small for the dies; then it is a little larger.

    Raises:
        UsageError: the profile and the estimates contradict each other.
    """
    for estimate in estimates:
        if get_value(profile, estimate.key) == estimate.value:
            continue
        if estimate.key == SLC and estimate.value is None:
            profile = remove_table(profile, "slc")  # its other keys need a size
        else:
            profile = set_value(profile, estimate.key, estimate.value, source)
    return enlarge_buffer(profile, source, _A_LITTLE)


def enlarge_buffer(profile: str, source: str = "", factor: float = 2.0) -> str:
    """The profile with a buffer that holds the pages which its dies fill.

    If it does not, it is enlarged by this factor as often as needed.

    Raises:
        UsageError: even a far larger one is too small.
    """
    for _ in range(round(math.log(ENLARGED_MOST, factor))):
        try:
            size = describe_twin("the profile", profile)["buffer_bytes"]
            describe_twin("the candidate", profile, CAPACITY)
        except TargetError as error:
            if "buffer.size" not in str(error):
                raise
            size = parse_size(str(get_value(profile, "buffer.size")))
            size = round(factor * size)
            profile = set_value(profile, "buffer.size", f"{size // KIB} KiB", source)
        else:
            assert size > 0, "a twin has a buffer"
            return profile
    raise UsageError(
        "buffer.size is too small for the dies that the results show; give a start profile with "
        "a larger one"
    )


def corrected_estimates(profile: str, results: Sequence[Measurement]) -> list[Estimate]:
    """Spare, buffer and SLC cache sizes, corrected for the bias measured on the candidate twin.

    Raises:
        TargetError: a twin with such numbers is impossible.
    """
    estimates: list[Estimate] = []
    for measurement in results:
        if measurement.experiment == "steady":
            estimates += _spare(profile, measurement)
        if measurement.experiment == "cache":
            estimates += _buffer(profile, measurement)
        estimates += _map_cache(profile, measurement)
    return estimates


def _spare(profile: str, results: Measurement) -> list[Estimate]:
    """The measured spare, plus the superblocks that garbage collection keeps in reserve.

    The drive's reserve is unknown: the value assumes that of the candidate twin, the lower bound
    half of it, and the upper bound twice.
    """
    finding = results.findings.get("hidden_spare")
    if finding is None or results.number("hidden_spare") is None:
        return []
    visible = results.parameters.get("drive_mib") or results.parameters.get("region_mib") or 0
    visible = int(visible * MIB) or describe_twin("the candidate", profile)["capacity_bytes"]
    reserved = _reserved_superblocks(profile)
    twin = describe_twin("the candidate", profile, max(visible, CAPACITY))
    # Superblocks are scaled down if the drive is smaller than the candidate.
    superblock_bytes = float(twin["superblock_bytes"]) * min(1.0, visible / CAPACITY)

    def spare(percent: float, superblocks: float) -> float:
        flash: float = visible / (1 - percent / 100) + superblocks * superblock_bytes
        return round(1 - visible / flash, 4)

    low, high = _interval(finding)
    assert isinstance(finding.value, float | int)
    bounds = spare(low, reserved / 2), spare(high, 2 * reserved)
    value = spare(finding.value, reserved)
    return [Estimate("ftl.spare", value, *bounds, bounds[1] / bounds[0] <= DETERMINED_RATIO)]


def _reserved_superblocks(profile: str) -> float:
    """The number of superblocks that `steady` does not see on the candidate twin."""
    twin = describe_twin("the candidate", profile, CAPACITY)
    finding = measure_spare(profile).findings.get("hidden_spare")
    if finding is None or not isinstance(finding.value, float):
        return RESERVE
    # Not `flash_bytes`, which has the superblocks of a static SLC cache, too.
    unseen = CAPACITY / (1 - float(twin["spare"])) - CAPACITY / (1 - finding.value / 100)
    return max(0.0, unseen / float(twin["superblock_bytes"]))


def _first_buffer(results: Measurement) -> Iterator[Estimate]:
    """The buffer as measured, or the middle of its bounds if it is not determined."""
    finding = results.findings.get("buffer_mib")
    if finding is None:
        return
    size, low, high = finding.value, finding.low, finding.high
    if isinstance(size, float | int):
        yield _exact("buffer.size", f"{round(size * MIB / KIB)} KiB")
    elif low and high:
        sizes = ((low * high) ** 0.5, low, high)
        value, least, most = (f"{round(size * MIB / KIB)} KiB" for size in sizes)
        yield Estimate("buffer.size", value, least, most, determined=False)


def _buffer(profile: str, results: Measurement) -> list[Estimate]:
    """The buffer size, corrected by the error of `cache` on the candidate twin."""
    finding = results.findings.get("buffer_mib")
    if finding is None or results.number("buffer_mib") is None:
        return []
    actual_mib = parse_size(str(get_value(profile, "buffer.size"))) / MIB
    seen = measure_cache(profile).findings.get("buffer_mib")
    seen_mib = seen.value if seen is not None and isinstance(seen.value, float) else actual_mib
    # Pages that are still being filled are missed; pages that the dies have taken count, too. The
    # drive's error is unknown: the bounds assume none, and twice that of the candidate.
    missed_mib = actual_mib - seen_mib
    assert isinstance(finding.value, float | int)
    bounds = _interval(finding)
    low = max(0.0, bounds[0] + min(0.0, 2 * missed_mib))
    high = bounds[1] + max(0.0, 2 * missed_mib)
    corrected = finding.value + missed_mib
    if corrected <= 0:  # the candidate's error is larger than the drive's buffer
        corrected = finding.value
    mib = (corrected, low, high)
    value, least, most = (f"{round(x * MIB / KIB)} KiB" for x in mib)
    return [Estimate("buffer.size", value, least, most, high <= DETERMINED_RATIO * low)]


def drive_bytes(results: Sequence[Measurement]) -> int | None:
    """The capacity of the measured drive; None if no result has it."""
    for measurement in results:
        if drive_mib := measurement.parameters.get("drive_mib"):
            return int(drive_mib * MIB)
    return None


def _interface(profile: str, results: Sequence[Measurement]) -> Iterator[Estimate]:
    """The drive's interface: as recorded, or NVMe if it is faster than SATA."""
    recorded = {str(one.parameters.get("interface")) for one in results} & LINK_MAX.keys()
    rates = [cell.value for one in results for cell in one.cells if "mib_per_s" in cell.name]
    names = ("cached_mib_per_s", "lasting_mib_per_s")
    rates += [one.number(name) or 0.0 for one in results for name in names]
    if not recorded and max(rates, default=0.0) * MIB > LINK_MAX["sata"]:
        recorded = {"nvme"}
    if len(recorded) == 1 and recorded != {get_value(profile, "drive.interface")}:
        yield _exact("drive.interface", recorded.pop())


def _slc(profile: str, results: Measurement, drive: int | None) -> Iterator[Estimate]:
    """Size of the SLC cache, and the program time to start with, if `cache` found one.

    The size is given for the profile's capacity, as the same share of it.
    """
    finding = results.findings.get("slc_mib")
    if finding is None or finding.value == 0 or (finding.value is None and finding.high is None):
        return
    low, high = finding.low, finding.high
    size = finding.value
    if not isinstance(size, float | int):  # only its bounds are known
        assert high is not None
        low = low or 0.0
        size = (low + high) / 2
    ratio = 1.0 if drive is None else _capacity(profile) / drive
    bounds = (size, size if low is None else low, size if high is None else high)
    value, least, most = (f"{round(ratio * x)} MiB" for x in bounds)
    determined = bounds[2] <= DETERMINED_RATIO * bounds[1]
    yield Estimate(SLC, value, least, most, determined)
    yield from cache_times(profile, results)


def cache_times(profile: str, results: Measurement) -> Iterator[Estimate]:
    """Where the search starts for an SLC cache, if the profile has none."""
    if get_value(profile, "slc.program") is None:
        cached, lasting = (results.number(f"{name}_mib_per_s") for name in ("cached", "lasting"))
        program_us = 1e6 * parse_duration(str(get_value(profile, "flash.program")))
        share = min(1.0, lasting / cached) if cached and lasting else 0.3
        value = f"{max(PROGRAM_MIN_US, program_us * share):.0f} us"
        yield Estimate("slc.program", value, value, value, determined=False)
    if get_value(profile, "slc.mode") is None:
        yield Estimate("slc.mode", "static", "static", "dynamic", determined=False)
    if get_value(profile, "slc.read") is None:
        value = _fastest(get_value(profile, "flash.read"))
        yield Estimate("slc.read", value, value, value, determined=False)


def _fastest(times: Any) -> str:
    """The shortest of a profile's times: what the model takes for a cache without its own."""
    return str(min(times, key=parse_duration) if isinstance(times, list) else times)


def _capacity(profile: str) -> int:
    return int(describe_twin("the profile", profile)["capacity_bytes"])


def _interval(finding: Finding) -> tuple[float, float]:
    assert isinstance(finding.value, float | int)
    low = finding.value if finding.low is None else finding.low
    return low, finding.value if finding.high is None else finding.high
