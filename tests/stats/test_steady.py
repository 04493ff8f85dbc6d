"""Verdicts on traces of drives, during and after the run."""

from __future__ import annotations

import numpy as np
import pytest

from plots import traces
from plots.traces import CACHE, FAST, GB, HOUR, SCOPE, SPARE, trace
from ssdlab.stats.steady import Rule, SteadyMonitor, Verdict, first_steady

RULE = Rule.of_drive(SCOPE, SPARE, CACHE)
FLOOR_ROUND = -(-RULE.floor_bytes // RULE.round_bytes)  # the first round that may be in a window


def _stopped(amounts: np.ndarray, rule: Rule = RULE) -> Verdict:
    """The verdict at which a run with one-second intervals stops."""
    return first_steady(np.ones(len(amounts)), amounts, rule)


def _verdicts(amounts: np.ndarray, rule: Rule = RULE) -> list[Verdict]:
    """The verdict after each round of a run that does not stop."""
    monitor = SteadyMonitor(rule)
    return [monitor.verdict() for amount in amounts if monitor.add(1.0, float(amount))]


def _codes(verdict: Verdict) -> set[str]:
    return {failure.code for failure in verdict.failures}


def _assert_steady_at(verdict: Verdict, rate: float, tolerance: float = 0.01) -> None:
    assert verdict.steady, str(verdict)
    assert verdict.mean == pytest.approx(rate, rel=tolerance)


def test_a_steady_trace_is_steady_right_after_the_floor() -> None:
    verdict = _stopped(trace(traces.steady))
    _assert_steady_at(verdict, FAST)
    assert verdict.from_round == FLOOR_ROUND
    assert verdict.low is not None
    assert verdict.high is not None
    assert verdict.low < FAST < verdict.high


def test_a_noisy_trace_is_steady_with_a_wider_interval() -> None:
    calm, noisy = _stopped(trace(traces.steady)), _stopped(trace(traces.steady, noise=0.4))
    _assert_steady_at(noisy, FAST, 0.02)
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


def test_a_drift_within_the_limits_of_snia_is_found_over_the_last_half() -> None:
    slow = trace(lambda second, _: FAST * 0.5 ** (second / (2 * HOUR)))
    codes = [_codes(verdict) for verdict in _verdicts(slow)]
    assert {"drift"} in codes  # some verdict violates this condition only
    assert set() not in codes


def test_a_decline_of_a_twentieth_over_the_last_half_is_not_steady() -> None:
    slow = trace(lambda second, _: FAST * 0.5 ** (second / (4 * HOUR)))
    codes = [_codes(verdict) for verdict in _verdicts(slow)]
    after_floor = [each for each in codes if not each & {"rounds", "floor"}]
    assert after_floor[0] == {"drift"}
    assert set() not in after_floor


def test_a_plateau_before_a_cliff_is_not_steady_and_the_rate_is_that_after_the_cliff() -> None:
    amounts = trace(traces.cliff)
    _assert_steady_at(_stopped(amounts), FAST / 5)
    by_seconds = traces.stopped_by_seconds(amounts)
    assert by_seconds is not None
    assert by_seconds / (FAST / 5) == pytest.approx(5, rel=0.01)


def test_on_a_plateau_only_the_floor_condition_is_violated() -> None:
    verdicts = _verdicts(trace(traces.cliff)[:900])
    assert len(verdicts) == 5
    assert not any(verdict.steady for verdict in verdicts)
    assert _codes(verdicts[-1]) == {"floor"}
    assert verdicts[-1].mean == pytest.approx(FAST, rel=0.01)


def test_without_a_floor_the_plateau_passes_as_steady() -> None:
    _assert_steady_at(_stopped(trace(traces.cliff), Rule(RULE.round_bytes, 0)), FAST)


def test_a_floor_that_ends_at_the_cliff_still_excludes_the_plateau() -> None:
    _assert_steady_at(_stopped(trace(traces.cliff), Rule(RULE.round_bytes, 450 * GB)), FAST / 5)


def test_a_fast_sawtooth_is_steady_at_its_mean_over_time() -> None:
    verdict = _stopped(trace(traces.sawtooth(10 * GB)))
    # The rate falls linearly from 1 to 1/2 of FAST; its mean over time is 1 / (2 ln 2).
    _assert_steady_at(verdict, FAST / (2 * np.log(2)))


def test_a_sawtooth_of_three_rounds_is_not_steady() -> None:
    verdict = _stopped(trace(traces.sawtooth(3.0 * RULE.round_bytes)))
    assert not verdict.steady
    assert "excursion" in _codes(verdict)


def test_dips_of_one_second_are_steady_and_count_in_the_mean() -> None:
    _assert_steady_at(_stopped(trace(traces.dips)), 0.93 * FAST)


def test_slow_settling_is_steady_within_two_percent_of_the_final_rate() -> None:
    amounts = trace(traces.settling)
    verdict = _stopped(amounts)
    _assert_steady_at(verdict, FAST / 5, 0.02)
    by_seconds = traces.stopped_by_seconds(amounts)
    assert by_seconds is not None
    assert by_seconds > 1.5 * FAST / 5


def test_two_levels_that_alternate_slowly_are_not_steady() -> None:
    day = trace(traces.two_levels(16.0 * RULE.round_bytes), seconds=24 * HOUR)
    assert not _stopped(day).steady


def test_two_levels_that_alternate_within_a_round_are_steady_at_their_mean() -> None:
    _assert_steady_at(_stopped(trace(traces.two_levels(10 * GB))), FAST * 2 / 3)


def test_levels_of_five_rounds_each_violate_the_turns_condition() -> None:
    day = trace(traces.two_levels(10.0 * RULE.round_bytes), seconds=24 * HOUR)
    codes = [_codes(verdict) for verdict in _verdicts(day)]
    assert {"turns"} in codes  # some verdict violates this condition only
    assert set() not in codes


def test_a_rate_that_is_about_to_recover_violates_the_bend_condition() -> None:
    verdicts = _verdicts(trace(traces.valley))
    bends = [verdict for verdict in verdicts if _codes(verdict) == {"bend"}]
    assert bends
    assert "in the middle of the last half the rate was" in str(bends[0])
    _assert_steady_at(verdicts[-1], FAST)


def test_a_level_longer_than_half_of_all_bytes_passes_as_steady() -> None:
    assert _stopped(trace(traces.two_levels(50.0 * RULE.round_bytes))).steady


def test_a_small_early_step_violates_only_the_change_condition() -> None:
    amounts = trace(lambda _, written: FAST * (1.0 if written < 730 * GB else 0.92))
    verdicts = _verdicts(amounts)
    changes = [verdict for verdict in verdicts if _codes(verdict) == {"change"}]
    assert changes
    assert "changed by -8% after 7" in str(changes[0])
    assert verdicts[-1].steady


def test_stalls_count_with_their_full_time() -> None:
    amounts = trace(traces.steady)
    amounts[2000::200] = 0.0
    amounts[2001::200] = 0.0
    _assert_steady_at(_stopped(amounts), 0.99 * FAST)
