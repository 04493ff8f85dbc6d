"""Hidden flash by WAF, and WAF by hidden flash."""

from __future__ import annotations

from typing import Any

import pytest
from gauged_drive import REGION, SURE, drive, garbage_of_an_eighth

from ssdlab.analysis.write_amplification import Bracket, waf_from_alpha
from ssdlab.experiments.steady import closed_form
from ssdlab.experiments.steady.closed_form import (
    choices_least,
    contradiction,
    hidden_by_waf,
    narrowed_by_hidden,
    reconcile,
    waf_by_hidden,
)
from ssdlab.experiments.steady.estimate import Estimate
from ssdlab.experiments.steady.first_cycle import Cycle
from ssdlab.experiments.steady.garbage import AT_RANDOM, FROM_FEW, NOT_MEASURED
from ssdlab.experiments.steady.victims_at_random import waf_at_random

UNKNOWN = Estimate(None, "not measured")
SHARE = 0.15
WAF = waf_from_alpha(1 + SHARE)
STEPS = "the rate fell in several steps while trimmed parts were written"
ONLY_ONES = (AT_RANDOM, FROM_FEW, NOT_MEASURED)


@pytest.fixture(autouse=True)
def no_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    """No first cycle of collection is seen, and about two superblocks are the choice."""
    _see(monkeypatch)
    _choose(monkeypatch, 2.0)


def _see(monkeypatch: pytest.MonkeyPatch, *cycles: Cycle) -> None:
    monkeypatch.setattr(closed_form, "cycles", lambda _gauged, **_options: list(cycles))


def _choose(monkeypatch: pytest.MonkeyPatch, choices: float) -> None:
    monkeypatch.setattr(closed_form, "choices_least", lambda _gauged, _hidden: choices)


def _known(value: float, spread: float = 1.05) -> Estimate:
    return Estimate(Bracket(value, value / spread, value * spread), "")


def _by_waf(alpha: float, spread: float = 1.05, unit: int = 1, **values: Any) -> Bracket | None:
    """Hidden flash by the WAF of `alpha` with bounds that differ by this factor each way."""
    waf = unit * waf_from_alpha(alpha)
    found = hidden_by_waf(drive(**{"garbage": STEPS, "unit": unit} | values), _known(waf, spread))
    assert found is None or f"{waf:.3g}" in found.why
    return None if found is None else found.bracket


def test_waf_shows_the_hidden_flash_unless_victims_are_chosen_at_random_or_from_a_few() -> None:
    for unit in (1, 4):
        found = _by_waf(1.15, unit=unit)
        assert found is not None
        assert found.value == pytest.approx(SHARE * REGION)
        assert found.low < 0.94 * found.value < 1.06 * found.value < found.high
    assert _by_waf(1.15, spread=1.12) is None
    for other in ONLY_ONES:
        assert _by_waf(1.15, garbage=other) is None
    assert _by_waf(1.15, writes_cache=True) is None
    assert _by_waf(1.15, writes_cache=None, borrows=True) is None
    assert _by_waf(1.15, writes_cache=None) is not None
    assert _by_waf(1.15, unit=1) is not None
    assert hidden_by_waf(drive(garbage=STEPS), UNKNOWN) is None
    assert hidden_by_waf(drive(garbage=STEPS, unit=None), _known(WAF)) is None
    assert _by_waf(8.0) is None  # WAF may be 1
    assert hidden_by_waf(drive(garbage=STEPS), _known(1.0)) is None


def test_little_hidden_flash_is_not_shown_by_waf() -> None:
    """WAF then depends on the blocks that collection keeps in reserve."""
    assert _by_waf(1.04) is not None
    assert _by_waf(1.025) is None
    assert _by_waf(1.04, buffer=20.0) is None


def test_known_garbage_must_agree_and_narrows_it() -> None:
    def found(value: float, low: float, high: float) -> Bracket | None:
        return _by_waf(1.15, garbage=garbage_of_an_eighth(hidden=Bracket(value, low, high)))

    alone, within = _by_waf(1.15), found(150.0, 100.0, 200.0)
    assert within == alone
    assert found(150.0, 145.0, 155.0) == pytest.approx((150.0, 145.0, 155.0))
    assert found(130.0, 100.0, 149.0) is None
    assert found(170.0, 151.0, 200.0) is None


def test_a_choice_from_five_or_more_has_about_the_waf_of_a_choice_from_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for choices, is_known in ((4.9, False), (5.0, True)):
        _choose(monkeypatch, choices)
        assert (_by_waf(1.15, garbage=FROM_FEW) is not None) is is_known
        found = waf_by_hidden(drive(garbage=FROM_FEW), _hidden(), None)
        assert (found is not None) is is_known
    many = _by_waf(1.15, garbage=FROM_FEW)
    every = _by_waf(1.15)
    assert many is not None
    assert every is not None
    assert many.low == every.low
    assert many.high > every.high


@pytest.mark.parametrize(("late", "hidden", "choices"), [(0.5, 0.1, 3.6), (0.75, 0.1, 7.3)])
def test_the_rate_falls_by_the_share_of_picks_that_are_full(
    late: float, hidden: float, choices: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 91 written of 110, a pick is full with 0.827 to the power of the choices."""
    monkeypatch.undo()
    monkeypatch.setattr(closed_form, "late_rate", lambda _once: late)
    curves = {"curve": lambda case: case}
    assert choices_least(drive(**curves), hidden * REGION) == pytest.approx(choices, abs=0.06)
    assert choices_least(drive(is_direct_limited=True, **curves), hidden * REGION) == 0


def _hidden(share: float = SHARE, reserve: float = 1.0) -> Estimate:
    size = share * REGION
    return Estimate(Bracket(size, size, reserve * size), "")


def _by_hidden(
    by_costs: tuple[float, float] | None = None, share: float = SHARE, **values: Any
) -> Bracket | None:
    costs = None if by_costs is None else Bracket((by_costs[0] * by_costs[1]) ** 0.5, *by_costs)
    found = waf_by_hidden(drive(**{"garbage": STEPS} | values), _hidden(share), costs)
    return None if found is None else found.bracket


def test_hidden_flash_shows_waf_unless_victims_are_chosen_from_a_few() -> None:
    for unit in (1, 4):
        found = _by_hidden(unit=unit)
        assert found is not None
        assert found.low == pytest.approx(0.93 * unit * WAF)
        assert found.high == pytest.approx(1.06 * unit * WAF)
        assert found.value == pytest.approx((found.low * found.high) ** 0.5)
    for other in ONLY_ONES:
        assert _by_hidden(garbage=other) is None
    assert _by_hidden(unit=None) is None
    assert waf_by_hidden(drive(garbage=STEPS), UNKNOWN, None) is None


def test_little_hidden_flash_shows_no_waf_and_less_so_behind_a_large_buffer() -> None:
    for share, costs, is_known in (
        (0.029, (1.0, 99.0), False),
        (0.031, (1.0, 99.0), True),
        (0.039, None, False),
        (0.041, None, True),
    ):
        assert (_by_hidden(costs, share=share, buffer=0.0) is not None) is is_known, share
    assert _by_hidden(share=0.049, buffer=20.0) is None
    assert _by_hidden(share=0.051, buffer=20.0) is not None


def test_a_cache_that_takes_all_writes_adds_one_to_waf() -> None:
    plain = _by_hidden(unit=4)
    assert plain is not None
    for is_seen, least in ((True, 0.8), (None, 0.0)):
        found = _by_hidden(unit=4, borrows=True, writes_cache=is_seen)
        assert found is not None
        assert found.low == pytest.approx(plain.low + 4 * least)
        assert found.high == pytest.approx(plain.high + 4)


def test_wide_bounds_of_hidden_flash_show_no_waf() -> None:
    gauged = drive(garbage=STEPS)
    for reserve, is_known in ((1.2, True), (1.5, False)):
        found = waf_by_hidden(gauged, _hidden(reserve=reserve), None)
        assert found is not None
        assert (found.bracket is not None) is is_known


def test_costs_that_agree_narrow_waf_by_hidden_flash(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = _by_hidden()
    assert plain is not None
    assert _by_hidden((WAF, 2 * WAF)) == pytest.approx(((WAF * plain.high) ** 0.5, WAF, plain.high))
    assert _by_hidden((0.5 * WAF, 2 * WAF)) == pytest.approx(plain)
    assert _by_hidden((1.1 * WAF, 2 * WAF)) is None
    assert _by_hidden((1.05 * WAF, 2 * WAF)) is None, "they have only their ends in common"
    low, high = 0.95 * WAF, 0.97 * WAF
    cycle = Cycle(1, (2 * low, low), (2 * low, low), 1.0)
    _see(monkeypatch, cycle)
    by_cycle = _by_hidden(steady=1 / low)
    assert by_cycle is not None
    assert by_cycle.high == pytest.approx(1.05 * low, rel=0.01)
    both = _by_hidden((WAF, 1.02 * WAF), steady=1 / low)
    assert both is not None
    assert both.low == by_cycle.low
    assert both.high == pytest.approx(1.02 * WAF)
    assert _by_hidden(steady=1 / (2 * WAF)) is None, "the cycle shows twice that WAF"
    assert _by_hidden((low, high), steady=1 / (2 * WAF)) is None, "so it does if the costs agree"


def test_victims_at_random_are_as_full_as_all_flash_if_costs_agree_and_are_flat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_random: dict[str, Any] = {"garbage": AT_RANDOM}
    waf = (1 + SHARE) / SHARE
    assert _by_hidden((0.5 * waf, 2 * waf), **at_random) is None, "no fall, no cost after it"
    for decline, is_known in ((1.3, False), (0.55, False), (0.65, True), (1.2, True)):
        _see(monkeypatch, Cycle(1, (4.0, 3.0), (decline, 1.0), 1.0))
        assert (_by_hidden((0.5 * waf, 2 * waf), **at_random) is not None) is is_known
    assert _by_hidden(**at_random) is None, "no costs"
    found = _by_hidden((0.5 * waf, 2 * waf), **at_random)
    assert found is not None
    assert found.value == pytest.approx(waf)
    assert found.high == pytest.approx(1.03 * waf)
    assert _by_hidden((2 * waf, 3 * waf), **at_random) is None
    for by_trims, is_known in ((1.02, True), (1.3, False)):
        trims = Bracket(by_trims * waf, 0.9 * by_trims * waf, 1.1 * by_trims * waf)
        monkeypatch.setattr(
            closed_form, "waf_by_trimmed_parts", lambda _, found=trims: Estimate(found, "")
        )
        assert (_by_hidden((0.5 * waf, 2 * waf), **at_random) is not None) is is_known
    few = Estimate(None, "no WAF explains them")
    monkeypatch.setattr(closed_form, "waf_by_trimmed_parts", lambda _: few)
    assert _by_hidden((0.5 * waf, 2 * waf), **at_random) is None
    reserved = waf_at_random(REGION, Bracket(150.0, 150.0, 1.4 * 150.0))
    assert reserved.low == pytest.approx((1 + 1 / (1.15 * SHARE)) / 1.03), "1.4 is for a cache"
    assert reserved.high == pytest.approx(1.03 * waf)
    wide = waf_at_random(REGION, Bracket(150.0, 100.0, 160.0))
    assert wide.value == pytest.approx(((1 + 1000 / 150) * (1 + 1000 / 160)) ** 0.5)
    assert (wide.low, wide.high) == pytest.approx(((1 + 1000 / 160) / 1.03, 1.03 * 11.0))


def test_waf_by_costs_is_within_that_by_hidden_flash_if_both_overlap() -> None:
    def found(value: float, low: float, high: float, **values: Any) -> Bracket:
        gauged = drive(**{"garbage": STEPS} | values)
        return narrowed_by_hidden(gauged, _hidden(), Bracket(value, low, high))

    inside = (0.95 * WAF, 0.8 * WAF, 1.1 * WAF)
    assert found(*inside) == pytest.approx((0.95 * WAF, 0.93 * WAF, 1.06 * WAF))
    above = found(1.5 * WAF, 1.05 * WAF, 2 * WAF)
    assert above == pytest.approx(((1.05 * 1.06) ** 0.5 * WAF, 1.05 * WAF, 1.06 * WAF))
    for low, high in ((1.07, 2.0), (0.5, 0.92)):
        assert found(WAF, low * WAF, high * WAF) == (WAF, low * WAF, high * WAF)
    waf = (1 + SHARE) / SHARE
    random = found(waf, 0.5 * waf, 2 * waf, garbage=AT_RANDOM)
    assert random == pytest.approx((waf, waf / 1.03, 1.03 * waf))
    for values in ({"garbage": FROM_FEW}, {"unit": None}, {"buffer": 130.0}):
        assert found(*inside, **values) == inside


@pytest.mark.parametrize(
    ("waf", "garbage", "is_possible"),
    [
        (0.87, STEPS, False),
        (0.9, STEPS, True),
        (1.1, STEPS, True),
        (1.13, STEPS, False),
        (1.35, FROM_FEW, True),
        (1.42, FROM_FEW, False),
    ],
)
def test_waf_contradicts_hidden_flash_that_no_choice_of_victims_explains(
    waf: float, garbage: str, is_possible: bool
) -> None:
    """WAF is 0.93 to 1.06 or 1.33 times the closed form; here its bounds are 5 % from its value."""
    found = contradiction(drive(garbage=garbage), _hidden(), _known(waf * WAF))
    assert (found == "") is is_possible
    if not is_possible:
        assert f"a WAF of {WAF:.3g}" in found
        assert f"{waf * WAF / 1.05:.3g} to {waf * WAF * 1.05:.3g}" in found
        for values in ({"garbage": AT_RANDOM}, {"writes_cache": True}, {"unit": None}):
            assert not contradiction(drive(**values), _hidden(), _known(waf * WAF))
        assert not contradiction(drive(), UNKNOWN, _known(waf * WAF))
        assert not contradiction(drive(), _hidden(), UNKNOWN)


def test_behind_a_slow_link_hidden_flash_may_be_a_buffer_and_shows_no_waf() -> None:
    """Unless known garbage shows the hidden flash, and large writes show a buffer."""
    garbage, seen = garbage_of_an_eighth(), float(128 << 10)
    for values, is_known in (
        ({}, True),
        ({"is_direct_limited": True, "unseen_buffer": 0.0}, False),
        ({"is_direct_limited": True, "unseen_buffer": 0.0, "garbage": garbage}, False),
        ({"is_direct_limited": True, "buffer": seen, "region": 100 * seen}, False),
        ({"is_direct_limited": True, "buffer": seen, "garbage": garbage}, True),
    ):
        gauged = drive(**{"garbage": STEPS, "region": 100 * seen} | values)
        size = SHARE * gauged.region
        hidden = Estimate(Bracket(size, size, 1.05 * size), "")
        assert (waf_by_hidden(gauged, hidden, None) is not None) is is_known, values


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        ({"garbage": garbage_of_an_eighth()}, (False, True)),
        ({"garbage": garbage_of_an_eighth(trimmed=0.25)}, (False, False)),
        ({"garbage": garbage_of_an_eighth(trimmed=0.25), "misses_map": True}, (True, False)),
        ({"garbage": STEPS, "misses_map": True}, (False, False)),
    ],
)
def test_of_two_estimates_that_cannot_both_be_right_the_surer_one_is_kept(
    values: dict[str, Any], kept: tuple[bool, bool]
) -> None:
    gauged = drive(**values)
    hidden, waf = _hidden(), _known(3 * WAF)
    found = reconcile(gauged, hidden, waf)
    assert tuple(each.bracket is not None for each in found) == kept
    for each in found:
        assert each.bracket is not None or "but the cost of writes shows" in each.why
    assert reconcile(gauged, hidden, _known(WAF)) == (hidden, _known(WAF))


@pytest.mark.parametrize(
    ("by_costs", "by_cycle", "is_kept"),
    [((8.0, 11.0), 10.0, True), ((8.0, 9.0), 10.0, False), (None, 10.0, False)],
)
def test_waf_that_two_ways_show_outweighs_the_hidden_flash(
    by_costs: tuple[float, float] | None,
    by_cycle: float,
    is_kept: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bounds = None if by_costs is None else Bracket(10.0, *by_costs)
    monkeypatch.setattr(closed_form, "waf_by_costs", lambda _gauged: bounds)
    _see(monkeypatch, SURE)
    gauged = drive(garbage=STEPS, steady=1 / by_cycle)
    hidden, waf = reconcile(gauged, _hidden(), _known(3 * WAF))
    assert hidden.bracket is None
    assert (waf.bracket is not None) is is_kept
    garbage = garbage_of_an_eighth(trimmed=0.25)
    by_garbage = drive(garbage=garbage, misses_map=True, steady=gauged.steady)
    kept, unknown = reconcile(by_garbage, _hidden(), _known(3 * WAF))
    assert (kept.bracket is None, unknown.bracket is None) == (False, True)
