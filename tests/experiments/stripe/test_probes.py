"""Conclusions from probes of two addresses, with given results."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from ssdlab.experiments.stripe.probes import (
    RESULTS_MAX,
    Probe,
    ProbeLog,
    ProbeResult,
    Procedure,
    is_one_queue,
    probe_result,
    run_procedure,
    share_a_unit,
)

PAIR = Probe(1 << 20, (0, 32 << 10))
HERE, THERE = Probe(1 << 20), Probe(1 << 20, (32 << 10,))


def _run(procedure: Procedure[bool | None], **results: ProbeResult) -> tuple[bool | None, int]:
    """The value of a procedure and the number of probes, with one result for each probe."""
    names = {PAIR.name: "pair", HERE.name: "here", THERE.name: "there"}
    probed: list[str] = []

    def measure(probe: Probe) -> ProbeResult:
        probed.append(probe.name)
        return results[names[probe.name]]

    return run_procedure(procedure, measure), len(probed)


def _share_a_unit(**results: ProbeResult) -> tuple[bool | None, int]:
    return _run(share_a_unit(ProbeLog(), PAIR), **results)


def test_widely_scattered_latencies_mean_two_units() -> None:
    assert _share_a_unit(pair=ProbeResult(100, 1.3)) == (False, 2)


def test_one_queue_no_faster_than_one_address_means_one_unit() -> None:
    result = _share_a_unit(pair=ProbeResult(103, 0.1), here=ProbeResult(100, 0.1))
    assert result == (True, 4)


def test_one_queue_faster_than_each_address_means_two_dies_on_a_channel() -> None:
    alone = ProbeResult(100, 0.0)
    shared, _ = _share_a_unit(pair=ProbeResult(150, 0), here=alone, there=alone)
    assert shared is False


def test_a_pair_is_compared_with_the_faster_of_its_addresses() -> None:
    slow, fast = ProbeResult(50, 0.1), ProbeResult(100, 0.1)
    shared, _ = _share_a_unit(pair=ProbeResult(67, 0.1), here=slow, there=fast)
    assert shared is True


def test_an_unclear_probe_is_repeated_and_then_left_undecided() -> None:
    unclear = _run(is_one_queue(ProbeLog(), PAIR), pair=ProbeResult(100, 0.7))
    assert unclear == (None, RESULTS_MAX)
    alone = ProbeResult(100, 0.0)
    assert _share_a_unit(pair=ProbeResult(120, 0), here=alone, there=alone) == (
        None,
        3 * RESULTS_MAX,
    )


def test_a_procedure_without_a_result_returns_none() -> None:
    results: Iterator[ProbeResult | None] = iter([ProbeResult(100, 1.3), None])
    measure: Callable[[Probe], ProbeResult | None] = lambda _probe: next(results)  # noqa: E731
    assert run_procedure(is_one_queue(ProbeLog(), PAIR), measure) is None


def test_the_spread_is_p90_minus_p10_over_the_median() -> None:
    latency = np.array([10, 20, 30, 1000], dtype=np.uint64)
    counts = np.array([10, 45, 40, 5], dtype=np.uint64)
    result = probe_result(2.0, 8 << 20, latency, counts)
    assert result.mib_per_s == pytest.approx(4.0)
    assert result.spread == pytest.approx((30 - 10) / 20)


def test_a_probe_is_identified_by_its_name() -> None:
    assert HERE.name == "every 1024 KiB"
    assert PAIR.name == "every 1024 KiB + 0 KiB or 32 KiB"
    assert Probe(1 << 20, (4096,), 8192).name == "every 1024 KiB + 4 KiB, by 8 KiB"
