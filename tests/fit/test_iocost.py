"""iocost's six numbers: measured on a twin, and fitted to."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from ssdlab.analysis.cells import Cell
from ssdlab.errors import UsageError
from ssdlab.fit.checks import FITTED, HELD_OUT, NOT_FITTED
from ssdlab.fit.direct_estimates import enlarge_buffer
from ssdlab.fit.fitted import Fitted, fit
from ssdlab.fit.iocost import RATES, RatesFit, from_toml, measure, of_rates
from ssdlab.fit.measurement import Measurement
from ssdlab.fit.results import FitInput, hold_out, read_results
from ssdlab.profiles.generic import GenericDrive, profile
from ssdlab.profiles.toml_edit import get_value, list_values, set_values

START = enlarge_buffer(profile(GenericDrive("nvme", 512 * 10**9, "tlc")))
TRUTH = {
    "link.bandwidth": "2000 MB/s",
    "link.write_command": "40 us",
    "link.write_overhead": "40 us",
    "flash.read": "70 us",
    "flash.program": "900 us",
}
"""What is changed in START to make the drive that the fit must find again."""


@pytest.fixture(scope="module")
def drive() -> dict[str, float]:
    return measure(set_values(START, TRUTH))


@pytest.fixture(scope="module")
def fitted(drive: dict[str, float]) -> Fitted:
    results = of_rates(drive, "Drive", "drive.toml")
    return fit(START, FitInput((results,), held_out=("iocost:rseqiops",)), "fit of iocost")


def test_each_number_has_its_own_limit(drive: dict[str, float]) -> None:
    assert list(drive) == list(RATES)
    assert drive["rbps"] == pytest.approx(2000, rel=0.05)
    assert drive["wseqiops"] == pytest.approx(1e6 / 40, rel=0.02)
    assert drive["wrandiops"] == pytest.approx(1e6 / 40, rel=0.02)
    dies = 8
    assert drive["rrandiops"] < dies / 70e-6
    assert drive["wbps"] == pytest.approx(dies * 32 * 1024 / 900e-6 / 1e6, rel=0.15)


def test_a_fit_finds_the_numbers_again(fitted: Fitted) -> None:
    text = fitted.profile
    for key, unit in (("link.write_command", "us"), ("flash.read", "us"), ("flash.program", "us")):
        value = float(str(get_value(text, key)).removesuffix(unit))
        assert value == pytest.approx(float(TRUTH[key].removesuffix(unit)), rel=0.06), key
    assert get_value(text, "link.read_command") is None
    notes = {str(check.cell.case[0]): check.note for check in fitted.checks}
    assert notes == {
        "rbps": FITTED,
        "rseqiops": HELD_OUT,
        "rrandiops": FITTED,
        "wbps": FITTED,
        "wseqiops": FITTED,
        "wrandiops": NOT_FITTED,
    }
    assert max(abs(fitted.errors)) < 0.05


def test_scatter_is_unknown_without_a_search(fitted: Fitted) -> None:
    assert math.isinf(fitted.excess)


def test_other_results_are_fitted_together_with_these(drive: dict[str, float]) -> None:
    single = Cell(("random 4k", "read"), "mean", 40.0, unit="MiB/s")
    suite = Measurement("suite", "Drive", "drive.toml", (single,))
    results = of_rates(drive, "Drive", "drive.toml")
    fitted = fit(START, FitInput((suite, results)), "fit of both")
    assert get_value(fitted.profile, "link.write_command") is not None
    used = [check for check in fitted.checks if check.note == FITTED]
    assert len(used) == 5
    assert max(abs(check.error) for check in used) < 0.12
    assert 1.0 <= fitted.excess < 10


def test_the_fit_says_what_these_numbers_do_not_determine(fitted: Fitted) -> None:
    parameters = {one.key: one for one in fitted.parameters}
    assert parameters["link.write_command"].determined
    assert parameters["link.bandwidth"].determined
    assert not parameters["flash.read"].determined
    assert parameters["flash.program"].assumes == ("flash.planes", "flash.page")


def test_reads_beyond_the_flash_are_limited_by_the_controller() -> None:
    slow = {"rbps": 2000.0, "rrandiops": 20000.0}
    text = RatesFit(START, slow, "fit").run()
    assert float(str(get_value(text, "link.read_command")).removesuffix("us")) > 30
    assert measure(text)["rrandiops"] == pytest.approx(20000, rel=0.03)
    fast = {"rbps": 3400.0, "rrandiops": 500000.0}
    text = RatesFit(START, fast, "fit").run()
    assert get_value(text, "flash.dies_per_channel") > get_value(START, "flash.dies_per_channel")
    assert measure(text)["rrandiops"] == pytest.approx(500000, rel=0.05)


def test_a_drive_that_reads_slower_than_it_writes_has_two_bandwidths() -> None:
    wanted = {"rbps": 326.0, "rrandiops": 80000.0, "wbps": 537.0, "wseqiops": 7600.0}
    fitted = RatesFit(START, wanted, "fit")
    twin = measure(fitted.run())
    for name, value in wanted.items():
        assert twin[name] == pytest.approx(value, rel=0.03), name
    both = {one.key: one for one in fitted.estimates()}
    assert both["link.bandwidth"].determined
    assert not both["link.write_bandwidth"].determined


def test_writes_that_the_flash_nearly_limits_are_fitted_too() -> None:
    wanted = {"rbps": 1215.0, "wbps": 758.0, "wseqiops": 169949.0}
    twin = measure(RatesFit(START, wanted, "fit").run())
    assert twin["wbps"] == pytest.approx(758, rel=0.02)
    assert twin["wseqiops"] == pytest.approx(169949, rel=0.02)


def test_a_table_is_read_with_and_without_units(tmp_path: Path) -> None:
    file = tmp_path / "drive.toml"
    file.write_text(
        '[iocost]\nmodel = "Drive"\nrbps = "3449 MB/s"\nwbps = 2035000000\nrseqiops = 410455\n'
    )
    [measurement] = hold_out(read_results([file]), ["iocost:rseqiops"]).others
    assert measurement.model == "Drive"
    assert {cell.label: cell.value for cell in measurement.cells} == {
        "rbps": 3449.0,
        "rseqiops": 410455.0,
        "wbps": 2035.0,
    }


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ({}, "has no numbers; it may have rbps, rseqiops"),
        ({"rbps": "fast"}, "rbps is 'fast'; it must be a number such as '3449 MB/s'"),
        ({"rseqiops": "4 MB/s"}, "rseqiops is '4 MB/s'; it must be a number such as '410455'"),
        ({"rbps": "3 MB/s", "iops": 3}, "has iops; it may have"),
        ({"rbps": 3449}, "rbps is 0.003449 MB/s; it must be from 1 to"),
    ],
)
def test_a_wrong_table_is_refused(table: dict[str, object], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        from_toml(table, Path("drive.toml"))


def test_writes_that_are_slower_at_random_are_named_where_their_time_is(
    drive: dict[str, float],
) -> None:
    slow = {**drive, "wrandiops": drive["wseqiops"] / 4.0}
    text = RatesFit(START, slow, "fit").run()
    [entry] = [each for each in list_values(text) if each["key"] == "link.write_command"]
    assert "for writes in order: at random the drive is 4.0 times as slow" in entry["source"]
    usual = RatesFit(START, drive, "fit").run()
    [entry] = [each for each in list_values(usual) if each["key"] == "link.write_command"]
    assert entry["source"] == "fit"
    assert get_value(text, "link.write_command") == get_value(usual, "link.write_command")
