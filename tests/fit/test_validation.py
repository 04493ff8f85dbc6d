"""The shipped twins against the published tables of their drives, and the errors stored of them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from ssdlab import profiles
from ssdlab.fit.published.figure import Figure
from ssdlab.fit.published.rows import PHRASES, figures, twins_of
from ssdlab.fit.validation import Held, held_against, summed_up

computed = cache(figures)
"""Each twin does each experiment once."""
Fsync = dict[str, dict[str, Figure]]
QUICK = ("aging", "fsync", "stripe")
"""Tables whose figures take seconds; `python bench/twins/held.py` has all of them."""
TOLERANCE = 0.002
"""Of an error: a model that changed moves it by more."""


def _stored() -> dict[tuple[str, str], Held]:
    held = held_against()
    return {(name, each.table): each for name, rows in held.items() for each in rows}


def test_every_shipped_twin_is_held_against_every_table_that_its_drive_is_in() -> None:
    there = {(twin, table) for table in PHRASES for twin in twins_of(table)}
    assert set(_stored()) == there
    # A study's emulated drive stands in no table of drives.
    assert {name for name, _ in there} == set(profiles.names()) - {"placement-study"}


@pytest.mark.parametrize(
    ("twin", "table"), [(twin, table) for table in QUICK for twin in twins_of(table)]
)
def test_a_stored_error_is_what_the_twin_gives(twin: str, table: str) -> None:
    stored, found = _stored()[twin, table], summed_up(table, twin, computed(table, twin))
    assert found.mean_error == pytest.approx(stored.mean_error, abs=TOLERANCE)
    assert found.worst_error == pytest.approx(stored.worst_error, abs=TOLERANCE)
    assert found.fitted == stored.fitted


def test_the_ten_twins_age_as_their_drives_did() -> None:
    held = [each for each in _stored().values() if each.table == "aging"]
    assert len(held) == 10
    assert np.mean([each.mean_error for each in held]) < 0.05
    assert max(each.worst_error for each in held) < 0.18
    assert sum(each.fitted for each in held) >= 9  # one was right as it was guessed


def test_no_figure_of_the_other_tables_is_off_by_more_than_is_claimed() -> None:
    claimed = {"fsync": 0.15, "suite": 0.08, "stripe": 0.15, "fragments": 0.15}
    claimed["provisioning"] = 0.15
    for (name, table), held in _stored().items():
        assert held.worst_error <= claimed.get(table, 0.18), (name, table)


@pytest.fixture(scope="module")
def pair() -> Fsync:
    """Both twins' rows of the fsync table, by what they are."""
    return {
        twin: {each.what: each for each in computed("fsync", twin)} for twin in twins_of("fsync")
    }


def test_the_price_of_fsync_is_within_15_percent_on_both_twins(pair: Fsync) -> None:
    for rows in pair.values():
        free, kept = rows["write, none"], rows["write, fsync"]
        assert free.twin / kept.twin == pytest.approx(free.measured / kept.measured, rel=0.15)


def test_the_protected_twin_is_to_the_volatile_one_as_the_drives_were(pair: Fsync) -> None:
    protected, volatile = pair.values()
    for what in protected:
        ratio = protected[what].measured / volatile[what].measured
        assert protected[what].twin / volatile[what].twin == pytest.approx(ratio, rel=0.15)
