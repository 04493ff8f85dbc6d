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
FROM_RATES: Final = "from the curve"
FROM_KNOWN: Final = "data invalid"


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("7 %, 10 choices", FROM_RATES),
        ("20 %, 3 choices", FROM_RATES),
        ("20 %, oldest", FROM_KNOWN),
        ("10 %, 8 MiB buffer, capacitors", FROM_KNOWN),
        ("28 %, slow link", FROM_KNOWN),
    ],
)
def test_waf_is_within_3_percent_of_the_count_and_spare_within_half_a_point_of_what_takes_data(
    name: str, method: str
) -> None:
    """Known garbage has no known share of valid units if victims are chosen from a few."""
    twin, block_kib = TWINS[name]
    findings = TABLE["measure_twin"](twin, block_kib)[0].findings
    counted, curve, spare = (findings[key] for key in ("waf", "waf_curve", "hidden_spare"))
    assert "counters" in counted.why
    assert curve.value == pytest.approx(counted.value, rel=0.03), curve
    assert curve.low <= counted.value <= curve.high
    assert method in curve.why
    assert spare.value == pytest.approx(100 * twin.usable_spare, abs=0.5), spare
