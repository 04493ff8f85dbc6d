"""Twins beside published tables: what a table has, and spare and past on a small 840 Pro."""

from __future__ import annotations

import pytest

from ssdlab import profiles
from ssdlab.fit.published.figure import Figure
from ssdlab.fit.published.provisioning import Lasting, Past, lasting
from ssdlab.fit.published.rows import figures

SHARE = 1 / 256
"""Of the drive: 2 GB. Its few superblocks make collection dearer than on the whole one."""


def test_an_error_is_relative_to_what_was_measured() -> None:
    assert Figure("read", 40.0, 50.0).error == pytest.approx(0.25)
    assert Figure("read", 50.0, 40.0).error == pytest.approx(-0.20)


def test_a_drive_that_a_table_does_not_have_is_refused() -> None:
    with pytest.raises(KeyError, match="fsync has no toshiba-xg5"):
        figures("fsync", "toshiba-xg5")


@pytest.fixture(scope="module")
def states() -> dict[tuple[int, Past], Lasting]:
    """The four states, two of which were measured."""
    text = profiles.load("samsung-840-pro")
    pasts: tuple[Past, ...] = ("erased", "aged")
    found: dict[tuple[int, Past], Lasting] = {}
    for visible in (512, 400):
        for past in pasts:
            found[visible, past] = lasting(text, visible, past, SHARE)
    return found


def test_most_of_what_the_erased_drive_gains_is_its_past(
    states: dict[tuple[int, Past], Lasting],
) -> None:
    slow = states[512, "aged"].per_s
    assert 8 < states[400, "erased"].per_s / slow < 14
    assert states[512, "erased"].per_s / slow > 5
    assert 2.5 < states[400, "aged"].per_s / slow < 6


def test_speed_goes_with_one_over_the_write_amplification(
    states: dict[tuple[int, Past], Lasting],
) -> None:
    programmed = [each.per_s * each.amplification for each in states.values()]
    assert programmed == pytest.approx([max(programmed)] * 4, rel=0.15)
    assert states[400, "erased"].amplification < 1.05
