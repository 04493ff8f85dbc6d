"""From steps to findings: hand-made steps whose answers can be worked out on paper."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pytest

from ssdlab.experiments.aging.analysis import findings, measures, verdict, whole
from ssdlab.records import STEPS, Finding
from ssdlab.stats.interval import ratio_interval

MIB = 1 << 20


def _table(stages: Iterable[tuple[int, list[float]]], rest_s: float = 10.0) -> pa.Table:
    """Steps of stages, each with MiB written before it and its reads' seconds."""
    rows = []
    for stage, (written_mib, reads) in enumerate(stages):
        phase = "overwrite" if stage else "fill"
        rows.append({"phase": phase, "stage": stage, "bytes": written_mib * MIB})
        rows.append({"phase": "flush", "stage": stage, "bytes": 0})
        for repeat, seconds in enumerate(reads):
            read = {"phase": "read", "stage": stage, "repeat": repeat, "rest_s": rest_s}
            rows.append({**read, "start_ns": 5, "end_ns": 5 + round(seconds * 1e9), "bytes": MIB})
    whole = [{**dict.fromkeys(STEPS.names), "step": n, **row} for n, row in enumerate(rows)]
    return pa.Table.from_pylist(whole, schema=STEPS)


FRESH = (4096, [2.0, 2.1, 2.2])
AGED = [FRESH, (50, [2.5, 2.4, 2.6]), (200, [6.6, 6.4, 6.5])]


def _verdict(table: pa.Table, *, outcome: str = "complete") -> str:
    return verdict(findings(table, 3), whole(measures(table, 3), 3), outcome=outcome)


def test_amounts_add_up_without_the_fill_and_the_best_of_three_reads_counts() -> None:
    assert measures(_table(AGED), 3) == [
        {"written_mib": 0.0, "read_s": 2.0, "read_s_all": [2.0, 2.1, 2.2]},
        {"written_mib": 50.0, "read_s": 2.4, "read_s_all": [2.5, 2.4, 2.6]},
        {"written_mib": 250.0, "read_s": 6.4, "read_s_all": [6.6, 6.4, 6.5]},
    ]


def test_a_read_after_a_long_rest_is_no_measure_of_its_stage() -> None:
    table = _table([FRESH, (50, [6.0, 6.1, 6.2, 1.9])])
    assert measures(table, 3)[1]["read_s_all"] == [6.0, 6.1, 6.2]
    assert findings(table, 3)["slowdown"].value == pytest.approx(3.0)


def test_the_slowdown_is_the_last_best_read_over_the_first_with_its_interval() -> None:
    slowdown = findings(_table(AGED), 3)["slowdown"]
    assert slowdown.value == pytest.approx(3.2)
    assert slowdown.unit == "x"
    bounds = ratio_interval([6.6, 6.4, 6.5], [2.0, 2.1, 2.2])
    assert (slowdown.low, slowdown.high) == pytest.approx(bounds)
    assert "2 s" in slowdown.why
    assert "6.4 s" in slowdown.why
    assert "250 MiB" in slowdown.why


def test_the_bounds_hold_the_value_even_where_the_best_reads_are_far_from_the_means() -> None:
    table = _table([(64, [1.0, 3.0, 3.0]), (50, [3.0, 3.0, 3.0])])
    slowdown = findings(table, 3)["slowdown"]
    assert slowdown.value == pytest.approx(3.0)
    assert slowdown.low is not None
    assert slowdown.high is not None
    assert slowdown.low <= 3.0 <= slowdown.high


def test_single_reads_give_a_slowdown_without_bounds() -> None:
    slowdown = findings(_table([(64, [1.0]), (50, [3.0])]), 1)["slowdown"]
    assert slowdown.value == pytest.approx(3.0)
    assert (slowdown.low, slowdown.high) == (None, None)


@pytest.mark.parametrize("stages", [[], [FRESH], [FRESH, (50, [])], [FRESH, (50, [6.0, 6.1])]])
def test_nothing_is_found_before_the_file_was_read_often_enough_fresh_and_aged(
    stages: list[tuple[int, list[float]]],
) -> None:
    table = _table(stages)
    assert findings(table, 3) == {}
    assert "too little to tell" in _verdict(table, outcome="interrupted")


@pytest.mark.parametrize(
    ("reads", "heals"),
    [
        ([6.0, 5.0, 4.0], True),  # half of the added 4 s are gone
        ([6.0, 5.0, 4.1], False),
        ([6.0, 6.0, 6.0], False),
        ([6.0, 6.0, 6.0, 2.0], True),  # the long rest did it
        ([6.0, 2.0, 6.0], False),  # the last read decides
        ([2.09, 2.0, 1.9], False),  # nothing to recover from
    ],
)
def test_rest_heals_where_it_takes_away_half_of_the_added_time(
    reads: list[float], heals: bool
) -> None:
    recovers = findings(_table([FRESH, (50, reads)]), 3)["recovers"]
    assert recovers.value is heals
    assert recovers.unit == ""
    assert recovers.why


def test_the_evidence_of_recovery_names_the_rest_in_all() -> None:
    table = _table([FRESH, (50, [6.0, 6.0, 6.0])], rest_s=20.0)
    assert "1 min of rest in all" in findings(table, 3)["recovers"].why


@pytest.mark.parametrize(
    ("aged", "words"),
    [
        ([2.05, 2.06, 2.07], "does not slow reads"),
        ([1.5, 1.5, 1.5], "does not slow reads"),
        ([6.6, 6.4, 6.5], "3.20 times slower"),
        ([2.2, 2.9, 9.0], "No slowdown shown"),
    ],
)
def test_the_verdict_is_one_sentence_that_says_what_was_found(
    aged: list[float], words: str
) -> None:
    sentence = _verdict(_table([FRESH, (50, aged)]))
    assert words in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert "interrupted" not in sentence


def test_the_verdict_tells_whether_rest_heals() -> None:
    assert "; rest heals it" in _verdict(_table([FRESH, (50, [6.6, 6.4, 6.5, 2.1])]))
    assert "rest does not heal it" in _verdict(_table(AGED))


def test_an_interrupted_run_is_judged_by_its_whole_stages_and_says_that_it_is_not_whole() -> None:
    table = _table([FRESH, (50, [6.2, 6.0, 6.1]), (200, [9.0])])
    sentence = _verdict(table, outcome="interrupted")
    assert "3.00 times slower" in sentence
    assert "50 MiB" in sentence
    assert "interrupted" in sentence
    assert "6.1 s after 30 s of rest" in findings(table, 3)["recovers"].why
    assert [len(row["read_s_all"]) for row in measures(table, 3)] == [3, 3, 1]


def test_findings_are_what_the_contract_names() -> None:
    found = findings(_table(AGED), 3)
    assert list(found) == ["slowdown", "recovers"]
    assert all(isinstance(finding, Finding) for finding in found.values())


def test_a_verdict_that_a_warning_undermines_does_not_stand_alone() -> None:
    table = _table(AGED)
    plain = verdict(
        findings(table, 3), measures(table, 3), outcome="complete", warnings=["virtual"]
    )
    doubted = verdict(
        findings(table, 3), measures(table, 3), outcome="complete", warnings=["page-cache-below"]
    )
    assert "doubtful" not in plain
    assert doubted.endswith("; doubtful, see the warnings.")


def test_storage_that_is_faster_in_between_is_said_to_drift() -> None:
    table = _table([FRESH, (50, [1.7, 1.7, 1.8]), (200, [2.6, 2.7, 2.6])])
    assert "drifts by itself" in _verdict(table)
    assert findings(table, 3)["recovers"].value is False
    steady = _table([FRESH, (50, [1.95, 1.97, 1.96]), (200, [2.6, 2.7, 2.6])])
    assert "1.30 times slower" in _verdict(steady)
