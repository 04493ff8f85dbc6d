"""Published write amplification of real drives, predicted from one number: their spare."""

from __future__ import annotations

import pytest

from ssdlab.errors import UsageError
from ssdlab.fit.validation import write_amplification
from ssdlab.fit.validation.comparison import Comparison, compare, select, summaries
from ssdlab.fit.validation.figure import Figure
from ssdlab.fit.validation.tables import TABLES, Row, shipped_rows


def _row(name: str) -> Row:
    return next(row for row in shipped_rows() if row.name == name)


def test_a_drives_curve_is_predicted_from_its_spare() -> None:
    """Each block once per pass: the saw of a Samsung drive, of which only the mean was fitted."""
    figures = {each.label: each for each in _row("samsung-fdp-7680").compare()}
    curve = [each for label, each in figures.items() if "twentieth" in label]
    assert len(curve) == 20
    assert sum(abs(each.error) < 0.05 for each in curve) >= 17
    assert abs(figures["collection begins, drive writes"].error) < 0.02
    assert {each.role for each in curve} == {"predicted"}
    assert figures["WAF, mean of a pass"].role == "fitted"


def test_a_row_without_a_spare_gets_the_one_of_its_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_amplification, "CAPACITY", 1 << 30)
    mean = float(write_amplification.permutation_waf(0.2, 2)[1].mean())
    found = write_amplification.spare_for(mean)
    assert found == pytest.approx(0.2, rel=0.03), "spares of equal superblocks are equal"
    assert write_amplification.permutation_waf(found, 2)[1].mean() == pytest.approx(mean, rel=0.01)


def test_uniform_waf_is_predicted_from_the_flash_of_a_drive() -> None:
    (figure,) = _row("samsung-pm9a3-960").compare()
    assert abs(figure.error) < 0.05


def test_each_drive_has_a_source() -> None:
    for row in shipped_rows():
        if row.table == write_amplification.TABLE:
            assert row.drive
            assert row.source


def test_figures_are_summed_up_by_role() -> None:
    figures = (Figure("a", 2.0, 1.0, "predicted"), Figure("b", 2.0, 2.2, "predicted"))
    other = (Figure("c", 1.0, 1.0, "fitted"),)
    total = summaries([Comparison("x", "X", "t", figures), Comparison("y", "Y", "t", other)])
    assert [(each.role, each.drives, each.figures) for each in total] == [
        ("fitted", 1, 1),
        ("predicted", 1, 2),
    ]
    assert total[1].mean_error == pytest.approx(0.3)
    assert total[1].worst_error == 0.5


def test_a_selection_names_what_exists() -> None:
    [item] = select(["toshiba-xg5"], [])
    assert (item.row.table, item.row.name) == ("aging", "toshiba-xg5")
    assert [item.row.name for item in select([], ["stripe"])] == ["samsung-980-pro", "wd-sn850"]
    assert {item.row.table for item in select([], [])} == set(TABLES)
    with pytest.raises(UsageError, match="no published table contains 'nothing'"):
        select(["nothing"], [])
    with pytest.raises(UsageError, match=r"--table is 'nothing'; it must be one of aging"):
        select([], ["nothing"])


def test_a_twin_fitted_to_a_table_says_so() -> None:
    comparison = compare(*select(["intel-s3510-480"], ["aging"]))
    assert {each.role for each in comparison.figures} == {"fitted"}
    assert comparison.command == "ssdlab twin validate intel-s3510-480 --table aging"
