"""The runs of a sweep: grids and samples, keys and seeds, and errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from ssdlab.errors import UsageError
from ssdlab.sweep.spec import SweepRun, plan_runs, points, read_spec

Make = Callable[..., Path]


def test_a_grid_has_every_combination_once_and_each_run_has_its_key(small: list[SweepRun]) -> None:
    assert len(small) == 12
    assert len({run.key for run in small}) == 12
    assert small[0].values == {"ftl.spare": 0.1, "ftl.victim": "greedy", "workload.skew": 0}
    assert [run.plan["skew"] for run in small[:2]] == [0.0, 1.1]
    assert small[0].flash > small[0].capacity


def test_keys_are_repeatable_and_depend_on_the_whole_run(
    spec_file: Make, small: list[SweepRun]
) -> None:
    again, more_repeats = (
        {run.key for run in plan_runs(read_spec(spec_file(more=more))[0])}
        for more in ("", "repeats = 2")
    )
    keys = {run.key for run in small}
    assert again == keys
    assert keys < more_repeats
    other_seed = plan_runs(msgspec.structs.replace(read_spec(spec_file())[0], seed=2))
    assert keys.isdisjoint(run.key for run in other_seed)


def test_repeats_of_all_points_have_the_same_seeds(spec_file: Make) -> None:
    runs = plan_runs(read_spec(spec_file(more="repeats = 3"))[0])
    assert {(run.repeat, run.plan["seed"]) for run in runs} == {(0, 1), (1, 2), (2, 3)}


def test_a_sample_takes_each_part_of_a_range_once(spec_file: Make) -> None:
    vary = (
        '"ftl.spare" = { from = 0.1, to = 0.3 }\n"workload.depth" = { from = 1, to = 8, whole = '
        'true }\n"workload.skew" = { from = 0.1, to = 10, log = true }\n"ftl.victim" = '
        '["greedy", "fifo"]'
    )
    spec = read_spec(spec_file(vary, 'design = "sample"\nsamples = 8'))[0]
    sampled = points(spec)
    spares = sorted(float(point["ftl.spare"]) for point in sampled)
    assert [int((spare - 0.1) / 0.025) for spare in spares] == list(range(8))
    assert sorted(point["workload.depth"] for point in sampled) == list(range(1, 9))
    assert sum(float(point["workload.skew"]) < 1 for point in sampled) == 4
    assert sum(point["ftl.victim"] == "fifo" for point in sampled) == 4
    assert sampled == points(spec)


@pytest.mark.parametrize(
    ("vary", "more", "reason"),
    [
        ('"ftl.spar" = [0.1]', "", "did you mean spare"),
        ('"ftl.spare" = [2.0]', "", "may be a share"),
        ('"ftl.spare" = [0.1, 0.1]', "", "each once"),
        ('"ftl.spare" = { from = 0.1, to = 0.2 }', "", "a grid takes a list"),
        ('"spare" = [0.1]', "", "TABLE.KEY"),
        ('"workload.skew" = [-1]', "", "from 0 \\(none\\) to 10"),
        ('"workload.skiw" = [1]', "", "workload.skew"),
        ('"workload.depth" = ["deep"]', "", "Expected `int`"),
        ('"ftl.spare" = [0.1]', "samples = 4", "absent in a grid"),
        ('"ftl.spare" = [0.1]', "repeat = 4", "unknown field `repeat`"),
        ('"ftl.spare" = [0.1]', 'design = "sample"', "2 or more"),
        ('"ftl.spare" = [0.07, 0.1]\n"profile" = ["nothing"]', "", "no twin called"),
        ("", "", "one key or more"),
    ],
)
def test_an_invalid_spec_is_refused_with_one_line(
    spec_file: Make, vary: str, more: str, reason: str
) -> None:
    with pytest.raises(UsageError, match=reason) as error:
        plan_runs(read_spec(spec_file(vary, more))[0])
    assert "\n" not in str(error.value)
