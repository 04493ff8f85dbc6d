"""Runs of placement on small twins of the published drive."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ssdlab import profiles
from ssdlab.analysis.evidence import Conclusion, Evidence
from ssdlab.errors import TargetError, UsageError
from ssdlab.experiments.placement.analysis import conclude
from ssdlab.experiments.placement.drives import edit_profile
from ssdlab.experiments.placement.measure import Plan, measure
from ssdlab.experiments.placement.measure import plan as make_plan
from ssdlab.experiments.placement.parameters import Placement
from ssdlab.runner.open_target import TargetOptions, open_for_run
from ssdlab.runner.session import RunSession
from ssdlab.target import Twin, parse_target

GIB = 1 << 30
PUBLISHED = {
    "contiguous": (2174.5, 2174.5),
    "append worst": (397.3, 2126.5),
    "overwrite worst": (398.8, 2057.9),
}
"""The study's read speeds in MiB/s, without and with hints."""
TWIN = Twin("placement-study")
FRESH = Plan(spares=(), laws=False, host_work=(), size=3 * GIB)


def _conclusion(plan: Plan, target: str = "twin:placement-study") -> Conclusion:
    with open_for_run(TargetOptions(parse_target(target), plan.size, plan.seed)) as opened:
        session = RunSession(opened)
        session.run_plan(measure, plan)
    return conclude(Evidence(session.recording.tables(), plan.parameters()))


def test_the_published_figures_are_reproduced_with_one_host_constant() -> None:
    plan = replace(FRESH, placements=("striped", "hinted"), fresh_work=tuple(PUBLISHED))
    rows = _conclusion(plan).measures
    speeds = {(row["workload"], row["placement"]): row["read_mib_per_s"] for row in rows}
    for workload, printed in PUBLISHED.items():
        for placement, speed in zip(("striped", "hinted"), printed, strict=True):
            assert speeds[workload, placement] == pytest.approx(speed, rel=0.04), workload


def test_a_file_that_grows_by_less_than_a_page_reads_fast_if_packed() -> None:
    workloads = ("contiguous", *(f"append random, {size} KiB" for size in (4, 16)))
    conclusion = _conclusion(replace(FRESH, fresh_work=workloads))
    relative = {
        (row["workload"], row["placement"]): row["of_contiguous"] for row in conclusion.measures
    }
    for small in workloads[1:]:
        assert relative[small, "packed"] >= 0.85
        assert relative[small, "striped"] < relative[small, "hinted"] < 0.8
    assert conclusion.findings["best_placement"].value == "packed"
    assert conclusion.verdict.startswith("Placement packed keeps")


def test_hints_keep_files_fast_under_garbage_collection_at_little_cost() -> None:
    plan = replace(
        FRESH,
        placements=("striped", "hinted", "inferred"),
        spares=(0.28,),
        drive_writes=1.0,
        fresh_work=(),
        steady_work=("contiguous", "append worst", "overwrite worst"),
    )
    rows = _conclusion(plan).measures
    relative = {
        (row["workload"], row["placement"]): row["of_contiguous"]
        for row in rows
        if "of_contiguous" in row
    }
    assert relative["append worst", "hinted"] >= 0.9
    assert relative["overwrite worst", "hinted"] >= 0.9
    assert relative["overwrite worst", "inferred"] >= 0.85
    assert relative["append worst", "striped"] < 0.25
    lives = {row["placement"]: row for row in rows if "erase_spread" in row}
    for placement, row in lives.items():
        assert row["waf_of_striped"] <= 1.05, placement
        assert row["erase_spread"] <= 1.5 * lives["striped"]["erase_spread"], placement
        assert row["write_latency_us_p999"] is not None


def test_speed_halves_with_each_doubling_beyond_the_chunk_and_even_gaps_are_slow() -> None:
    plan = replace(FRESH, placements=("striped",), fresh_work=(), laws=True)
    rows = _conclusion(plan).measures
    speeds = {row["alignment_kib"]: row["read_mib_per_s"] for row in rows if "alignment_kib" in row}
    for alignment in (32, 64, 128):
        assert speeds[2 * alignment] == pytest.approx(speeds[alignment] / 2, rel=0.12), alignment
    read_ms = {(row["workload"], row["degree"]): row["read_ms"] for row in rows if "degree" in row}
    even, at_random = (read_ms[f"pieces, {kind}", 256] for kind in ("equal gaps", "random gaps"))
    assert even > 5 * read_ms["pieces, equal gaps", 1]
    assert at_random < 2 * read_ms["pieces, random gaps", 1]


def test_a_real_drive_is_refused(drive_directory: Path) -> None:
    with (
        open_for_run(TargetOptions(parse_target(str(drive_directory)), 1 << 20)) as opened,
        pytest.raises(TargetError, match="twin:"),
    ):
        RunSession(opened).run_plan(measure, FRESH)


def test_an_edited_profile_keeps_the_other_values() -> None:
    text = edit_profile(
        profiles.load("placement-study"),
        {"ftl": {"placement": "hinted", "spare": 0.07}, "drive": {"capacity": None}},
    )
    assert 'placement = "hinted"' in text
    assert "spare = 0.07" in text
    assert "capacity" not in text
    assert "max_transfer" in text


@pytest.mark.parametrize(
    ("placements", "spares", "writes"),
    [(("random",), (0.07,), 1.0), ((), (0.01,), 1.0), ((), (0.07,), 0.0)],
)
def test_options_out_of_range_are_refused(
    placements: tuple[str, ...], spares: tuple[float, ...], writes: float
) -> None:
    with pytest.raises(UsageError, match="must be"):
        make_plan(Placement(placements=placements, spare=spares, drive_writes=writes), TWIN, 0)


def test_a_twin_that_is_too_small_is_refused() -> None:
    with pytest.raises(UsageError, match="3 GiB or more"):
        make_plan(Placement(), replace(TWIN, scaled_to_bytes=GIB), 0)
    large = make_plan(Placement(), replace(TWIN, scaled_to_bytes=64 * GIB), 0)
    assert large.size == 4 * GIB
