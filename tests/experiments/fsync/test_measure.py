"""Runs of fsync on twins with known properties, and in a real directory."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ssdlab import profiles
from ssdlab.analysis.evidence import Conclusion, Evidence
from ssdlab.errors import UsageError
from ssdlab.experiments.fsync.analysis import UNDECIDED, conclude
from ssdlab.experiments.fsync.measure import Plan, measure
from ssdlab.experiments.fsync.measure import plan as make_plan
from ssdlab.experiments.fsync.parameters import Fsync
from ssdlab.runner.open_target import TargetOptions, open_for_run
from ssdlab.runner.power_loss_protection import CacheClass
from ssdlab.runner.progress import Report
from ssdlab.runner.session import RunSession
from ssdlab.storage_stack.cache import resident_bytes
from ssdlab.target import Directory, parse_target

MIB = 1 << 20
SMALL = Plan(size=16 * MIB, seconds=0.2, repeats=2)
PROTECTED = "power_loss_protection = true"
VOLATILE = "power_loss_protection = false"
IGNORING = f"{VOLATILE}\nhonours_flush = false"
SLC = '[slc]\nsize = "64 MiB"\nprogram = "200 us"\n'
ZEROS = "elides_zeros = true"


def _evidence(target: str, plan: Plan = SMALL) -> Evidence:
    capacity = (1 << 30) if target.startswith("twin:") else None
    with open_for_run(TargetOptions(parse_target(target, capacity), plan.size)) as opened:
        session = RunSession(opened)
        session.run_plan(measure, plan)
        warnings = frozenset(warning.code for warning in opened.warnings)
    return Evidence(session.recording.tables(), plan.parameters(), "complete", warnings)


def _twin(folder: Path, buffer: str, extra: str = "") -> str:
    """A twin like the XG5 with these keys of [buffer], and further tables."""
    text = profiles.load("toshiba-xg5")
    head, _ = text.split("[buffer]")
    path = folder / "drive.toml"
    path.write_text(f'{head}[buffer]\nsize = "8 MiB"\n{buffer}\n{extra}')
    return f"twin:{path}"


def _row(conclusion: Conclusion, mode: str, in_flight: int) -> dict[str, Any]:
    [row] = [
        row for row in conclusion.measures if (row["mode"], row["in_flight"]) == (mode, in_flight)
    ]
    return row


@pytest.mark.parametrize("zeros", ["", ZEROS], ids=["", "eliding"])
@pytest.mark.parametrize("slc", ["", SLC], ids=["", "slc"])
@pytest.mark.parametrize(
    ("buffer", "expected"),
    [(PROTECTED, UNDECIDED), (VOLATILE, "volatile"), (IGNORING, UNDECIDED)],
)
def test_the_class_comes_from_timing_alone_with_and_without_slc_cache_and_elided_zeros(
    tmp_path: Path, buffer: str, expected: str, slc: str, zeros: str
) -> None:
    conclusion = conclude(_evidence(_twin(tmp_path, f"{buffer}\n{zeros}", slc)))
    assert conclusion.findings["class"].value == expected
    penalty = conclusion.findings["penalty"].value
    assert isinstance(penalty, float)
    assert (penalty > 1.5) == (expected == "volatile")


@pytest.mark.parametrize("slc", ["", SLC], ids=["", "slc"])
@pytest.mark.parametrize(
    ("buffer", "expected"),
    [(PROTECTED, UNDECIDED), (VOLATILE, "volatile")],
)
def test_bursts_show_the_class_where_each_flush_takes_as_long_as_a_program(
    tmp_path: Path, buffer: str, expected: str, slc: str
) -> None:
    evidence = _evidence(_twin(tmp_path, f'{buffer}\nflush_overhead = "760 us"', slc))
    finding = conclude(evidence).findings["class"]
    assert finding.value == expected
    assert ("in a long write" in finding.why) == (expected == UNDECIDED)


def test_a_burst_that_flash_takes_as_fast_as_the_link_shows_no_class(tmp_path: Path) -> None:
    path = Path(_twin(tmp_path, f'{PROTECTED}\nflush_overhead = "760 us"').removeprefix("twin:"))
    text = re.sub(r"(?m)^bandwidth = .*", 'bandwidth = "100 MiB/s"', path.read_text(), count=1)
    path.write_text(text)
    finding = conclude(_evidence(f"twin:{path}")).findings["class"]
    assert finding.value is None
    assert "may already have been in flash" in finding.why


def test_the_verdict_on_a_drive_that_ignores_flushes_is_a_suspicion(tmp_path: Path) -> None:
    plan = replace(SMALL, data_sheet="volatile")
    conclusion = conclude(_evidence(_twin(tmp_path, IGNORING), plan))
    assert "it seems to ignore flushes; only a power cut can prove it" in conclusion.verdict


@pytest.mark.parametrize(
    ("data_sheet", "expected"),
    [("unknown", UNDECIDED), ("protected", "protected"), ("volatile", "ignores flush")],
)
def test_only_the_data_sheet_decides_about_a_fast_flush_never_the_twins_profile(
    tmp_path: Path, data_sheet: CacheClass, expected: str
) -> None:
    plan = replace(SMALL, data_sheet=data_sheet)
    for buffer in (PROTECTED, IGNORING):
        conclusion = conclude(_evidence(_twin(tmp_path, buffer), plan))
        assert conclusion.findings["class"].value == expected


def test_a_twin_has_only_direct_modes_and_waits_for_each_synced_write(tmp_path: Path) -> None:
    conclusion = conclude(_evidence(_twin(tmp_path, VOLATILE)))
    measured = {(row["mode"], row["in_flight"]) for row in conclusion.measures}
    modes = ("direct none", "direct fsync", "direct dsync")
    assert measured == {(mode, depth) for mode in modes for depth in (1, 16)}
    none, fsync, dsync = (_row(conclusion, mode, 1) for mode in modes)
    assert none["sync_us_p50"] is None
    assert fsync["sync_us_p50"] > 700
    assert dsync["sync_us_p50"] > 700
    assert fsync["write_mib_per_s"] < none["write_mib_per_s"] / 2
    assert fsync["read_mib_per_s"] == pytest.approx(1.5 * fsync["write_mib_per_s"], rel=0.2)


def test_in_a_real_directory_buffered_modes_report_their_cached_share(
    drive_directory: Path,
) -> None:
    conclusion = conclude(_evidence(str(drive_directory), Plan(16 * MIB, 0.05, 1)))
    modes = {row["mode"] for row in conclusion.measures}
    syncs = ("none", "fsync", "fdatasync", "dsync")
    combined = {f"{access} {sync}" for access in ("direct", "buffered") for sync in syncs}
    assert modes == combined | {"sysbench trap"}
    trap = _row(conclusion, "sysbench trap", 16)
    assert trap["cached_percent"] > 90
    assert not trap["of_the_drive"]
    assert not _row(conclusion, "buffered none", 1)["of_the_drive"]
    assert _row(conclusion, "buffered none", 1)["cached_percent"] < trap["cached_percent"]
    assert _row(conclusion, "buffered fsync", 1)["of_the_drive"]
    assert _row(conclusion, "direct fsync", 1)["cached_percent"] is None
    assert conclusion.findings["penalty"].value is not None
    assert list(drive_directory.iterdir()) == []


def test_buffered_steps_start_with_an_empty_cache_and_the_sysbench_trap_with_cached_zeros(
    drive_directory: Path,
) -> None:
    cached: dict[str, int | None] = {}
    zeros: dict[str, bool] = {}

    def listen(report: Report) -> None:
        if report.label in cached or report.label.startswith(("direct", "timing", "writing")):
            return
        [path] = drive_directory.iterdir()
        with path.open("rb") as file:
            cached[report.label] = resident_bytes(file.fileno())
            file.seek(8 * MIB)
            zeros[report.label] = not any(file.read(MIB))

    with open_for_run(TargetOptions(parse_target(str(drive_directory)), 16 * MIB)) as opened:
        RunSession(opened, listen).run_plan(measure, Plan(16 * MIB, 0.02, 1))
    for mode in ("none", "fsync", "fdatasync", "dsync"):
        assert cached[f"buffered {mode}, 1 in flight"] == 0
        assert not zeros[f"buffered {mode}, 1 in flight"]
    # The kernel may evict a few pages at any time.
    assert (cached["sysbench trap, 16 in flight"] or 0) >= 0.99 * 16 * MIB
    assert zeros["sysbench trap, 16 in flight"]


def test_a_run_interrupted_in_its_second_repeat_has_a_class_but_no_penalty(
    tmp_path: Path,
) -> None:
    evidence = _evidence(_twin(tmp_path, VOLATILE))
    tables = {**evidence.tables, "steps": evidence.tables["steps"].slice(0, 71)}
    conclusion = conclude(Evidence(tables, SMALL.parameters(), "interrupted"))
    assert {"direct none", "direct fsync"} <= {row["mode"] for row in conclusion.measures}
    assert "penalty" not in conclusion.findings
    assert conclusion.findings["class"].value == "volatile"
    assert conclusion.verdict.startswith("Interrupted before")


@pytest.mark.parametrize("size", [0, 8 * MIB, 16 * MIB + 1])
def test_a_size_that_is_too_small_or_not_in_whole_mib_is_refused(size: int) -> None:
    with pytest.raises(UsageError, match="a multiple of 1 MiB, at least 16 MiB"):
        make_plan(Fsync(size=size), Directory("."), 0)
