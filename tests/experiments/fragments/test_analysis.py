"""Analysis of fragments, on made-up read times: slowdowns, causes, the host's share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ssdlab.analysis.evidence import Evidence
from ssdlab.experiments.fragments.analysis import conclude
from ssdlab.experiments.fragments.measure import Plan
from ssdlab.records import Recording, StepRow

MIB = 1 << 20
PLAN = Plan(degrees=(1, 256), gaps=("worst",), repeats=2)
# Milliseconds of two repeats at depth 1 and at depth 32.
Repeats = tuple[Sequence[float], Sequence[float]]
FAST: Repeats = ((5.0, 5.1), (4.0, 4.1))


def _evidence(times: Mapping[tuple[str, int], Repeats], **more: Any) -> Evidence:
    """A run on a real drive with the read times `times`, by phase and degree."""
    recording = Recording()
    for (phase, degree), by_depth in times.items():
        for depth, repeats in zip((1, 32), by_depth, strict=True):
            for repeat, read_ms in enumerate(repeats):
                recording.add(_row(phase, degree, depth, repeat, read_ms))
    return Evidence(recording.tables(), PLAN.parameters(), **more)


def _row(phase: str, degree: int, depth: int, repeat: int, read_ms: float) -> StepRow:
    return StepRow(
        {
            "phase": phase,
            "stage": 9 if phase == "memory" else 1,
            "repeat": repeat,
            "case": f"depth {depth}",
            "value": degree,
            "queue_depth": depth,
            "start_ns": 0,
            "end_ns": int(read_ms * 1e6),
            "requests": max(32, degree),
            "bytes": 8 * MIB,
        }
    )


@pytest.mark.parametrize(
    ("alone_ms", "expected"), [(8.0, "die conflicts"), (12.0, "die conflicts"), (14.0, None)]
)
def test_conflicts_must_exceed_what_distant_pieces_cost_where_nothing_conflicts(
    alone_ms: float, expected: str | None
) -> None:
    # At depth 32, pieces take 10 ms more; at depth 1, this much more than the 8 ms of the commands.
    pieces: Repeats = ((alone_ms, alone_ms), (14.0, 14.0))
    commands: Repeats = ((8.0, 8.0), (4.0, 4.0))
    whole: Repeats = ((5.0, 5.0), (4.0, 4.0))
    times = {("worst", 256): pieces, ("in order", 256): commands, ("in order", 1): whole}
    conclusion = conclude(_evidence(times))
    cause = conclusion.findings["cause_depth_32"]
    assert cause.value == conclusion.findings["cause"].value == expected
    assert (expected is None) == ("look up its map" in cause.why)
    assert (expected is None) == ("queue depth 32 (cause undetermined)" in conclusion.verdict)


@pytest.mark.parametrize(("forward_ms", "expected"), [(12.0, "request splitting"), (5.0, None)])
def test_commands_that_are_slow_backwards_only_do_not_show_splitting(
    forward_ms: float, expected: str | None
) -> None:
    # At depth 32, pieces and commands that are read backwards take 10 ms more than one piece.
    slow: Repeats = ((12.0, 12.0), (14.0, 14.0))
    forward: Repeats = ((), (forward_ms, forward_ms))
    whole: Repeats = ((5.0, 5.0), (4.0, 4.0))
    times = {("worst", 256): slow, ("in order", 256): slow, ("in order", 1): whole}
    conclusion = conclude(_evidence({**times, ("forward", 256): forward}))
    cause = conclusion.findings["cause_depth_32"]
    assert cause.value == expected
    assert (expected is None) == (f"{forward_ms - 4:.3g} ms forward" in cause.why)


def test_time_that_the_commands_take_on_a_contiguous_file_too_is_splitting() -> None:
    slow: Repeats = ((30.0, 31.0), (4.0, 4.1))
    times = {("worst", 256): slow, ("in order", 1): FAST, ("in order", 256): slow}
    conclusion = conclude(_evidence(times))
    findings = conclusion.findings
    assert findings["cause"].value == findings["cause_depth_1"].value == "request splitting"
    assert findings["cause_depth_32"].value == "none"
    slowdown = findings["slowdown_depth_1"]
    assert slowdown.value == pytest.approx(30.5 / 5.05)
    assert slowdown.low is not None
    assert slowdown.high is not None
    assert slowdown.low < 30.5 / 5.05 < slowdown.high
    assert "request splitting" in conclusion.verdict


def test_time_that_only_the_pieces_take_is_conflicts() -> None:
    times = {
        ("worst", 256): ((30.0, 31.0), (17.0, 17.2)),
        ("in order", 1): FAST,
        ("in order", 256): ((30.0, 31.0), (4.0, 4.1)),
    }
    findings = conclude(_evidence(times)).findings
    assert findings["cause"].value == findings["cause_depth_32"].value == "die conflicts"
    assert findings["cause_depth_1"].value == "request splitting"


def test_the_larger_part_names_the_cause() -> None:
    for commands, cause in ((9.0, "die conflicts"), (15.0, "request splitting")):
        times = {
            ("worst", 256): (FAST[0], (20.0, 20.1)),
            ("in order", 1): FAST,
            ("in order", 256): (FAST[0], (commands, commands)),
        }
        assert conclude(_evidence(times)).findings["cause"].value == cause


def test_without_a_slowdown_there_is_no_cause_and_no_host_share() -> None:
    times = {(phase, degree): FAST for phase in ("worst", "in order") for degree in (1, 256)}
    del times["worst", 1]
    conclusion = conclude(_evidence(times))
    assert conclusion.findings["cause"].value == "none"
    assert not [name for name in conclusion.findings if name.startswith("host_share")]
    assert conclusion.verdict == "A file in 256 pieces is read as fast as one in a single piece."


def test_repeats_that_vary_too_much_give_no_cause() -> None:
    times = {
        ("worst", 256): ((4.0, 30.0), (4.0, 30.0)),
        ("in order", 1): FAST,
        ("in order", 256): FAST,
    }
    assert conclude(_evidence(times)).findings["cause"].value == "none"


def test_a_slowdown_that_depends_on_the_place_is_an_interval_without_a_value() -> None:
    times = {
        ("worst", 256): (FAST[0], (8.0, 16.0, 8.1, 16.1)),
        ("in order", 1): (FAST[0], (4.0, 4.1, 4.0, 4.1)),
        ("in order", 256): (FAST[0], (4.0, 4.1, 4.0, 4.1)),
    }
    conclusion = conclude(_evidence(times))
    slowdown = conclusion.findings["slowdown_depth_32"]
    assert slowdown.value is None
    assert slowdown.low == pytest.approx(2, rel=0.1)
    assert slowdown.high == pytest.approx(4, rel=0.1)
    assert "depends on where the pieces are" in slowdown.why
    assert "1.95 to 4.03 times as long at queue depth 32" in conclusion.verdict


def test_conflicts_must_exceed_the_variation_of_the_same_commands() -> None:
    times = {
        ("worst", 256): (FAST[0], (20.0, 20.1)),
        ("in order", 1): FAST,
        ("in order", 256): (FAST[0], (3.0, 12.0)),
    }
    cause = conclude(_evidence(times)).findings["cause"]
    assert cause.value is None
    assert "the repeats vary by more than the difference" in cause.why


@pytest.mark.parametrize(
    ("memory", "share", "words"), [(12.0, 40, "10 of"), (99.0, 100, "97 of"), (1.0, 0, "0 of")]
)
def test_the_host_share_is_the_excess_on_a_drive_in_memory(
    memory: float, share: float, words: str
) -> None:
    slow: Repeats = ((30.0, 30.0), (4.0, 4.0))
    fast: Repeats = ((5.0, 5.0), (4.0, 4.0))
    times = {
        ("worst", 256): slow,
        ("in order", 1): fast,
        ("in order", 256): slow,
        ("memory", 1): ((2.0, 2.0), (1.0, 1.0)),
        ("memory", 256): ((memory, memory), (1.0, 1.0)),
    }
    conclusion = conclude(_evidence(times))
    finding = conclusion.findings["host_share_depth_1"]
    assert finding.value == share
    assert words in finding.why
    assert [row["host_ms"] for row in conclusion.measures if row["queue_depth"] == 1] == [2, memory]


def test_a_drive_in_memory_is_slowed_by_splitting_alone() -> None:
    slow: Repeats = ((9.0, 9.2), (4.0, 4.1))
    fast: Repeats = ((5.0, 5.1), (4.0, 4.1))
    times = {
        ("worst", 256): slow,
        ("in order", 1): fast,
        ("in order", 256): slow,
        ("memory", 1): fast,
        ("memory", 256): slow,
    }
    findings = conclude(_evidence(times)).findings
    assert findings["cause"].value == "request splitting"
    assert findings["host_share_depth_1"].value == pytest.approx(100)


def test_the_verdict_on_conflicts_behind_a_virtual_disk_refers_to_the_warnings() -> None:
    times = {
        ("worst", 256): (FAST[0], (17.0, 17.2)),
        ("in order", 1): FAST,
        ("in order", 256): FAST,
    }
    plain = conclude(_evidence(times))
    virtual = conclude(_evidence(times, warnings=frozenset({"virtual"})))
    assert "see the warnings" not in plain.verdict
    assert "Something other than dies may conflict" in virtual.verdict


def test_rows_have_the_documented_columns() -> None:
    times = {("worst", 256): FAST, ("in order", 1): FAST, ("in order", 256): FAST}
    rows = conclude(_evidence(times)).measures
    assert [(row["queue_depth"], row["degree"]) for row in rows] == [
        (1, 1), (1, 256), (32, 1), (32, 256)
    ]  # fmt: skip
    assert all({"degree", "queue_depth", "read_ms", "gap"} <= row.keys() for row in rows)


def test_without_all_repeats_there_is_no_finding() -> None:
    times = {("worst", 256): ((30.0,), (17.0,)), ("in order", 1): FAST}
    conclusion = conclude(_evidence(times, outcome="interrupted"))
    assert conclusion.findings == {}
    assert conclusion.verdict.startswith("Interrupted before")
    assert len(conclusion.measures) == 4
