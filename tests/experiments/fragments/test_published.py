"""Fragments on two published drives: the twins' times are within 15 % of each printed row.

FAST '24, "We Ain't Afraid of No File Fragmentation": 8 MiB in pieces 8 MiB apart, ms; digitised.
"""

from __future__ import annotations

import pytest

from ssdlab.analysis.evidence import Conclusion, Evidence
from ssdlab.experiments.fragments.analysis import conclude
from ssdlab.experiments.fragments.measure import Plan, measure
from ssdlab.runner.open_target import TargetOptions, open_for_run
from ssdlab.runner.session import RunSession
from ssdlab.target import Twin

PUBLISHED = {
    ("samsung-980-pro", 1): [7.5, 7.3, 7.5, 7.9, 7.6, 8.9, 12.5, 20.3, 36.4],
    ("samsung-980-pro", 32): [4.1, 4.3, 4.8, 4.2, 3.9, 3.9, 4.5, 10.4, 17.1],
    ("wd-sn850", 1): [7.55, 7.9, 7.9, 7.9, 8.35, 8.5, 10.7, 16.7, 28.6],
    ("wd-sn850", 32): [3.9, 3.9, 3.9, 3.9, 3.8, 3.8, 4.0, 5.1, 7.6],
}
"""ms by drive and depth, for 1, 2, 4 ... 256 pieces; the study's depth was 1023, not 32."""


@pytest.fixture(scope="module", params=["samsung-980-pro", "wd-sn850"])
def measured(request: pytest.FixtureRequest) -> tuple[str, Conclusion]:
    """A drive and the result of its twin, at full size."""
    plan = Plan(repeats=5)
    with open_for_run(TargetOptions(Twin(request.param), plan.size)) as opened:
        session = RunSession(opened)
        session.run_plan(measure, plan)
    evidence = Evidence(session.recording.tables(), plan.parameters(), virtual=True)
    return request.param, conclude(evidence)


def _row(conclusion: Conclusion, gap: str, depth: int) -> list[float]:
    return [
        row["read_ms"]
        for row in conclusion.measures
        if (row["gap"], row["queue_depth"]) == (gap, depth)
    ]


@pytest.mark.parametrize("depth", [1, 32])
def test_each_published_row_is_reproduced_within_15_percent(
    measured: tuple[str, Conclusion], depth: int
) -> None:
    name, conclusion = measured
    assert _row(conclusion, "worst", depth) == pytest.approx(PUBLISHED[name, depth], rel=0.15)


def test_with_random_gaps_a_read_at_depth_32_is_as_fast_as_of_one_piece(
    measured: tuple[str, Conclusion],
) -> None:
    row = _row(measured[1], "random", 32)
    assert row == pytest.approx([row[0]] * 9, rel=0.05)


def test_the_cause_is_splitting_at_depth_1_and_conflicts_at_depth_32(
    measured: tuple[str, Conclusion],
) -> None:
    findings = measured[1].findings
    assert findings["cause_depth_1"].value == "request splitting"
    assert findings["cause_depth_32"].value == "die conflicts"
    assert findings["cause"].value == "die conflicts"
