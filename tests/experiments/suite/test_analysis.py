"""Mean and error as in a published table, and when zeros count as faster."""

from __future__ import annotations

from typing import Any

import pytest

from ssdlab.experiments.suite.analysis import content_sensitive
from ssdlab.stats.spread import mean_deviation

# Intel S3510 120 GB, MB/s: three runs; then mean, error and per cent as published.
PUBLISHED = {
    "AS SSD read, sequential": ([425.66, 421.39, 421.62], (422.89, 1.85, 0.44)),
    "AS SSD read, 4 KiB": ([22.08, 24.43, 22.60], (23.04, 0.93, 4.03)),
    "AS SSD read, 4 KiB x 64": ([253.03, 254.14, 254.14], (253.77, 0.49, 0.19)),
    "AS SSD write, sequential": ([141.25, 141.03, 141.53], (141.27, 0.17, 0.12)),
    "AS SSD write, 4 KiB": ([71.71, 71.39, 68.89], (70.66, 1.18, 1.67)),
    "AS SSD write, 4 KiB x 64": ([104.25, 104.47, 104.03], (104.25, 0.15, 0.14)),
    "buffered read": ([358.71, 343.70, 367.84], (356.75, 8.70, 2.44)),
}
DSYNC = [139.80, 138.78, 138.95]
DSYNC_PRINTED = (139.18, 0.71, 0.29)
"""The row whose printed error is a misprint."""


@pytest.mark.parametrize("row", PUBLISHED)
def test_mean_error_and_per_cent_reproduce_the_published_table(row: str) -> None:
    runs, printed = PUBLISHED[row]
    assert mean_deviation(runs) == pytest.approx(printed, abs=0.0051)  # two digits


def test_the_published_error_of_dsync_writes_is_a_misprint_of_042() -> None:
    spread, printed = mean_deviation(DSYNC), DSYNC_PRINTED
    assert spread.mean == pytest.approx(printed[0], abs=0.0051)
    assert spread.error == pytest.approx(0.42, abs=0.0051)
    assert printed[1] - spread.error > 0.25
    assert spread.percent == pytest.approx(0.30, abs=0.0051)
    # Its per cent (truncated, not rounded) contradicts 0.71: 0.29 % of the mean is 0.40.
    assert printed[2] / 100 * printed[0] == pytest.approx(spread.error, abs=0.02)


def _rows(random: list[float], zeros: list[float]) -> list[dict[str, Any]]:
    both = {"sequential": random, "sequential zeros": zeros}
    return [{"test": name, "op": "write", "mib_per_s_all": each} for name, each in both.items()]


@pytest.mark.parametrize(
    ("random", "zeros", "sensitive"),
    [
        ([100.0, 100.0, 100.0], [200.0, 200.0, 200.0], True),  # a twin repeats exactly
        ([100.0, 100.0, 100.0], [109.0, 109.0, 109.0], False),
        ([100.0, 102.0, 98.0], [150.0, 153.0, 149.0], True),
        ([60.0, 150.0, 100.0], [90.0, 230.0, 140.0], False),  # noise
        ([200.0, 200.0, 200.0], [100.0, 100.0, 100.0], False),  # slower is not faster
    ],
)
def test_zeros_count_if_a_tenth_faster_and_significant(
    random: list[float], zeros: list[float], sensitive: bool
) -> None:
    finding = content_sensitive(_rows(random, zeros), 3)
    assert finding is not None
    assert finding.value is sensitive


def test_without_all_runs_of_a_pair_there_is_no_finding() -> None:
    assert content_sensitive(_rows([100.0] * 3, [200.0] * 2), 3) is None
    assert content_sensitive(_rows([100.0] * 3, [200.0] * 3)[1:], 3) is None
    assert content_sensitive([], 3) is None
