"""Which drives a shipped profile speaks for."""

from __future__ import annotations

import pytest

from ssdlab.profiles.models import is_model, stated_value


@pytest.mark.parametrize(
    ("of_profile", "reported", "expected"),
    [
        ("Samsung 970 EVO Plus 500 GB", "Samsung SSD 970 EVO Plus 500GB", True),
        ("Samsung 970 EVO Plus 500 GB", "Samsung SSD 970 EVO Plus 1TB", False),
        ("Samsung 970 EVO Plus 500 GB", "Samsung SSD 970 EVO 500GB", False),
        ("Intel S4500 480 GB", "Samsung SSD 870 EVO 480GB", False),
        ("Samsung 980 PRO 1TB", "WDC WDS 1TB", False),
        ("Samsung 980 PRO 1TB", "Samsung SSD 980 PRO 1TB", True),
        ("Toshiba XG5 KXG50ZNV512G", "KXG50ZNV512G TOSHIBA", True),
        ("Samsung PM883 MZ7LH1T9HMLT", "SAMSUNG MZ7LH1T9HMLT-00005", True),
        ("Samsung PM883 MZ7LH1T9HMLT", "SAMSUNG MZ7LH960HAJR-00005", False),
        ("Intel P4500", "", False),
    ],
)
def test_a_profile_speaks_only_for_its_own_model(
    of_profile: str, reported: str, expected: bool
) -> None:
    assert is_model(of_profile, reported) is expected


def test_a_value_is_stated_only_if_a_data_sheet_or_a_measurement_gives_it() -> None:
    model = "Samsung SSD 970 EVO Plus 500GB"
    stated = stated_value(model, "slc.size")
    assert stated is not None
    assert (stated.value, stated.profile) == ("22 GB", "samsung-970-evo-plus-500")
    assert stated_value(model, "slc.program") is None, "a guess"
    assert stated_value("Samsung SSD 870 EVO 500GB", "slc.size") is None
