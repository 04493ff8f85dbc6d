"""Comparison of two runs: matching of rows, ratios and their intervals."""

from __future__ import annotations

import math

import pytest

from ssdlab.analysis.contrast import compare_findings, compare_measures
from ssdlab.experiments.registry import EXPERIMENTS, cells_of
from ssdlab.records import Finding


def _finding(value: object, low: float | None = None, high: float | None = None) -> Finding:
    return Finding(value, "x", low, high, "")  # type: ignore[arg-type]


def _row(seconds: list[float], written: float) -> dict[str, object]:
    return {"written_mib": written, "read_s": min(seconds), "read_s_all": seconds}


def test_half_widths_of_two_findings_are_added_in_quadrature() -> None:
    first, second = _finding(100.0, 100 / 1.03, 103.0), _finding(200.0, 200 / 1.04, 208.0)
    [row] = compare_findings({"iops": first}, {"iops": second})
    assert row.ratio == pytest.approx(2.0)
    width = math.hypot(math.log(1.03), math.log(1.04))
    assert row.low == pytest.approx(2 * math.exp(-width))
    assert row.high == pytest.approx(2 * math.exp(width))


def test_truth_values_and_missing_findings_have_no_ratio() -> None:
    first = {"steady": _finding(value=True), "iops": _finding(5.0), "waf": _finding(None)}
    rows = compare_findings(first, {"steady": _finding(value=False), "waf": _finding(2.0)})
    assert [(row.name, row.first, row.second, row.ratio) for row in rows] == [
        ("steady", True, False, None),
        ("iops", 5.0, None, None),
        ("waf", None, 2.0, None),
    ]


def test_a_ratio_has_an_interval_only_if_both_findings_have_one() -> None:
    [row] = compare_findings({"iops": _finding(5.0, 4.0, 6.0)}, {"iops": _finding(10.0)})
    assert (row.ratio, row.low, row.high) == (2.0, None, None)


def test_rows_of_the_same_case_are_compared_with_their_repeats() -> None:
    first = [_row([1.0, 1.02, 1.01], 0.0), _row([2.0, 2.0, 2.0], 50.0)]
    second = [_row([2.0, 2.04, 2.02], 0.0), _row([3.0, 3.0, 3.0], 60.0)]
    [row] = compare_measures(EXPERIMENTS["aging"].columns, first, second)
    assert row.ratio == pytest.approx(2.0)
    assert row.low is not None
    assert row.high is not None
    assert row.low < 2.0 < row.high < 2.1


def test_the_numbers_of_a_case_say_what_they_are() -> None:
    aging = EXPERIMENTS["aging"].columns
    (row,) = compare_measures(aging, [_row([1.0], 0)], [_row([2.0], 0)])
    assert row.case == "0 MiB written"
    columns = [found for each in EXPERIMENTS.values() if (found := each.columns)]
    named = {name for each in columns for name in each.case if name not in each.texts}
    assert named <= {"mode", "test", "op", "job"}  # text, which needs no explanation


def test_access_times_have_their_own_repeats_and_unit() -> None:
    row = {"test": "access time", "op": "read", "unit": "us", "mean": 70.0}
    [cell] = cells_of("suite", [{**row, "us_all": [69.0, 71.0], "mib_per_s_all": [9.0, 9.0]}])
    assert (cell.label, cell.repeats, cell.unit) == ("access time, read", (69.0, 71.0), "us")


def test_an_experiment_without_cases_has_no_cells() -> None:
    assert cells_of("steady", [{"round": 1, "iops": 5.0}]) == []
