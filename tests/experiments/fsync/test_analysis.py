"""The class of a drive, from times of flushes and its stated protection."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ssdlab.analysis.evidence import Evidence
from ssdlab.experiments.fsync.analysis import (
    Burst,
    Probe,
    _cost,
    _syncs,
    class_of,
    conclude,
    probe_of,
)
from ssdlab.records import Finding

SOURCE = "its data sheet"
NO_WARNINGS: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    ("probe", "claim", "expected"),
    [
        # empty, write, flush in us
        (Probe(5, 11, 766), "volatile", "volatile"),
        (Probe(5, 11, 766), "unknown", "volatile"),
        (Probe(5, 11, 81), "volatile", "volatile"),  # 76 us: the fastest flash
        (Probe(5, 11, 79), "volatile", "ignores flush"),
        (Probe(45, 84, 45), "protected", "protected"),
        (Probe(45, 84, 45), "unknown", "protected or ignores flush"),
        (Probe(45, 84, 45), "volatile", "ignores flush"),
        (Probe(400, 60, 420), "protected", "protected"),
        (Probe(400, 60, 420), "unknown", None),  # slow even with nothing to flush
        (Probe(5, 900, 6), "unknown", None),  # the write itself waited
        (Probe(40, 20, 2990, 2800), "unknown", "volatile"),
        (Probe(40, 20, 2990, 10), "volatile", None),  # half of the flushes took 80 us
    ],
)
def test_flushes_that_wait_for_flash_mean_volatile_and_otherwise_the_claim_decides(
    probe: Probe, claim: str, expected: str | None
) -> None:
    assert class_of(probe, claim, SOURCE, NO_WARNINGS).value == expected


@pytest.mark.parametrize(
    ("claim", "expected"),
    [("unknown", "protected or ignores flush"), ("volatile", "ignores flush")],
)
def test_a_burst_that_flash_cannot_have_taken_shows_that_slow_flushes_do_not_wait(
    claim: str, expected: str
) -> None:
    burst = Burst(size=4 << 20, write_us=1000, flush_us=760, flash_us=8000)
    finding = class_of(Probe(755, 20, 760), claim, SOURCE, NO_WARNINGS, burst)
    assert finding.value == expected
    assert "4 MiB were written in 1 ms and flushed in 760 us" in finding.why


def test_a_protected_drive_that_waits_for_flash_is_volatile_and_gets_advice() -> None:
    finding = class_of(Probe(5, 60, 1200), "protected", SOURCE, NO_WARNINGS)
    assert finding.value == "volatile"
    assert "hdparm -W 0" in finding.why


def test_ignores_flush_is_called_a_suspicion_and_names_the_witness() -> None:
    finding = class_of(Probe(5, 11, 6), "volatile", SOURCE, NO_WARNINGS)
    assert "suspicion" in finding.why
    assert "ssdlab witness" in finding.why


def test_the_reason_names_the_time_that_the_flush_is_compared_with() -> None:
    why = class_of(Probe(60, 20, 117), "unknown", "", NO_WARNINGS).why
    assert "ordinary flash takes at least 160 us to program" in why
    why = class_of(Probe(5, 9, 6), "unknown", "", NO_WARNINGS).why
    assert "even the fastest flash takes 75 us to program" in why


def test_the_quartiles_of_both_kinds_of_flush_are_compared() -> None:
    steps = [
        {"step": at, "phase": "probe", "case": "empty", "start_ns": 0, "end_ns": us * 1000}
        for at, us in enumerate((30, 40, 50, 60, 70))
    ]
    steps.append({"step": 5, "phase": "probe", "case": "written", "start_ns": 0, "end_ns": 1})
    latency = [  # write, then flushes: the quick ones are a quarter
        {"step": 5, "op": op, "latency_ns": us * 1000, "count": count}
        for op, us, count in ((1, 20, 10), (3, 100, 3), (3, 900, 7))
    ]
    named = (("steps", steps), ("interval_latency", latency))
    probe = probe_of(Evidence({name: pa.Table.from_pylist(rows) for name, rows in named}, {}))
    assert probe == Probe(empty_us=50, write_us=20, flush_us=900, least_extra_us=40)
    assert probe.varies


@pytest.mark.parametrize(("slow", "near"), [(50, (100, 900)), (30, (100, 100)), (8, None)])
def test_a_median_has_percentiles_near_it_if_there_are_enough_flushes(
    slow: int, near: tuple[int, int] | None
) -> None:
    fast = 100 - slow if near else 8
    latency = [
        {"step": 0, "op": 3, "latency_ns": us * 1000, "count": count}
        for us, count in ((100, fast), (900, slow))
    ]
    evidence = Evidence({"interval_latency": pa.Table.from_pylist(latency)}, {})
    requests, median, found = _syncs(evidence, "direct fsync", [{"step": 0}])
    assert requests == fast + slow
    assert median is not None
    assert found == (near and tuple(1000.0 * us for us in near))
    assert (median.p50 is None) == (near is None)
    assert _syncs(evidence, "direct none", [{"step": 0}]) == (0, None, None)


def test_rates_are_of_each_step_and_what_is_kept_includes_the_flush_after_it() -> None:
    """Two steps of a second write 8 and 4 MiB; flushes after them take one and three seconds."""
    rows = (("mix", 0, 1), ("flush", 1, 2), ("mix", 2, 3), ("flush", 3, 6))
    steps = [
        {
            "step": n,
            "phase": phase,
            "case": "direct none",
            "value": 1.0,
            "start_ns": start * 10**9,
            "end_ns": end * 10**9,
        }
        for n, (phase, start, end) in enumerate(rows)
    ]
    moved = [(0, 1, 6), (0, 0, 2), (2, 1, 4)]
    intervals = [
        {"step": step, "read_bytes": read << 20, "write_bytes": written << 20}
        for step, read, written in moved
    ]
    tables = {
        name: pa.Table.from_pylist(of) for name, of in (("steps", steps), ("intervals", intervals))
    }
    tables["observations"] = pa.table({"name": pa.array([], pa.string())})
    [row] = conclude(Evidence(tables, {"repeats": 2})).measures
    assert row["read_mib_per_s"] == 1
    assert row["write_mib_per_s_all"] == [8, 4]
    assert row["kept_mib_per_s"] == (4 + 1) / 2


def test_flushes_that_vary_more_than_they_differ_show_nothing() -> None:
    finding = class_of(Probe(40, 20, 2990, 10), "unknown", "", NO_WARNINGS)
    assert "in a quarter of the repeats the two differ too little" in finding.why
    assert "idle machine" in finding.why


def test_without_barriers_there_is_no_class() -> None:
    finding = class_of(Probe(5, 11, 6), "volatile", SOURCE, frozenset({"no-barrier"}))
    assert finding.value is None
    assert "sends no flush" in finding.why


@pytest.mark.parametrize(
    ("penalty", "low", "high", "words"),
    [
        (1.05, 1.01, 1.09, "costs less than 10%"),
        (1.05, None, None, "costs less than 10%"),
        (1.05, 0.7, 1.6, "the repeats vary too much to exclude a factor of 1.6"),
        (1.4, 0.9, 2.2, "the repeats vary too much to exclude a factor of 2.2"),
        (1.4, 0.069, 3600.0, "no cost of fsync shown: the repeats vary too much to tell"),
        (1.4, 1.2, 1.6, "1.4 times slower"),
        (8.56, None, None, "8.56 times slower"),
    ],
)
def test_a_penalty_within_the_variation_of_the_repeats_is_not_quoted(
    penalty: float, low: float | None, high: float | None, words: str
) -> None:
    assert words in _cost(Finding(penalty, "x", low, high, ""))
