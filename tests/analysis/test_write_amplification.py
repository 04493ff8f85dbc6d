"""WAF and spare, from one another and from what writes cost, against published numbers."""

from __future__ import annotations

import pytest

from ssdlab.analysis.write_amplification import (
    alpha_from_waf,
    senses_per_unit,
    spare_from_alpha,
    waf_from_alpha,
    waf_from_costs,
)


@pytest.mark.parametrize(
    ("spare", "waf"),
    [(0.05, 10.172), (0.07, 7.318), (0.10, 5.179), (0.20, 2.693), (0.28, 1.992), (0.40, 1.480)],
)
def test_the_closed_form_is_that_of_the_oldest_victim(spare: float, waf: float) -> None:
    """Numbers of Xiang and Kurkoski's form, as in docs/models/collection.md."""
    assert waf_from_alpha(1 / (1 - spare)) == pytest.approx(waf, abs=6e-4)
    assert spare_from_alpha(alpha_from_waf(waf)) == pytest.approx(spare, rel=1e-3)


def test_spare_is_hidden_over_all_flash() -> None:
    assert spare_from_alpha(1.07) == pytest.approx(0.0654, abs=1e-4)


def test_free_senses_make_waf_the_ratio_of_costs_and_dear_ones_less() -> None:
    free = waf_from_costs(5.0, 1.0, 0.0)
    dear = waf_from_costs(5.0, 1.0, 0.4)
    assert free is not None
    assert dear is not None
    assert free.low == free.value == free.high == pytest.approx(5.0)
    assert dear.low < dear.value < dear.high == pytest.approx(5.0)
    share = senses_per_unit(1 - 1 / dear.low) * 0.4
    assert dear.low + share * (dear.low - 1) == pytest.approx(5.0, rel=1e-6)


def test_writes_that_cost_no_more_than_alone_tell_no_waf() -> None:
    assert waf_from_costs(0.99, 1.0, 0.1) is None


def test_a_full_page_is_sensed_once_for_all_its_units_and_a_lone_unit_once() -> None:
    assert senses_per_unit(1.0) == pytest.approx(0.25)
    assert senses_per_unit(0.5) == pytest.approx((1 - 0.5**4) / 2)
    assert senses_per_unit(0.0) == 1.0
