"""Where the search starts: times and rates that single results give without a twin.

A search that started from the numbers of an unlike drive would end in a local optimum. These are
not estimates: the search changes all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ssdlab.fit.measurement import Measurement
from ssdlab.fit.parameters import LINK_MAX, SearchSpace, within_overheads
from ssdlab.profiles.toml_edit import get_value, set_values
from ssdlab.units import parse_size

KIB: Final = 1 << 10
MIB: Final = 1 << 20
BLOCK: Final = 4 * KIB
FLUSH: Final = "buffer.flush_overhead"
OVERHEAD_MIN: Final = 2e-6
"""The shortest overhead to start with, in s."""


def guess(profile: str, results: Sequence[Measurement], space: SearchSpace, source: str) -> str:
    """The profile with a first guess of the numbers that are searched for.

    Ratios to another number start at 1: the profile's own number is removed.
    """
    rates = {one.experiment: one for one in results}
    guesses = {
        **_reading(profile, rates),
        **_writing(profile, rates),
        **_flushing(rates),
        **_commands(rates),
    }
    changes: dict[str, Any] = {scale.key: None for scale in space.scales if scale.of}
    for scale in space.scales:
        current = scale.mean(profile)
        if scale.key in guesses and current + scale.offset > 0:
            factor = (guesses[scale.key] + scale.offset) / (current + scale.offset)
            factor = min(max(factor, scale.low), scale.high)
            changes |= scale.changes(profile, factor)
    return set_values(profile, within_overheads(profile, changes), source)


def _reading(profile: str, rates: dict[str, Measurement]) -> dict[str, float]:
    """tR from reads that all wait for one die; the link; the overhead of a single read."""
    guesses: dict[str, float] = {}
    one_die = _of_stripe(rates)
    if one_die is not None:
        guesses["flash.read"] = guesses["slc.read"] = BLOCK / one_die
    fastest = max((_all_rates(one) for one in rates.values()), default=0.0)
    if fastest:
        guesses["link.bandwidth"] = min(fastest, LINK_MAX[get_value(profile, "drive.interface")])
    single = _of_suite(rates, "random 4k", "read")
    if single is not None and one_die is not None:
        guesses["link.read_overhead"] = max(OVERHEAD_MIN, 0.8 * (BLOCK / single - BLOCK / one_die))
    return guesses


def _writing(profile: str, rates: dict[str, Measurement]) -> dict[str, float]:
    """tPROG from the rate of long writes to all dies; the overhead of a single write."""
    guesses: dict[str, float] = {}
    single = _of_suite(rates, "random 4k", "write")
    if single is not None:
        guesses["link.write_overhead"] = max(OVERHEAD_MIN, 0.9 * BLOCK / single)
    for name, key in (("lasting", "flash.program"), ("cached", "slc.program")):
        rate = rates["cache"].number(f"{name}_mib_per_s") if "cache" in rates else None
        if rate:
            guesses[key] = _row_bytes(profile) / (rate * MIB)
    return guesses


def _commands(rates: dict[str, Measurement]) -> dict[str, float]:
    """Half of the time between commands at the highest rate: then something else limits it."""
    found = {}
    for op in ("read", "write"):
        tests = [_of_suite(rates, f"random 4k x{depth}", op) for depth in (32, 64)]
        if fastest := max((rate for rate in tests if rate is not None), default=0.0):
            found[f"link.{op}_command"] = BLOCK / fastest / 2
    return found


def _flushing(rates: dict[str, Measurement]) -> dict[str, float]:
    """The time of a flush: that of one which does not wait for flash, otherwise none of its own."""
    if "fsync" not in rates or (flush_us := rates["fsync"].number("flush_us")) is None:
        return {}
    single = _of_suite(rates, "random 4k", "write")
    waits = rates["fsync"].text("class") == "volatile"
    if waits or single is None:
        return {FLUSH: 0.0}
    return {FLUSH: max(0.0, 1e-6 * flush_us - BLOCK / single)}


def _row_bytes(profile: str) -> int:
    """Bytes that all dies program at once."""
    keys = ("flash.channels", "flash.dies_per_channel", "flash.planes")
    count = 1
    for key in keys:
        count *= int(get_value(profile, key) or 1)
    return count * parse_size(str(get_value(profile, "flash.page")))


def _of_stripe(rates: dict[str, Measurement]) -> float | None:
    """Bytes/s of reads that are a stripe apart; of the slowest if it is not known."""
    if "stripe" not in rates or not rates["stripe"].cells:
        return None
    stripe_kib = rates["stripe"].number("stripe_kib")
    cells = {cell.case[0]: cell.value for cell in rates["stripe"].cells}
    found = None if stripe_kib is None else cells.get(stripe_kib)
    return (found or min(cells.values())) * MIB


def _of_suite(rates: dict[str, Measurement], test: str, op: str) -> float | None:
    """Bytes/s of a test of `suite`."""
    if "suite" not in rates:
        return None
    found = [cell.value for cell in rates["suite"].cells if cell.case[:2] == (test, op)]
    return found[0] * MIB if found else None


def _all_rates(results: Measurement) -> float:
    """The highest rate in bytes/s that a result shows; the link is at least as fast."""
    names = ("read_mib_per_s", "write_mib_per_s")
    rates = [cell.value for cell in results.cells if cell.name in names or cell.unit == "MiB/s"]
    found = (results.number(name) for name in ("buffered_mib_per_s", "cached_mib_per_s"))
    rates += [rate for rate in found if rate is not None]
    return max(rates, default=0.0) * MIB
