"""A fit starts again from other profiles if no twin near the first one explains the results."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ssdlab import profiles
from ssdlab.analysis.cells import Cell
from ssdlab.errors import UsageError
from ssdlab.fit import starts
from ssdlab.fit.checks import FITTED, HELD_OUT, Check
from ssdlab.fit.results import FitInput
from ssdlab.fit.starts import OTHERS, attempts

INPUT = FitInput()


def _fitted(
    *errors: float, held_out: float = 9.0, contradicted: bool = False, excess: float = 2.0
) -> Any:
    cell = Cell(("read",), "iops", 100.0)
    checks = [Check("suite", cell, 100.0 * (1 + error), FITTED) for error in errors]
    checks.append(Check("suite", cell, held_out * 100, HELD_OUT))
    return SimpleNamespace(checks=tuple(checks), contradicted=contradicted, excess=excess)


def _fit_from(monkeypatch: pytest.MonkeyPatch, results: dict[str, Any]) -> list[str]:
    """Fits have these results by start profile; returns the starts that were tried."""
    tried = list[str]()
    names = {profiles.load(name): name for name in results}

    def fit(text: str, *_arguments: Any) -> Any:
        tried.append(names[text])
        result = results[names[text]]
        if isinstance(result, UsageError):
            raise result
        return result

    monkeypatch.setattr(starts, "fit", fit)
    return tried


def test_a_start_that_explains_the_results_is_the_only_one(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = _fit_from(monkeypatch, {"toshiba-xg5": _fitted(0.06, -0.02)})
    [found] = attempts("toshiba-xg5", INPUT, "test")
    assert (found.start, tried) == ("toshiba-xg5", ["toshiba-xg5"])
    assert found.error == pytest.approx(0.04), "held-out values do not count"


def test_others_are_tried_until_one_explains_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = OTHERS
    results = {second: _fitted(0.5), first: _fitted(-0.3), third: _fitted(0.01)}
    tried = _fit_from(monkeypatch, results)
    assert [each.start for each in attempts(second, INPUT, "test")] == [third, first, second]
    assert tried == [second, first, third]
    tried.clear()
    results[first] = _fitted(0.04)
    assert [each.start for each in attempts(second, INPUT, "test")] == [first, second]
    assert tried == [second, first]


@pytest.mark.parametrize(("excess", "is_contradicted"), [(1.0, False), (1.2, False), (1.0, True)])
def test_results_that_scatter_as_much_need_no_other_start(
    monkeypatch: pytest.MonkeyPatch, excess: float, is_contradicted: bool
) -> None:
    first, second, third = OTHERS
    noisy = _fitted(0.08, excess=excess, contradicted=is_contradicted)
    tried = _fit_from(monkeypatch, {first: noisy, second: _fitted(0.5), third: _fitted(0.5)})
    attempts(first, INPUT, "test")
    assert tried == ([first] if excess == 1.0 and not is_contradicted else list(OTHERS))


def test_a_profile_that_cannot_be_fitted_is_left_out_unless_it_is_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second, third = OTHERS
    unusable = UsageError("unusable")
    _fit_from(monkeypatch, {first: _fitted(0.5), second: unusable, third: _fitted(0.4)})
    assert [each.start for each in attempts(first, INPUT, "test")] == [third, first]
    with pytest.raises(UsageError, match="unusable"):
        attempts(second, INPUT, "test")


def test_a_fit_that_the_rates_of_steady_contradict_is_not_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second, third = OTHERS
    contradicted = _fitted(0.01, contradicted=True)
    results = {first: contradicted, second: _fitted(0.04), third: _fitted(0.0)}
    tried = _fit_from(monkeypatch, results)
    assert [each.start for each in attempts(first, INPUT, "test")] == [second, first]
    assert tried == [first, second]
    # One that is far better in everything else stays the best.
    results |= {second: _fitted(0.07), third: _fitted(0.3)}
    assert [each.start for each in attempts(first, INPUT, "test")] == [first, second, third]
    results |= {second: _fitted(0.055)}
    assert [each.start for each in attempts(first, INPUT, "test")] == [second, first, third]
