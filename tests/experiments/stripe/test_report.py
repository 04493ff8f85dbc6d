"""The stripe report: its table, its rules, and a run that was interrupted."""

from __future__ import annotations

from typing import Any

import pytest

from ssdlab.experiments.stripe.report import VIEW
from ssdlab.records import Finding, Run

PARAMETERS = {"size_mib": 1024.0, "block_kib": 4, "queue_depth": 32, "reads": 8192, "repeats": 3}
ROWS: list[dict[str, Any]] = [
    {
        "alignment_kib": alignment,
        "read_mib_per_s": rate,
        "read_mib_per_s_all": [rate, rate * 1.02],
        "latency_spread": spread,
    }
    for alignment, rate, spread in zip(
        (4, 32, 64, 480, 512, 1440),
        (900.0, 880.0, 500.0, 60.0, 870.0, 61.0),
        (1.2, 1.2, 1.7, 0.1, 1.2, 0.1),
        strict=True,
    )
]
FINDINGS = {
    "chunk_kib": Finding(32.0, "KiB", 32.0, 32.0, ""),
    "stripe_kib": Finding(480.0, "KiB", 480.0, 480.0, ""),
    "units": Finding(15.0, "", 15.0, 15.0, ""),
    "regular": Finding(True, "", None, None, ""),
}


@pytest.fixture
def run(make_run: Any) -> Run:
    """A drive with fifteen units."""
    run: Run = make_run(
        experiment="stripe", parameters=PARAMETERS, measures=ROWS, findings=FINDINGS
    )
    return run


def test_the_table_has_the_powers_of_two_and_the_stripe(run: Run) -> None:
    assert [row[0] for row in VIEW.table(run).rows] == ["4", "32", "64", "480", "512"]


def test_chunk_and_stripe_are_marked_and_other_multiples_are_not_on_the_line(run: Run) -> None:
    first, second, *_ = VIEW.pictures(run, 1)
    assert "chunk 32 KiB" in first.wide
    assert "stripe 480 KiB" in second.wide
    assert "random reads: 900 at 4, 870 at " in first.wide


def test_a_run_without_findings_or_repeats_is_drawn(make_run: Any) -> None:
    rows = [{"alignment_kib": 4, "read_mib_per_s": 900.0}]
    partial = make_run(experiment="stripe", parameters={}, measures=rows, findings={})
    assert VIEW.table(partial).rows == (("4", "900", "-", "0"),)
    assert VIEW.pictures(partial, 1)[0].wide
    assert "not known" in VIEW.method(partial).done
