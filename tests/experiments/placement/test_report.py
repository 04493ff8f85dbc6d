"""The placement report: the figures that check the stripe formulas."""

from __future__ import annotations

from typing import Any

import pytest

from ssdlab.experiments.placement.report import VIEW
from ssdlab.records import Run

PROBED = ((4, 666.0), (32, 660.0), (64, 366.0), (128, 186.0), (256, 95.0), (512, 112.0))
ROWS: list[dict[str, Any]] = [
    {"workload": "stripe probe", "alignment_kib": float(alignment), "read_mib_per_s": rate}
    for alignment, rate in PROBED
]


@pytest.fixture
def run(make_run: Any) -> Run:
    """A probe of eight dies with chunks of 32 KiB, and nothing else."""
    run: Run = make_run(experiment="placement", parameters={}, measures=ROWS, findings={})
    return run


def test_the_stripe_probe_is_drawn_with_the_predicted_halving(run: Run) -> None:
    (picture,) = VIEW.pictures(run, 1)
    assert "striped: 666 at 4, 112 at " in picture.wide
    # Half as fast at each doubling, from the chunk to where it was slowest.
    assert "halved each time: 666 at 32, 83.2 at " in picture.wide


def test_a_run_without_these_measurements_has_no_pictures(make_run: Any) -> None:
    assert not VIEW.pictures(make_run(experiment="placement", measures=[], findings={}), 1)
