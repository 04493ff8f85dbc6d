"""Charts: what they show, that they are not misleading, and that the same data draw the same."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssdlab.charts import (
    NARROW,
    PALETTE,
    Axis,
    Case,
    Chart,
    Line,
    Ratio,
    Value,
    chart,
    forest,
    over_time,
    throughput,
    values_by_case,
)
from ssdlab.charts.marks import apart

SECOND = 1_000_000_000


def lines_chart(has_data: bool) -> Chart:
    data = [(1.0, 5.0), (4.0, 7.0)] if has_data else []
    first = [(2.0, 1.0), (3.0, 3.0)] if has_data else []
    return Chart("here", Axis("x"), Axis("y"), [Line("one", first, data), Line("two", data)])


def cases_chart(has_data: bool) -> Chart:
    value = Value("s", 5.0 if has_data else math.nan, 9.0, [4.0, 6.0])
    return values_by_case("here", "x", [Case("case", [value])])


def forest_chart(has_data: bool) -> Chart:
    ratios = [Ratio("faster", 1.5, 1.2, 1.7, shown=True), Ratio("same", 1.0)]
    return forest("here", "x", ratios if has_data else [])


ALL: list[Callable[[bool], Chart]] = [lines_chart, cases_chart, forest_chart]


def texts(svg: str) -> list[str]:
    return [text.strip() for text in re.findall(r"<text[^>]*>(.*?)</text>", svg, re.DOTALL)]


@given(st.floats(1e-3, 1e6), st.floats(1, 4))
def test_noise_does_not_look_like_a_cliff(low: float, spread: float) -> None:
    bottom, top = Axis(log=True, least=4).span([low, low * spread], from_zero=True)
    assert bottom < low
    assert low * spread < top
    assert top / bottom >= 4


@given(st.lists(st.floats(0, 300), min_size=1, max_size=12))
def test_labels_of_lines_do_not_overlap_and_keep_their_order(wanted: list[float]) -> None:
    placed = chart.spread(wanted, 40, 0, 300)
    by_height = sorted(placed)
    gap = min(40, 300 / max(1, len(wanted) - 1))
    assert all(right - left >= gap - 1e-6 for left, right in pairwise(by_height))
    in_order = [placed[at] for at in sorted(range(len(wanted)), key=wanted.__getitem__)]
    assert in_order == pytest.approx(by_height, abs=1e-6)
    assert by_height[0] >= -1e-6
    assert by_height[-1] <= 300 + 1e-6


def test_labels_stay_where_there_is_room() -> None:
    assert chart.spread([50.0, 10.0, 200.0], 40, 0, 300) == [50.0, 10.0, 200.0]
    assert chart.spread([100.0, 110.0], 40, 0, 300) == [85.0, 125.0]


def test_rests_are_cut_out_of_the_time_line(make_run: Any, recorded: Any) -> None:
    steps: list[Any] = [
        ("fill", 0, {}, [400, 400]),
        ("read", 0, {}, [800]),
        ("read", 0, {}, [200, 600]),
    ]
    pieces, rests = throughput._lay_out(make_run(recording=recorded(steps)))
    assert [(piece.start_s, piece.end_s) for piece in pieces] == [(0, 2), (2, 3), (3, 5)]
    assert [piece.speeds for piece in pieces] == [[400, 400], [800], [200, 600]]
    assert rests == [2, 3]


def test_a_sliver_of_time_at_a_steps_end_makes_no_spike() -> None:
    rows = [
        {"start_ns": at * SECOND, "bytes": size << 20} for at, size in ((0, 100), (1, 90), (2, 20))
    ]
    edges, speeds = throughput._speeds(rows, 2 * SECOND + SECOND // 10, 1)
    assert edges == [0, SECOND, 2 * SECOND + SECOND // 10]
    assert speeds == pytest.approx([100, 100])


def test_many_intervals_are_joined_and_none_is_lost() -> None:
    rows = [{"start_ns": at * SECOND, "bytes": at << 20} for at in range(10)]
    edges, speeds = throughput._speeds(rows, 10 * SECOND, 4)
    assert edges == [0, 4 * SECOND, 8 * SECOND, 10 * SECOND]
    assert speeds == [1.5, 5.5, 8.5]


def test_phases_of_other_experiments_are_named_as_they_are(make_run: Any, recorded: Any) -> None:
    run = make_run(recording=recorded([("steady round", 0, {}, [400, 300])]))
    assert "steady round" in texts(over_time(run).svg())


@pytest.mark.parametrize("draw", ALL)
def test_a_chart_without_data_is_empty(draw: Callable[[bool], Chart]) -> None:
    assert draw(False).svg() == ""


@pytest.mark.parametrize("draw", ALL)
def test_the_same_data_give_the_same_drawing_in_each_width(draw: Callable[[bool], Chart]) -> None:
    assert draw(True).svg() == draw(True).svg()
    assert draw(True).svg() != draw(True).svg(NARROW)


@pytest.mark.parametrize("draw", ALL)
def test_colours_and_fonts_are_the_pages(draw: Callable[[bool], Chart]) -> None:
    svg = draw(True).svg()
    assert "var(--run1, #1f6fd1)" in svg
    assert "DejaVu" not in svg
    assert "<style" not in svg
    bare = re.sub(r"var\(--\w+, #\w{6}\)", "", svg)
    assert not re.search(r"#[0-9a-f]{6}\b", bare)


@pytest.mark.parametrize("draw", ALL)
def test_ids_begin_with_the_charts_name_and_are_unique(draw: Callable[[bool], Chart]) -> None:
    svg = draw(True).svg()
    ids = re.findall(r'\bid="([^"]*)"', svg)
    assert len(set(ids)) == len(ids)
    assert all(each.startswith("here-wide-") for each in ids)
    referenced = re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)', svg)
    assert {"".join(each) for each in referenced} < set(ids)


def test_a_line_is_described_by_its_ends() -> None:
    svg = lines_chart(has_data=True).svg()
    assert "y against x: one from 1 at 2 to 3; two from 5 at 1 to 7</title>" in svg


def test_points_without_a_place_on_a_logarithmic_axis_are_left_out() -> None:
    points = [(0.0, 5.0), (1.0, -1.0), (1.0, math.inf), (2.0, 3.0)]
    log = Axis(log=True)
    kept = Chart("here", log, log, [Line("one", points, points), Line("none", points[:3])]).lines
    assert [(line.points, line.faint) for line in kept] == [([(2.0, 3.0)], [(2.0, 3.0)])]


def test_a_chart_with_several_series_has_a_legend() -> None:
    cases = [Case("case", [Value("first", 2.0), Value("second", 30.0)])]
    assert {"first", "second"} <= set(texts(values_by_case("here", "x", cases).svg()))
    assert "first" not in texts(values_by_case("here", "x", [Case("", cases[0].values[:1])]).svg())


def test_ticks_that_would_touch_are_left_out() -> None:
    assert apart([0, 10, 100], ["100", "200", "300"]) == [1, 2]
    assert apart([], []) == []


def test_a_color_in_a_name_stays_text() -> None:
    chart = Chart("here", Axis("#1f6fd1"), Axis(), [Line("one", [(1.0, 1.0)])])
    assert "#1f6fd1" in texts(chart.svg())


def test_a_name_with_dollars_is_no_formula() -> None:
    chart = Chart("here", Axis("/a/$\\frac{$"), Axis(), [Line("one", [(1.0, 1.0)])])
    assert "/a/$\\frac{$" in texts(chart.svg())


def test_every_colour_has_one_role() -> None:
    lights = [light for light, _ in PALETTE.values()]
    assert len(set(lights)) == len(lights)


def test_settings_of_the_reader_change_nothing() -> None:
    import matplotlib as mpl

    expected = lines_chart(has_data=True).svg()
    with mpl.rc_context(
        {"font.size": 30, "xtick.major.pad": 30, "axes.facecolor": "red", "svg.fonttype": "path"}
    ):
        assert lines_chart(has_data=True).svg() == expected
        assert mpl.rcParams["font.size"] == 30
