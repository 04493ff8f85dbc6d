"""Rate drops on synthetic curves, and curves without one."""

from __future__ import annotations

import numpy as np
import pytest

from ssdlab.stats import rate_drops as module
from ssdlab.stats.rate_drops import (
    STEEP_FACTOR,
    RateDrop,
    bytes_as_fast,
    first_drop,
    last_drop,
    rate_drops,
    steepness,
)
from ssdlab.stats.steady import Progress

Level = tuple[float, float]  # bytes, bytes per second


def _curve(*levels: Level, step_s: float = 0.001, noise: float = 0.0) -> Progress:
    """A load with consecutive levels, in intervals of `step_s`."""
    marks = np.concatenate(([0.0], np.cumsum([size for size, _ in levels])))
    times = np.concatenate(([0.0], np.cumsum([size / rate for size, rate in levels])))
    ends = np.append(np.arange(step_s, times[-1], step_s), times[-1])
    written = np.diff(np.interp(np.concatenate(([0.0], ends)), times, marks))
    seconds = np.diff(np.concatenate(([0.0], ends)))
    factors = np.random.default_rng(1).lognormal(0.0, noise, len(seconds)) if noise else 1.0
    kept = seconds > 1e-12
    return Progress((seconds * factors)[kept], written[kept])


def test_a_drop_is_located_more_precisely_than_by_intervals() -> None:
    (drop,) = rate_drops(_curve((333.3, 1000), (2000, 250)))
    assert drop.at == pytest.approx(333.3, abs=1.0)
    assert drop.low < 333.3 < drop.high
    assert drop.before == pytest.approx(1000, rel=0.01)
    assert drop.after == pytest.approx(250, rel=0.01)


def test_a_buffer_and_a_cache_give_two_drops() -> None:
    curve = _curve((100, 2000), (400, 600), (1500, 100))
    places = [drop.at for drop in rate_drops(curve)]
    assert places == [pytest.approx(100, abs=5), pytest.approx(500, abs=5)]


def test_the_buffer_size_is_the_bytes_beyond_the_lower_rate() -> None:
    """64 bytes fill at 2000/s and drain at 500/s: full after 64 x 2000 / 1500 bytes."""
    curve = _curve((64 * 2000 / 1500, 2000), (1000, 500))
    (drop,) = rate_drops(curve)
    assert drop.buffered == pytest.approx(64, rel=0.02)


def test_the_bytes_of_an_initial_burst_are_ahead_of_the_level() -> None:
    curve = _curve((64 * 2000 / 1500, 2000), (400, 500), (1000, 50))
    assert rate_drops(curve)[-1].ahead == pytest.approx(64, rel=0.02)


def test_a_temporary_dip_and_a_burst_are_not_drops() -> None:
    dip = _curve((500, 100), (10, 5), (1000, 100))
    burst = _curve((500, 100), (50, 2000), (1000, 100))
    assert rate_drops(dip) == ()
    assert rate_drops(burst) == ()


def test_a_stall_does_not_hide_a_drop() -> None:
    curve = _curve((500, 1000), (2, 40), (500, 1000), (2000, 250))
    (drop,) = rate_drops(curve)
    assert drop.at == pytest.approx(1002, rel=0.02)


def test_a_drive_that_collects_in_bursts_is_slower_after_a_drop() -> None:
    """It takes bursts at full speed and stops between them; only longer slices are all slower."""
    curve = _curve((50, 4000), (400, 1000), *[(100, 1000), (10, 1)] * 500, step_s=0.004)
    drop, early = last_drop(curve, in_bursts=True), last_drop(curve)
    assert drop is not None
    assert drop.at == pytest.approx(500, abs=50)
    assert early is None or early.at < 100
    assert first_drop(curve, 4000, 200) is None
    first = first_drop(curve, 4000, 200, in_bursts=True)
    assert first is not None
    assert first.at == pytest.approx(500, abs=50)


def test_bursts_at_a_constant_mean_rate_are_no_drop() -> None:
    curve = _curve((50, 4000), *[(27, 1000), (3, 1)] * 300, step_s=0.01)
    found = last_drop(curve, in_bursts=True)
    assert found is None or found.at < 100


def test_noise_has_no_drop_and_does_not_hide_one() -> None:
    assert rate_drops(_curve((3000, 1000), noise=0.8)) == ()
    (drop,) = rate_drops(_curve((1000, 1000), (2000, 250), noise=0.3))
    assert drop.at == pytest.approx(1000, rel=0.05)


def test_an_early_drop_in_a_long_write_is_found_at_a_higher_resolution() -> None:
    curve = _curve((10, 2000), (20_000, 500))
    assert rate_drops(curve) == ()
    early = last_drop(curve)
    assert early is not None
    assert early.at == pytest.approx(10, rel=0.1)


def test_two_drops_that_look_like_one_in_a_long_write_are_told_apart() -> None:
    """Between them the rate is that of a cache that is slower than the link."""
    last = last_drop(_curve((45, 1670), (24, 1115), (1695, 389), step_s=0.0005))
    assert last is not None
    assert last.at == pytest.approx(69, rel=0.02)
    assert last.before == pytest.approx(1115, rel=0.02)


def test_the_first_drop_is_found_at_the_highest_resolution() -> None:
    curve = _curve((20, 2000), (5000, 600), (10_000, 100))
    last = last_drop(curve)
    assert last is not None
    first = first_drop(curve, 0.9 * last.at)
    assert first is not None
    assert first.at == pytest.approx(20, rel=0.1)
    assert last.at == pytest.approx(5020, rel=0.02)


def test_the_ramp_of_the_first_requests_is_not_a_drop() -> None:
    """It hides neither that there is no steep drop nor a gentle one later."""
    mib = 1 << 20
    curve = _curve((0.1 * mib, 9000.0), (320 * mib, 6000.0), (800 * mib, 4500.0), step_s=0.5)
    ramp = last_drop(curve)
    assert ramp is not None
    assert ramp.at < 0.3 * mib
    assert last_drop(curve, least=0.3 * mib) is None
    assert steepness(curve, 0.0) == STEEP_FACTOR
    gentle = steepness(curve, 0.3 * mib)
    drop = last_drop(curve, steep=gentle, least=0.3 * mib)
    assert drop is not None
    assert drop.at == pytest.approx(320 * mib, rel=0.02)


def test_a_small_decrease_is_not_a_drop() -> None:
    curve = _curve((1000, 1000), (2000, 850))
    assert rate_drops(curve) == ()
    assert last_drop(curve) is None


def test_a_load_without_writes_has_no_drops() -> None:
    assert rate_drops(Progress([1.0], [0.0])) == ()
    assert last_drop(Progress([], [])) is None


@pytest.mark.parametrize("seed", range(40))
def test_candidates_are_those_of_the_definition(seed: int) -> None:
    """Where the median of the next slices rises above all medians before, not too near the last."""
    rng = np.random.default_rng(seed)
    steps = rng.choice([1.0, 1.0, 1.0, 1.3, 1.7, 0.8], size=120)
    cost = np.cumprod(steps) * rng.lognormal(0.0, 0.05, 120)
    smooth = module._running_median(cost)
    expected, last = [], -module._MIN_GAP
    for at in range(2, len(cost) - module._WIDTH):
        if np.median(smooth[at : at + module._WIDTH]) >= 1.25 * max(smooth[:at]):
            if at - last >= module._MIN_GAP:
                expected.append(module._steepest(smooth, at))
            last = at
    assert module._candidates(cost, 1.25) == expected


def test_residuals_at_each_kink_are_those_of_a_least_squares_fit() -> None:
    rng = np.random.default_rng(3)
    x = np.linspace(0.0, 4e9, 90)
    t = 1e-9 * x + 3e-9 * np.maximum(0.0, x - 1.7e9) + rng.normal(0.0, 0.01, 90)
    kinks = np.linspace(-1e8, 4.1e9, 50)  # some are outside the points
    expected = []
    for kink in kinks:
        columns = np.stack((np.ones_like(x), x - kink, np.maximum(0.0, x - kink)), axis=1)
        fitted, *_ = np.linalg.lstsq(columns, t, rcond=None)
        expected.append(np.sum((columns @ fitted - t) ** 2))
    assert module._residuals(x, t, kinks) == pytest.approx(expected, rel=1e-9)


FIRST = RateDrop(1000.0, 990.0, 1010.0, 2000.0, 500.0, ahead=0.0, seconds=0.5)
BURSTS = [(50.0, 2000.0 if n % 3 == 2 else 360.0) for n in range(21)]
"""About 500 bytes per second on average, after the cache is full."""


@pytest.mark.parametrize(
    ("levels", "fast"),
    [
        ([(700.0, 2000.0), (700.0, 500.0)], 700.0),
        ([(1400.0, 500.0)], 0.0),
        ([(1400.0, 300.0)], 0.0),
        ([(1400.0, 1900.0)], 1400.0),
        ([(400.0, 2000.0), *BURSTS], 400.0),
        # A drop shows what was fast, not the time of all bytes: the drive may also fold, or be
        # nearly as fast after it.
        ([(400.0, 2000.0), (1000.0, 1000.0)], 400.0),
        ([(700.0, 2000.0), (700.0, 100.0)], 700.0),
    ],
)
def test_bytes_are_as_fast_as_before_a_drop_until_the_rate_falls(
    levels: list[Level], fast: float
) -> None:
    curve = _curve(*levels)
    found = bytes_as_fast(curve, (last_drop(curve, steep=1.4),), FIRST)
    assert found == pytest.approx(fast, rel=0.05, abs=20.0)


def test_a_stall_is_not_the_end_of_what_is_fast() -> None:
    curve = _curve((5.0, 3000.0), (3.0, 50.0), (900.0, 2000.0), (492.0, 500.0))
    stall = RateDrop(5.0, 4.9, 5.1, 3000.0, 50.0, ahead=0.0, seconds=5.0 / 3000)
    assert bytes_as_fast(curve, (stall,), FIRST) == pytest.approx(900.0, rel=0.06)


def test_the_time_of_all_bytes_does_not_show_how_many_came_before_a_gentle_drop() -> None:
    gentle = RateDrop(1000.0, 990.0, 1010.0, 2000.0, 1800.0, ahead=0.0, seconds=0.5)
    assert bytes_as_fast(_curve((1400.0, 1930.0)), (None,), gentle) == pytest.approx(1400.0)
    assert bytes_as_fast(_curve((1400.0, 1800.0)), (None,), gentle) == 0.0
