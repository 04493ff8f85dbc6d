"""WAF of victims chosen at random, by the cost of writes while parts of the region are trimmed."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from gauged_drive import drive

from known_twins import KnownTwin
from ssdlab.analysis.evidence import Evidence
from ssdlab.analysis.write_amplification import Bracket
from ssdlab.experiments.steady import closed_form, waf
from ssdlab.experiments.steady.analysis import conclude
from ssdlab.experiments.steady.estimate import Estimate
from ssdlab.experiments.steady.garbage import AT_RANDOM
from ssdlab.experiments.steady.measure import measure
from ssdlab.experiments.steady.plan import TRIMMED, TRIMMED_WRITES, Plan
from ssdlab.experiments.steady.victims_at_random import waf_by_trimmed_parts
from ssdlab.runner.open_target import TargetOptions, open_for_run
from ssdlab.runner.session import RunSession
from ssdlab.stats.steady import Progress
from ssdlab.target import parse_target

MIB = 1 << 20
TWIN = KnownTwin(
    capacity=512 * MIB, spare=0.06, pages_per_block=16, buffer="256 KiB", ftl='victim = "random"'
)


def _curve(costs: Sequence[float]) -> Progress:
    """A curve of as many bytes at each of these costs, in seconds per byte."""
    return Progress([100.0 * cost for cost in costs], [100.0] * len(costs))


def _costs(written: float, relocated: float, waf: float) -> list[float]:
    """Costs of writes with each share trimmed, if WAF was `waf` before."""
    hidden = 1 / (waf - 1)
    return [written + relocated * (1 - share) / (hidden + share) for share in (0.0, *TRIMMED)]


def _gauged(costs: Sequence[float], **values: Any) -> Any:
    """Gauges of a drive whose writes have these costs, before and after each trim."""
    steady, *others = costs
    parts = [(share, _curve([cost] * 20)) for share, cost in zip(TRIMMED, others, strict=False)]
    return drive(**{"steady": 1 / steady, "trimmed_parts": parts, "buffer": 0.0} | values)


def _shown(gauged: Any) -> Bracket | None:
    """WAF by the writes with parts trimmed, if it is measured and explains their costs."""
    found = waf_by_trimmed_parts(gauged)
    return None if found is None else found.bracket


@pytest.mark.parametrize("true_waf", [8.0, 25.0])
@pytest.mark.parametrize(("written", "relocated"), [(1.0, 1.0), (1.0, 1.9), (3.0, 1.2)])
def test_waf_is_shown_whatever_a_write_and_a_relocation_cost(
    true_waf: float, written: float, relocated: float
) -> None:
    found = _shown(_gauged(_costs(written, relocated, true_waf)))
    assert found is not None
    assert found.low < true_waf < found.high < 1.75 * found.low
    assert found.value == pytest.approx(math.sqrt(found.low * found.high))


def test_a_mapping_unit_costs_as_much_as_its_blocks() -> None:
    costs = _costs(1.0, 1.2, 12.0)
    one = _shown(_gauged(costs))
    four = _shown(_gauged([4 * cost for cost in costs], unit=4))
    assert one is not None
    assert four == pytest.approx([4 * waf for waf in one])
    assert waf_by_trimmed_parts(_gauged(costs, unit=None)) is None


def test_costs_that_no_waf_explains_show_none() -> None:
    """A relocation costs at least a program, unless the link hides what that costs."""
    costs = _costs(1.0, 0.3, 20.0)
    assert _shown(_gauged(costs)) is None
    found = waf_by_trimmed_parts(_gauged(costs))
    assert found is not None
    assert "chosen at random or from a few" in found.why
    assert _shown(_gauged([4 * cost for cost in costs], unit=4)) is None
    on_erased = _shown(_gauged(costs, erased=4.0))
    assert on_erased is not None, "large writes in order relocate data, too"
    behind_link = _shown(_gauged(costs, is_direct_limited=True))
    assert behind_link is not None
    assert behind_link.low < 20 < behind_link.high
    assert _shown(_gauged([*costs[:-1], costs[-2]], is_direct_limited=True)) is None


def test_behind_a_slow_link_reads_bound_what_a_relocation_costs() -> None:
    """Without a bound, writes that cost nothing but relocation would explain the costs as well."""
    costs = _costs(0.5, 0.5, 20.0)
    found = _shown(_gauged(costs[:3], is_direct_limited=True))
    assert found is not None
    assert 16.0 < found.low < 20 < found.high < 26.0


def test_writes_that_the_link_limits_do_not_count() -> None:
    costs = _costs(0.5, 0.5, 20.0)
    without, limited = (
        _shown(_gauged(each, is_direct_limited=True)) for each in (costs[:3], [*costs[:3], 1.1])
    )
    assert without == limited is not None


def test_costs_that_vary_leave_wider_bounds() -> None:
    costs = _costs(1.0, 1.2, 20.0)
    even = _shown(_gauged(costs))
    parts = [
        (share, _curve([0.5 * cost, 1.5 * cost] * 20))
        for share, cost in zip(TRIMMED, costs[1:], strict=True)
    ]
    fine = _shown(_gauged(costs, trimmed_parts=parts))
    parts = [
        (share, _curve((4 * [0.5 * cost] + 4 * [1.5 * cost]) * 5))
        for share, cost in zip(TRIMMED, costs[1:], strict=True)
    ]
    coarse = _shown(_gauged(costs, trimmed_parts=parts))
    assert even is not None
    assert fine is not None
    assert coarse is not None
    assert even.high / even.low == pytest.approx(1.26, rel=0.04), "two deviations of 3 %"
    assert coarse.high / coarse.low > 1.2 * even.high / even.low
    assert fine.high / fine.low < 1.1 * even.high / even.low


def test_bytes_that_only_fill_the_buffer_do_not_count() -> None:
    costs = _costs(1.0, 1.2, 20.0)
    parts = [
        (share, _curve([0.01] * 5 + [cost] * 15))
        for share, cost in zip(TRIMMED, costs[1:], strict=True)
    ]
    buffered = _shown(_gauged(costs, trimmed_parts=parts, buffer=500 / 1.3))
    assert buffered == pytest.approx(_shown(_gauged(costs)))


def test_a_gauge_that_was_interrupted_does_not_count() -> None:
    costs = _costs(1.0, 1.2, 20.0)
    parts = _gauged(costs[:3]).trimmed_parts
    for interrupted in (Progress([], []), _curve([costs[3] / 2])):
        gauged = _gauged(costs, trimmed_parts=[*parts, (0.5, interrupted)], buffer=40.0)
        assert _shown(gauged) == _shown(_gauged(costs[:3], buffer=40.0))


@pytest.mark.parametrize(
    "values",
    [
        {"misses_map": True},
        {"writes_cache": True},
        {"trimmed_parts": []},
        {"unit": 2, "is_direct_limited": True},
    ],
)
def test_where_a_trim_changes_more_than_what_is_relocated_nothing_is_shown(
    values: dict[str, Any],
) -> None:
    costs = [2 * cost for cost in _costs(1.0, 1.0, 12.0)]
    assert _shown(_gauged(costs)) is not None
    assert waf_by_trimmed_parts(_gauged(costs, **values)) is None


def _waf(
    monkeypatch: pytest.MonkeyPatch,
    by_trims: Bracket | None,
    by_hidden: Bracket | None = None,
    by_costs: Bracket | None = None,
    **values: Any,
) -> Estimate:
    """WAF if victims are chosen at random, with what each way to it shows."""
    trims = None if by_trims is None else Estimate(by_trims, "by trims")
    monkeypatch.setattr(waf, "waf_by_trimmed_parts", lambda _gauged: trims)
    shown = Estimate(by_hidden, "by hidden flash")
    monkeypatch.setattr(waf, "_by_hidden_at_random", lambda *_: shown)
    monkeypatch.setattr(waf, "waf_by_costs", lambda _gauged: by_costs)
    monkeypatch.setattr(waf, "narrowed_by_hidden", lambda _gauged, _hidden, bracket: bracket)
    gauged = drive(garbage=AT_RANDOM, **values)
    return waf.waf_without_map(gauged, Estimate(None, "not known"))


def test_trims_narrow_the_bounds_by_hidden_flash_and_by_costs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trims = Bracket(20.0, 16.0, 25.0)
    assert "too uncertain: 16 to 25" in _waf(monkeypatch, trims).why
    costs = _waf(monkeypatch, trims, by_costs=Bracket(28.0, 20.0, 40.0))
    assert costs.bracket == pytest.approx((math.sqrt(500.0), 20.0, 25.0))
    hidden = _waf(monkeypatch, trims, Bracket(18.0, 15.0, 21.0))
    assert hidden.bracket == pytest.approx((18.0, 16.0, 21.0))
    assert hidden.why == "by hidden flash"
    outside = _waf(monkeypatch, trims, Bracket(15.5, 15.0, 21.0))
    assert outside.bracket == pytest.approx((math.sqrt(16 * 21.0), 16.0, 21.0))


def test_trims_alone_show_waf(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _waf(monkeypatch, Bracket(20.0, 17.0, 23.0))
    assert found == Estimate(Bracket(20.0, 17.0, 23.0), "by trims")


def test_costs_with_parts_trimmed_that_no_waf_explains_leave_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those of victims that are chosen from three, for example, although all else fits."""
    hidden = Bracket(20.0, 18.0, 22.0)
    assert _waf(monkeypatch, None, hidden).bracket == hidden
    few = Estimate(None, "from a few")
    monkeypatch.setattr(waf, "waf_by_trimmed_parts", lambda _gauged: few)
    for by_hidden, found in ((hidden, few), (None, Estimate(None, "unknown"))):
        shown = Estimate(by_hidden, "unknown")
        monkeypatch.setattr(waf, "_by_hidden_at_random", lambda *_, shown=shown: shown)
        assert waf._waf_at_random(drive(garbage=AT_RANDOM), Estimate(None, "not known")) == found


@pytest.mark.parametrize(("choices", "is_known"), [(1.0, True), (1.9, True), (2.1, False)])
def test_a_drive_that_collects_too_few_full_superblocks_may_choose_from_a_few(
    choices: float, monkeypatch: pytest.MonkeyPatch, *, is_known: bool
) -> None:
    """Of the bounds of hidden flash, the upper one counts, with which the choices are fewest."""
    sizes = []

    def counted(_gauged: Any, size: float) -> float:
        sizes.append(size)
        return choices

    monkeypatch.setattr(closed_form, "choices_least", counted)
    monkeypatch.setattr(waf, "waf_by_trimmed_parts", lambda _gauged: None)
    by_hidden = Estimate(Bracket(11.0, 10.0, 12.0), "")
    monkeypatch.setattr(waf, "_by_hidden_at_random", lambda *_: by_hidden)
    hidden = Bracket(100.0, 90.0, 110.0)
    found = waf._waf_at_random(drive(garbage=AT_RANDOM), Estimate(hidden, ""))
    assert (found == by_hidden) is is_known
    assert is_known or "from a few" in found.why
    assert (closed_form._bounds(drive(garbage=AT_RANDOM), hidden) is not None) is is_known
    assert set(sizes) == {hidden.high}


def test_hidden_flash_that_shows_another_waf_than_trims_leaves_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trims = Bracket(12.0, 10.0, 14.0)
    near = _waf(monkeypatch, trims, Bracket(15.0, 14.5, 17.0))
    assert near.bracket == pytest.approx((math.sqrt(14 * 14.5), 14 / 1.07, 14.5 * 1.07))
    far = _waf(monkeypatch, trims, Bracket(16.0, 15.5, 17.0))
    assert far.bracket is None
    assert "shows another WAF than the cost" in far.why


def test_a_drive_that_chooses_at_random_is_written_with_parts_trimmed(tmp_path: Path) -> None:
    plan = Plan(region=TWIN.capacity, drive=TWIN.capacity, seed=3)
    with open_for_run(TargetOptions(parse_target(TWIN.target(tmp_path)), plan.size)) as target:
        session = RunSession(target)
        session.run_plan(measure, plan)
        evidence = Evidence(session.recording.tables(), plan.parameters())
    steps = evidence.steps("gauge")
    assert "again" not in {step["case"] for step in steps}
    written = [step for step in steps if step["case"] == "part trimmed"]
    assert [step["value"] for step in written] == list(TRIMMED)
    assert {step["bytes"] for step in written} == {TRIMMED_WRITES * plan.region}
    jobs = [json.loads(step["job"]) for step in written]
    starts = [job["offset_bytes"] for job in jobs]
    assert starts == [share * plan.region for share in TRIMMED]
    assert {job["offset_bytes"] + job["length_bytes"] for job in jobs} == {plan.region}
    conclusion = conclude(evidence).findings
    counted, shown = conclusion["waf"].value, conclusion["waf_curve"]
    assert isinstance(counted, float)
    assert shown.low is not None
    assert shown.high is not None
    assert shown.low < counted < shown.high < 1.5 * shown.low


def test_victims_from_three_are_not_taken_for_ones_chosen_at_random(tmp_path: Path) -> None:
    """With little hidden flash most of three are full, too, but WAF is a third lower."""
    few = replace(TWIN, spare=0.05, ftl='victim = "d-choices"\nchoices = 3')
    plan = Plan(region=few.capacity, drive=few.capacity, seed=3)
    with open_for_run(TargetOptions(parse_target(few.target(tmp_path)), plan.size)) as target:
        session = RunSession(target)
        session.run_plan(measure, plan)
        found = conclude(Evidence(session.recording.tables(), plan.parameters())).findings
    assert found["waf_curve"].value is None
    assert "at random or from a few" in found["waf_curve"].why
