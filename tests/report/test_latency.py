"""Percentiles in every report: by step, and null with too few requests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ssdlab.analysis.latency import latencies_by_group, latencies_by_op, latencies_of_steps
from ssdlab.records import Recording, StepRow
from ssdlab.report import render
from ssdlab.report.latency import ROWS_ON_TERMINAL, by_kind, by_step


def _recording(blocks: list[int]) -> Recording:
    """A step a block size: 1200 reads of 10 us, 12 of 1 ms, and 3 flushes of 5 ms."""
    recording = Recording()
    for number, block in enumerate(blocks):
        values = {"phase": "read", "stage": 0, "repeat": number, "case": "", "value": None}
        values |= {"rest_s": 0.0, "block_bytes": block, "queue_depth": 4, "requests": 1215}
        values |= {"start_ns": number * 10**9, "end_ns": (number + 1) * 10**9, "bytes": 1 << 20}
        latencies, counts = [10_000, 1_000_000, 5_000_000], [1200, 12, 3]
        fine = {"interval": [0] * 3, "op": [0, 0, 3], "latency_ns": latencies, "count": counts}
        coarse = {"latency_ns": latencies, "count": counts}
        intervals = {"start_ns": [0], "requests": [1215], "bytes": [1 << 20], "latency_ns_max": [1]}
        recording.add(StepRow({**values, "errors": 0}, intervals, coarse, fine))
    return recording


def test_latencies_are_told_by_kind_and_only_as_far_as_requests_support_them() -> None:
    tables = _recording([4096, 8192]).tables()
    found = latencies_by_op(tables, [0])
    assert list(found) == ["read", "flush"]
    assert (found["read"].requests, found["read"].us.p50, found["read"].us.p99) == (1212, 10, 10)
    assert found["read"].us.p999 is None
    assert found["flush"].us.p50 is None
    assert found["flush"].unsupported() == (
        "p50 needs 23, p99 needs 1100, p99.9 needs 11000, p99.99 needs 110000 requests, "
        "and the run made 3"
    )
    assert latencies_of_steps(tables, [0, 1]).requests == 2430


def test_steps_of_a_group_are_added_up_and_others_left_out() -> None:
    tables = _recording([4096] * 3).tables()
    found = latencies_by_group(tables, {0: 1, 2: 1})
    assert {key: each.requests for key, each in found.items()} == {
        (1, "read"): 2424,
        (1, "flush"): 6,
    }


def test_what_was_not_recorded_by_kind_is_told_as_a_whole(make_run: Any) -> None:
    tables = dict(_recording([4096]).tables())
    tables["interval_latency"] = tables["interval_latency"].slice(0, 0)
    found = latencies_by_group(tables, {0: 0})
    assert [(key, each.requests) for key, each in found.items()] == [((0, ""), 1215)]
    assert "all" in by_step(make_run())[0].rows[0]


def test_the_page_has_a_row_per_step_and_kind_and_the_terminal_merges_equal_steps(
    make_run: Any,
) -> None:
    run = make_run(recording=_recording([4096, 4096, 8192]))
    table, left = by_step(run)
    assert [row[0] for row in table.rows] == ["0", "0", "1", "1", "2", "2"]
    assert [row[-2:] for row in table.rows][:1] == [("-", "-")]
    assert left == 0
    table, left = by_kind(run)
    assert [row[:5] for row in table.rows] == [
        ("read", "4", "4", "read", "2424"),
        ("read", "8", "4", "read", "1212"),
    ]


def test_the_terminal_limits_the_rows_and_prints_how_many_are_left_out(
    make_run: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    from rich.console import Console

    run = make_run(recording=_recording([4096 * n for n in range(1, 15)]))
    table, left = by_kind(run)
    assert (len(table.rows), left) == (ROWS_ON_TERMINAL, 2)
    render(run, Console(width=80))
    assert "2 more rows: use --html to see them" in capsys.readouterr().out


def test_no_latency_table_if_the_measures_have_percentiles(make_run: Any) -> None:
    run = make_run(recording=_recording([4096]), measures=[{"latency_us_p50": 1.0, "read_s": 1}])
    assert by_kind(run)[0].rows == ()


def test_any_histogram_gives_what_its_own_percentiles_are() -> None:
    """Against the same by NumPy's nearest rank, of 200 000 latencies."""
    values = np.random.default_rng(1).integers(1, 5000, 200_000) * 1000
    latencies, counts = np.unique(values, return_counts=True)
    recording = Recording()
    fine = {"interval": np.zeros(len(counts)), "op": np.zeros(len(counts), int)}
    recording.add(
        StepRow({"phase": "read"}, {}, {}, {**fine, "latency_ns": latencies, "count": counts})
    )
    [found] = latencies_by_op(recording.tables(), [0]).values()
    shares = [0.5, 0.9, 0.99, 0.999, 0.9999]
    exact = np.quantile(values, shares, method="inverted_cdf") / 1e3
    assert list(found.us) == pytest.approx(list(exact))
