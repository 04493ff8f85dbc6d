"""A flash cache on a twin: what placement handles save."""

from __future__ import annotations

import pytest

from ssdlab.fit.validation.cache_writes import cache_waf


def test_handles_keep_small_objects_from_the_large_ones() -> None:
    shared, handles = (cache_waf(0.156, 0.04, 0.5, handles=each) for each in (False, True))
    assert handles == pytest.approx(1.0, abs=0.05)
    assert shared > 1.3


def test_with_handles_waf_grows_with_the_area_of_small_objects() -> None:
    waf = [cache_waf(0.156, area, 0.8, handles=True) for area in (0.04, 0.2, 0.4)]
    assert waf == sorted(waf)
    assert waf[2] > 1.2
