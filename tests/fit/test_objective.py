"""How candidates are measured, and how the time of a flush is fitted."""

from __future__ import annotations

import numpy as np
import pytest
from candidate_results import measured

from ssdlab import profiles
from ssdlab.analysis.cells import Cell
from ssdlab.analysis.evidence import Conclusion
from ssdlab.device import describe_twin
from ssdlab.errors import TargetError
from ssdlab.experiments.fsync import analysis as fsync_analysis
from ssdlab.experiments.fsync import measure as fsync
from ssdlab.experiments.registry import cells_of
from ssdlab.experiments.split import analysis as split_analysis
from ssdlab.experiments.split import measure as split
from ssdlab.fit.ageing import SCALED_FILE, AgeingRow, twin_seconds
from ssdlab.fit.checks import ageing_objective
from ssdlab.fit.fitted import fit
from ssdlab.fit.measurement import Measurement, medians
from ssdlab.fit.objective import (
    EXPERIMENTS,
    MIB,
    Effort,
    candidate_session,
    evidence_of,
    experiment_objective,
)
from ssdlab.fit.parameters import search_space
from ssdlab.fit.results import FitInput
from ssdlab.fit.variables import Scale
from ssdlab.profiles.toml_edit import get_value, set_value, set_values
from ssdlab.records import Finding

CACHED = "samsung-970-evo-plus-500"
FLUSH = "buffer.flush_overhead"


def _us(profile: str, key: str) -> float:
    return float(get_value(profile, key).split()[0])


def _flush_scale(profile: str) -> Scale:
    [scale] = [each for each in search_space(profile, ("fsync",)).scales if each.key == FLUSH]
    return scale


def test_a_protected_buffer_is_programmed_before_a_candidate_is_read() -> None:
    text = profiles.load("toshiba-xg5")
    slow = {"flash.channels": 2, "flash.dies_per_channel": 1, "flash.program": "1600 us"}
    safe = {"buffer.power_loss_protection": True, "buffer.size": "32 MiB"}
    for key, value in (slow | safe).items():
        text = set_value(text, key, value)
    split_cells = tuple(Cell((unit, 1.0), "read_ms", 20.0) for unit in (8192.0, 4096.0, 1024.0))
    objective = experiment_objective(Measurement("split", "", "box", split_cells))
    assert objective is not None
    large, small, least = objective.simulate(text)
    assert large == pytest.approx(least, rel=0.15)
    assert small == pytest.approx(least, rel=0.15)


def test_a_candidate_reads_what_slow_dies_have_not_programmed_yet_as_the_drive_did() -> None:
    """The buffer holds half of the region, and four dies take five seconds to program it."""
    slow = {"flash.channels": 1, "flash.dies_per_channel": 4, "flash.planes": 1}
    flash = {"flash.page": "4 KiB", "flash.program": "2500 us", "flash.read": "100 us"}
    safe = {"buffer.power_loss_protection": True, "buffer.size": "32 MiB"}
    text = set_values(profiles.load("toshiba-xg5"), slow | flash | safe)
    plan = split.Plan(64 * MIB, 3, settle_s=0.0)
    results = measured(text, "split", (split, split_analysis), plan)
    objective = experiment_objective(results)
    assert objective is not None
    assert objective.simulate(text) == pytest.approx(objective.measured, rel=0.01)


@pytest.mark.parametrize("settle_s", [0.0, 60.0])
def test_a_candidate_reads_from_its_cache_only_what_the_drive_read_from_there(
    settle_s: float,
) -> None:
    text = set_value(profiles.load("samsung-970-evo-plus-500"), "slc.read", "12 us")
    plan = split.Plan(64 * MIB, 3, settle_s=settle_s)
    results = measured(text, "split", (split, split_analysis), plan)
    objective = experiment_objective(results)
    assert objective is not None
    assert objective.simulate(text) == pytest.approx(objective.measured, rel=0.02)


@pytest.mark.parametrize(("drive", "twin"), [(500.0, 500.0), (10.0, 20.0), (4000.0, 2300.0)])
def test_a_median_of_fast_and_slow_flushes_may_be_any_near_their_middle(
    drive: float, twin: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, others = ("direct dsync", 16.0), ("direct fsync", 16.0)
    cells = [Cell(key, "sync_us_p50", drive) for key in (case, others, ("direct fsync", 1.0))]
    row = {
        "mode": "direct dsync",
        "in_flight": 16,
        "sync_us_p40": 20.0,
        "sync_us_p60": 2300.0,
    }
    few = row | {"mode": "direct fsync", "sync_us_p40": None, "sync_us_p60": None}
    assert medians(cells, [row, few]) == {(case, "sync_us_p50"): twin}
    twin_rows = Conclusion([row | {"sync_us_p50": 21.0}], {}, "")
    monkeypatch.setitem(EXPERIMENTS, "fsync", lambda _profile, _results: twin_rows)
    objective = experiment_objective(Measurement("fsync", "", "box", tuple(cells[:1])))
    assert objective is not None
    assert objective.simulate(profiles.load(CACHED)).tolist() == [twin]
    assert medians([Cell(case, "write_mib_per_s", drive)], [row]) == {}


@pytest.mark.parametrize(
    ("stripe_kib", "regular", "compared"),
    [
        (None, True, [4, 64, 128, 256]),
        (None, False, [4]),
        (None, None, [4]),
        (256.0, True, [4, 128, 256]),
    ],
)
def test_rates_at_all_powers_of_two_show_the_units_of_a_stripe_that_is_not_known(
    stripe_kib: float | None, regular: bool | None, compared: list[int]
) -> None:
    cells = tuple(Cell((float(at),), "read_mib_per_s", 90.0) for at in (4, 64, 128, 192, 256, 320))
    findings = {
        "stripe_kib": Finding(stripe_kib, "KiB", None, None, ""),
        "regular": Finding(regular, "", None, None, ""),
    }
    objective = experiment_objective(Measurement("stripe", "", "box", cells, findings))
    assert objective is not None
    assert [cell.case for cell in objective.cells] == [(at,) for at in compared]


def test_values_of_one_case_scatter_alike() -> None:
    """They are from the same steps; only one of them is stored with its repeats."""
    cells = (
        Cell(("direct none", 1.0), "write_mib_per_s", 120.0, repeats=(80.0, 160.0)),
        Cell(("direct none", 1.0), "read_mib_per_s", 280.0),
        Cell(("direct none", 16.0), "read_mib_per_s", 300.0),
    )
    objective = experiment_objective(Measurement("fsync", "", "box", cells))
    assert objective is not None
    scattered = np.hypot(0.04, np.log(2) / 2)
    assert objective.sigma == pytest.approx([scattered, scattered, 0.04])


def test_a_drive_with_too_many_dies_for_the_small_file_is_measured_with_the_usual_one() -> None:
    text = profiles.load(CACHED)
    for key, value in {"flash.dies_per_channel": 4, "ftl.chunk": "128 KiB"}.items():
        text = set_value(text, key, value)
    row = AgeingRow("box", 4096.0, (50.0,), (1.5, 1.6))
    with pytest.raises(TargetError, match="at least about"):
        twin_seconds(text, row, size=SCALED_FILE // 2)
    objective = ageing_objective(row)
    rough, fine = (objective.simulate(text, effort) for effort in (Effort.ROUGH, Effort.FINE))
    assert rough == pytest.approx(fine)


def test_the_flush_time_can_become_zero_and_can_be_added_to_a_profile_without_one() -> None:
    for name, start in ((CACHED, 760), ("toshiba-xg5", 0)):
        scale = _flush_scale(profiles.load(name))
        assert _us(scale.apply(profiles.load(name), scale.low), FLUSH) == 0
        assert _us(scale.apply(profiles.load(name), 1.0), FLUSH) == start
        assert _us(scale.apply(profiles.load(name), scale.high), FLUSH) == pytest.approx(20e3)


@pytest.mark.parametrize("factor", [1.0 + 1e-7, 1.0 + 1e-6, 1.5, 150.0, 200.0])
def test_every_scaled_flush_time_makes_a_valid_profile(factor: float) -> None:
    start = profiles.load("toshiba-xg5")
    text = _flush_scale(start).apply(start, factor)
    describe_twin("box", text)
    assert _us(text, FLUSH) == pytest.approx(100 * (factor - 1), rel=1e-3, abs=1e-3)


@pytest.mark.parametrize(("start", "truth"), [("760 us", 0.0), (None, 900.0)])
def test_flush_time_and_program_time_are_separated(start: str | None, truth: float) -> None:
    text = set_value(profiles.load("toshiba-xg5"), FLUSH, f"{truth} us")
    plan, session = fsync.Plan(64 * MIB, 0.5, 1), candidate_session(text)
    fsync.measure(session, plan)
    conclusion = fsync_analysis.conclude(evidence_of(session, plan))
    rows = tuple(cells_of("fsync", conclusion.measures))
    results = Measurement("fsync", "", "box", rows, conclusion.findings, plan.parameters())
    start_text = set_value(profiles.load("toshiba-xg5"), FLUSH, start)
    fitted = fit(start_text, FitInput((results,)), "test")
    assert _us(fitted.profile, FLUSH) == pytest.approx(truth, abs=200)
    assert _us(fitted.profile, "flash.program") == pytest.approx(700, rel=0.25)
