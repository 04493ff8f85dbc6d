"""How a candidate is asked: as a drive that was asked for longer; how a flush's time is found."""

from __future__ import annotations

import pytest

from ssdlab import profiles
from ssdlab.analysis.cells import Cell
from ssdlab.device import describe_twin
from ssdlab.errors import TargetError
from ssdlab.experiments.fsync import analysis as fsync_analysis
from ssdlab.experiments.fsync import measure as fsync
from ssdlab.experiments.registry import cells_of
from ssdlab.fit.ageing import SCALED, Ageing, twin_seconds
from ssdlab.fit.fitted import Sheet, fit
from ssdlab.fit.measured import Measured
from ssdlab.fit.objective import FINE, MIB, ROUGH, course_of, evidence_of, of_ageing, of_measured
from ssdlab.fit.parameters import Scale, freedom_of
from ssdlab.profiles.toml_edit import number, with_number

CACHED = "samsung-970-evo-plus-500"
FLUSH = "buffer.flush_overhead"


def _us(profile: str, key: str) -> float:
    return float(number(profile, key).split()[0])


def _flush_scale(profile: str) -> Scale:
    [scale] = [each for each in freedom_of(profile, ("fsync",)).scales if each.key == FLUSH]
    return scale


def test_what_a_buffer_with_capacitors_holds_is_programmed_before_a_candidate_is_read() -> None:
    text = profiles.load("toshiba-xg5")
    slow = {"flash.channels": 2, "flash.dies_per_channel": 1, "flash.program": "1600 us"}
    safe = {"buffer.power_loss_protection": True, "buffer.size": "32 MiB"}
    for key, value in (slow | safe).items():
        text = with_number(text, key, value)
    wanted = tuple(Cell((unit, 1.0), "read_ms", 20.0) for unit in (8192.0, 4096.0, 1024.0))
    exam = of_measured(Measured("split", "", "box", wanted))
    assert exam is not None
    large, small, least = exam.answers(text)
    assert large == pytest.approx(least, rel=0.15)
    assert small == pytest.approx(least, rel=0.15)


def test_a_drive_of_too_many_dies_for_the_small_file_is_asked_with_the_usual_one() -> None:
    text = profiles.load(CACHED)
    for key, value in {"flash.dies_per_channel": 4, "ftl.chunk": "128 KiB"}.items():
        text = with_number(text, key, value)
    row = Ageing("box", 4096.0, (50.0,), (1.5, 1.6))
    with pytest.raises(TargetError, match="at least about"):
        twin_seconds(text, row, size=SCALED // 2)
    exam = of_ageing(row)
    assert exam.answers(text, ROUGH) == pytest.approx(exam.answers(text, FINE))


def test_a_flush_may_take_nothing_and_a_profile_without_its_time_may_get_one() -> None:
    for name, was in ((CACHED, 760), ("toshiba-xg5", 0)):
        scale = _flush_scale(profiles.load(name))
        assert _us(scale.apply(profiles.load(name), scale.low), FLUSH) == 0
        assert _us(scale.apply(profiles.load(name), 1.0), FLUSH) == was
        assert _us(scale.apply(profiles.load(name), scale.high), FLUSH) == pytest.approx(20e3)


@pytest.mark.parametrize("factor", [1.0 + 1e-7, 1.0 + 1e-6, 1.5, 150.0, 200.0])
def test_a_profile_with_any_time_of_a_flush_is_a_twin(factor: float) -> None:
    start = profiles.load("toshiba-xg5")
    text = _flush_scale(start).apply(start, factor)
    describe_twin("box", text)
    assert _us(text, FLUSH) == pytest.approx(100 * (factor - 1), rel=1e-3, abs=1e-3)


@pytest.mark.parametrize(("start", "truth"), [("760 us", 0.0), (None, 900.0)])
def test_the_time_of_a_flush_is_found_apart_from_that_of_a_program(
    start: str | None, truth: float
) -> None:
    text = with_number(profiles.load("toshiba-xg5"), FLUSH, f"{truth} us")
    plan, course = fsync.Plan(64 * MIB, 0.5, 1), course_of(text)
    fsync.measure(course, plan)
    done = fsync_analysis.conclude(evidence_of(course, plan))
    rows = tuple(cells_of("fsync", done.measures))
    sheet = Sheet(None, (Measured("fsync", "", "box", rows, done.findings, plan.parameters()),))
    begun = with_number(profiles.load("toshiba-xg5"), FLUSH, start)
    found = fit(begun, sheet, "test", lambda _done, _all: None)
    assert _us(found.profile, FLUSH) == pytest.approx(truth, abs=200)
    assert _us(found.profile, "flash.program") == pytest.approx(700, rel=0.25)
