"""Rows of the table of bench/twins/steady.py: no method may be wrong on a drive of another kind."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any, Final

import pytest

TABLE: Final[dict[str, Any]] = runpy.run_path(
    str(Path(__file__).parents[2] / "bench" / "twins" / "steady.py")
)
TWINS: Final = {name: (twin, block_kib) for name, twin, block_kib in TABLE["TWINS"]}


@pytest.mark.parametrize(
    ("name", "tolerance"),
    [
        ("7 %, 10 choices", 0.05),
        ("7 %, at random", 0.05),
        ("15 %, 3 choices", 0.05),
        ("20 %, oldest", 0.03),
        ("10 %, 8 MiB buffer, capacitors", 0.03),
        ("28 %, slow link", 0.03),
    ],
)
def test_waf_is_near_the_count_and_spare_within_half_a_point_of_what_takes_data(
    name: str, tolerance: float
) -> None:
    twin, block_kib = TWINS[name]
    findings = TABLE["measure_twin"](twin, block_kib)[0].findings
    counted, curve, spare = (findings[key] for key in ("waf", "waf_curve", "hidden_spare"))
    assert "counters" in counted.why
    assert curve.value == pytest.approx(counted.value, rel=tolerance), curve
    assert curve.low <= counted.value <= curve.high
    # If victims are chosen from a few, newer superblocks are collected in the first cycle.
    ways = {"choices": "programs and reads", "at random": "chosen at random"}
    way = next((way for kind, way in ways.items() if kind in name), "first cycle of collection")
    assert way in curve.why
    assert spare.value == pytest.approx(100 * twin.usable_spare, abs=0.5), spare
