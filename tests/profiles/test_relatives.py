"""How near the shipped twins are to a drive's model, and what differs between two profiles."""

from __future__ import annotations

import pytest

from ssdlab import profiles
from ssdlab.profiles.difference import differences
from ssdlab.profiles.relatives import DriveFacts, _series, capacity_in, maker_of, relatives_of


@pytest.mark.parametrize(
    ("model", "twin"),
    [
        ("SAMSUNG MZVLB1T0HALR-00000", "samsung-pm981"),
        ("KXG50ZNV512G NVMe TOSHIBA 512GB", "toshiba-xg5"),
        ("Samsung SSD 970 EVO Plus 500GB", "samsung-970-evo-plus-500"),
        ("INTEL SSDSC2BB480G6", "intel-s3510-480"),
    ],
)
def test_the_twin_of_a_model_is_found_by_what_the_drive_reports(model: str, twin: str) -> None:
    best, *others = relatives_of(DriveFacts(model, 1 << 40))
    assert (best.name, best.is_model, best.nearness) == (twin, True, 1.0)
    assert not any(other.is_model for other in others)


def test_the_nearest_relative_has_the_series_and_the_facts_that_agree() -> None:
    drive = DriveFacts("Samsung SSD 970 EVO Plus 2TB", 2_000_398_934_016, "nvme")
    best = relatives_of(drive)[0]
    assert best.name.startswith("samsung-970-evo-plus")
    assert not best.is_model
    agrees = {fact.name: fact.agrees for fact in best.facts}
    assert agrees == {"interface": 1.0, "maker": 1.0, "series": 1.0, "capacity": pytest.approx(0.0)}
    assert 0.5 < best.nearness < 1.0


def test_a_series_with_one_word_more_is_another_series() -> None:
    assert _series("Samsung 970 EVO Plus 500 GB", "Samsung SSD 970 EVO Plus 2TB") == 1.0
    assert _series("Samsung 970 EVO 1TB", "Samsung SSD 970 EVO Plus 2TB") == pytest.approx(2 / 3)
    assert _series("Samsung 970 EVO Plus 500 GB", "Samsung SSD 970 EVO 1TB") == pytest.approx(2 / 3)


def test_the_interface_outweighs_the_maker() -> None:
    sata = relatives_of(DriveFacts("Samsung SSD 870 EVO 2TB", 2_000_000_000_000, "sata"))
    assert sata[0].name == "samsung-pm883"
    assert all(relative.facts[0].agrees == 0.0 for relative in sata[-5:])


def test_what_is_not_known_counts_neither_way() -> None:
    for relative in relatives_of(DriveFacts("Frobnicator 9")):
        assert [fact.agrees for fact in relative.facts if fact.name != "series"] == [None] * 3
        assert relative.nearness == 0.0


def test_makers_and_capacities_are_read_from_models() -> None:
    assert maker_of("WDC WDS100T1X0E-00AFY0") == "WD"
    assert maker_of("MTFDDAK1T9TDC") == "Micron"
    assert maker_of("mzx") is None
    assert capacity_in("Samsung SSD 970 EVO Plus 1TB") == 10**12
    assert capacity_in("Samsung 840 Pro 512 GB") == 512 * 10**9
    assert capacity_in("CT1000MX500SSD1") is None


def test_keys_that_differ_come_by_importance_and_equal_quantities_are_equal() -> None:
    first = (
        '[drive]\nmodel = "A"\n[flash]\nread = ["10 us", "20 us"]\nplanes = 2\n'
        '[ftl]\nchunk = "1 MiB"\n'
    )
    second = (
        '[ftl]\nchunk = "1024 KiB"\nspare = 0.1\n[flash]\nplanes = 4\nread = { value = "30 us", '
        'source = "x", kind = "guessed" }\n[drive]\nmodel = "B"\n'
    )
    rows = differences(first, second)
    assert [row.key for row in rows] == ["drive.model", "ftl.spare", "flash.planes", "flash.read"]
    assert [row.ratio for row in rows] == [None, None, 2.0, pytest.approx(2.0)]
    assert (rows[1].first, rows[1].second) == (None, 0.1)
    assert rows[3].second_kind == "guessed"


def test_a_profile_does_not_differ_from_itself() -> None:
    for name in profiles.names():
        assert differences(profiles.load(name), profiles.load(name)) == []
