"""Published tables, and the effect of spare and ageing on a scaled-down 840 Pro."""

from __future__ import annotations

import pytest

from ssdlab import profiles
from ssdlab.fit.published import Past, PublishedValue, SteadyRate, compare_twin, steady_rate

SCALE = 1 / 256
"""2 GB. With so few superblocks, garbage collection costs more than on the full drive."""


def test_an_error_is_relative_to_what_was_measured() -> None:
    assert PublishedValue("read", 40.0, 50.0).error == pytest.approx(0.25)
    assert PublishedValue("read", 50.0, 40.0).error == pytest.approx(-0.20)


def test_a_drive_that_is_not_in_the_table_is_refused() -> None:
    with pytest.raises(KeyError, match="fsync has no toshiba-xg5"):
        compare_twin("fsync", "toshiba-xg5")


@pytest.fixture(scope="module")
def states() -> dict[tuple[int, Past], SteadyRate]:
    """Rates of the four states; two of them were published."""
    text = profiles.load("samsung-840-pro")
    pasts: tuple[Past, ...] = ("erased", "aged")
    rates: dict[tuple[int, Past], SteadyRate] = {}
    for visible in (512, 400):
        for past in pasts:
            rates[visible, past] = steady_rate(text, visible, past, SCALE)
    return rates


def test_erasing_gains_more_than_additional_spare(
    states: dict[tuple[int, Past], SteadyRate],
) -> None:
    slow = states[512, "aged"].per_s
    assert 8 < states[400, "erased"].per_s / slow < 14
    assert states[512, "erased"].per_s / slow > 5
    assert 2.5 < states[400, "aged"].per_s / slow < 6


def test_the_rate_is_inversely_proportional_to_write_amplification(
    states: dict[tuple[int, Past], SteadyRate],
) -> None:
    programmed = [each.per_s * each.waf for each in states.values()]
    assert programmed == pytest.approx([max(programmed)] * 4, rel=0.15)
    assert states[400, "erased"].waf < 1.05
