"""What is concluded about placements, from records that were made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from ssdlab.analysis.evidence import Evidence
from ssdlab.experiments.placement.analysis import conclude
from ssdlab.records import Recording, StepRow

MIB = 1 << 20
SECOND = 10**9


def _evidence(speeds: dict[str, float], waf: dict[str, float] | None = None) -> Evidence:
    """Reads of 8 MiB at so many MiB/s, by case; and what flash writes a host write were."""
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


def test_a_row_has_the_speed_with_the_hosts_time_and_its_part_of_a_whole_file() -> None:
    cases = {"striped: contiguous": 4.0, "striped: append worst": 1.0}
    rows = conclude(_evidence(cases, {"striped: append worst": 1.5})).measures
    found = {row["workload"]: row for row in rows}
    assert found["append worst"]["read_mib_per_s"] == pytest.approx(1.0)
    assert found["append worst"]["of_contiguous"] == pytest.approx(0.25)
    assert found["append worst"]["waf"] == 1.5
    assert found["contiguous"]["waf"] is None


def test_an_application_is_held_against_its_own_files_in_order() -> None:
    cases = {"striped: contiguous": 4.0, "striped: sqlite": 1.0, "striped: sqlite, in order": 2.0}
    rows = conclude(_evidence(cases)).measures
    [row] = [row for row in rows if row["workload"] == "sqlite"]
    assert row["of_contiguous"] == pytest.approx(0.5)


def test_the_best_reads_files_in_pieces_fastest_by_its_own_measure_of_a_whole_one() -> None:
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
    assert "90 % of whole ones" in conclusion.verdict


def test_one_placement_alone_is_not_the_best_of_any() -> None:
    conclusion = conclude(_evidence({"striped: contiguous": 4.0, "striped: append worst": 1.0}))
    assert conclusion.findings == {}
    assert conclusion.verdict.startswith("Interrupted before")
