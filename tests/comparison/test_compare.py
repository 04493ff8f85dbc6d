"""Faster, slower, no difference shown; what differs is named, what cannot be compared refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ssdlab.comparison.sense import sense_of
from ssdlab.comparison.side import Side, in_pairs, sides
from ssdlab.comparison.verdict import Compared, compare
from ssdlab.errors import UsageError
from ssdlab.records import Finding, Run

MakeRun = Callable[..., Run]
NOISE = 0.05


def _rate(value: float, low: float | None = None, high: float | None = None) -> dict[str, Finding]:
    return {"iops": Finding(value, "/s", low, high, "")}


def _in_turns(make_run: MakeRun, rates: list[float]) -> Run:
    rows = [
        {"turn": at, "job": "random read", "op": "read", "iops": each, "latency_us_p50": 1e6 / each}
        for at, each in enumerate(rates)
    ]
    return make_run(experiment="turns", parameters={"session": "s"}, measures=rows)


def _held(first: list[Run], second: list[Run], **how: Any) -> Compared:
    return compare(sides([("a", first), ("b", second)]), **how).others[0]


def _noisy(generator: np.random.Generator, level: float, count: int) -> list[float]:
    return [float(x) for x in level * np.exp(generator.normal(0.0, NOISE, count))]


def test_equal_sides_in_turns_show_no_difference_in_95_of_100_trials(make_run: MakeRun) -> None:
    generator = np.random.default_rng(8)
    silent = 0
    for _ in range(100):
        drift = np.exp(np.cumsum(generator.normal(0.0, 0.1, 20)))  # of the machine: hits both
        pair = [
            _in_turns(make_run, list(np.array(_noisy(generator, 1000.0, 20)) * drift))
            for _ in range(2)
        ]
        silent += _held(pair[:1], pair[1:]).verdict == "no difference shown"
    assert silent >= 95


@pytest.mark.parametrize(("level", "word"), [(1100.0, "faster"), (1000 / 1.1, "slower")])
def test_a_true_tenth_under_noise_of_a_twentieth_is_found_in_90_of_100_trials(
    make_run: MakeRun, level: float, word: str
) -> None:
    generator = np.random.default_rng(9)
    found = 0
    for _ in range(100):
        first, second = (_noisy(generator, each, 20) for each in (1000.0, level))
        held = _held([_in_turns(make_run, first)], [_in_turns(make_run, second)])
        found += held.verdict == word
    assert found >= 90


def test_repeats_of_runs_on_both_sides_find_a_tenth(make_run: MakeRun) -> None:
    generator = np.random.default_rng(2)
    groups = [
        [make_run(findings=_rate(each)) for each in _noisy(generator, level, 8)]
        for level in (1000.0, 1150.0)
    ]
    held = _held(*groups)
    assert held.verdict == "faster"
    assert held.judged[0].number.why == "8 and 8 runs"


def test_a_single_run_of_each_on_a_real_clock_allows_for_what_runs_differ_by(
    make_run: MakeRun,
) -> None:
    first = make_run(findings=_rate(1000.0, 999.0, 1001.0))
    tenth, half = (
        _held([first], [make_run(findings=_rate(level, level - 1, level + 1))])
        for level in (1100.0, 1500.0)
    )
    assert tenth.verdict == "no difference shown"
    assert half.verdict == "faster"
    assert "from run to run" in half.judged[0].number.why


def test_a_number_without_any_error_is_not_judged(make_run: MakeRun) -> None:
    held = _held([make_run(findings=_rate(1000.0))], [make_run(findings=_rate(1500.0))])
    assert held.verdict == "not judged"
    assert "several runs" in held.sentence


def test_twins_of_one_seed_are_exact(make_run: MakeRun) -> None:
    twins = [
        make_run(virtual=True, seed=1, findings=_rate(level)) for level in (100.0, 100.5, 120, 80)
    ]
    assert _held(twins[:1], twins[1:2]).verdict == "no difference shown"
    assert _held(twins[:1], twins[2:3]).verdict == "faster"
    assert _held(twins[:1], twins[3:]).verdict == "slower"


def test_more_sides_are_judged_as_one_family(make_run: MakeRun) -> None:
    generator = np.random.default_rng(4)
    runs = [_in_turns(make_run, _noisy(generator, 1000.0, 20)) for _ in range(4)]
    found = compare([Side(str(at), (run,)) for at, run in enumerate(runs)])
    assert found.count == 6
    assert all(
        each.p_holm is not None and each.number.p is not None and each.p_holm >= each.number.p
        for other in found.others
        for each in other.judged
    )


def test_parameters_that_differ_are_refused_unless_they_are_what_is_compared(
    make_run: MakeRun,
) -> None:
    first, second = (
        make_run(findings=_rate(10.0, 9.0, 11.0), parameters={"depth": depth}) for depth in (1, 4)
    )
    with pytest.raises(UsageError, match=r"depth: 1 / 4.*--settings"):
        _held([first], [second])
    assert _held([first], [second], settings=True).verdict == "no difference shown"


def test_what_differs_beside_the_method_is_named(make_run: MakeRun) -> None:
    changes = {"target": "/mnt/other", "versions": {"ssdlab": "0.2.0", "kernel": "6.1"}}
    runs = [make_run(findings=_rate(10.0, 9.0, 11.0), **each) for each in ({}, changes)]
    found = compare(sides([("a", runs[:1]), ("b", runs[1:])]))
    named = {each.what: each.values for each in found.differences}
    assert named["target"] == ("/mnt/data", "/mnt/other")
    assert named["version of ssdlab"] == ("0.1.0", "0.2.0")
    assert "version of kernel" not in named


def test_runs_of_other_experiments_and_one_run_twice_are_refused(make_run: MakeRun) -> None:
    one = make_run(findings=_rate(1.0))
    with pytest.raises(UsageError, match="different questions"):
        _held([one], [make_run(experiment="split")])
    with pytest.raises(UsageError, match="given twice"):
        _held([one], [one])
    with pytest.raises(UsageError, match="no repeats of one another"):
        _held([one, make_run(target="/mnt/other")], [make_run()])
    with pytest.raises(UsageError, match="no number in common"):
        _held([one], [make_run()])


def test_runs_that_took_turns_are_pairs_and_others_are_not(make_run: MakeRun) -> None:
    runs = [make_run() for _ in range(4)]
    mixed = sides([("a", [runs[0], runs[3]]), ("b", [runs[1], runs[2]])])
    apart = sides([("a", runs[:2]), ("b", runs[2:])])
    assert in_pairs(mixed[0], mixed[1]) == ([runs[0], runs[3]], [runs[1], runs[2]])
    assert in_pairs(apart[0], apart[1]) is None


@pytest.mark.parametrize(
    ("name", "unit", "more"),
    [
        ("iops", "/s", "faster"),
        ("read_mib_per_s", "", "faster"),
        ("read_ms", "", "slower"),
        ("sync_us_p50", "", "slower"),
        ("mean", "us", "slower"),
        ("mean", "", "faster"),
        ("waf", "", "worse"),
        ("chunk_kib", "KiB", "higher"),
    ],
)
def test_more_of_a_number_has_its_word(name: str, unit: str, more: str) -> None:
    assert sense_of(name, unit).more == more
