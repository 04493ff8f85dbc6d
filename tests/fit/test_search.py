"""The fit: known twins are found again, and what results do not tell is said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ssdlab import profiles
from ssdlab.fit import parameters as freedoms
from ssdlab.fit.ageing import Ageing, errors, twin_seconds
from ssdlab.fit.fitted import Fitted, fit_ageing
from ssdlab.fit.parameters import Choice, Freedom, of_ageing
from ssdlab.profiles.toml_edit import number, with_number

ROW = Ageing("made", 4096.0, (50.0, 200.0, 800.0, 4000.0), (1.0,) * 5)
PORTIONS = Choice("ftl.read_portion", (None, "256 KiB"), (0.0, 0.5))
ROOM = Choice("ftl.read_portions", (None,), (0.0,))


def _truth(**changes: object) -> str:
    text = profiles.load("toshiba-xg5")
    text = with_number(text, "flash.read", ["50 us", "65 us", "80 us"])
    text = with_number(text, "link.bandwidth", "2800 MB/s")
    for key in ("ftl.read_portions", "ftl.read_ahead"):
        text = with_number(text, key, None)
    return with_number(text, "ftl.read_portion", changes.get("portion", "256 KiB"))


def _row(text: str) -> Ageing:
    return replace(ROW, seconds=tuple(twin_seconds(text, ROW)))


def _fit(
    start: str, row: Ageing, monkeypatch: pytest.MonkeyPatch, *, kept: Ageing | None = None
) -> Fitted:
    """A fit of both factors and of whether there are portions; the dies are known."""
    wide = of_ageing(start)

    def narrow(*_: object) -> Freedom:
        return Freedom(wide.scales, (PORTIONS, ROOM))

    monkeypatch.setattr("ssdlab.fit.fitted.freedom_of", narrow)
    return fit_ageing(start, row, kept or row, "test", lambda _done, _all: None)


def test_a_twin_s_own_row_leads_back_to_the_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = _truth()
    start = with_number(truth, "flash.read", ["60 us", "78 us", "96 us"])
    start = with_number(start, "link.bandwidth", "3400 MB/s")
    start = with_number(start, "ftl.read_portion", None)
    fitted = _fit(start, _row(truth), monkeypatch)
    assert number(fitted.profile, "ftl.read_portion") == "256 KiB"
    read = float(number(fitted.profile, "flash.read")[0].split()[0])
    link = float(number(fitted.profile, "link.bandwidth").split()[0])
    assert read == pytest.approx(50, rel=0.06)
    assert link == pytest.approx(2800, rel=0.06)
    assert abs(fitted.errors).max() < 0.05
    assert 'source = "test", kind = "fitted"' in fitted.profile


def test_held_out_times_of_a_twin_are_foretold(monkeypatch: pytest.MonkeyPatch) -> None:
    row = _row(_truth())
    start = with_number(_truth(), "flash.read", ["55 us", "72 us", "88 us"])
    fitted = _fit(start, row, monkeypatch, kept=row.without((800.0, 4000.0)))
    assert [check.note for check in fitted.checks] == ["", "", "", "held out", "held out"]
    assert abs(fitted.errors[-2:]).mean() < 0.12


def test_a_row_that_never_slows_determines_the_link_and_not_the_flash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = replace(ROW, seconds=(10.7, 10.7, 10.8, 10.8, 10.8))
    fitted = _fit(profiles.load("intel-s3510-480"), row, monkeypatch)
    told = {each.key: each.told for each in fitted.parameters}
    assert told["link.bandwidth"]
    assert not told["flash.read"]
    assert abs(fitted.errors).max() < 0.05


def test_a_small_file_ages_as_a_large_one_does() -> None:
    text = _truth()
    small, large = (twin_seconds(text, ROW, size=size << 20) for size in (128, 512))
    assert np.allclose(small, large, rtol=0.03)


def test_few_strays_cost_a_drive_with_portions_half_of_its_speed_and_others_little() -> None:
    with_portions = twin_seconds(_truth(), ROW)
    without = twin_seconds(_truth(portion=None), ROW)
    assert with_portions[1] / with_portions[0] > 1.3
    assert without[1] / without[0] < 1.05


def test_no_factor_leaves_what_is_physically_possible() -> None:
    for name in profiles.names():
        link, reads = of_ageing(profiles.load(name)).scales
        interface = number(profiles.load(name), "drive.interface")
        fastest = link.apply(profiles.load(name), link.high)
        bandwidth = number(fastest, "link.bandwidth").split()
        limit = freedoms.LINK_MAX[interface] * 1.001
        assert float(bandwidth[0]) * 1e6 <= limit, name
        slowest = number(reads.apply(profiles.load(name), reads.high), "flash.read")
        slowest = [slowest] if isinstance(slowest, str) else slowest
        assert max(float(each.split()[0]) for each in slowest) <= 150.1, name


def test_errors_are_above_zero_where_the_twin_is_slower() -> None:
    row = replace(ROW, seconds=(1.0, 1.0, 1.0, 1.0, 2.0))
    assert errors(row, np.array([1.0, 1.1, 0.9, 1.0, 1.0])).tolist() == pytest.approx(
        [0.0, 0.1, -0.1, 0.0, -0.5]
    )
