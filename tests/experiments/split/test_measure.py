"""The split experiment on a twin and in a real directory: steps and findings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ssdlab import profiles
from ssdlab.analysis.evidence import Evidence
from ssdlab.errors import UsageError
from ssdlab.experiments.split.analysis import _sentence, conclude
from ssdlab.experiments.split.measure import Plan, measure, plan
from ssdlab.experiments.split.parameters import Split
from ssdlab.profiles.toml_edit import remove_table, set_value
from ssdlab.records import Finding
from ssdlab.runner.open_target import TargetOptions, open_for_run
from ssdlab.runner.session import RunSession
from ssdlab.target import Directory, parse_target

MIB = 1 << 20
SMALL = Plan(size=32 * MIB, repeats=2)


def _evidence(target: str, plan_: Plan, capacity: int | None = None) -> Evidence:
    with open_for_run(
        TargetOptions(parse_target(target, capacity), plan_.size, request_bytes_max=8 * MIB)
    ) as opened_target:
        session = RunSession(opened_target)
        session.run_plan(measure, plan_)
    return Evidence(session.recording.tables(), plan_.parameters())


def test_every_command_size_is_read_at_every_depth_in_every_repeat() -> None:
    evidence = _evidence("twin:toshiba-xg5", SMALL, 1 << 30)
    asked = [(row["queue_depth"], row["block_bytes"]) for row in evidence.steps("read")]
    assert len(asked) == 2 * 2 * 12
    assert set(asked) == {(depth, 8 * MIB >> half) for depth in (1, 32) for half in range(12)}
    assert {row["bytes"] for row in evidence.steps("read")} == {8 * MIB}


def test_splitting_is_costly_for_a_twin_at_depth_1_and_cheap_at_depth_32() -> None:
    conclusion = conclude(_evidence("twin:toshiba-xg5", SMALL, 1 << 30))
    assert len(conclusion.measures) == 24
    penalty = conclusion.findings["split_penalty"].value
    assert isinstance(penalty, float)
    deep = [row["read_ms"] for row in conclusion.measures if row["queue_depth"] == 32]
    assert penalty > 5
    assert deep[-1] / deep[0] < 3
    assert "times as long" in conclusion.verdict


def test_the_drive_rests_so_that_its_cache_does_not_answer_the_reads(tmp_path: Path) -> None:
    cached = set_value(profiles.load("samsung-970-evo-plus-500"), "slc.read", "12 us")
    plans = (SMALL, replace(SMALL, settle_s=0.0))
    rested, at_once = (_penalty(tmp_path, cached, each) for each in plans)
    of_flash = _penalty(tmp_path, remove_table(cached, "slc"), SMALL)
    assert rested == pytest.approx(of_flash, rel=0.01)
    assert at_once != pytest.approx(of_flash, rel=0.1)


def _penalty(folder: Path, profile: str, plan_: Plan) -> float:
    path = folder / "drive.toml"
    path.write_text(profile)
    finding = conclude(_evidence(f"twin:{path}", plan_, 4 << 30)).findings["split_penalty"]
    assert isinstance(finding.value, float)
    return finding.value


@pytest.mark.parametrize(
    ("value", "low", "high", "words"),
    [
        (14.0, 0.069, 3600.0, "vary too much to tell"),
        (1.02, 0.8, 1.5, "vary too much to exclude a factor of 1.5"),
        (1.02, 0.95, 1.1, "no measurable cost"),
        (3.0, 2.5, 3.5, "takes 3.00 times as long"),
    ],
)
def test_a_penalty_is_only_quoted_if_the_repeats_show_it(
    value: float, low: float, high: float, words: str
) -> None:
    rows = [{"unit_kib": unit, "queue_depth": 1, "read_ms": 1.0} for unit in (8192, 4)]
    assert words in _sentence(Finding(value, "x", low, high, ""), rows)


def test_a_real_directory_is_read_with_requests_of_up_to_8_mib(drive_directory: Path) -> None:
    conclusion = conclude(_evidence(str(drive_directory), Plan(size=16 * MIB, repeats=2)))
    assert max(row["unit_kib"] for row in conclusion.measures) == 8192
    assert conclusion.findings["split_penalty"].low is not None


def test_a_run_interrupted_before_all_repeats_has_no_finding() -> None:
    evidence = _evidence("twin:toshiba-xg5", SMALL, 1 << 30)
    cut = Evidence(
        {**evidence.tables, "steps": evidence.tables["steps"].slice(0, 20)},
        SMALL.parameters(),
        "interrupted",
    )
    conclusion = conclude(cut)
    assert conclusion.findings == {}
    assert conclusion.verdict.startswith("Interrupted before")


@pytest.mark.parametrize("size", [0, MIB, 12 * MIB, 8 * MIB + 1])
def test_a_size_that_is_not_a_multiple_of_the_window_is_refused(size: int) -> None:
    with pytest.raises(UsageError, match="it must be a multiple of 8 MiB"):
        plan(Split(size=size), Directory("."), 0)
