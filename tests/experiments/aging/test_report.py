"""The figures of the aging report."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ssdlab.charts import NARROW, PALETTE, WIDE, Size, stacked
from ssdlab.experiments.aging import report
from ssdlab.records import Run


def read_speed(runs: Sequence[Run], size: Size = WIDE, first: int = 1) -> str:
    return report._read_speed(runs, first, size).svg(size)


def read_time(run: Run, size: Size = WIDE) -> str:
    return report._read_time(run, 1).svg(size)


def latency_histogram(run: Run, size: Size = WIDE) -> str:
    return stacked(report._read_latency(run, 1), size)


def overwrite_latency(run: Run, size: Size = WIDE) -> str:
    return report._write_latency(run, 1).svg(size)


ALONE: list[Callable[..., str]] = [read_time, latency_histogram, overwrite_latency]


def texts(svg: str) -> list[str]:
    return [text.strip() for text in re.findall(r"<text[^>]*>(.*?)</text>", svg, re.DOTALL)]


def heights_of_points(svg: str, colour: str) -> list[float]:
    """The y coordinates, from above, of the large markers of this colour."""
    uses = re.findall(r'<use xlink:href="[^"]*" x="[^"]*" y="([^"]*)" style="([^"]*)"', svg)
    return [float(y) for y, style in uses if colour in style and "stroke: var(--paper" in style]


def test_the_curves_name_each_run_and_its_first_and_last_speed(two_runs: list[Run]) -> None:
    shown = texts(read_speed(two_runs))
    assert "1  toshiba-xg5" in shown
    assert "twin, 2156 → 602 MiB/s" in shown
    assert "2  /mnt/data" in shown
    assert "219 → 217 MiB/s" in shown
    assert {"0", "1 %"} <= set(shown)


def test_a_slower_read_stands_lower_in_the_speeds_and_higher_in_the_times(make_run: Any) -> None:
    run = make_run()
    speeds = heights_of_points(read_speed([run]), PALETTE["run1"][0])
    times = heights_of_points(read_time(run), PALETTE["run1"][0])
    assert len(speeds) == len(times) == 3
    assert speeds == sorted(speeds)
    assert times == sorted(times, reverse=True)


def test_all_repeats_are_drawn(make_run: Any) -> None:
    svg = read_time(make_run())
    assert len(re.findall(r"<use [^>]*fill-opacity: 0.4", svg)) == 9


def test_runs_are_numbered_from_the_number_of_the_first(two_runs: list[Run]) -> None:
    shown = texts(read_speed(two_runs, NARROW, 3))
    assert {"3  toshiba-xg5", "4  /mnt/data", "twin, 2156 → 602"} <= set(shown)


def test_lines_are_dashed_if_there_are_more_runs_than_colours(two_runs: list[Run]) -> None:
    few, many = read_speed(two_runs), read_speed(two_runs, first=6)
    assert few.count("stroke-dasharray: 8") == 0
    assert many.count("stroke-dasharray: 8") == 1


def test_the_first_and_the_last_stage_are_compared(make_run: Any) -> None:
    shown = texts(latency_histogram(make_run()))
    assert "fresh" in shown
    assert "after 250 MiB" in shown
    assert {"500 us", "1 ms"} <= set(shown)
    writes = texts(overwrite_latency(make_run("again")))
    assert {"amount 1, 50 MiB", "amount 2, 200 MiB"} <= set(writes)


def test_requests_of_all_repeats_of_a_stage_are_added(make_run: Any) -> None:
    first, last = report._first_and_last(make_run(), "read")
    assert first.counts == {450_000: 180, 700_000: 20}
    assert last.counts == {1_350_000: 180, 2_100_000: 20}
    assert last.requests == 200


def test_equal_latencies_of_all_writes_give_no_figure(make_run: Any, recorded: Any) -> None:
    steps: list[Any] = [("overwrite", 1, {6_000: 10}, [100]), ("overwrite", 2, {6_000: 10}, [100])]
    assert overwrite_latency(make_run(recording=recorded(steps))) == ""


@pytest.mark.parametrize("draw", ALONE)
def test_nothing_recorded_draws_nothing(
    make_run: Any, recorded: Any, draw: Callable[..., str]
) -> None:
    assert draw(make_run(measures=[], recording=recorded([]))) == ""


def test_measures_that_cannot_be_drawn_are_left_out(make_run: Any) -> None:
    rows = [{"written_mib": 0, "read_s": None}, {"written_mib": "x"}, {"read_s": 0.0}]
    assert read_time(make_run(measures=rows)) == ""
    without_size = make_run("b", parameters={})
    assert read_speed([without_size]) == ""
    assert read_time(without_size) != ""


def test_one_read_alone_can_be_drawn(make_run: Any) -> None:
    run = make_run(measures=[{"written_mib": 0.0, "read_s": 1.9, "read_s_all": [1.9]}])
    assert "twin, 2156 MiB/s" in texts(read_speed([run]))
    assert "1.90" in texts(read_time(run))


@pytest.mark.parametrize("draw", ALONE)
def test_the_same_run_gives_the_same_svg(make_run: Any, draw: Callable[..., str]) -> None:
    run = make_run()
    assert draw(run) == draw(run)
    assert draw(run) != draw(run, NARROW)


def test_a_name_with_dollars_is_not_a_formula(make_run: Any) -> None:
    svg = read_speed([make_run(target="/a/$\\frac{$")])
    assert "1  /a/$\\frac{$" in texts(svg)
