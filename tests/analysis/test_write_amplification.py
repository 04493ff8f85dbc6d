"""WAF from spare, spare from WAF, and WAF from write costs, against published numbers."""

from __future__ import annotations

import pytest

from ssdlab.analysis.write_amplification import (
    senses_per_unit,
    spare_from_alpha,
    waf_from_alpha,
    waf_from_costs,
)


@pytest.mark.parametrize(
    ("spare", "waf"),
    [(0.05, 10.172), (0.07, 7.318), (0.10, 5.179), (0.20, 2.693), (0.28, 1.992), (0.40, 1.480)],
)
def test_the_closed_form_has_the_published_values(spare: float, waf: float) -> None:
    """Values of Xiang and Kurkoski, as in docs/models/collection.md."""
    assert waf_from_alpha(1 / (1 - spare)) == pytest.approx(waf, abs=6e-4)


def test_spare_is_hidden_over_all_flash() -> None:
    assert spare_from_alpha(1.07) == pytest.approx(0.0654, abs=1e-4)


def test_waf_is_the_ratio_of_costs_if_senses_are_free_and_lower_otherwise() -> None:
    free = waf_from_costs(5.0, 1.0, 0.0)
    costly = waf_from_costs(5.0, 1.0, 0.4)
    assert free is not None
    assert costly is not None
    assert free.low == free.value == free.high == pytest.approx(5.0)
    assert costly.low < costly.value < costly.high == pytest.approx(5.0)
    share = senses_per_unit(1 - 1 / costly.low) * 0.4
    assert costly.low + share * (costly.low - 1) == pytest.approx(5.0, rel=1e-6)


def test_steady_writes_without_extra_cost_have_no_waf() -> None:
    assert waf_from_costs(0.99, 1.0, 0.1) is None


def test_one_sense_reads_all_valid_units_of_a_page() -> None:
    assert senses_per_unit(1.0) == pytest.approx(0.25)
    assert senses_per_unit(0.5) == pytest.approx((1 - 0.5**4) / 2)
    assert senses_per_unit(0.0) == 1.0


def test_with_one_unit_for_each_read_the_lower_bound_counts_a_read_for_each_relocation() -> None:
    dear, cheap = (waf_from_costs(10.0, 1.0, 0.8, units) for units in (1, 4))
    assert dear is not None
    assert cheap is not None
    assert dear.low == pytest.approx((10 + 0.8) / (1 + 0.8))
    assert dear.low < cheap.low < dear.high == cheap.high == 10.0
