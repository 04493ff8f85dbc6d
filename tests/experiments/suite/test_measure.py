"""Runs of suite on twins with known properties, and in a real directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ssdlab import profiles
from ssdlab.analysis.evidence import Conclusion, Evidence
from ssdlab.errors import UsageError
from ssdlab.experiments.suite.analysis import conclude
from ssdlab.experiments.suite.measure import TESTS, Plan, measure
from ssdlab.experiments.suite.measure import plan as make_plan
from ssdlab.experiments.suite.parameters import Suite
from ssdlab.runner.open_target import TargetOptions, open_for_run
from ssdlab.runner.session import RunSession
from ssdlab.target import Directory, parse_target

MIB = 1 << 20
SMALL = Plan(size=16 * MIB, seconds=0.2)
SLC = '[slc]\nsize = "64 MiB"\nprogram = "200 us"\n'
DIRECT = {
    *("sequential", "random 4k", "random 4k x64", "access time", "random 4k dsync"),
    *("sequential zeros", "random 4k zeros", "random 4k x64 zeros"),
    *("sequential x1", "random 4k x32"),
}


def _evidence(target: str, plan: Plan = SMALL) -> Evidence:
    capacity = (1 << 30) if target.startswith("twin:") else None
    with open_for_run(TargetOptions(parse_target(target, capacity), plan.size)) as opened:
        session = RunSession(opened)
        session.run_plan(measure, plan)
    return Evidence(session.recording.tables(), plan.parameters())


def _twin(folder: Path, name: str, *, elides: bool, slc: bool, protected: bool) -> str:
    head, _ = profiles.load(name).split("[buffer]")
    keys = [f"power_loss_protection = {protected}".lower(), f"elides_zeros = {elides}".lower()]
    path = folder / "drive.toml"
    buffer = "\n".join(["[buffer]", 'size = "8 MiB"', *keys, SLC if slc else ""])
    path.write_text(head + buffer)
    return f"twin:{path}"


def _row(conclusion: Conclusion, test: str, op: str) -> dict[str, Any]:
    return next(row for row in conclusion.measures if (row["test"], row["op"]) == (test, op))


@pytest.mark.parametrize("protected", [False, True])
@pytest.mark.parametrize("slc", [False, True])
@pytest.mark.parametrize("elides", [False, True])
@pytest.mark.parametrize("name", ["toshiba-xg5", "intel-s3510-480"])
def test_only_a_twin_that_elides_zeros_is_content_sensitive(
    tmp_path: Path, name: str, elides: bool, slc: bool, protected: bool
) -> None:
    target = _twin(tmp_path, name, elides=elides, slc=slc, protected=protected)
    conclusion = conclude(_evidence(target))
    assert conclusion.findings["content_sensitive"].value is elides
    assert ("overstate" in conclusion.verdict) is elides


def test_a_twin_runs_every_test_except_the_buffered_ones_three_times() -> None:
    conclusion = conclude(_evidence("twin:toshiba-xg5"))
    assert {row["test"] for row in conclusion.measures} == DIRECT
    assert {len(row["mib_per_s_all"]) for row in conclusion.measures} == {3}
    assert [row["unit"] for row in conclusion.measures].count("us") == 2
    for row in conclusion.measures:
        values = row["us_all"] or row["mib_per_s_all"]
        assert row["mean"] == pytest.approx(sum(values) / 3)


def test_deep_queues_and_large_requests_are_faster_and_dsync_is_slower() -> None:
    conclusion = conclude(_evidence("twin:toshiba-xg5"))
    read = {test: _row(conclusion, test, "read")["mean"] for test in ("sequential", "random 4k")}
    assert read["sequential"] > 10 * read["random 4k"]
    assert _row(conclusion, "random 4k x64", "read")["mean"] > 10 * read["random 4k"]
    assert _row(conclusion, "sequential x1", "read")["mean"] < read["sequential"]
    middle = _row(conclusion, "random 4k x32", "read")["mean"]
    assert read["random 4k"] < middle < _row(conclusion, "random 4k x64", "read")["mean"]
    write = _row(conclusion, "random 4k", "write")["mean"]
    assert _row(conclusion, "random 4k dsync", "write")["mean"] < write / 10
    assert 60 < _row(conclusion, "access time", "read")["mean"] < 150


def test_a_real_directory_runs_the_buffered_tests_too(drive_directory: Path) -> None:
    evidence = _evidence(str(drive_directory), Plan(size=16 * MIB, seconds=0.05))
    conclusion = conclude(evidence)
    assert len(conclusion.measures) == len(TESTS)
    assert {row["test"] for row in conclusion.measures} == DIRECT | {
        "buffered",
        "buffered dsync",
    }
    assert all(row["value"] < 0.01 for row in evidence.observed("cached_share"))
    assert list(drive_directory.iterdir()) == []


def test_an_interrupted_run_has_rows_but_no_finding() -> None:
    evidence = _evidence("twin:toshiba-xg5")
    tables = {**evidence.tables, "steps": evidence.tables["steps"].slice(0, 25)}
    conclusion = conclude(Evidence(tables, SMALL.parameters(), "interrupted"))
    assert conclusion.measures
    assert conclusion.findings == {}
    assert conclusion.verdict.startswith("Interrupted before")


@pytest.mark.parametrize("size", [0, 8 * MIB, 16 * MIB + 1])
def test_a_size_that_is_too_small_or_not_in_whole_mib_is_refused(size: int) -> None:
    with pytest.raises(UsageError, match="a multiple of 1 MiB, at least 16 MiB"):
        make_plan(Suite(size=size, quick=True), Directory("."), 0)
