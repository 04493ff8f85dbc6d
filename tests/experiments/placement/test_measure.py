"""The placement experiment on small twins of the published drive."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ssdlab import profiles
from ssdlab.analysis.evidence import Conclusion, Evidence
from ssdlab.errors import TargetError, UsageError
from ssdlab.experiments.placement.analysis import conclude
from ssdlab.experiments.placement.drives import changed
from ssdlab.experiments.placement.measure import Plan, measure, plan
from ssdlab.experiments.placement.parameters import Placement
from ssdlab.runner.open_target import TargetOptions, open_for_run
from ssdlab.runner.session import RunSession
from ssdlab.target import Twin, parse_target

GIB = 1 << 30
LISTED = {
    "contiguous": (2174.5, 2174.5),
    "append worst": (397.3, 2126.5),
    "overwrite worst": (398.8, 2057.9),
}
"""What the study printed, MiB/s: without hints and with them."""
TWIN = Twin("placement-study")
FRESH = Plan(spares=(), laws=False, host_work=(), size=3 * GIB)


def _concluded(chosen: Plan, target: str = "twin:placement-study") -> Conclusion:
    with open_for_run(TargetOptions(parse_target(target), chosen.size, chosen.seed)) as opened:
        session = RunSession(opened)
        session.run_plan(measure, chosen)
    return conclude(Evidence(session.recording.tables(), chosen.parameters()))


def test_the_published_figures_are_met_with_one_constant_of_the_host() -> None:
    chosen = replace(FRESH, placements=("striped", "hinted"), fresh_work=tuple(LISTED))
    rows = _concluded(chosen).measures
    found = {(row["workload"], row["placement"]): row["read_mib_per_s"] for row in rows}
    for workload, printed in LISTED.items():
        for placement, speed in zip(("striped", "hinted"), printed, strict=True):
            assert found[workload, placement] == pytest.approx(speed, rel=0.04), workload


def test_what_grows_by_less_than_a_page_is_read_as_one_where_it_is_packed() -> None:
    work = ("contiguous", *(f"append random, {size} KiB" for size in (4, 16)))
    conclusion = _concluded(replace(FRESH, fresh_work=work))
    share = {
        (row["workload"], row["placement"]): row["of_contiguous"] for row in conclusion.measures
    }
    for small in work[1:]:
        assert share[small, "packed"] >= 0.85
        assert share[small, "striped"] < share[small, "hinted"] < 0.8
    assert conclusion.findings["best_placement"].value == "packed"
    assert conclusion.verdict.startswith("Placement packed keeps")


def test_a_drive_that_collects_keeps_files_readable_by_hints_at_little_cost() -> None:
    chosen = replace(
        FRESH,
        placements=("striped", "hinted", "inferred"),
        spares=(0.28,),
        drive_writes=1.0,
        fresh_work=(),
        steady_work=("contiguous", "append worst", "overwrite worst"),
    )
    rows = _concluded(chosen).measures
    share = {
        (row["workload"], row["placement"]): row["of_contiguous"]
        for row in rows
        if "of_contiguous" in row
    }
    assert share["append worst", "hinted"] >= 0.9
    assert share["overwrite worst", "hinted"] >= 0.9
    assert share["overwrite worst", "inferred"] >= 0.85
    assert share["append worst", "striped"] < 0.25
    lives = {row["placement"]: row for row in rows if "erase_spread" in row}
    for placement, row in lives.items():
        assert row["waf_of_striped"] <= 1.05, placement
        assert row["erase_spread"] <= 1.5 * lives["striped"]["erase_spread"], placement
        assert row["write_latency_us_p999"] is not None


def test_the_stripe_halves_and_equal_gaps_resonate() -> None:
    chosen = replace(FRESH, placements=("striped",), fresh_work=(), laws=True)
    rows = _concluded(chosen).measures
    probe = {row["alignment_kib"]: row["read_mib_per_s"] for row in rows if "alignment_kib" in row}
    for alignment in (32, 64, 128):
        assert probe[2 * alignment] == pytest.approx(probe[alignment] / 2, rel=0.12), alignment
    took = {(row["workload"], row["degree"]): row["read_ms"] for row in rows if "degree" in row}
    equal, at_random = (took[f"pieces, {kind}", 256] for kind in ("equal gaps", "random gaps"))
    assert equal > 5 * took["pieces, equal gaps", 1]
    assert at_random < 2 * took["pieces, random gaps", 1]


def test_a_real_drive_is_refused_as_it_cannot_be_told(tmp_path: Path) -> None:
    with (
        open_for_run(TargetOptions(parse_target(str(tmp_path)), 1 << 20)) as opened,
        pytest.raises(TargetError, match="twin:"),
    ):
        RunSession(opened).run_plan(measure, FRESH)


def test_a_changed_profile_has_the_new_values_and_the_others_as_they_were() -> None:
    text = profiles.load("placement-study")
    new = changed(
        text, {"ftl": {"placement": "hinted", "spare": 0.07}, "drive": {"capacity": None}}
    )
    assert 'placement = "hinted"' in new
    assert "spare = 0.07" in new
    assert "capacity" not in new
    assert "max_transfer" in new


@pytest.mark.parametrize(
    ("placements", "spares", "writes"),
    [(("random",), (0.07,), 1.0), ((), (0.01,), 1.0), ((), (0.07,), 0.0)],
)
def test_options_that_make_no_plan_are_wrong_use(
    placements: tuple[str, ...], spares: tuple[float, ...], writes: float
) -> None:
    with pytest.raises(UsageError, match="it may"):
        plan(Placement(placements=placements, spare=spares, drive_writes=writes), TWIN, 0)


def test_a_twin_that_is_too_small_is_refused() -> None:
    with pytest.raises(UsageError, match="3 GiB or more"):
        plan(Placement(), replace(TWIN, scaled_to_bytes=GIB), 0)
    large = plan(Placement(), replace(TWIN, scaled_to_bytes=64 * GIB), 0)
    assert large.size == 4 * GIB
