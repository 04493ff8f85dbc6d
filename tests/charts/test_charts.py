"""Charts: layout, scales that do not mislead, and the same SVG for the same data."""

from __future__ import annotations

import html
import json
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
def test_a_logarithmic_axis_spans_at_least_its_smallest_factor(low: float, spread: float) -> None:
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


def test_labels_do_not_move_if_they_are_far_enough_apart() -> None:
    assert chart.spread([50.0, 10.0, 200.0], 40, 0, 300) == [50.0, 10.0, 200.0]
    assert chart.spread([100.0, 110.0], 40, 0, 300) == [85.0, 125.0]


def test_idle_time_is_cut_out_of_the_time_axis(make_run: Any, recorded: Any) -> None:
    steps: list[Any] = [
        ("fill", 0, {}, [400, 400]),
        ("read", 0, {}, [800]),
        ("read", 0, {}, [200, 600]),
    ]
    pieces, rests = throughput._lay_out(make_run(recording=recorded(steps)))
    assert [(piece.start_s, piece.end_s) for piece in pieces] == [(0, 2), (2, 3), (3, 5)]
    assert [piece.speeds for piece in pieces] == [[400, 400], [800], [200, 600]]
    assert rests == [2, 3]


def test_a_short_interval_at_the_end_of_a_step_is_merged_into_the_one_before() -> None:
    rows = [
        {"start_ns": at * SECOND, "bytes": size << 20} for at, size in ((0, 100), (1, 90), (2, 20))
    ]
    edges, speeds = throughput._speeds(rows, 2 * SECOND + SECOND // 10, 1)
    assert edges == [0, SECOND, 2 * SECOND + SECOND // 10]
    assert speeds == pytest.approx([100, 100])


def test_many_intervals_are_joined_without_losing_any() -> None:
    rows = [{"start_ns": at * SECOND, "bytes": at << 20} for at in range(10)]
    edges, speeds = throughput._speeds(rows, 10 * SECOND, 4)
    assert edges == [0, 4 * SECOND, 8 * SECOND, 10 * SECOND]
    assert speeds == [1.5, 5.5, 8.5]


def test_unknown_phases_keep_their_names_in_the_legend(make_run: Any, recorded: Any) -> None:
    run = make_run(recording=recorded([("steady round", 0, {}, [400, 300])]))
    assert "steady round" in texts(over_time(run).svg())


@pytest.mark.parametrize("draw", ALL)
def test_a_chart_without_data_is_empty(draw: Callable[[bool], Chart]) -> None:
    assert draw(False).svg() == ""


@pytest.mark.parametrize("draw", ALL)
def test_the_same_data_give_the_same_svg_in_each_width(draw: Callable[[bool], Chart]) -> None:
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
    assert all(name.startswith("here-wide-") for name in ids)
    referenced = re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)', svg)
    assert {"".join(match) for match in referenced} < set(ids)


def test_a_line_is_described_by_its_ends() -> None:
    svg = lines_chart(has_data=True).svg()
    assert "y against x: one: 1 at 2, 3 at 3; two: 5 at 1, 7 at 4</title>" in svg


def test_points_that_a_logarithmic_axis_cannot_show_are_left_out() -> None:
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


def _hints(svg: str) -> list[list[str]]:
    texts_, points = json.loads(html.unescape(re.findall(r'data-values="(.*?)"', svg)[0]))
    return [[texts_[at] for at in rest] for _, _, *rest in points]


def test_points_have_their_values_for_the_pointer() -> None:
    assert _hints(lines_chart(has_data=True).svg()) == [
        ["one", "y: 1", "x: 2"],
        ["one", "y: 3", "x: 3"],
        ["one", "y: 5", "x: 1"],
        ["one", "y: 7", "x: 4"],
        ["two", "y: 5", "x: 1"],
        ["two", "y: 7", "x: 4"],
    ]
    assert _hints(forest_chart(has_data=True).svg()) == [
        ["faster", "1.5 (1.2 to 1.7)"],
        ["same", "1"],
    ]


def test_points_too_near_to_tell_apart_have_one_value() -> None:
    line = Line("one", [(at / 1000, 1.0) for at in range(1001)])
    hints = _hints(Chart("here", Axis("x"), Axis("y"), [line]).svg())
    assert 100 < len(hints) < 760


def test_an_axis_of_whole_numbers_has_no_fractions() -> None:
    line = Line("one", [(float(at), 1.0 + at) for at in range(1, 5)])
    axes = (Axis("turn", whole=whole) for whole in (False, True))
    ticks = [Chart("here", axis, Axis("y"), [line]).svg() for axis in axes]
    assert "1.5" in texts(ticks[0])
    assert "1.5" not in texts(ticks[1])
    assert {"1", "2", "3", "4"} <= set(texts(ticks[1]))


def test_long_names_of_rows_have_two_lines_on_a_telephone_and_are_cut_at_the_end() -> None:
    names = ["random read: median latency", "random read: 99th percentile of latency of all reads"]
    chart = forest("here", "x", [Ratio(name, 1.1) for name in names])
    lines = texts(chart.svg(NARROW))
    assert "random read: median" in lines
    assert "latency" in lines
    assert "percentile of…" in lines


def test_a_color_in_a_name_stays_text() -> None:
    chart = Chart("here", Axis("#1f6fd1"), Axis(), [Line("one", [(1.0, 1.0)])])
    assert "#1f6fd1" in texts(chart.svg())


def test_a_name_with_dollars_is_not_a_formula() -> None:
    chart = Chart("here", Axis("/a/$\\frac{$"), Axis(), [Line("one", [(1.0, 1.0)])])
    assert "/a/$\\frac{$" in texts(chart.svg())


def test_every_colour_has_one_role() -> None:
    lights = [light for light, _ in PALETTE.values()]
    assert len(set(lights)) == len(lights)


def test_matplotlib_settings_of_the_user_have_no_effect() -> None:
    import matplotlib as mpl

    expected = lines_chart(has_data=True).svg()
    with mpl.rc_context(
        {"font.size": 30, "xtick.major.pad": 30, "axes.facecolor": "red", "svg.fonttype": "path"}
    ):
        assert lines_chart(has_data=True).svg() == expected
        assert mpl.rcParams["font.size"] == 30
