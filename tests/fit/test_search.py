"""The search recovers known twins, and reports numbers that are not determined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from ssdlab import profiles
from ssdlab.analysis.cells import Cell
from ssdlab.errors import UsageError
from ssdlab.fit import search as search_module
from ssdlab.fit import solving
from ssdlab.fit.ageing import AgeingRow, relative_errors, twin_seconds
from ssdlab.fit.fitted import Fitted, fit
from ssdlab.fit.measurement import CellKey
from ssdlab.fit.objective import Effort, Objective
from ssdlab.fit.parameters import LINK_MAX, PAGE, SearchSpace, search_space
from ssdlab.fit.results import FitInput
from ssdlab.fit.solving import Floats, Solution, Task, cost_on, solve_all
from ssdlab.fit.variables import FOLDING, MODE, Choice, MultiPlanePage, Scale
from ssdlab.profiles.toml_edit import get_value, set_value, set_values

ROW = AgeingRow("made", 4096.0, (50.0, 200.0, 800.0, 4000.0), (1.0,) * 5)
PORTIONS = Choice("ftl.read_portion", (None, "256 KiB"), (0.0, 0.5))
COUNTS = Choice("ftl.read_portions", (None,), (0.0,))


def _truth(**changes: object) -> str:
    text = profiles.load("toshiba-xg5")
    text = set_value(text, "flash.read", ["50 us", "65 us", "80 us"])
    text = set_value(text, "link.bandwidth", "2800 MB/s")
    for key in ("ftl.read_portions", "ftl.read_ahead"):
        text = set_value(text, key, None)
    return set_value(text, "ftl.read_portion", changes.get("portion", "256 KiB"))


def _row(text: str) -> AgeingRow:
    return replace(ROW, seconds=tuple(twin_seconds(text, ROW)))


def _fit(
    start: str, row: AgeingRow, monkeypatch: pytest.MonkeyPatch, *, kept: AgeingRow | None = None
) -> Fitted:
    """A fit of both factors and of whether reads are divided; the dies are fixed."""
    wide = search_space(start, ("aging",))

    def narrow(*_: object) -> SearchSpace:
        return SearchSpace(wide.scales, (PORTIONS, COUNTS))

    monkeypatch.setattr("ssdlab.fit.searched.search_space", narrow)
    return fit(start, FitInput(row=row, kept_row=kept or row), "test")


def test_a_fit_to_a_twins_own_row_recovers_the_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = _truth()
    start = set_value(truth, "flash.read", ["60 us", "78 us", "96 us"])
    start = set_value(start, "link.bandwidth", "3400 MB/s")
    start = set_value(start, "ftl.read_portion", None)
    fitted = _fit(start, _row(truth), monkeypatch)
    assert get_value(fitted.profile, "ftl.read_portion") == "256 KiB"
    read = float(get_value(fitted.profile, "flash.read")[0].split()[0])
    link = float(get_value(fitted.profile, "link.bandwidth").split()[0])
    assert read == pytest.approx(50, rel=0.06)
    assert link == pytest.approx(2800, rel=0.06)
    assert abs(fitted.errors).max() < 0.05
    assert 'source = "test", kind = "fitted"' in fitted.profile


def test_held_out_times_of_a_twin_are_predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    row = _row(_truth())
    start = set_value(_truth(), "flash.read", ["55 us", "72 us", "88 us"])
    fitted = _fit(start, row, monkeypatch, kept=row.without((800.0, 4000.0)))
    assert [check.note for check in fitted.checks] == ["", "", "", "held out", "held out"]
    assert abs(fitted.errors[-2:]).mean() < 0.12


def test_a_row_without_slowdown_determines_the_link_and_not_the_flash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = replace(ROW, seconds=(10.7, 10.7, 10.8, 10.8, 10.8))
    fitted = _fit(profiles.load("intel-s3510-480"), row, monkeypatch)
    determined = {each.key: each.determined for each in fitted.parameters}
    assert determined["link.bandwidth"]
    assert not determined["flash.read"]
    assert abs(fitted.errors).max() < 0.05


def test_a_small_file_ages_like_a_large_one() -> None:
    text = _truth()
    small, large = (twin_seconds(text, ROW, size=size << 20) for size in (128, 512))
    assert np.allclose(small, large, rtol=0.03)


def test_few_relocated_units_slow_a_drive_that_divides_reads_and_hardly_any_other() -> None:
    with_portions = twin_seconds(_truth(), ROW)
    without = twin_seconds(_truth(portion=None), ROW)
    assert with_portions[1] / with_portions[0] > 1.3
    assert without[1] / without[0] < 1.05


def test_every_factor_stays_within_physical_bounds() -> None:
    for name in profiles.names():
        link, reads = search_space(profiles.load(name), ("aging",)).scales
        interface = get_value(profiles.load(name), "drive.interface")
        fastest = link.apply(profiles.load(name), link.high)
        bandwidth = get_value(fastest, "link.bandwidth").split()
        limit = LINK_MAX[interface] * 1.001
        assert float(bandwidth[0]) * 1e6 <= limit, name
        slowest = get_value(reads.apply(profiles.load(name), reads.high), "flash.read")
        times = [slowest] if isinstance(slowest, str) else slowest
        assert max(float(time.split()[0]) for time in times) <= 300.1, name


def test_errors_are_positive_where_the_twin_is_slower() -> None:
    row = replace(ROW, seconds=(1.0, 1.0, 1.0, 1.0, 2.0))
    assert relative_errors(row, np.array([1.0, 1.1, 0.9, 1.0, 1.0])).tolist() == pytest.approx(
        [0.0, 0.1, -0.1, 0.0, -0.5]
    )


@pytest.mark.parametrize(("experiment", "expected"), [("aging", 10.0), ("suite", 6.68)])
def test_an_outlier_counts_less_except_in_an_ageing_row(experiment: str, expected: float) -> None:
    cells = (Cell((1,), "read_s", 1.0), Cell((2,), "read_s", 1.0))
    sigma = np.full(2, 0.04)
    twin = {cells[0].key: float(np.exp(10 * 0.04)), cells[1].key: float(np.exp(-0.1 * 0.04))}
    objective = Objective(experiment, cells, lambda _text, _effort: twin, sigma)
    errors = solving._residuals(objective, "", Effort.FINE)
    assert errors == pytest.approx([expected, -0.1], rel=1e-3)
    assert cost_on([objective, objective], "") == pytest.approx(2 * float(errors @ errors))


def test_a_search_goes_on_after_steps_that_were_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The derivatives are computed as often as allowed, and no more."""
    points: list[float] = []

    def cliff(log_factors: Floats) -> Floats:
        points.append(float(log_factors[0]))
        return np.where(log_factors > 0.07, 50.0, 1 - 0.2 * log_factors)

    monkeypatch.setattr(solving, "residuals_of", lambda _task: cliff)
    scales = (Scale("flash.read", 0.1, 10.0, 1.0),)
    space = SimpleNamespace(bounds=lambda: (np.full(1, -9.0), np.full(1, 9.0)), scales=scales)
    start = Solution((), np.zeros(1), np.zeros(1), 0.0)
    objectives = (Objective("split", (), lambda *_: {}, np.empty(0)),)
    task = Task("", objectives, cast(SearchSpace, space), start, 0.0, 3, Effort.FINE)
    [solution] = solve_all([task], lambda _done: None)
    assert max(points) == 3.0, "the first step"
    assert 0.04 < solution.log_factors[0] < 0.07
    assert solution.cost < 0.985
    tried = set(points)
    derived = [here for here in tried if any(abs(x - here - solving.STEP) < 1e-9 for x in tried)]
    assert 1 <= len(derived) <= 3


def test_the_derivatives_after_a_step_explain_it() -> None:
    slopes = np.array([[1.0, 2.0], [0.0, 3.0]])
    before = solving._Point(np.zeros(2), np.array([5.0, 5.0]), np.array([[1.0, 0.0], [0.0, 3.0]]))
    step = np.array([0.0, 0.5])
    after = before.updated(step, before.residuals + slopes @ step)
    assert not after.is_measured
    assert after.derivatives == pytest.approx(slopes), "only along the step there is anything new"


def test_without_steps_a_candidate_costs_what_a_small_step_would_reach(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slopes = np.array([[2.0], [0.0]])
    monkeypatch.setattr(
        solving, "residuals_of", lambda _task: lambda logs: np.array([4.0, 3.0]) + slopes @ logs
    )
    space = SimpleNamespace(bounds=lambda: (np.full(1, -9.0), np.full(1, 9.0)))
    start = Solution((), np.zeros(1), np.zeros(1), 0.0)
    task = Task("", (), cast(SearchSpace, space), start, 1.0, 0, Effort.FINE, jacobian=slopes)
    [solution] = solve_all([task], lambda _done: None)
    assert solution.cost == pytest.approx(9.0 + 1.0)
    assert solution.log_factors.tolist() == [0.0]


@pytest.mark.parametrize(
    ("slc_read", "slc_program", "slower"),
    [
        (None, "400 us", [0.0, 0.0]),
        ("20 us", "400 us", [0.0, 0.0]),
        ("60 us", "400 us", [np.log(1.5), 0.0]),
        ("40 us", "1 ms", [0.0, np.log(2)]),
    ],
)
def test_an_slc_cache_that_is_slower_than_other_flash_costs(
    slc_read: str | None, slc_program: str, slower: list[float]
) -> None:
    start = profiles.load("samsung-970-evo-plus-500")
    values = {
        "flash.read": ["30 us", "50 us"],
        "flash.program": "500 us",
        "slc.read": slc_read,
        "slc.program": slc_program,
    }
    space = SearchSpace((Scale("flash.read", 0.1, 10.0, 1.0),), ())
    solution = Solution((), np.zeros(1), np.zeros(1), 0.0)
    task = Task(set_values(start, values), (), space, solution, 0.0, 1, Effort.FINE)
    found = solving.residuals_of(task)(np.zeros(1))
    assert found == pytest.approx([*(np.array(slower) / solving.FASTER_SIGMA), 0.0])


def test_only_the_results_count_for_how_well_a_candidate_explains_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slower = [9.0] * len(solving.FASTER)
    errors = np.array([2.0, 2.0, 2.0, 2.0, *slower, 0.0])
    monkeypatch.setattr(solving, "residuals_of", lambda _task: lambda logs: errors + logs)
    space = SearchSpace((Scale("flash.read", 0.99, 1.01, 1.0),), ())
    start = Solution((), np.zeros(1), np.zeros(1), 0.0)
    objectives = (Objective("split", (), lambda *_: {}, np.empty(0)),)
    task = Task("", objectives, space, start, 0.0, 3, Effort.FINE)
    [solution] = solve_all([task], lambda _done: None)
    assert solution.excess == pytest.approx(16 / 3, rel=0.05)


def test_a_search_in_which_no_candidate_is_a_valid_twin_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(solving, "solve_all", lambda *_: [])
    start = profiles.load("toshiba-xg5")
    space = search_space(start, ["split"])
    with pytest.raises(UsageError, match="no candidate is a valid twin; run `ssdlab twin check`"):
        search_module.search(start, [], space, lambda *_: None)


def test_a_solution_is_found_among_others_with_the_same_choices() -> None:
    one, other = (Solution((1,), np.zeros(2), np.ones(2), cost) for cost in (2.0, 1.0))
    solutions = [one, other]
    solutions.remove(other)
    assert solutions == [one]


GEOMETRY_START = set_values(
    profiles.load("toshiba-xg5"),
    {
        "flash.read": "50 us",
        "flash.planes": 1,
        "flash.page": "16 KiB",
        "flash.dies_per_channel": 2,
        "ftl.chunk": "16 KiB",
    },
)
DIES = Choice("flash.dies_per_channel", (2, 4, 8), (0.0, 0.0, 0.0))
PAGES = MultiPlanePage(PAGE, ("16 KiB", "64 KiB"), (0.0, 0.0))
CHUNKS = Choice("ftl.chunk", ("16 KiB", "64 KiB"), (0.0, 0.0))
FOUR_TIMES = (200.0, 200.0, 400.0)
"""Times with four times the tR, page or chunk of this profile."""


def _read_us(profile: str) -> float:
    return float(str(get_value(profile, "flash.read")).split()[0])


def _pieces(profile: str) -> float:
    """Pieces of 64 KiB that are read one after the other: pages or chunks, whichever are larger."""
    sizes = (str(get_value(profile, key)) for key in ("flash.page", "ftl.chunk"))
    return 64.0 / max(int(size.split()[0]) for size in sizes)


def _geometry_objective(expected: Sequence[float]) -> Objective:
    """Times of a single page, of 64 KiB, and of four pages on all dies of a channel."""

    def times(profile: str, _effort: Effort) -> dict[CellKey, float]:
        dies = get_value(profile, "flash.dies_per_channel")
        of_cases = (1.0, _pieces(profile), 4.0 / dies)
        return {((n,), "read_ms"): _read_us(profile) * each for n, each in enumerate(of_cases)}

    cells = tuple(Cell((n,), "read_ms", time) for n, time in enumerate(expected))
    return Objective("split", cells, times, np.full(len(cells), 0.04))


def _without_polish(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last iterations, which take rough steps to all other choices, do nothing."""
    monkeypatch.setattr(search_module._Search, "_polished", lambda _self, best, _tried: [best])


@pytest.mark.parametrize(
    ("choices", "true", "expected", "varied"),
    [
        ((DIES,), 8, (200.0, 800.0, 100.0), 0),
        ((PAGES,), "64 KiB", FOUR_TIMES, 1),
        ((DIES, CHUNKS), "64 KiB", FOUR_TIMES, 1),
    ],
)
def test_a_search_starts_where_solved_factors_explain_the_reads_best(
    monkeypatch: pytest.MonkeyPatch,
    choices: tuple[Choice, ...],
    true: object,
    expected: Sequence[float],
    varied: int,
) -> None:
    """At the start profile's tR the wrong choice explains them better."""
    monkeypatch.setattr(search_module, "SWEEPS_MAX", 0)
    monkeypatch.setattr(search_module, "VARIED", varied)
    _without_polish(monkeypatch)
    space = SearchSpace((Scale("flash.read", 0.1, 10.0, 1.0),), choices)
    objective = _geometry_objective(expected)
    best, *_ = search_module.search(GEOMETRY_START, [objective], space, lambda *_: None)
    assert best.choices[-1] == true
    assert float(np.exp(best.log_factors[0])) == pytest.approx(4.0, rel=0.02)


@pytest.mark.parametrize("sizes", [PAGES, CHUNKS])
@pytest.mark.parametrize(("rival", "found"), [(np.inf, "64 KiB"), (1.0, "16 KiB")])
def test_every_other_size_is_solved_unless_another_search_found_far_better(
    monkeypatch: pytest.MonkeyPatch, sizes: Choice, rival: float, found: str
) -> None:
    """Rough steps promise nothing here."""
    monkeypatch.setattr(search_module, "SOLVED", 0)
    monkeypatch.setattr(search_module, "STEPPED", 0)
    _without_polish(monkeypatch)
    space = SearchSpace((Scale("flash.read", 0.1, 10.0, 1.0),), (sizes,))
    objective = replace(_geometry_objective(FOUR_TIMES), experiment="suite")
    best, *_ = search_module.search(GEOMETRY_START, [objective], space, lambda *_: None, rival)
    assert best.choices == (found,)


@pytest.mark.parametrize(("experiment", "twins"), [("split", 2), ("iocost", 3)])
def test_a_factor_that_no_result_depends_on_costs_no_twin(experiment: str, twins: int) -> None:
    scales = (Scale("flash.program", 0.1, 10.0, 2.0), Scale("flash.read", 0.1, 10.0, 1.0))
    measured: list[tuple[float, ...]] = []

    def residuals(at: Floats) -> Floats:
        measured.append(tuple(at))
        return np.array([3 * at[1], at[0] / 2, at[1]])

    objectives = (Objective(experiment, (), lambda *_: {}, np.empty(0)),)
    start = Solution((), np.zeros(2), np.zeros(2), 0.0)
    task = Task("", objectives, SearchSpace(scales, ()), start, 0.0, 3, Effort.FINE)
    derivatives = solving._derivatives(task, residuals, np.zeros(2))
    assert derivatives == pytest.approx(np.array([[0.0, 3.0], [0.5, 0.0], [0.0, 1.0]]))
    moved = [(0.0, 0.0), (0.0, solving.STEP), (solving.STEP, 0.0)]
    assert sorted(measured) == moved[:twins]


@pytest.mark.parametrize("size", ["8 GiB", "32 GiB", "128 GiB"])
def test_a_cache_that_is_folded_while_the_host_writes_is_found(size: str) -> None:
    """Neither another size, nor a dynamic cache, nor folding alone explains the results better."""
    start = set_values(GEOMETRY_START, {"slc.size": "32 GiB", "slc.mode": "static"})
    start = set_value(start, "slc.program", "100 us")

    def times(profile: str, _effort: Effort) -> dict[CellKey, float]:
        folds = get_value(profile, FOLDING) == "while writing"
        is_right = folds and get_value(profile, "slc.size") == size
        each = enumerate((1.0, 3.0 if is_right else 1.0))
        return {((n,), "read_ms"): factor * _read_us(profile) for n, factor in each}

    cells = tuple(Cell((n,), "read_ms", time) for n, time in enumerate((50.0, 150.0)))
    objective = Objective("fsync", cells, times, np.full(len(cells), 0.04))
    space = search_space(start, ["fsync"], cache_sizes=("8 GiB", "32 GiB", "128 GiB"))
    best, *_ = search_module.search(start, [objective], space, lambda *_: None)
    found = dict(zip((choice.key for choice in space.choices), best.choices, strict=True))
    assert (found[MODE], found[FOLDING]) == ("dynamic", "while writing")
    assert found["slc.size"] == size


SIZES = tuple(f"{n} GiB" for n in range(8, 57))


def test_a_size_of_a_cache_is_found_though_few_are_tried_from_everywhere() -> None:
    start = set_values(GEOMETRY_START, {"slc.size": SIZES[0], "slc.mode": "static"})
    start = set_value(start, "slc.program", "100 us")

    def times(profile: str, _effort: Effort) -> dict[CellKey, float]:
        size = float(get_value(profile, "slc.size").split()[0])
        return {((n,), "read_ms"): each * _read_us(profile) for n, each in enumerate((1.0, size))}

    cells = tuple(Cell((n,), "read_ms", time) for n, time in enumerate((50.0, 50.0 * 41)))
    objective = Objective("fsync", cells, times, np.full(len(cells), 0.001))
    space = search_space(start, ["fsync"], cache_sizes=SIZES)
    [choice] = [choice for choice in space.choices if choice.key == "slc.size"]
    assert choice.near(SIZES[0]) == (*SIZES[:4], *SIZES[6::6])
    best, *_ = search_module.search(start, [objective], space, lambda *_: None)
    found = dict(zip((choice.key for choice in space.choices), best.choices, strict=True))
    assert found["slc.size"] == "41 GiB"


def test_each_kind_of_cache_is_searched_though_another_starts_better() -> None:
    """A static cache of any size explains the results better than most dynamic ones."""
    start = set_values(GEOMETRY_START, {"slc.size": SIZES[0], "slc.mode": "static"})
    start = set_value(start, "slc.program", "100 us")

    def times(profile: str, _effort: Effort) -> dict[CellKey, float]:
        size = float(get_value(profile, "slc.size").split()[0])
        factor = 36.0 if get_value(profile, MODE) == "static" else size
        return {((n,), "read_ms"): each * _read_us(profile) for n, each in enumerate((1.0, factor))}

    cells = tuple(Cell((n,), "read_ms", time) for n, time in enumerate((50.0, 50.0 * 41)))
    objective = Objective("fsync", cells, times, np.full(len(cells), 0.001))
    space = search_space(start, ["fsync"], cache_sizes=SIZES)
    best, *_ = search_module.search(start, [objective], space, lambda *_: None)
    found = dict(zip((choice.key for choice in space.choices), best.choices, strict=True))
    assert (found[MODE], found["slc.size"]) == ("dynamic", "41 GiB")
