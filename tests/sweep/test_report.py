"""The report of a sweep: verdict first, panels by load, only results that vary."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

from ssdlab.report.html import html_page
from ssdlab.sweep.analysis import Summary, summarise
from ssdlab.sweep.report import SweepPage

KEYS = {"ftl.spare": True, "ftl.victim": False, "workload.skew": True}
SPARES, VICTIMS, SKEWS = (0.07, 0.15, 0.28), ("fifo", "greedy"), (0.0, 0.9)


def _summary(**changes: Any) -> Summary:
    """A grid in which spare lowers the WAF, victim matters little, and p99 is constant."""
    points = [(a, b, c) for a in SPARES for b in VICTIMS for c in SKEWS]
    rows = [
        {
            "point": point,
            "repeat": 0,
            "status": "done",
            "read_mib_per_s": 2000.0 + (victim == "fifo") * 0.1,
            "write_iops": 1e5 * spare,
            "waf": 1.0 + 0.3 / spare + (victim == "fifo") + skew,
            "latency_us_p50": 80.0,
            "latency_us_p99": 94.6,
            "cost": 1 / (1 - spare),
            "ftl.spare": spare,
            "ftl.victim": victim,
            "workload.skew": skew,
            **changes,
        }
        for point, (spare, victim, skew) in enumerate(points)
    ]
    return summarise("few", "toshiba-xg5", KEYS, len(rows), rows)


def _hints(svg: str) -> list[list[str]]:
    texts, points = json.loads(unescape(re.findall(r'data-values="(.*?)"', svg)[0]))
    return [[texts[at] for at in rest] for _, _, *rest in points]


def test_results_are_drawn_along_the_spare_with_a_panel_for_each_load() -> None:
    first, *others = SweepPage(_summary()).pictures
    assert first.title == "Write amplification by spare"
    hints = _hints(first.wide)
    assert len(hints) == len(SPARES) * len(VICTIMS) * len(SKEWS)
    assert ["greedy", "skew 0.9: write amplification: 2.97", "spare: 0.28"] in hints
    assert {name for name, *_ in hints} == set(VICTIMS)
    assert [picture.title for picture in others] == ["Random writes/s by spare"]


def test_results_that_do_not_vary_are_in_a_note_only() -> None:
    page = SweepPage(_summary())
    heads = [column.label for _, table in page.tables for column in table.columns]
    assert not {"p99", "Read", "p50"} & set(heads)
    notes = dict(page.notes)
    assert "p99 94.6 us" in notes["the same"]
    assert "a WAF and cost that are all" in notes["Pareto-optimal"]


def test_points_that_differ_by_less_than_one_per_cent_do_not_beat_each_other() -> None:
    best = [point.values["ftl.victim"] for point in _summary().points if point.best]
    assert set(best) == {"greedy"}
    assert len(best) == len(SPARES) * len(SKEWS)


def test_a_share_that_may_be_zero_has_an_upper_bound() -> None:
    (_, table), _ = SweepPage(_summary()).tables
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["ftl.spare"][0].endswith("%)")
    assert all(cell.startswith("under ") for cell in rows["ftl.victim"][:1])


def test_the_page_begins_with_the_verdict_and_figures() -> None:
    report = SweepPage(_summary())
    page = html_page([], report)
    verdict = page.index("12 of 12 runs done")
    assert page.index("<h1>") < verdict < page.index("<svg") < page.index('class="measures"')


def test_a_sample_without_common_values_has_dots_instead_of_lines() -> None:
    rows = [
        {
            "point": at,
            "repeat": 0,
            "status": "done",
            "read_mib_per_s": 1000.0 + 50 * at,
            "write_iops": 1e4,
            "waf": 3.0 - at / 10,
            "latency_us_p50": 80.0,
            "latency_us_p99": 90.0 + at,
            "cost": 1.1 + at / 50,
            "ftl.spare": 0.1 + at / 50,
            "workload.skew": at / 10,
        }
        for at in range(10)
    ]
    keys = {"ftl.spare": True, "workload.skew": True}
    pictures = SweepPage(summarise("s", "p", keys, 10, rows)).pictures
    assert [picture.title for picture in pictures] == [
        "Sequential reads, MiB/s against cost, physical / usable flash",
        "P99 of single reads, us against write amplification",
        "Write amplification against cost, physical / usable flash",
    ]
