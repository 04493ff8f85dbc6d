"""Candidates near a solution keep its rates, or have another limit."""

from __future__ import annotations

import numpy as np
import pytest

from ssdlab.fit.neighbours import FASTER, Neighbours, best_by
from ssdlab.fit.parameters import PAGE, PROTECTED, SearchSpace
from ssdlab.fit.solving import Solution
from ssdlab.fit.variables import Channels, Choice, MultiPlanePage, Protection, Scale

PROFILE = """
[link]
bandwidth = "3000 MB/s"
[flash]
channels = 4
dies_per_channel = 2
planes = 2
page = "16 KiB"
channel_bandwidth = "500 MB/s"
program = "600 us"
"""
KEYS = ("link.bandwidth", "flash.channel_bandwidth", "flash.program")
SPACE = SearchSpace(
    tuple(Scale(key, 0.1, 10.0, 1.0) for key in KEYS),
    (
        Channels("flash.channels", (2, 4, 8), (0.5, 0.0, 0.5)),
        MultiPlanePage.of_profile(PAGE, PROFILE, (32, 64)),
        Choice("flash.suspend", (None, "20 us"), (0.0, 0.5)),
    ),
)
NEIGHBOURS = Neighbours(
    PROFILE, SPACE, {"flash.channels": 4, PAGE: "32 KiB", "flash.suspend": None}
)
BEST = Solution((4, "32 KiB", None), np.zeros(3), np.ones(3), 10.0)


def test_each_step_changes_one_choice() -> None:
    for choices, _ in NEIGHBOURS.steps(BEST, NEIGHBOURS.fixed):
        assert sum(one != other for one, other in zip(choices, BEST.choices, strict=True)) == 1
    [(choices, _)] = NEIGHBOURS.steps(BEST, ["flash.suspend"])
    assert choices == (4, "32 KiB", "20 us")


def test_a_larger_page_is_programmed_in_as_much_more_time() -> None:
    [(_, moved)] = NEIGHBOURS.steps(BEST, [PAGE])
    assert np.exp(moved) == pytest.approx([1, 1, 2])


def test_other_channels_have_the_same_bandwidth_each_or_all_together() -> None:
    steps = NEIGHBOURS.steps(BEST, ["flash.channels"])
    factors = [(choices[0], float(np.exp(moved[1]))) for choices, moved in steps]
    assert factors == [(2, 1.0), (2, pytest.approx(2.0)), (8, 1.0), (8, pytest.approx(0.5))]


@pytest.mark.parametrize(
    ("overhead", "flush"),
    [("700 us", [700, 100]), ("550 us", [550, None]), ("0 us", [0, None])],  # programs: +600 us
)
def test_a_flush_that_waits_for_a_longer_program_has_less_overhead_of_its_own(
    overhead: str, flush: list[float | None]
) -> None:
    profile = f'{PROFILE}[buffer]\nflush_overhead = "{overhead}"\n'
    scales = (*SPACE.scales, Scale("buffer.flush_overhead", 0.01, 100.0, 1.0, offset=100e-6))
    neighbours = Neighbours(profile, SearchSpace(scales, SPACE.choices), NEIGHBOURS.fixed)
    best = Solution(BEST.choices, np.zeros(4), np.ones(4), 10.0)
    steps = neighbours.steps(best, [PAGE])
    start_us = float(overhead.split(maxsplit=1)[0]) + 100
    found = [start_us * float(np.exp(moved[3])) - 100 for _, moved in steps]
    assert found == pytest.approx([each for each in flush if each is not None])
    assert [float(np.exp(moved[2])) for _, moved in steps] == pytest.approx([2] * len(found))


def test_a_flush_that_capacitors_let_end_at_once_has_more_overhead_of_its_own() -> None:
    profile = f'{PROFILE}[buffer]\nflush_overhead = "200 us"\n'
    protected = Protection(PROTECTED, (False, True), (0.0, 0.5), absent=False)
    scales = (*SPACE.scales, Scale("buffer.flush_overhead", 0.01, 100.0, 1.0, offset=100e-6))
    space = SearchSpace(scales, (*SPACE.choices, protected))
    neighbours = Neighbours(profile, space, {**NEIGHBOURS.fixed, PROTECTED: False})
    best = Solution((*BEST.choices, False), np.zeros(4), np.ones(4), 10.0)
    steps = neighbours.steps(best, [PROTECTED])
    assert [choices[-1] for choices, _ in steps] == [True, True]
    found = [300 * float(np.exp(moved[3])) - 100 for _, moved in steps]
    assert found == pytest.approx([200, 800])  # it does not wait 600 us for a program
    # With a larger page, it would not wait longer.
    best = Solution((*BEST.choices, True), np.zeros(4), np.ones(4), 10.0)
    assert len(neighbours.steps(best, [PAGE])) == 1


def _with_unknown_dies() -> tuple[Neighbours, Solution]:
    channels = Choice("flash.channels", (2, 4, 8), (0.5, 0.0, 0.5))
    dies = Choice("flash.dies_per_channel", (1, 2, 4), (0.5, 0.0, 0.5))
    space = SearchSpace(SPACE.scales, (channels, dies, *SPACE.choices[1:]))
    fixed = {channels.key: 4, dies.key: 2, PAGE: "32 KiB", "flash.suspend": None}
    best = Solution(tuple(fixed.values()), np.zeros(3), np.ones(3), 10.0)
    return Neighbours(PROFILE, space, fixed), best


def test_more_dies_program_in_as_much_more_time() -> None:
    neighbours, best = _with_unknown_dies()
    steps = neighbours.steps(best, ["flash.dies_per_channel"])
    factors = {choices[1]: float(np.exp(moved[2])) for choices, moved in steps}
    assert factors == {1: pytest.approx(0.5), 4: pytest.approx(2)}
    pages = neighbours.steps(best, [PAGE])
    assert [float(np.exp(moved[2])) for _, moved in pages] == [pytest.approx(2)]


def test_channels_with_unknown_dies_change_with_the_dies_of_each_or_of_all_the_same() -> None:
    neighbours, best = _with_unknown_dies()
    steps = neighbours.steps(best, ["flash.channels"])
    found = {choices[:2]: float(np.exp(moved[2])) for choices, moved in steps}
    double, same = pytest.approx(2), pytest.approx(1)
    assert found == {(2, 2): pytest.approx(0.5), (8, 2): double, (2, 4): same, (8, 1): same}


def test_a_grid_has_channels_that_are_together_as_fast_as_the_link() -> None:
    rates = [500 * np.exp(moved[1]) for moved in NEIGHBOURS.bandwidths((8, "32 KiB", None))]
    assert rates[-1] == pytest.approx(3000 / 8)
    assert len(set(rates)) == 4


def test_either_the_link_or_the_channels_limit_the_fastest_rate() -> None:
    limits = [
        (choices[0], round(3000 * np.exp(moved[0])), round(500 * np.exp(moved[1])))
        for choices, moved in NEIGHBOURS.other_limits(BEST)
    ]
    assert (4, 2000, round(500 * FASTER)) in limits
    assert (4, round(3000 * FASTER), 750) in limits
    assert {channels for channels, _, _ in limits} == {2, 4, 8}


def test_two_steps_are_combined_if_they_change_different_choices() -> None:
    best = Solution(BEST.choices, np.log([3.0, 3.0, 3.0]), np.ones(3), 10.0)
    steps = [
        Solution(choices, moved, np.ones(3), 0.0)
        for choices, moved in NEIGHBOURS.steps(best, NEIGHBOURS.fixed)
    ]
    pairs = NEIGHBOURS.pairs(best, steps)
    assert len(pairs) == 4 * 1 + 4 * 1 + 1 * 1  # channels and page, channels and suspend, the rest
    found = [np.exp(moved) for choices, moved in pairs if choices == (8, "64 KiB", None)]
    assert [each.tolist() for each in found] == [
        pytest.approx([3, 3, 6]),
        pytest.approx([3, 1.5, 6]),
    ]


def test_what_another_branch_found_is_tried_with_the_choices_of_this_one() -> None:
    other = Solution((8, "64 KiB", "20 us"), np.ones(3), np.ones(3), 7.0)
    choices, log_factors = NEIGHBOURS.with_choices(other, ["flash.suspend"], BEST)
    assert choices == (8, "64 KiB", None)
    assert log_factors.tolist() == [1, 1, 1]


def test_the_best_of_each_branch_is_kept() -> None:
    costs = {(4, "32 KiB", None): 10.0, (8, "32 KiB", None): 9.0, (8, "64 KiB", "20 us"): 7.0}
    solutions = [
        Solution(choices, np.zeros(3), np.ones(3), cost) for choices, cost in costs.items()
    ]
    assert [one.cost for one in best_by(solutions, [2])] == [7.0, 9.0]
    assert [one.cost for one in best_by(solutions, [])] == [7.0]


@pytest.mark.parametrize(
    ("key", "moved", "choices", "expected"),
    [
        ("link.bandwidth", 0.3, (4,), True),
        ("link.bandwidth", -0.3, (4,), True),
        ("link.bandwidth", 0.1, (4,), False),
        ("flash.program", 0.3, (4,), False),
        ("flash.program", 0.0, (2,), True),
    ],
)
def test_solutions_with_another_limit_or_other_choices_count_in_the_intervals(
    key: str, moved: float, choices: tuple[int, ...], expected: bool
) -> None:
    log_factors = np.where(np.array(KEYS) == key, moved, 0.0)
    other = Solution((*choices, "32 KiB", None), log_factors, np.ones(3), 0.0)
    assert NEIGHBOURS.is_other(other, BEST) is expected
