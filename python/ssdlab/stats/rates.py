"""Rates and latencies of one kind of request, from counters read at two times."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Totals(msgspec.Struct, frozen=True):
    """What a drive has counted for one kind of request since it was opened, or since boot.

    `busy_us` is the sum of all latencies. `bins` are upper ends in us and counts, ascending; empty
    if only sums are counted. `binned_us` is the sum of the latencies in the bins.
    """

    requests: int = 0
    bytes: int = 0
    busy_us: float = 0.0
    failed: int = 0
    bins: tuple[tuple[float, int], ...] = ()
    binned_us: float = 0.0


class Rates(msgspec.Struct, frozen=True):
    """Requests and bytes per second of one kind of request, and their latencies.

    Percentiles are upper ends of bins; None without a request, or without bins.
    """

    rate: float
    bytes_rate: float
    failed: int
    mean_us: float | None
    p50_us: float | None
    p99_us: float | None


def rates_between(before: Totals, now: Totals, seconds: float) -> Rates:
    """The rates over `seconds`, from the totals at their beginning and end."""
    requests = now.requests - before.requests
    earlier = dict(before.bins)
    counts = [(upper, count - earlier.get(upper, 0)) for upper, count in now.bins]
    return Rates(
        rate=requests / seconds,
        bytes_rate=(now.bytes - before.bytes) / seconds,
        failed=now.failed - before.failed,
        mean_us=(now.busy_us - before.busy_us) / requests if requests else None,
        p50_us=quantile_of_bins(counts, 0.5),
        p99_us=quantile_of_bins(counts, 0.99),
    )


def quantile_of_bins(counts: Sequence[tuple[float, int]], share: float) -> float | None:
    """Upper end of the bin in which the quantile `share` (0 to 1) falls; None without a count."""
    left = share * sum(count for _, count in counts)
    if left <= 0:
        return None
    for upper, count in counts:
        left -= count
        if left <= 0:
            return upper
    return counts[-1][0]


def bin_of(latency_us: float) -> float:
    """The upper end of the bin of a latency: four bins for each power of two, from 1 us on."""
    power = 1.0
    while power < latency_us:
        power *= 2
    low = power / 2
    for quarter in range(1, 5):
        upper = low + low * quarter / 4
        if latency_us <= upper:
            return upper
    return power
