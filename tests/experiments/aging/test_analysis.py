"""Analysis of aging, on hand-made steps whose results can be calculated by hand."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pytest

from ssdlab.experiments.aging.analysis import complete_stages, findings, measures, verdict
from ssdlab.records import STEPS, Finding
from ssdlab.stats.interval import ratio_interval

MIB = 1 << 20


def _table(stages: Iterable[tuple[int, list[float]]], rest_s: float = 10.0) -> pa.Table:
    """A steps table; a stage is the MiB written before it and its read times in seconds."""
    rows = []
    for stage, (written_mib, reads) in enumerate(stages):
        phase = "overwrite" if stage else "fill"
        rows.append({"phase": phase, "stage": stage, "bytes": written_mib * MIB})
        rows.append({"phase": "flush", "stage": stage, "bytes": 0})
        for repeat, seconds in enumerate(reads):
            read = {"phase": "read", "stage": stage, "repeat": repeat, "rest_s": rest_s}
            rows.append({**read, "start_ns": 5, "end_ns": 5 + round(seconds * 1e9), "bytes": MIB})
    numbered = [{**dict.fromkeys(STEPS.names), "step": n, **row} for n, row in enumerate(rows)]
    return pa.Table.from_pylist(numbered, schema=STEPS)


FRESH = (4096, [2.0, 2.1, 2.2])
AGED = [FRESH, (50, [2.5, 2.4, 2.6]), (200, [6.6, 6.4, 6.5])]


def _verdict(table: pa.Table, *, outcome: str = "complete") -> str:
    return verdict(findings(table, 3), complete_stages(measures(table, 3), 3), outcome)


def test_written_amounts_exclude_the_fill_and_the_best_of_three_reads_counts() -> None:
    assert measures(_table(AGED), 3) == [
        {"written_mib": 0.0, "read_s": 2.0, "read_s_all": [2.0, 2.1, 2.2]},
        {"written_mib": 50.0, "read_s": 2.4, "read_s_all": [2.5, 2.4, 2.6]},
        {"written_mib": 250.0, "read_s": 6.4, "read_s_all": [6.6, 6.4, 6.5]},
    ]


def test_the_read_after_the_long_rest_does_not_count() -> None:
    table = _table([FRESH, (50, [6.0, 6.1, 6.2, 1.9])])
    assert measures(table, 3)[1]["read_s_all"] == [6.0, 6.1, 6.2]
    assert findings(table, 3)["slowdown"].value == pytest.approx(3.0)


def test_slowdown_is_the_last_best_read_time_divided_by_the_first() -> None:
    slowdown = findings(_table(AGED), 3)["slowdown"]
    assert slowdown.value == pytest.approx(3.2)
    assert slowdown.unit == "x"
    bounds = ratio_interval([6.6, 6.4, 6.5], [2.0, 2.1, 2.2])
    assert (slowdown.low, slowdown.high) == pytest.approx(bounds)
    assert "2 s" in slowdown.why
    assert "6.4 s" in slowdown.why
    assert "250 MiB" in slowdown.why


def test_the_bounds_include_the_value_even_if_the_best_reads_are_far_from_the_means() -> None:
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
def test_without_enough_reads_fresh_and_aged_there_is_no_finding(
    stages: list[tuple[int, list[float]]],
) -> None:
    table = _table(stages)
    assert findings(table, 3) == {}
    assert "before there were enough reads" in _verdict(table, outcome="interrupted")


@pytest.mark.parametrize(
    ("reads", "recovered"),
    [
        ([6.0, 5.0, 4.0], True),  # half of the added 4 s is gone
        ([6.0, 5.0, 4.1], False),
        ([6.0, 6.0, 6.0], False),
        ([6.0, 6.0, 6.0, 2.0], True),  # the long rest did it
        ([6.0, 3.9, 6.0], False),  # the last read decides
        ([6.0, 2.0, 6.0], None),  # the best read is as fast as fresh
        ([2.09, 2.0, 1.9], None),  # nothing to recover from
    ],
)
def test_a_drive_recovers_if_rest_removes_half_of_the_added_time(
    reads: list[float], recovered: bool | None
) -> None:
    finding = findings(_table([FRESH, (50, reads)]), 3)["recovers"]
    assert finding.value is recovered
    assert finding.unit == ""
    assert finding.why


def test_the_reason_for_recovers_names_the_total_rest() -> None:
    table = _table([FRESH, (50, [6.0, 6.0, 6.0])], rest_s=20.0)
    assert "1 min of rest in total" in findings(table, 3)["recovers"].why


@pytest.mark.parametrize(
    ("aged", "words"),
    [
        ([2.05, 2.06, 2.07], "do not slow reads"),
        ([1.5, 1.5, 1.5], "do not slow reads"),
        ([6.6, 6.4, 6.5], "3.20 times slower"),
        ([2.2, 2.9, 9.0], "No slowdown shown: the repeats vary too much to tell"),
        ([1.9, 2.5, 3.1], "No slowdown shown: the repeats vary too much to exclude a factor of"),
    ],
)
def test_the_verdict_is_one_sentence(aged: list[float], words: str) -> None:
    sentence = _verdict(_table([FRESH, (50, aged)]))
    assert words in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert "interrupted" not in sentence


def test_the_verdict_says_whether_idle_time_helps() -> None:
    assert "; idle time restores the speed" in _verdict(_table([FRESH, (50, [6.6, 6.4, 6.5, 2.1])]))
    assert "idle time does not restore the speed" in _verdict(_table(AGED))


def test_the_verdict_of_an_interrupted_run_uses_complete_stages_and_says_interrupted() -> None:
    table = _table([FRESH, (50, [6.2, 6.0, 6.1]), (200, [9.0])])
    sentence = _verdict(table, outcome="interrupted")
    assert "3.00 times slower" in sentence
    assert "50 MiB" in sentence
    assert "interrupted" in sentence
    assert "6.1 s after 30 s of rest" in findings(table, 3)["recovers"].why
    assert [len(row["read_s_all"]) for row in measures(table, 3)] == [3, 3, 1]


def test_the_findings_are_slowdown_and_recovers() -> None:
    results = findings(_table(AGED), 3)
    assert list(results) == ["slowdown", "recovers"]
    assert all(isinstance(finding, Finding) for finding in results.values())


def test_a_warning_about_what_was_measured_qualifies_the_verdict() -> None:
    table = _table(AGED)
    results, rows = findings(table, 3), measures(table, 3)
    assert "doubtful" not in verdict(results, rows, "complete", ["virtual"])
    qualified = verdict(results, rows, "complete", ["page-cache-below"])
    assert qualified.startswith("Not the drive, or not it alone (a page cache is below): Random")
    assert qualified.endswith("; doubtful, see the warnings.")


def test_storage_that_reads_faster_in_between_has_no_clear_slowdown() -> None:
    table = _table([FRESH, (50, [1.7, 1.7, 1.8]), (200, [2.6, 2.7, 2.6])])
    assert "varies by itself" in _verdict(table)
    assert findings(table, 3)["recovers"].value is None, "nothing to recover from"
    steady = _table([FRESH, (50, [1.95, 1.97, 1.96]), (200, [2.6, 2.7, 2.6])])
    assert "1.30 times slower" in _verdict(steady)
