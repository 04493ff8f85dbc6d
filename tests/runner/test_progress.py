"""The forecast of the remaining time, with known rates on a fake clock."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import pytest

from ssdlab.runner import progress
from ssdlab.runner.progress import Forecast, Report


class Clock:
    """A fake clock; the test sets `seconds`."""

    def __init__(self) -> None:
        """Starts at zero."""
        self.seconds = 0.0

    def monotonic(self) -> float:
        """Replaces `time.monotonic`."""
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Replaces the forecast's clock."""
    fake = Clock()
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=fake.monotonic))
    return fake


@pytest.fixture
def reports() -> list[Report]:
    """The reports that the listener received."""
    return []


def _forecast(reports: list[Report], **work: float) -> Forecast:
    default = {"fill": 100.0, "read": 200.0, "overwrite": 10.0, "rest": 30.0}
    return Forecast(default | work, reports.append)


def _do(forecast: Forecast, clock: Clock, kind: str, work: float, *, seconds: float) -> None:
    step = forecast.step(kind, work, kind)
    clock.seconds += seconds
    step.watch(1, 1, 0)
    step.finish()


def test_the_time_left_is_unknown_at_the_start(clock: Clock, reports: list[Report]) -> None:
    _forecast(reports).step("fill", 100, "filling")
    assert reports == [Report("filling", 0.0, 0.0, None, done=0.0)]


def test_reads_are_forecast_by_the_fills_rate_until_their_own_is_measured(
    clock: Clock, reports: list[Report]
) -> None:
    forecast = _forecast(reports, overwrite=0.0)
    _do(forecast, clock, "fill", 100, seconds=10)
    forecast.step("read", 100, "reading")
    assert reports[-1].left_s == pytest.approx(200 / 10 + 30)
    _do(forecast, clock, "read", 100, seconds=50)
    assert reports[-1].left_s == pytest.approx(100 / 2 + 30)


def test_random_writes_are_forecast_twenty_times_slower_than_the_fill(
    clock: Clock, reports: list[Report]
) -> None:
    forecast = _forecast(reports, read=0.0, rest=0.0)
    _do(forecast, clock, "fill", 100, seconds=10)
    forecast.step("overwrite", 10, "overwriting")
    assert reports[-1].left_s == pytest.approx(10 / 0.5)


def test_the_time_left_falls_while_a_step_runs_and_the_share_rises(
    clock: Clock, reports: list[Report]
) -> None:
    forecast = _forecast(reports, overwrite=0.0, rest=0.0)
    _do(forecast, clock, "fill", 100, seconds=10)
    step = forecast.step("read", 200, "reading")
    for done in (1, 2, 3, 4):
        clock.seconds += 5
        step.watch(done, 4, 0)
    assert [report.left_s for report in reports[-4:]] == pytest.approx([15, 10, 5, 0])
    assert [report.run_share for report in reports[-4:]] == pytest.approx(
        [15 / 30, 20 / 30, 25 / 30, 1]
    )
    assert [report.step_share for report in reports[-4:]] == [0.25, 0.5, 0.75, 1.0]


def test_rests_of_a_twin_take_no_time(clock: Clock, reports: list[Report]) -> None:
    forecast = _forecast(reports, read=0.0, overwrite=0.0, rest=0.0)
    _do(forecast, clock, "fill", 100, seconds=10)
    forecast.step("rest", 3.6e6, "resting")
    assert reports[-1].left_s == 0.0


def test_a_finished_run_has_a_share_of_one_and_no_time_left(
    clock: Clock, reports: list[Report]
) -> None:
    forecast = _forecast(reports)
    for kind, work in (("fill", 100), ("rest", 30), ("read", 200), ("overwrite", 10)):
        _do(forecast, clock, kind, work, seconds=3)
    assert (reports[-1].run_share, reports[-1].left_s) == (1.0, 0.0)


def test_a_step_without_work_is_done_at_once(clock: Clock, reports: list[Report]) -> None:
    step = _forecast(reports, rest=0.0).step("rest", 0.0, "resting")
    step.watch(0, 0, 0)
    assert reports[-1].step_share == 1.0


def test_the_first_step_must_run_a_while_before_it_forecasts(
    clock: Clock, reports: list[Report]
) -> None:
    step = _forecast(reports, read=0.0, overwrite=0.0, rest=0.0).step("fill", 100, "filling")
    for seconds, known in ((1, False), (progress.LEARNING_S, True)):
        clock.seconds += seconds
        step.watch(1, 4, 0)
        assert (reports[-1].left_s is not None) is known
    assert reports[-1].bytes_per_s == pytest.approx(25 / clock.seconds)


def test_a_first_step_of_known_duration_is_forecast_at_once(
    clock: Clock, reports: list[Report]
) -> None:
    Forecast({"timed": 8.0}, reports.append).step("timed", 8.0, "measuring")
    assert (reports[-1].left_s, reports[-1].bytes_per_s) == (8.0, None)


def test_timed_steps_that_end_early_in_turns_with_others_do_not_make_the_time_left_jump(
    clock: Clock, reports: list[Report]
) -> None:
    forecast = Forecast({"timed": 20 * 5.0}, reports.append)
    for number in range(20):  # a fast mode takes a tenth of its time, a slow one all of it
        _do(forecast, clock, "timed", 5.0, seconds=5.0 if number % 2 else 0.5)
    starts = [report.left_s for report in reports if report.step_share == 0.0]
    known = [left_s for left_s in starts if left_s is not None]
    assert len(known) == 20
    assert known[0] == 100
    assert all(0 <= before - after < 16 for before, after in pairwise(known))


def test_a_report_says_what_a_write_or_a_rest_has_done_so_far(
    clock: Clock, reports: list[Report]
) -> None:
    forecast = Forecast({"fill": 100.0, "rest": 30.0, "timed": 8.0}, reports.append)
    for kind, work, done in (("fill", 100.0, 25.0), ("rest", 30.0, 7.5), ("timed", 8.0, None)):
        step = forecast.step(kind, work, kind)
        clock.seconds += 1
        step.watch(1, 4, 0)
        assert reports[-1].done == done
