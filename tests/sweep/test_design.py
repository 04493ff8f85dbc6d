"""The runs of a sweep: grids and samples, keys and seeds; what may not be said is one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from ssdlab.errors import UsageError
from ssdlab.sweep.design import Order, orders, points
from ssdlab.sweep.spec import read

Make = Callable[..., Path]


def test_a_grid_has_every_combination_once_and_each_run_its_key(small: list[Order]) -> None:
    assert len(small) == 12
    assert len({order.key for order in small}) == 12
    assert small[0].values == {"ftl.spare": 0.1, "ftl.victim": "greedy", "workload.skew": 0}
    assert [order.plan["skew"] for order in small[:2]] == [0.0, 1.1]
    assert small[0].flash > small[0].capacity


def test_keys_are_the_same_again_and_change_with_all_that_a_run_is_made_of(
    spec_file: Make, small: list[Order]
) -> None:
    again, *others = (
        {order.key for order in orders(read(spec_file(more=more))[0])}
        for more in ("", "repeats = 2")
    )
    keys = {order.key for order in small}
    assert again == keys
    assert keys < others[0]
    moved = orders(msgspec.structs.replace(read(spec_file())[0], seed=2))
    assert keys.isdisjoint(order.key for order in moved)


def test_repeats_of_all_points_have_the_same_seeds(spec_file: Make) -> None:
    found = orders(read(spec_file(more="repeats = 3"))[0])
    assert {(order.repeat, order.plan["seed"]) for order in found} == {(0, 1), (1, 2), (2, 3)}


def test_a_sample_takes_each_part_of_a_range_once(spec_file: Make) -> None:
    vary = (
        '"ftl.spare" = { from = 0.1, to = 0.3 }\n"workload.depth" = { from = 1, to = 8, whole = '
        'true }\n"workload.skew" = { from = 0.1, to = 10, log = true }\n"ftl.victim" = '
        '["greedy", "fifo"]'
    )
    spec = read(spec_file(vary, 'design = "sample"\nsamples = 8'))[0]
    found = points(spec)
    spares = sorted(float(point["ftl.spare"]) for point in found)
    assert [int((spare - 0.1) / 0.025) for spare in spares] == list(range(8))
    assert sorted(point["workload.depth"] for point in found) == list(range(1, 9))
    assert sum(float(point["workload.skew"]) < 1 for point in found) == 4
    assert sum(point["ftl.victim"] == "fifo" for point in found) == 4
    assert found == points(spec)


@pytest.mark.parametrize(
    ("vary", "more", "reason"),
    [
        ('"ftl.spar" = [0.1]', "", "did you mean spare"),
        ('"ftl.spare" = [2.0]', "", "may be a share"),
        ('"ftl.spare" = [0.1, 0.1]', "", "each value once"),
        ('"ftl.spare" = { from = 0.1, to = 0.2 }', "", "a grid takes a list"),
        ('"spare" = [0.1]', "", "TABLE.KEY"),
        ('"workload.skew" = [-1]', "", "0 \\(none\\) to 10"),
        ('"workload.skiw" = [1]', "", "workload.skew"),
        ('"workload.depth" = ["deep"]', "", "Expected `int`"),
        ('"ftl.spare" = [0.1]', "samples = 4", "left out in a grid"),
        ('"ftl.spare" = [0.1]', "repeat = 4", "unknown field `repeat`"),
        ('"ftl.spare" = [0.1]', 'design = "sample"', "2 or more"),
        ('"ftl.spare" = [0.07, 0.1]\n"profile" = ["nothing"]', "", "no twin called"),
        ("", "", "one key or more"),
    ],
)
def test_a_wrong_spec_is_one_line(spec_file: Make, vary: str, more: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason) as error:
        orders(read(spec_file(vary, more))[0])
    assert "\n" not in str(error.value)
