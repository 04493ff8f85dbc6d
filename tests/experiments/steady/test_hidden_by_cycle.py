"""Hidden flash by the fall of the rate, if the cost of writes after it is that of collection."""

from __future__ import annotations

from typing import Any

import pytest
from gauged_drive import FLAT, LIKELY, NEITHER, SURE, drive, drop, garbage_of_an_eighth

from ssdlab.analysis.write_amplification import Bracket, waf_from_alpha
from ssdlab.experiments.steady import hidden_flash as hidden
from ssdlab.experiments.steady import victims_at_random
from ssdlab.experiments.steady.estimate import Estimate
from ssdlab.experiments.steady.first_cycle import Cycle
from ssdlab.experiments.steady.garbage import AT_RANDOM, FROM_FEW
from ssdlab.experiments.steady.hidden_flash import hidden_flash


def _hidden_flash(
    monkeypatch: pytest.MonkeyPatch, *cycles: Cycle, at: float = 100.0, **values: Any
) -> Estimate:
    """Hidden flash if the rate falls at this position, and large writes show no fall."""
    monkeypatch.setattr(hidden, "cycles", lambda *_args, **_options: list(cycles))
    gauges = {"fall": drop(at), "large_fall": None, "may_hide_cache": True, "buffer": 0.0}
    return hidden_flash(drive(**gauges | values))


def test_the_cost_after_a_fall_shows_that_collection_began_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """15 % of hidden flash has a WAF of 4.2, in a cycle or at random, of 7.7."""
    cost = 1 / waf_from_alpha(1.15)
    found = _hidden_flash(monkeypatch, SURE, at=150.0, steady=cost)
    assert found.bracket is not None
    assert found.bracket.value == 150.0
    assert _hidden_flash(monkeypatch, at=150.0, steady=cost).bracket is None
    assert _hidden_flash(monkeypatch, NEITHER, at=150.0, steady=cost).bracket is None
    assert _hidden_flash(monkeypatch, LIKELY, at=150.0, steady=cost).bracket is None
    few = {"garbage": FROM_FEW, "steady": cost}
    assert _hidden_flash(monkeypatch, LIKELY, at=150.0, **few).bracket is not None
    unseen = _hidden_flash(monkeypatch, SURE, at=150.0, steady=cost, unseen_buffer=10.0)
    assert unseen.bracket is not None
    assert unseen.bracket.low == pytest.approx(found.bracket.low - 10.0)
    for other in (0.78 * cost, 1.4 * cost):
        assert _hidden_flash(monkeypatch, SURE, at=150.0, steady=other).bracket is None
    without = {"has_single_reads": False, "is_steady_limited": True, "unit": None}
    for name, value in without.items():
        gauges = {"steady": cost, name: value}
        assert _hidden_flash(monkeypatch, SURE, at=150.0, **gauges).bracket is None, name


@pytest.mark.parametrize(
    ("own", "hidden_bytes"),
    [
        (False, (200.0, 198.0, 1.15 * 202.0)),
        (None, (200.0, 158.0, 1.15 * 202.0)),
        (True, (170.0, 158.0, 1.15 * 182.0)),
    ],
)
def test_a_cache_that_may_have_flash_of_its_own_may_have_taken_what_precedes_the_fall(
    own: bool | None, hidden_bytes: tuple[float, float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = {"cache": 30.0, "cached": Bracket(30.0, 20.0, 40.0), "has_own_flash": own}
    cost = 1 / waf_from_alpha(1.18)
    gauges = {"unit": 1, "fall": drop(200.0), "buffer": 0.0, "steady": cost}
    monkeypatch.setattr(hidden, "cycles", lambda *_args, **_options: [SURE])
    found = hidden._hidden_by_cycle(drive(**gauges, **cache))
    assert found is not None
    assert found.bracket == pytest.approx(hidden_bytes)
    unseen = drive(**gauges, rested_writes_cache=True)
    assert hidden._hidden_by_cycle(unseen) is None


@pytest.mark.parametrize(("cache", "is_known"), [(199.0, True), (201.0, False)])
def test_a_fall_before_a_borrowed_cache_is_full_shows_no_hidden_flash(
    cache: float, is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache may have run out of flash, of which its data take several times their size."""
    monkeypatch.setattr(hidden, "cycles", lambda *_args, **_options: [SURE])
    borrowed = {"cache": cache, "borrows": True, "has_own_flash": False}
    cost = {"steady": 1 / waf_from_alpha(1.2), "erased": 1.0}
    found = hidden._hidden_by_cycle(drive(fall=drop(200.0), buffer=0.0, **cost, **borrowed))
    assert (found is not None) is is_known


@pytest.mark.parametrize(
    ("values", "is_known"),
    [
        ({}, True),
        ({"direct": 0.6}, False),
        ({"direct": 1.6}, False),
        ({"is_direct_limited": True, "unseen_buffer": 0.0}, False),
    ],
)
def test_the_cost_of_victims_at_random_shows_it_if_it_is_flat(
    values: dict[str, Any], is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    random: dict[str, Any] = {"garbage": AT_RANDOM, "steady": 0.15 / 1.15, "at": 150.0}
    found = _hidden_flash(monkeypatch, FLAT, **random | values)
    assert (found.bracket is not None) is is_known
    assert _hidden_flash(monkeypatch, SURE, **random).bracket is None


@pytest.mark.parametrize(("waf_of_writes", "is_known"), [(4.2, True), (2.9, False), (7.0, False)])
def test_hidden_flash_that_no_choice_of_victims_explains_is_not_reported(
    waf_of_writes: float, is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """15 % of hidden flash has a WAF of 3.6 (greedy) to 5.6 (the emptier of two)."""
    gauges = {"fall": drop(150.0), "large_fall": drop(150.0), "buffer": 0.0}
    monkeypatch.setattr(hidden, "cycles", lambda *_args, **_options: [SURE])
    gauged = drive(steady=1 / waf_of_writes, direct=1.0, **gauges)
    found = hidden_flash(gauged)
    assert (found.bracket is not None) is is_known
    assert is_known or "no choice of victims" in found.why
    for other in ({"unit": None}, {"has_single_reads": False}):
        assert not hidden._contradiction(drive(steady=0.2, **other), Bracket(900.0, 900.0, 950.0))
    random = drive(steady=0.25, garbage=AT_RANDOM)
    assert not hidden._contradiction(random, Bracket(900.0, 900.0, 950.0))


@pytest.mark.parametrize(
    ("rate", "values", "is_known"),
    [
        (1 / 8, {}, True),
        (1 / 20, {}, False),
        (1 / 4, {}, False),
        (1 / 4, {"is_direct_limited": True, "unseen_buffer": 0.0}, True),
        (1 / 4, {"may_write_cache": True}, True),
    ],
)
def test_hidden_flash_must_allow_the_waf_that_known_garbage_shows(
    rate: float, values: dict[str, Any], is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """15 % of hidden flash has a WAF of 3.6 to 5.6, and known garbage one of 40 x `rate`."""
    garbage = garbage_of_an_eighth(rate=rate, hidden=Bracket(150.0, 149.0, 151.0))
    found = _hidden_flash(monkeypatch, garbage=garbage, **values)
    assert (found.bracket is not None) is is_known
    assert is_known or "the WAF by known garbage" in found.why


@pytest.mark.parametrize(
    ("by_costs", "is_known"), [((5.0, 12.0), True), ((8.0, 12.0), False), ((5.0, 7.0), False)]
)
def test_bounds_by_programs_and_reads_decide_about_victims_at_random_if_they_are_known(
    by_costs: tuple[float, float], is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """15 % of hidden flash has a WAF of 7.7, although a write costs 11 programs."""
    random: dict[str, Any] = {"garbage": AT_RANDOM, "steady": 1 / 11, "at": 150.0}
    assert _hidden_flash(monkeypatch, FLAT, **random).bracket is None
    bounds = Bracket(6.0, *by_costs)
    monkeypatch.setattr(victims_at_random, "waf_by_costs", lambda _gauged: bounds)
    found = _hidden_flash(monkeypatch, FLAT, **random)
    assert (found.bracket is not None) is is_known
