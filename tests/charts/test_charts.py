"""Figures: what they show, that they do not lie, and that a run has one drawing."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssdlab import charts as figure
from ssdlab.charts import curve, latency, timeline
from ssdlab.charts.canvas import PALETTE, RUN_COLOURS
from ssdlab.records import Run

SECOND = 1_000_000_000
ALONE: list[Callable[..., str]] = [
    figure.read_time,
    figure.latency_histogram,
    figure.overwrite_latency,
    figure.over_time,
]


def texts(svg: str) -> list[str]:
    return [text.strip() for text in re.findall(r"<text[^>]*>(.*?)</text>", svg, re.DOTALL)]


def heights_of_points(svg: str, colour: str) -> list[float]:
    """Where the markers of this colour stand, from above; large markers only."""
    uses = re.findall(r'<use xlink:href="[^"]*" x="[^"]*" y="([^"]*)" style="([^"]*)"', svg)
    return [float(y) for y, style in uses if colour in style and "stroke: var(--paper" in style]


def test_the_curves_name_each_run_and_its_first_and_last_speed(two_runs: list[Run]) -> None:
    shown = texts(figure.read_time_curve(two_runs))
    assert "1  toshiba-xg5" in shown
    assert "twin, 2156 → 602 MiB/s" in shown
    assert "2  /mnt/data" in shown
    assert "219 → 217 MiB/s" in shown
    assert {"0", "1 %"} <= set(shown)


def test_a_slower_read_stands_lower_in_the_speeds_and_higher_in_the_times(make_run: Any) -> None:
    run = make_run()
    speeds = heights_of_points(figure.read_time_curve([run]), RUN_COLOURS[0])
    times = heights_of_points(figure.read_time(run), RUN_COLOURS[0])
    assert len(speeds) == len(times) == 3
    assert speeds == sorted(speeds)
    assert times == sorted(times, reverse=True)


def test_all_repeats_are_drawn(make_run: Any) -> None:
    svg = figure.read_time(make_run())
    assert len(re.findall(r"<use [^>]*fill-opacity: 0.4", svg)) == 9


def test_numbers_of_runs_go_on_where_the_chapter_before_ended(two_runs: list[Run]) -> None:
    shown = texts(figure.read_time_curve(two_runs, figure.NARROW, 3))
    assert {"3  toshiba-xg5", "4  /mnt/data", "twin, 2156 → 602"} <= set(shown)


@given(st.floats(1e-3, 1e6), st.floats(1, 4))
def test_noise_does_not_look_like_a_cliff(low: float, spread: float) -> None:
    bottom, top = curve._log_range(low, low * spread)
    assert bottom < low
    assert low * spread < top
    assert top / bottom >= 4


@given(st.lists(st.floats(0, 300), min_size=1, max_size=12))
def test_labels_of_lines_do_not_overlap_and_keep_their_order(wanted: list[float]) -> None:
    placed = curve.spread(wanted, 40, 0, 300)
    by_height = sorted(placed)
    gap = min(40, 300 / max(1, len(wanted) - 1))
    assert all(right - left >= gap - 1e-6 for left, right in pairwise(by_height))
    in_order = [placed[at] for at in sorted(range(len(wanted)), key=wanted.__getitem__)]
    assert in_order == pytest.approx(by_height, abs=1e-6)
    assert by_height[0] >= -1e-6
    assert by_height[-1] <= 300 + 1e-6


def test_more_runs_than_colours_can_be_told_apart(two_runs: list[Run]) -> None:
    few, many = figure.read_time_curve(two_runs), figure.read_time_curve(two_runs, first=6)
    assert few.count("stroke-dasharray: 8") == 0
    assert many.count("stroke-dasharray: 8") == 1


def test_labels_stay_where_there_is_room() -> None:
    assert curve.spread([50.0, 10.0, 200.0], 40, 0, 300) == [50.0, 10.0, 200.0]
    assert curve.spread([100.0, 110.0], 40, 0, 300) == [85.0, 125.0]


def test_the_first_and_the_last_stage_are_compared(make_run: Any) -> None:
    shown = texts(figure.latency_histogram(make_run()))
    assert "fresh" in shown
    assert "after 250 MiB" in shown
    assert {"500 us", "1 ms"} <= set(shown)
    writes = texts(figure.overwrite_latency(make_run("again")))
    assert {"amount 1, 50 MiB", "amount 2, 200 MiB"} <= set(writes)


def test_repeats_of_a_stage_are_added_up(make_run: Any) -> None:
    first, last = latency._first_and_last(make_run(), "read")
    assert first.counts == {450_000: 180, 700_000: 20}
    assert last.counts == {1_350_000: 180, 2_100_000: 20}
    assert last.requests == 200


def test_equal_latencies_of_all_writes_make_no_figure(make_run: Any, recorded: Any) -> None:
    steps: list[Any] = [("overwrite", 1, {6_000: 10}, [100]), ("overwrite", 2, {6_000: 10}, [100])]
    assert figure.overwrite_latency(make_run(recording=recorded(steps))) == ""


def test_rests_are_cut_out_of_the_time_line(make_run: Any, recorded: Any) -> None:
    steps: list[Any] = [
        ("fill", 0, {}, [400, 400]),
        ("read", 0, {}, [800]),
        ("read", 0, {}, [200, 600]),
    ]
    pieces, rests = timeline._lay_out(make_run(recording=recorded(steps)))
    assert [(piece.start_s, piece.end_s) for piece in pieces] == [(0, 2), (2, 3), (3, 5)]
    assert [piece.speeds for piece in pieces] == [[400, 400], [800], [200, 600]]
    assert rests == [2, 3]


def test_a_sliver_of_time_at_a_steps_end_makes_no_spike() -> None:
    rows = [
        {"start_ns": at * SECOND, "bytes": size << 20} for at, size in ((0, 100), (1, 90), (2, 20))
    ]
    edges, speeds = timeline._speeds(rows, 2 * SECOND + SECOND // 10, 1)
    assert edges == [0, SECOND, 2 * SECOND + SECOND // 10]
    assert speeds == pytest.approx([100, 100])


def test_many_intervals_are_joined_and_none_is_lost() -> None:
    rows = [{"start_ns": at * SECOND, "bytes": at << 20} for at in range(10)]
    edges, speeds = timeline._speeds(rows, 10 * SECOND, 4)
    assert edges == [0, 4 * SECOND, 8 * SECOND, 10 * SECOND]
    assert speeds == [1.5, 5.5, 8.5]


def test_phases_of_other_experiments_are_named_as_they_are(make_run: Any, recorded: Any) -> None:
    run = make_run(recording=recorded([("steady round", 0, {}, [400, 300])]))
    assert "steady round" in texts(figure.over_time(run))


@pytest.mark.parametrize("draw", ALONE)
def test_nothing_recorded_draws_nothing(
    make_run: Any, recorded: Any, draw: Callable[..., str]
) -> None:
    assert draw(make_run(measures=[], recording=recorded([]))) == ""


def test_measures_that_cannot_be_drawn_are_left_out(make_run: Any) -> None:
    rows = [{"written_mib": 0, "read_s": None}, {"written_mib": "x"}, {"read_s": 0.0}]
    assert figure.read_time(make_run(measures=rows)) == ""
    without_size = make_run("b", parameters={})
    assert figure.read_time_curve([without_size]) == ""
    assert figure.read_time(without_size) != ""


def test_one_read_alone_can_be_drawn(make_run: Any) -> None:
    run = make_run(measures=[{"written_mib": 0.0, "read_s": 1.9, "read_s_all": [1.9]}])
    assert "twin, 2156 MiB/s" in texts(figure.read_time_curve([run]))
    assert "1.90" in texts(figure.read_time(run))


@pytest.mark.parametrize("draw", ALONE)
def test_the_same_run_gives_the_same_drawing(make_run: Any, draw: Callable[..., str]) -> None:
    run = make_run()
    assert draw(run) == draw(run)
    assert draw(run) != draw(run, 1, figure.NARROW)


def test_colours_and_fonts_are_the_pages(two_runs: list[Run]) -> None:
    svg = figure.read_time_curve(two_runs)
    assert "var(--run1, #1f6fd1)" in svg
    assert "DejaVu" not in svg
    bare = re.sub(r"var\(--\w+, #\w{6}\)", "", svg)
    assert not re.search(r"#[0-9a-f]{6}\b", bare)


def test_every_colour_has_one_role() -> None:
    lights = [light for light, _ in PALETTE.values()]
    assert len(set(lights)) == len(lights)


def test_a_name_with_dollars_is_no_formula(make_run: Any) -> None:
    svg = figure.read_time_curve([make_run(target="/a/$\\frac{$")])
    assert "1  /a/$\\frac{$" in texts(svg)


def test_settings_of_the_reader_change_nothing(make_run: Any) -> None:
    import matplotlib as mpl

    run = make_run()
    expected = figure.read_time(run)
    with mpl.rc_context(
        {"font.size": 30, "xtick.major.pad": 30, "axes.facecolor": "red", "svg.fonttype": "path"}
    ):
        assert figure.read_time(run) == expected
        assert mpl.rcParams["font.size"] == 30
