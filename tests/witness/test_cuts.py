"""Power cuts of served twins in separate processes. tools/witness_cuts.py makes thousands."""

from __future__ import annotations

from pathlib import Path

import pytest

import witness_cuts


@pytest.mark.parametrize("kind", witness_cuts.HONEST)
def test_an_honest_twin_causes_no_alarm(kind: str, tmp_path: Path) -> None:
    row = witness_cuts.honest(kind, 8, tmp_path / kind, seed=1)
    assert row["alarms"] == 0
    assert row["in_flight"] > 0


@pytest.mark.parametrize("fault", witness_cuts.FAULTS)
def test_the_fault_of_a_lying_twin_is_detected_and_named(fault: str, tmp_path: Path) -> None:
    cuts = 4
    row = witness_cuts.lying(fault, cuts, tmp_path / fault, seed=2)
    assert row["alarms"] == row["right_kind"] == cuts
