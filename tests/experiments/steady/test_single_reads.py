"""Whether data is in an SLC cache, and the map in memory, by latencies of single reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from known_twins import KnownTwin
from ssdlab.analysis.evidence import Evidence
from ssdlab.experiments.steady.analysis import conclude
from ssdlab.experiments.steady.gauged import Gauged
from ssdlab.experiments.steady.measure import Plan, measure
from ssdlab.experiments.steady.single_reads import SingleReads, single_reads
from ssdlab.runner.open_target import TargetOptions, open_for_run
from ssdlab.runner.session import RunSession
from ssdlab.stats.steady import Progress
from ssdlab.target import parse_target

KIB, MIB = 1 << 10, 1 << 20


def test_latencies_of_a_step_are_its_distribution() -> None:
    table = pa.table(
        {
            "step": pa.array([1, 2, 2, 2, 2], pa.uint32()),
            "latency_ns": pa.array([9, 400, 100, 300, 200], pa.uint64()),
            "count": pa.array([5, 5, 5, 10, 80], pa.uint64()),
        }
    )
    found = single_reads(Evidence({"latency": table}, {}), 2)
    assert found.mean == 215.0
    assert [found.quantile(share) for share in (0.01, 0.1, 0.9, 1.0)] == [100, 200, 300, 400]
    assert found.share_between(100, 400) == 0.9


def _reads(*latencies: float) -> SingleReads:
    return SingleReads(*np.unique(latencies, return_counts=True))


def _gauged(monkeypatch: pytest.MonkeyPatch, cases: dict[str, tuple[float, ...]]) -> Gauged:
    """Gauges with single reads of these latencies."""
    reads = {case: _reads(*each) for case, each in cases.items()}
    steps = [{"case": f"{case} read"} for case in cases]
    monkeypatch.setattr(Evidence, "steps", lambda _evidence, _kind: steps)
    monkeypatch.setattr(Gauged, "_single_reads", lambda _gauged, case: reads[case])
    return Gauged(Evidence({}, {}), 1000.0, Progress([], []), 1.0)


TLC, SLC, BUFFER = (90.0,) * 5 + (110.0,) * 5, (70.0,) * 10, (40.0,) * 10


@pytest.mark.parametrize(
    ("recent", "near", "borrows", "expected"),
    [
        (SLC, TLC, False, (True, True)),
        ((*SLC[:1], *TLC), TLC, False, (True, True)),  # most was folded already
        ((*BUFFER, *SLC[:1]), TLC, False, (True, True)),  # most is still in the buffer
        ((*SLC[:1], *TLC, *TLC), TLC, False, (False, False)),  # a single one
        (TLC, TLC, True, (False, False)),
        ((*BUFFER[:4], *TLC), TLC, True, (False, False)),
        (BUFFER, TLC, True, (None, True)),  # the flush may have been ignored
        (BUFFER, TLC, False, (None, False)),
        (BUFFER, (100.0,) * 10, True, (None, True)),
        ((100.0,) * 10, TLC, True, (None, True)),  # cells of one bit that are slow
        ((100.0,) * 10, (98.0,) * 5 + (102.0,) * 5, True, (None, True)),
        ((100.0,) * 10, (100.0,) * 10, True, (False, False)),
    ],
)
def test_data_that_is_read_faster_than_older_data_after_a_flush_went_to_a_cache(
    recent: tuple[float, ...],
    near: tuple[float, ...],
    borrows: bool,
    expected: tuple[bool | None, bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cases = {"unmapped": BUFFER, "recent": recent, "near": near, "anywhere": near}
    monkeypatch.setattr(Gauged, "may_borrow", borrows)
    for old in ({}, {"old": near}):  # an earlier version has none
        gauged = _gauged(monkeypatch, cases | old)
        assert (gauged.writes_cache, gauged.may_write_cache) == expected


@pytest.mark.parametrize(
    ("recent", "old", "expected"),
    [
        ((*SLC[:3], *TLC), (*SLC[:2], *TLC), None),
        ((*SLC[:9], *TLC), (*SLC[:2], *TLC), True),
        (SLC, (*SLC, *SLC, *TLC), None),
        (TLC, (*SLC[:2], *TLC), False),
    ],
)
def test_pages_that_dies_keep_after_a_read_are_not_a_cache(
    recent: tuple[float, ...],
    old: tuple[float, ...],
    expected: bool | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cases = {"unmapped": BUFFER, "recent": recent, "near": TLC, "anywhere": TLC, "old": old}
    assert _gauged(monkeypatch, cases).writes_cache is expected


KEPT = (44.0,) * 10


@pytest.mark.parametrize(
    ("recent", "expected"),
    [
        ((*KEPT, *TLC), False),
        ((*KEPT, *SLC[:1], *TLC), False),
        ((*KEPT, *SLC[:3], *TLC), True),
        ((*KEPT, *KEPT), None),  # no read shows where the data is
    ],
)
def test_reads_as_fast_as_those_of_kept_pages_are_not_from_a_cache(
    recent: tuple[float, ...], expected: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of these, more are kept than of old data: they are in fewer dies."""
    old = (*KEPT[:1], *TLC, *TLC)
    cases = {"unmapped": BUFFER, "recent": recent, "near": TLC, "anywhere": TLC, "old": old}
    assert _gauged(monkeypatch, cases).writes_cache is expected


@pytest.mark.parametrize(
    ("rested", "anywhere", "expected"),
    [
        (TLC, TLC, False),
        ((*SLC[:4], *TLC), TLC, True),  # the cache holds less than was written
        (BUFFER, TLC, None),  # it may hide a cache
        (TLC, tuple(2 * each for each in TLC), None),  # look-ups do, too
        (TLC, (*54 * TLC, *36 * (220.0,)), False),  # 6 % of them
        ((*SLC[:4], *TLC), tuple(2 * each for each in TLC), True),
        (None, TLC, None),  # an earlier version
    ],
)
def test_writes_of_a_rested_drive_that_are_read_like_older_data_went_to_no_cache(
    rested: tuple[float, ...] | None,
    anywhere: tuple[float, ...],
    expected: bool | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cases = {"unmapped": BUFFER, "near": TLC, "anywhere": anywhere, "rested": rested or ()}
    reads = {case: _reads(*each) for case, each in cases.items() if each}
    steps = [{"case": f"{case} read", "bytes": 64, "job": '{"amount_bytes": 64}'} for case in reads]
    monkeypatch.setattr(Evidence, "steps", lambda _evidence, _kind: steps)
    monkeypatch.setattr(Gauged, "_single_reads", lambda _gauged, case: reads[case])
    gauged = Gauged(Evidence({}, {}), 1000.0, Progress([], []), 1.0)
    assert gauged.rested_writes_cache is expected
    for step in steps:
        step["bytes"] = 60
    interrupted = Gauged(Evidence({}, {}), 1000.0, Progress([], []), 1.0)
    assert interrupted.rested_writes_cache is None


def test_trimmed_blocks_whose_map_is_loaded_first_do_not_hide_a_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Most of them take as long as reads of flash, if the map does not fit into memory."""
    reads = {"unmapped": (*BUFFER[:2], *TLC), "recent": SLC, "near": TLC}
    for anywhere, expected in ((TLC, None), ((*TLC, *(2 * each for each in TLC)), True)):
        gauged = _gauged(monkeypatch, {**reads, "anywhere": anywhere})
        assert gauged.writes_cache is expected


@pytest.mark.parametrize(
    ("anywhere", "misses"),
    [
        ([101.0], False),
        ([106.0], False),
        ([108.0], True),
        ([100.0] * 9 + [150.0], True),
        ([100.0] * 99 + [150.0], False),  # a single one
    ],
)
def test_reads_all_over_the_region_are_slower_if_the_map_is_not_in_memory(
    anywhere: list[float], misses: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One read in ten that misses the map makes the mean only 5 % longer."""
    reads = {"anywhere": _reads(*anywhere), "near": _reads(100.0)}
    monkeypatch.setattr(Gauged, "_single_reads", lambda _gauged, case: reads[case])
    gauged = Gauged(Evidence({}, {}), 1000.0, Progress([], []), 1.0)
    assert gauged.misses_map is misses


def test_pages_that_dies_keep_do_not_show_that_the_map_is_not_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are frequent among reads near each other only, whose mean is shorter."""
    for anywhere in (100.0, 40.0):  # the latter are all as fast
        reads = {"anywhere": _reads(anywhere), "near": _reads(40.0, *[100.0] * 4)}
        monkeypatch.setattr(Gauged, "_single_reads", lambda _, case, reads=reads: reads[case])
        assert not Gauged(Evidence({}, {}), 1000.0, Progress([], []), 1.0).misses_map


def test_a_longer_mean_shows_a_map_that_is_not_in_memory_if_pages_differ_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reads = {"anywhere": _reads(100.0, 120.0), "near": _reads(80.0, 120.0)}
    monkeypatch.setattr(Gauged, "_single_reads", lambda _gauged, case: reads[case])
    assert Gauged(Evidence({}, {}), 1000.0, Progress([], []), 1.0).misses_map


KEPT = (45.0,) * 8 + (90.0, 110.0)
"""Reads of which most find their page in the die."""


@pytest.mark.parametrize(
    ("recent", "old", "near", "expected"),
    [
        (KEPT, KEPT, (45.0, 45.0, *TLC), None),
        # Flash that is nearly as fast; and dies that keep no pages of old or of recent data.
        (KEPT, KEPT, (45.0, 45.0, 60.0, 60.0, 65.0, 70.0), False),
        (KEPT, TLC, (45.0, 45.0, *TLC), False),
        ((45.0, 45.0, *TLC), KEPT, (45.0, 45.0, *TLC), False),
        # An earlier version did not read old data.
        (KEPT, None, (45.0, 45.0, *TLC), False),
    ],
)
def test_pages_that_dies_keep_do_not_show_whether_recent_data_is_in_a_cache(
    recent: tuple[float, ...],
    old: tuple[float, ...] | None,
    near: tuple[float, ...],
    expected: bool | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cases = {"unmapped": BUFFER, "near": near, "anywhere": near, "recent": recent}
    cases |= {} if old is None else {"old": old}
    assert _gauged(monkeypatch, cases).writes_cache is expected


@pytest.mark.parametrize(
    ("anywhere", "near", "percent"),
    [
        ([100.0] * 400 + [170.0] * 112, [100.0], (21.9, 18.2, 25.5)),
        ([100.0] * 512, [100.0], (0.0, 0.0, 5.0)),
        ([170.0] * 512, [100.0], (100.0, 100.0, 100.0)),
        # Reads near each other differ by as much as a look-up takes: two thirds have one, and half
        # of these are as fast as others without.
        ([100.0] * 80 + [160.0] * 240 + [220.0] * 160, [100.0, 160.0] * 240, None),
        # They differ by less than that.
        ([100.0, 160.0] * 80 + [180.0, 240.0] * 160, [100.0, 160.0] * 240, (66.7, 62.4, 71.0)),
        # Of the pages that are read near each other, dies keep some.
        (
            [100.0, 160.0] * 120 + [200.0, 260.0] * 120,
            [40.0] * 200 + [100.0, 160.0] * 140,
            (50.0, 45.4, 54.6),
        ),
        # Fast reads are more frequent than slow ones explain.
        ([100.0] * 320 + [170.0] * 160, [100.0] * 300 + [110.0] * 180, None),
        # They are as frequent as that, within three standard deviations of both shares, or not.
        ([100.0] * 92 + [160.0] * 148 + [260.0] * 240, [100.0, 160.0] * 240, (50.0, 45.4, 54.6)),
        ([100.0] * 88 + [160.0] * 152 + [260.0] * 240, [100.0, 160.0] * 240, None),
        # Few load a part, or too few to tell.
        ([100.0] * 490 + [400.0] * 22, [100.0], (4.3, 2.5, 6.1)),
        ([100.0] * 509 + [3000.0] * 3, [100.0], None),
        ([100.0] * 510 + [170.0] * 2, [100.0], (0.0, 0.0, 5.0)),
        # All are slower, but none more than the slowest of those.
        ([130.0] * 512, [100.0] * 9 + [130.0], None),
    ],
)
def test_the_share_of_reads_that_load_a_part_of_the_map(
    anywhere: list[float],
    near: list[float],
    percent: tuple[float, float, float] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reads = {"anywhere": _reads(*anywhere), "near": _reads(*near)}
    monkeypatch.setattr(Gauged, "_single_reads", lambda _gauged, case: reads[case])
    found = Gauged(Evidence({}, {}), 1000.0, Progress([], []), 1.0).map_misses
    if percent is None:
        assert found is None
    else:
        assert found is not None
        assert [100 * share for share in found] == pytest.approx(percent, abs=0.05)


def test_reads_all_over_the_region_are_not_in_the_order_of_earlier_writes(tmp_path: Path) -> None:
    """In that order, a page that a die keeps has a fifth of the data, and hides look-ups."""
    capacity = 2048 * MIB
    ftl = f'victim = "greedy"\nmap_cache = "{0.1 * capacity / 4096 * 4 / KIB:.0f} KiB"'
    flash = "keeps_page = true"
    twin = KnownTwin(capacity, 0.2, dies=16, planes=2, pages_per_block=32, ftl=ftl, flash=flash)
    plan = Plan(region=capacity, drive=capacity, seed=3)
    with open_for_run(TargetOptions(parse_target(twin.target(tmp_path)), capacity)) as target:
        session = RunSession(target)
        session.run_plan(measure, plan)
    conclusion = conclude(Evidence(session.recording.tables(), plan.parameters()))
    assert conclusion.findings["map_misses"].value == pytest.approx(90, abs=2)
