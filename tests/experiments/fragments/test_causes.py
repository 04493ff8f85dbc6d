"""Runs of fragments on twins with known causes: the steps and the conclusions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ssdlab.analysis.evidence import Conclusion, Evidence
from ssdlab.errors import Interrupted, UsageError
from ssdlab.experiments.fragments.analysis import conclude
from ssdlab.experiments.fragments.measure import Plan, measure
from ssdlab.experiments.fragments.measure import plan as make_plan
from ssdlab.experiments.fragments.parameters import Fragments
from ssdlab.experiments.fragments.plan import NO_HOST, Host
from ssdlab.runner.open_target import TargetOptions, open_for_run
from ssdlab.runner.progress import Listener, silent
from ssdlab.runner.session import RunSession
from ssdlab.target import Directory, parse_target

KIB, MIB = 1 << 10, 1 << 20
SMALL = Plan(degrees=(1, 16, 256), distance=MIB, repeats=2)
PROFILE = """
[drive]
model = "Test"
capacity = "1 GiB"
interface = "nvme"
[link]
bandwidth = "3000 MiB/s"
read_overhead = "{overhead}"
max_transfer = "256 KiB"
[flash]
channels = {channels}
dies_per_channel = 1
planes = 1
page = "32 KiB"
pages_per_block = 16
read = "60 us"
program = "200 us"
erase = "3 ms"
channel_bandwidth = "1000 MiB/s"
[ftl]
mapping_unit = "4 KiB"
chunk = "32 KiB"
spare = 0.1
[buffer]
size = "4 MiB"
"""


def _run(target: str, plan: Plan, listener: Listener = silent) -> Evidence:
    with open_for_run(TargetOptions(parse_target(target), plan.size, plan.seed)) as opened:
        session = RunSession(opened, listener)
        outcome = "complete"
        try:
            session.run_plan(measure, plan)
        except (Interrupted, KeyboardInterrupt):
            outcome = "interrupted"
    return Evidence(session.recording.tables(), plan.parameters(), outcome, virtual=True)


@pytest.fixture
def twin(tmp_path: Path) -> Callable[..., str]:
    """`twin(dies, overhead)` -> a target with one die per channel and chunks of 32 KiB."""

    def make(dies: int, overhead: str = "10 us") -> str:
        path = tmp_path / f"{dies}.toml"
        path.write_text(PROFILE.format(channels=dies, overhead=overhead))
        return f"twin:{path}"

    return make


def _values(conclusion: Conclusion) -> dict[str, object]:
    return {name: finding.value for name, finding in conclusion.findings.items()}


def _read_ms(conclusion: Conclusion, gap: str, depth: int, degree: int) -> float:
    for row in conclusion.measures:
        if (row["gap"], row["queue_depth"], row["degree"]) == (gap, depth, degree):
            return float(row["read_ms"])
    raise AssertionError("no such row")


def test_each_layout_is_read_in_turn_with_the_same_commands_in_order(
    twin: Callable[..., str],
) -> None:
    evidence = _run(twin(8), SMALL)
    steps = [(row["value"], row["queue_depth"]) for row in evidence.steps("worst")]
    per_repeat = [(degree, depth) for degree in (16, 256) for depth in (1, 32)]
    assert sorted(steps) == sorted(per_repeat * 2)
    references = [row["value"] for row in evidence.steps("in order") if row["stage"] == 2]
    assert sorted(references) == [1] * 4 + [256] * 4
    reads = [row for row in evidence.steps() if row["phase"] in {"worst", "random", "in order"}]
    forward = [(row["value"], row["queue_depth"]) for row in evidence.steps("forward")]
    assert forward == [(256, 32)] * 4, "only where a cause is derived; for two gaps, twice"
    assert {row["bytes"] for row in reads} == {8 * MIB}
    assert {row["block_bytes"] for row in reads if row["value"] == 16} == {256 * KIB}
    assert {row["block_bytes"] for row in reads if row["value"] == 256} == {32 * KIB}


def test_on_a_twin_with_one_die_the_cause_is_splitting(twin: Callable[..., str]) -> None:
    values = _values(conclude(_run(twin(1, "80 us"), SMALL)))
    assert values["cause"] == values["cause_depth_1"] == "request splitting"
    assert values["cause_depth_32"] == "none"


def test_on_a_twin_with_cheap_commands_the_cause_is_conflicts(twin: Callable[..., str]) -> None:
    plan = Plan(SMALL.degrees, distance=MIB, repeats=2, twin_host=NO_HOST)
    conclusion = conclude(_run(twin(16, "1 us"), plan))
    values = _values(conclusion)
    assert values["cause"] == values["cause_depth_32"] == "die conflicts"
    assert "die conflicts" in conclusion.verdict
    deep = [row for row in conclusion.measures if row["queue_depth"] == 32]
    assert all(row["in_order_ms"] < 1.05 * row["whole_ms"] for row in deep)
    # All pages of 256 pieces are on one die of 16.
    slowdown = values["slowdown_depth_32"]
    assert isinstance(slowdown, float)
    assert slowdown > 4


def test_random_gaps_cost_far_less_than_even_ones(twin: Callable[..., str]) -> None:
    conclusion = conclude(_run(twin(16), SMALL))
    worst, random = (_read_ms(conclusion, gap, 32, 256) for gap in ("worst", "random"))
    whole = _read_ms(conclusion, "worst", 32, 1)
    assert random - whole < 0.2 * (worst - whole)
    slowdown = conclusion.findings["slowdown_depth_32_random"].value
    assert slowdown == random / _read_ms(conclusion, "random", 32, 1)


def test_pieces_written_in_file_order_are_contiguous_inside_the_drive(
    twin: Callable[..., str],
) -> None:
    evidence = _run(twin(16), Plan(SMALL.degrees, ("worst",), MIB, order="file", repeats=2))
    written = [(row["value"], row["bytes"]) for row in evidence.steps("fill")]
    assert written == [(None, 8 * MIB), (16, 8 * MIB), (256, 8 * MIB)]
    values = _values(conclude(evidence))
    assert values["cause_depth_32"] == "none"
    assert values["cause"] == values["cause_depth_1"] == "request splitting"


def test_a_region_that_is_not_a_multiple_of_1_mib_is_written_to_its_end(
    twin: Callable[..., str],
) -> None:
    plan = Plan((1, 128), ("worst",), 68 * KIB, repeats=1)
    assert plan.size % MIB
    evidence = _run(twin(16), plan)
    assert [row["bytes"] for row in evidence.steps("fill")] == [plan.size]


def test_a_distance_off_the_stripe_spreads_even_gaps_over_all_dies(
    twin: Callable[..., str],
) -> None:
    distance = MIB + 32 * KIB
    plan = Plan(SMALL.degrees, ("worst",), distance, repeats=2)
    values = _values(conclude(_run(twin(16), plan)))
    assert values["cause_depth_32"] == "none"


def test_modelled_host_time_adds_at_depth_1_and_overlaps_at_greater_depths(
    twin: Callable[..., str],
) -> None:
    host = Host(us_per_command=50, us_per_kib=0, us_per_kib_deep=2, us_first_deep=100)
    plans = [Plan((1, 256), ("worst",), MIB, repeats=1, twin_host=each) for each in (host, NO_HOST)]
    modelled, bare = (conclude(_run(twin(16), each)) for each in plans)
    alone, with_host = (_read_ms(each, "worst", 1, 256) for each in (bare, modelled))
    assert with_host == pytest.approx(alone + 256 * 0.05)
    assert _read_ms(modelled, "worst", 32, 1) == pytest.approx(8192 * 2 / 1000)
    assert _read_ms(modelled, "worst", 32, 256) == pytest.approx(
        max(16.384, _read_ms(bare, "worst", 32, 256) + 0.1)
    )
    share = modelled.findings["host_share_depth_1"].value
    excess = with_host - _read_ms(modelled, "worst", 1, 1)
    assert share == pytest.approx(100 * (256 - 32) * 0.05 / excess)


def test_the_same_seed_gives_the_same_run_and_another_seed_other_gaps(
    twin: Callable[..., str],
) -> None:
    target = twin(16)
    first, again, other = (
        conclude(_run(target, Plan((1, 64), ("random",), MIB, repeats=1, seed=seed)))
        for seed in (1, 1, 2)
    )
    assert first == again
    assert first.measures != other.measures


def test_an_interrupted_run_keeps_its_results_and_says_interrupted(
    twin: Callable[..., str], ctrl_c_at: Callable[[str], Listener]
) -> None:
    evidence = _run(twin(16), SMALL, ctrl_c_at("in 256 pieces"))
    conclusion = conclude(evidence)
    assert evidence.outcome == "interrupted"
    assert {row["degree"] for row in conclusion.measures} == {1, 16}
    assert set(conclusion.findings) >= {"slowdown_depth_1"}
    assert conclusion.verdict.startswith("Interrupted before all layouts were read. ")
    empty = conclude(_run(twin(16), SMALL, ctrl_c_at("writing")))
    assert empty.findings == {}
    assert empty.verdict.startswith("Interrupted before")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            Fragments(distance=32 * KIB),
            "--distance is 32 KiB; it must be a multiple of 4 KiB",
        ),
        (Fragments(distance=MIB + 1), "--distance is"),
        (Fragments(size=16 * MIB), "--size is 16 MiB; with pieces 8 MiB apart it must be at least"),
    ],
)
def test_a_layout_without_gaps_or_room_is_refused(parameters: Fragments, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_plan(parameters, Directory("."), 0)


def test_a_smaller_size_or_distance_leaves_the_degrees_that_have_room() -> None:
    def degrees(parameters: Fragments) -> tuple[int, ...]:
        return make_plan(parameters, Directory("."), 0).degrees

    assert degrees(Fragments()) == (1, 2, 4, 8, 16, 32, 64, 128, 256)
    assert degrees(Fragments(size=136 * MIB)) == (1, 2, 4, 8, 16)
    assert degrees(Fragments(size=135 * MIB)) == (1, 2, 4, 8)
    assert degrees(Fragments(distance=MIB)) == (1, 16, 32, 64, 128, 256)
    assert degrees(Fragments(size="136MiB", quick=True)) == (1, 8, 16)


def test_look_ups_of_the_map_are_not_reported_as_conflicts(
    twin: Callable[..., str], tmp_path: Path
) -> None:
    text = Path(twin(2).removeprefix("twin:")).read_text()
    text = text.replace("planes = 1", "planes = 4").replace('page = "32 KiB"', 'page = "4 KiB"')
    # Two dies in turn, whatever the gaps: nothing conflicts more than in a file in one piece.
    plan = Plan((1, 256), ("worst",), 3 * MIB + 32 * KIB, repeats=2, twin_host=NO_HOST)
    causes = []
    for number, section in enumerate(("[ftl]", '[ftl]\nmap_cache = "64 KiB"')):
        path = tmp_path / f"map {number}.toml"
        path.write_text(text.replace("[ftl]", section))
        causes.append(_values(conclude(_run(f"twin:{path}", plan)))["cause_depth_32"])
    assert causes == ["none", None]


def test_data_in_an_slc_cache_does_not_change_the_slowdown(
    twin: Callable[..., str], tmp_path: Path
) -> None:
    plain = twin(8)
    cache = '[slc]\nsize = "96 MiB"\nmode = "static"\nbits_per_cell = 2\n'
    path = tmp_path / "cached.toml"
    path.write_text(
        Path(plain.removeprefix("twin:")).read_text()
        + cache
        + 'program = "100 us"\nread = "15 us"\n'
    )
    plan = Plan(degrees=(1, 256), distance=MIB, repeats=4, depths=(1,), twin_host=NO_HOST)
    expected = _values(conclude(_run(plain, plan)))["slowdown_depth_1"]
    slowdown = _values(conclude(_run(f"twin:{path}", plan)))["slowdown_depth_1"]
    assert slowdown == pytest.approx(expected, rel=0.02)
