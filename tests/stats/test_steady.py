"""Steadiness: what the rule says of a drive's traces, while running and afterwards."""

from __future__ import annotations

import numpy as np
import pytest

from plots import traces
from plots.traces import CACHE, FAST, GB, HOUR, SCOPE, SPARE, trace
from ssdlab.stats.steady import Rule, SteadyMonitor, Verdict, first_steady

RULE = Rule.of_drive(SCOPE, SPARE, CACHE)
FLOOR_ROUND = -(-RULE.floor_bytes // RULE.round_bytes)  # the first that may be in a window


def _stopped(amounts: np.ndarray, rule: Rule = RULE) -> Verdict:
    """Where a run of one-second intervals would have stopped."""
    return first_steady(np.ones(len(amounts)), amounts, rule)


def _looks(amounts: np.ndarray, rule: Rule = RULE) -> list[Verdict]:
    """The verdicts after each round of a run that goes on whatever they say."""
    watch = SteadyMonitor(rule)
    return [watch.verdict() for amount in amounts if watch.add(1.0, float(amount))]


def _codes(verdict: Verdict) -> set[str]:
    return {failure.code for failure in verdict.failures}


def _is_steady_at(verdict: Verdict, rate: float, tolerance: float = 0.01) -> None:
    assert verdict.steady, str(verdict)
    assert verdict.mean == pytest.approx(rate, rel=tolerance)


def test_a_steady_trace_is_steady_as_soon_as_the_floor_allows() -> None:
    verdict = _stopped(trace(traces.steady))
    _is_steady_at(verdict, FAST)
    assert verdict.from_round == FLOOR_ROUND
    assert verdict.low is not None
    assert verdict.high is not None
    assert verdict.low < FAST < verdict.high


def test_a_noisy_trace_is_steady_since_rounds_average_and_its_interval_is_wider() -> None:
    calm, noisy = _stopped(trace(traces.steady)), _stopped(trace(traces.steady, noise=0.4))
    _is_steady_at(noisy, FAST, 0.02)
    assert calm.cv is not None
    assert noisy.cv is not None
    assert noisy.cv > 4 * calm.cv
    assert noisy.low is not None
    assert noisy.high is not None
    assert noisy.low < FAST < noisy.high


def test_a_drift_that_halves_the_rate_every_hour_is_never_steady() -> None:
    verdict = _stopped(trace(traces.drift))
    assert not verdict.steady
    assert {"excursion", "slope", "drift"} <= _codes(verdict)
    assert verdict.from_round is None


def test_a_drift_that_snia_allows_within_five_rounds_shows_over_the_last_half() -> None:
    slow = trace(lambda second, _: FAST * 0.5 ** (second / (2 * HOUR)))
    seen = [_codes(look) for look in _looks(slow)]
    assert {"drift"} in seen  # where nothing else speaks against it
    assert set() not in seen


def test_a_plateau_before_a_cliff_is_not_steady_and_the_rate_is_that_after_the_cliff() -> None:
    amounts = trace(traces.cliff)
    _is_steady_at(_stopped(amounts), FAST / 5)
    by_seconds = traces.stopped_by_seconds(amounts)
    assert by_seconds is not None
    assert by_seconds / (FAST / 5) == pytest.approx(5, rel=0.01)


def test_on_every_look_at_the_plateau_the_floor_is_what_is_missing() -> None:
    looks = _looks(trace(traces.cliff)[:900])
    assert len(looks) == 5
    assert not any(look.steady for look in looks)
    assert _codes(looks[-1]) == {"floor"}
    assert looks[-1].mean == pytest.approx(FAST, rel=0.01)


def test_without_a_floor_no_rule_can_know_of_the_cliff() -> None:
    _is_steady_at(_stopped(trace(traces.cliff), Rule(RULE.round_bytes, 0)), FAST)


def test_a_floor_that_ends_at_the_cliff_does_not_make_the_plateau_count() -> None:
    _is_steady_at(_stopped(trace(traces.cliff), Rule(RULE.round_bytes, 450 * GB)), FAST / 5)


def test_a_quick_sawtooth_is_steady_at_its_mean_over_time() -> None:
    verdict = _stopped(trace(traces.sawtooth(10 * GB)))
    # Seconds a byte are integrated: from 1 down to 1/2 along a line, the mean is 1 / (2 ln 2).
    _is_steady_at(verdict, FAST / (2 * np.log(2)))


def test_a_sawtooth_of_three_rounds_is_not_steady() -> None:
    verdict = _stopped(trace(traces.sawtooth(3.0 * RULE.round_bytes)))
    assert not verdict.steady
    assert "excursion" in _codes(verdict)


def test_dips_of_one_second_are_steady_and_inside_the_mean() -> None:
    _is_steady_at(_stopped(trace(traces.dips)), 0.93 * FAST)


def test_slow_settling_is_waited_for_to_within_two_per_cent() -> None:
    amounts = trace(traces.settling)
    verdict = _stopped(amounts)
    _is_steady_at(verdict, FAST / 5, 0.02)
    by_seconds = traces.stopped_by_seconds(amounts)
    assert by_seconds is not None
    assert by_seconds > 1.5 * FAST / 5


def test_two_levels_that_take_turns_slowly_are_not_steady() -> None:
    day = trace(traces.two_levels(16.0 * RULE.round_bytes), seconds=24 * HOUR)
    assert not _stopped(day).steady


def test_two_levels_that_take_turns_within_a_round_are_steady_at_their_mean() -> None:
    _is_steady_at(_stopped(trace(traces.two_levels(10 * GB))), FAST * 2 / 3)


def test_levels_of_five_rounds_each_are_unmasked_by_the_half_that_they_do_not_stand_for() -> None:
    day = trace(traces.two_levels(10.0 * RULE.round_bytes), seconds=24 * HOUR)
    seen = [_codes(look) for look in _looks(day)]
    assert {"turns"} in seen  # where nothing else speaks against it
    assert set() not in seen


def test_a_level_longer_than_half_of_all_that_was_written_passes_for_the_lasting_one() -> None:
    assert _stopped(trace(traces.two_levels(50.0 * RULE.round_bytes))).steady


def test_a_small_early_step_that_all_other_conditions_allow_is_a_change() -> None:
    amounts = trace(lambda _, written: FAST * (1.0 if written < 780 * GB else 0.92))
    seen = _looks(amounts)
    alone = [look for look in seen if _codes(look) == {"change"}]
    assert alone
    assert "changed by -8% after 7" in str(alone[0])
    assert seen[-1].steady


def test_a_stall_counts_with_all_its_time() -> None:
    amounts = trace(traces.steady)
    amounts[2000::200] = 0.0
    amounts[2001::200] = 0.0
    _is_steady_at(_stopped(amounts), 0.99 * FAST)
