"""Analysis of placement, on hand-made records."""

from __future__ import annotations

from typing import Any

import pytest

from ssdlab.analysis.evidence import Evidence
from ssdlab.experiments.placement.analysis import conclude
from ssdlab.records import Recording, StepRow

MIB = 1 << 20
SECOND = 10**9


def _evidence(speeds: dict[str, float], waf: dict[str, float] | None = None) -> Evidence:
    """Reads of 8 MiB at these speeds in MiB/s, and the WAF, by case."""
    recording = Recording()
    for case, speed in speeds.items():
        row: dict[str, Any] = {
            "phase": "read",
            "stage": 0,
            "repeat": 0,
            "case": case,
            "value": 1e6,
            "start_ns": 0,
            "end_ns": int(8 / speed * SECOND) - SECOND,
            "bytes": 8 * MIB,
        }
        recording.add(StepRow(row, {}, {}, {}))
    for case, ratio in (waf or {}).items():
        recording.observe("placement_waf", ratio, f"fresh|{case}")
    return Evidence(recording.tables(), {"states": ["fresh"]}, "interrupted")


def test_speeds_include_host_time_and_are_relative_to_the_contiguous_file() -> None:
    cases = {"striped: contiguous": 4.0, "striped: append worst": 1.0}
    rows = conclude(_evidence(cases, {"striped: append worst": 1.5})).measures
    by_workload = {row["workload"]: row for row in rows}
    assert by_workload["append worst"]["read_mib_per_s"] == pytest.approx(1.0)
    assert by_workload["append worst"]["of_contiguous"] == pytest.approx(0.25)
    assert by_workload["append worst"]["waf"] == 1.5
    assert by_workload["contiguous"]["waf"] is None


def test_an_application_is_compared_with_its_own_files_in_order() -> None:
    cases = {"striped: contiguous": 4.0, "striped: sqlite": 1.0, "striped: sqlite, in order": 2.0}
    rows = conclude(_evidence(cases)).measures
    [row] = [row for row in rows if row["workload"] == "sqlite"]
    assert row["of_contiguous"] == pytest.approx(0.5)


def test_the_best_placement_has_the_highest_speed_relative_to_its_contiguous_file() -> None:
    cases = {
        "striped: contiguous": 4.0,
        "striped: append worst": 1.0,
        "hinted: contiguous": 2.0,
        "hinted: append worst": 1.8,
        "inferred: contiguous": 4.0,
        "inferred: append worst": 2.0,
    }
    conclusion = conclude(_evidence(cases))
    assert conclusion.findings["best_placement"].value == "hinted"
    assert conclusion.findings["best_without_hints"].value == "inferred"
    assert "90% of the speed of contiguous ones" in conclusion.verdict


def test_with_one_placement_there_is_no_best() -> None:
    conclusion = conclude(_evidence({"striped: contiguous": 4.0, "striped: append worst": 1.0}))
    assert conclusion.findings == {}
    assert conclusion.verdict.startswith("Interrupted before")
