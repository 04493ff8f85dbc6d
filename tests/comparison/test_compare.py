"""Verdicts of comparisons, differences in the method, and comparisons that are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ssdlab.comparison.method import Side, make_side, pair_runs
from ssdlab.comparison.verdict import SideVerdict, compare, direction_of
from ssdlab.errors import UsageError
from ssdlab.records import Finding, Run

MakeRun = Callable[..., Run]
NOISE = 0.05


def _rate(value: float, low: float | None = None, high: float | None = None) -> dict[str, Finding]:
    return {"iops": Finding(value, "/s", low, high, "")}


def _in_turns(make_run: MakeRun, rates: list[float]) -> Run:
    rows = [
        {"turn": at, "job": "random read", "op": "read", "iops": iops, "latency_us_p50": 1e6 / iops}
        for at, iops in enumerate(rates)
    ]
    return make_run(experiment="turns", parameters={"session": "s"}, measures=rows)


def _compare(first: list[Run], second: list[Run], **options: Any) -> SideVerdict:
    return compare([make_side("a", first), make_side("b", second)], **options).others[0]


def _noisy(generator: np.random.Generator, level: float, count: int) -> list[float]:
    return [float(x) for x in level * np.exp(generator.normal(0.0, NOISE, count))]


def test_equal_sides_in_turns_show_no_difference_in_95_of_100_trials(make_run: MakeRun) -> None:
    generator = np.random.default_rng(8)
    not_shown = 0
    for _ in range(100):
        drift = np.exp(np.cumsum(generator.normal(0.0, 0.1, 20)))  # affects both sides
        pair = [
            _in_turns(make_run, list(np.array(_noisy(generator, 1000.0, 20)) * drift))
            for _ in range(2)
        ]
        not_shown += _compare(pair[:1], pair[1:]).verdict == "no difference shown"
    assert not_shown >= 95


@pytest.mark.parametrize(("level", "word"), [(1100.0, "faster"), (1000 / 1.1, "slower")])
def test_a_10_percent_difference_is_found_under_5_percent_noise_in_90_of_100_trials(
    make_run: MakeRun, level: float, word: str
) -> None:
    generator = np.random.default_rng(9)
    comparison = 0
    for _ in range(100):
        first, second = (_noisy(generator, mean, 20) for mean in (1000.0, level))
        result = _compare([_in_turns(make_run, first)], [_in_turns(make_run, second)])
        comparison += result.verdict == word
    assert comparison >= 90


def test_eight_repeats_per_side_find_a_15_percent_difference(make_run: MakeRun) -> None:
    generator = np.random.default_rng(2)
    groups = [
        [make_run(findings=_rate(rate)) for rate in _noisy(generator, level, 8)]
        for level in (1000.0, 1150.0)
    ]
    result = _compare(*groups)
    assert result.verdict == "faster"
    assert result.numbers[0].number.why == "8 and 8 runs"


def test_single_runs_on_a_real_clock_get_run_to_run_variation_added(
    make_run: MakeRun,
) -> None:
    first = make_run(findings=_rate(1000.0, 999.0, 1001.0))
    tenth, half = (
        _compare([first], [make_run(findings=_rate(level, level - 1, level + 1))])
        for level in (1100.0, 1500.0)
    )
    assert tenth.verdict == "no difference shown"
    assert half.verdict == "faster"
    assert "from run to run" in half.numbers[0].number.why


def test_a_number_of_unknown_error_is_not_judged(make_run: MakeRun) -> None:
    result = _compare([make_run(findings=_rate(1000.0))], [make_run(findings=_rate(1500.0))])
    assert result.verdict == "not judged"
    assert "several runs" in result.sentence


def test_twins_with_the_same_seed_are_compared_exactly(make_run: MakeRun) -> None:
    twins = [
        make_run(virtual=True, seed=1, findings=_rate(level)) for level in (100.0, 100.5, 120, 80)
    ]
    assert _compare(twins[:1], twins[1:2]).verdict == "no difference shown"
    assert _compare(twins[:1], twins[2:3]).verdict == "faster"
    assert _compare(twins[:1], twins[3:]).verdict == "slower"


def test_the_sentence_says_whether_a_ratio_is_of_a_time_or_a_rate(make_run: MakeRun) -> None:
    def sentence(findings: dict[str, Finding], faster: dict[str, Finding]) -> str:
        return _compare(
            *([make_run(virtual=True, seed=1, findings=each)] for each in (findings, faster))
        ).sentence

    rate = sentence(_rate(100.0), _rate(200.0))
    assert "faster in 1 of 1 numbers; most in " in rate
    assert rate.endswith("2 times as high.")
    times = [{"latency_us_p99": Finding(value, "us", None, None, "")} for value in (100.0, 52.0)]
    assert sentence(*times).endswith("0.52 times as long.")


def test_p_is_adjusted_over_all_sides(make_run: MakeRun) -> None:
    generator = np.random.default_rng(4)
    runs = [_in_turns(make_run, _noisy(generator, 1000.0, 20)) for _ in range(4)]
    comparison = compare([Side(str(at), (run,)) for at, run in enumerate(runs)])
    assert comparison.count == 6
    assert all(
        one.p_holm is not None and one.number.p is not None and one.p_holm >= one.number.p
        for other in comparison.others
        for one in other.numbers
    )


def test_different_parameters_need_the_option_settings(
    make_run: MakeRun,
) -> None:
    first, second = (
        make_run(findings=_rate(10.0, 9.0, 11.0), parameters={"depth": depth}) for depth in (1, 4)
    )
    with pytest.raises(UsageError, match=r"depth: 1 / 4.*--settings"):
        _compare([first], [second])
    assert _compare([first], [second], settings=True).verdict == "no difference shown"


def test_differences_other_than_the_method_are_listed(make_run: MakeRun) -> None:
    changes = {"target": "/mnt/other", "versions": {"ssdlab": "0.2.0", "kernel": "6.1"}}
    runs = [make_run(findings=_rate(10.0, 9.0, 11.0), **fields) for fields in ({}, changes)]
    comparison = compare([Side(name, (run,)) for name, run in zip("ab", runs, strict=True)])
    differences = {one.what: one.values for one in comparison.differences}
    assert differences["target"] == ("/mnt/data", "/mnt/other")
    assert differences["version of ssdlab"] == ("0.1.0", "0.2.0")
    assert "version of kernel" not in differences


def test_runs_that_cannot_be_compared_are_refused(make_run: MakeRun) -> None:
    one = make_run(findings=_rate(1.0))
    with pytest.raises(UsageError, match="different experiments"):
        _compare([one], [make_run(experiment="split")])
    with pytest.raises(UsageError, match="given twice"):
        _compare([one], [one])
    with pytest.raises(UsageError, match="not repeats of one another"):
        _compare([one, make_run(target="/mnt/other")], [make_run()])
    with pytest.raises(UsageError, match="no number in common"):
        _compare([one], [make_run()])


def test_alternating_runs_are_paired_and_others_are_not(make_run: MakeRun) -> None:
    runs = [make_run() for _ in range(4)]
    first, second = [runs[0], runs[3]], [runs[1], runs[2]]
    assert pair_runs(make_side("a", first), make_side("b", second)) == (first, second)
    assert pair_runs(make_side("a", runs[:2]), make_side("b", runs[2:])) is None


@pytest.mark.parametrize(
    ("name", "unit", "word"),
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
def test_the_word_for_a_larger_value_follows_from_name_and_unit(
    name: str, unit: str, word: str
) -> None:
    assert direction_of(name, unit).above == word
