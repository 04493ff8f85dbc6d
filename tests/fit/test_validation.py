"""Errors of the shipped twins against the published tables of their drives."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from ssdlab import profiles
from ssdlab.fit.published import (
    SOURCE_PHRASES,
    PublishedValue,
    TableErrors,
    compare_twin,
    stored_errors,
    table_errors,
    twins_of,
)

compared = cache(compare_twin)
"""Runs each experiment once for each twin."""
Fsync = dict[str, dict[str, PublishedValue]]
QUICK = ("aging", "fsync", "stripe")
"""Tables that take seconds; `python bench/twins/held.py` runs all of them."""
TOLERANCE = 0.002
"""Absolute tolerance of an error: a change to the model moves it by more."""


def _stored() -> dict[tuple[str, str], TableErrors]:
    errors = stored_errors()
    return {(name, each.table): each for name, rows in errors.items() for each in rows}


def test_every_shipped_twin_is_compared_with_every_table_of_its_drive() -> None:
    pairs = {(twin, table) for table in SOURCE_PHRASES for twin in twins_of(table)}
    assert set(_stored()) == pairs
    compared_twins = {name for name, _ in pairs}
    assert compared_twins <= set(profiles.names())
    assert "placement-study" not in compared_twins, "an emulated drive is in no table of drives"


@pytest.mark.parametrize(
    ("twin", "table"), [(twin, table) for table in QUICK for twin in twins_of(table)]
)
def test_the_stored_errors_are_up_to_date(twin: str, table: str) -> None:
    stored, current = _stored()[twin, table], table_errors(table, twin, compared(table, twin))
    assert current.mean_error == pytest.approx(stored.mean_error, abs=TOLERANCE)
    assert current.worst_error == pytest.approx(stored.worst_error, abs=TOLERANCE)
    assert current.fitted == stored.fitted


def test_the_ten_twins_age_like_their_drives() -> None:
    ageing = [each for each in _stored().values() if each.table == "aging"]
    assert len(ageing) == 10
    assert np.mean([each.mean_error for each in ageing]) < 0.05
    assert max(each.worst_error for each in ageing) < 0.18
    assert sum(each.fitted for each in ageing) >= 9  # one needed no fit


def test_the_worst_errors_of_the_other_tables_are_within_their_limits() -> None:
    limits = {"fsync": 0.15, "suite": 0.08, "stripe": 0.15, "fragments": 0.15}
    limits["provisioning"] = 0.15
    for (name, table), errors in _stored().items():
        assert errors.worst_error <= limits.get(table, 0.18), (name, table)


@pytest.fixture(scope="module")
def pair() -> Fsync:
    """Both twins' values of the fsync table, by label."""
    return {
        twin: {each.label: each for each in compared("fsync", twin)} for twin in twins_of("fsync")
    }


def test_the_cost_of_fsync_is_within_15_percent_on_both_twins(pair: Fsync) -> None:
    for rows in pair.values():
        without, with_fsync = rows["write, none"], rows["write, fsync"]
        measured = without.measured / with_fsync.measured
        assert without.twin / with_fsync.twin == pytest.approx(measured, rel=0.15)


def test_protected_and_volatile_twin_have_the_ratio_of_their_drives(pair: Fsync) -> None:
    protected, volatile = pair.values()
    for label in protected:
        ratio = protected[label].measured / volatile[label].measured
        assert protected[label].twin / volatile[label].twin == pytest.approx(ratio, rel=0.15)
