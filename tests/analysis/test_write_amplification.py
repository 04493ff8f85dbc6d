"""WAF from spare and spare from WAF, against published numbers."""

from __future__ import annotations

import pytest

from ssdlab.analysis.write_amplification import (
    alpha_from_waf,
    spare_from_alpha,
    waf_from_alpha,
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


@pytest.mark.parametrize("alpha", [1.01, 1.07, 1.6, 3.0])
def test_alpha_follows_from_waf(alpha: float) -> None:
    assert alpha_from_waf(waf_from_alpha(alpha)) == pytest.approx(alpha)
