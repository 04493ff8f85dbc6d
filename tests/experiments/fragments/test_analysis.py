"""What is concluded from times of a file in pieces: slowdowns, causes, the host's share."""

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
LEVEL: Repeats = ((5.0, 5.1), (4.0, 4.1))


def _evidence(times: Mapping[tuple[str, int], Repeats], **more: Any) -> Evidence:
    """A real drive's run that took `times`, by phase and degree."""
    recording = Recording()
    for (phase, degree), both in times.items():
        for depth, repeats in zip((1, 32), both, strict=True):
            for number, each in enumerate(repeats):
                recording.add(_row(phase, degree, (depth, number), each))
    return Evidence(recording.tables(), PLAN.parameters(), **more)


def _row(phase: str, degree: int, place: tuple[int, int], milliseconds: float) -> StepRow:
    depth, repeat = place
    return StepRow(
        {
            "phase": phase,
            "stage": 9 if phase == "memory" else 1,
            "repeat": repeat,
            "case": f"depth {depth}",
            "value": degree,
            "queue_depth": depth,
            "start_ns": 0,
            "end_ns": int(milliseconds * 1e6),
            "requests": max(32, degree),
            "bytes": 8 * MIB,
        }
    )


def test_what_the_same_commands_take_in_order_too_is_splitting() -> None:
    slow: Repeats = ((30.0, 31.0), (4.0, 4.1))
    times = {("worst", 256): slow, ("in order", 1): LEVEL, ("in order", 256): slow}
    conclusion = conclude(_evidence(times))
    found = conclusion.findings
    assert found["cause"].value == found["cause_depth_1"].value == "request splitting"
    assert found["cause_depth_32"].value == "none"
    slowdown = found["slowdown_depth_1"]
    assert slowdown.value == pytest.approx(30.5 / 5.05)
    assert slowdown.low is not None
    assert slowdown.high is not None
    assert slowdown.low < 30.5 / 5.05 < slowdown.high
    assert "request splitting" in conclusion.verdict


def test_what_they_do_not_take_in_order_is_conflicts() -> None:
    times = {
        ("worst", 256): ((30.0, 31.0), (17.0, 17.2)),
        ("in order", 1): LEVEL,
        ("in order", 256): ((30.0, 31.0), (4.0, 4.1)),
    }
    found = conclude(_evidence(times)).findings
    assert found["cause"].value == found["cause_depth_32"].value == "die conflicts"
    assert found["cause_depth_1"].value == "request splitting"


def test_the_larger_part_names_the_cause() -> None:
    for commands, cause in ((9.0, "die conflicts"), (15.0, "request splitting")):
        times = {
            ("worst", 256): (LEVEL[0], (20.0, 20.1)),
            ("in order", 1): LEVEL,
            ("in order", 256): (LEVEL[0], (commands, commands)),
        }
        assert conclude(_evidence(times)).findings["cause"].value == cause


def test_a_level_drive_has_no_cause_and_no_share() -> None:
    times = {(phase, degree): LEVEL for phase in ("worst", "in order") for degree in (1, 256)}
    del times["worst", 1]
    conclusion = conclude(_evidence(times))
    assert conclusion.findings["cause"].value == "none"
    assert not [name for name in conclusion.findings if name.startswith("host_share")]
    assert conclusion.verdict == "A file in 256 pieces is read as fast as one in a single piece."


def test_repeats_that_scatter_too_much_name_no_cause() -> None:
    times = {
        ("worst", 256): ((4.0, 30.0), (4.0, 30.0)),
        ("in order", 1): LEVEL,
        ("in order", 256): LEVEL,
    }
    assert conclude(_evidence(times)).findings["cause"].value == "none"


def test_conflicts_must_stand_out_of_the_scatter_of_the_same_commands() -> None:
    times = {
        ("worst", 256): (LEVEL[0], (20.0, 20.1)),
        ("in order", 1): LEVEL,
        ("in order", 256): (LEVEL[0], (3.0, 12.0)),
    }
    assert conclude(_evidence(times)).findings["cause"].value == "request splitting"


@pytest.mark.parametrize(
    ("memory", "share", "word"), [(12.0, 40, "10 of"), (99.0, 100, "97 of"), (1.0, 0, "nothing")]
)
def test_the_hosts_share_is_what_a_drive_in_memory_takes_more(
    memory: float, share: float, word: str
) -> None:
    slow: Repeats = ((30.0, 30.0), (4.0, 4.0))
    level: Repeats = ((5.0, 5.0), (4.0, 4.0))
    times = {
        ("worst", 256): slow,
        ("in order", 1): level,
        ("in order", 256): slow,
        ("memory", 1): ((2.0, 2.0), (1.0, 1.0)),
        ("memory", 256): ((memory, memory), (1.0, 1.0)),
    }
    conclusion = conclude(_evidence(times))
    found = conclusion.findings["host_share_depth_1"]
    assert found.value == share
    assert word in found.why
    assert [row["host_ms"] for row in conclusion.measures if row["queue_depth"] == 1] == [2, memory]


def test_a_drive_in_memory_is_slowed_by_splitting_alone() -> None:
    slow: Repeats = ((9.0, 9.2), (4.0, 4.1))
    level: Repeats = ((5.0, 5.1), (4.0, 4.1))
    times = {
        ("worst", 256): slow,
        ("in order", 1): level,
        ("in order", 256): slow,
        ("memory", 1): level,
        ("memory", 256): slow,
    }
    found = conclude(_evidence(times)).findings
    assert found["cause"].value == "request splitting"
    assert found["host_share_depth_1"].value == pytest.approx(100)


def test_conflicts_behind_a_virtual_disk_are_doubted() -> None:
    times = {
        ("worst", 256): (LEVEL[0], (17.0, 17.2)),
        ("in order", 1): LEVEL,
        ("in order", 256): LEVEL,
    }
    plain = conclude(_evidence(times))
    doubtful = conclude(_evidence(times, warnings=frozenset({"virtual"})))
    assert "doubtful" not in plain.verdict
    assert "Whether it is dies that conflict is doubtful" in doubtful.verdict


def test_rows_have_what_scripts_rest_on() -> None:
    times = {("worst", 256): LEVEL, ("in order", 1): LEVEL, ("in order", 256): LEVEL}
    rows = conclude(_evidence(times)).measures
    assert [(row["queue_depth"], row["degree"]) for row in rows] == [
        (1, 1), (1, 256), (32, 1), (32, 256)
    ]  # fmt: skip
    assert all({"degree", "queue_depth", "read_ms", "gap"} <= row.keys() for row in rows)


def test_without_all_repeats_there_is_no_finding() -> None:
    times = {("worst", 256): ((30.0,), (17.0,)), ("in order", 1): LEVEL}
    conclusion = conclude(_evidence(times, outcome="interrupted"))
    assert conclusion.findings == {}
    assert conclusion.verdict.startswith("Interrupted before")
    assert len(conclusion.measures) == 4
