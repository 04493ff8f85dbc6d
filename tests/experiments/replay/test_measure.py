"""The replay experiment: layout of volumes, pace, findings."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssdlab.analysis.evidence import Conclusion, Evidence
from ssdlab.errors import UsageError
from ssdlab.experiments.replay.analysis import conclude
from ssdlab.experiments.replay.measure import Plan, measure, plan
from ssdlab.experiments.replay.parameters import Replay
from ssdlab.runner.open_target import TargetOptions, open_for_run
from ssdlab.runner.session import RunSession
from ssdlab.target import Directory, Twin, parse_target

MIB = 1 << 20


def _trace(folder: Path, count: int = 400, gap_us: int = 1000) -> Path:
    """A trace of two volumes in turn: writes, each followed by a read of it, `gap_us` apart."""
    lines = [
        f"{at % 2},{'WR'[at // 2 % 2]},{at // 4 * 4096},4096,{at * gap_us}" for at in range(count)
    ]
    path = folder / "trace.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def _planned(parameters: Replay, room: int | None = 1 << 30) -> Plan:
    target = Directory(".") if room is None else Twin("toshiba-xg5", room)
    return plan(parameters, target, 0)


def _conclusion(target: str, plan_: Plan) -> Conclusion:
    options = TargetOptions(
        parse_target(target), plan_.size, request_bytes_max=plan_.request_bytes_max
    )
    if target.startswith("twin:"):
        options = TargetOptions(parse_target(target, 1 << 30), plan_.size)
    with open_for_run(options) as opened_target:
        session = RunSession(opened_target)
        session.run_plan(measure, plan_)
    return conclude(Evidence(session.recording.tables(), plan_.parameters()))


def test_volumes_are_placed_one_after_the_other_at_whole_mebibytes(tmp_path: Path) -> None:
    asked = Replay(trace=_trace(tmp_path))
    plan_ = _planned(asked)
    assert plan_.replay.volumes == ((0, 0), (1, MIB))
    assert (plan_.size, plan_.replay.requests, plan_.written) == (2 * MIB, 400, 200 * 4096)
    together = _planned(Replay(trace=_trace(tmp_path), together=True))
    assert (together.replay.volumes, together.size) == ((), MIB)
    far = tmp_path / "far.csv"
    far.write_text(f"0,R,{1 << 29},4096,0\n0,W,0,4096,1\n")
    assert _planned(Replay(trace=far), room=256 * MIB).size == 256 * MIB, "as the target"


def test_a_pace_that_is_kept_is_reported(tmp_path: Path) -> None:
    conclusion = _conclusion(
        "twin:toshiba-xg5", _planned(Replay(trace=_trace(tmp_path), speed=2.0))
    )
    assert {row["op"]: row["requests"] for row in conclusion.measures} == {
        "read": 200,
        "write": 200,
    }
    assert conclusion.findings["pace_kept"].value is True
    iops = conclusion.findings["iops"].value
    assert isinstance(iops, float)
    assert iops == pytest.approx(2000, rel=0.02)
    assert conclusion.verdict.endswith("The trace's pace was kept.")


def test_a_pace_that_is_too_fast_is_reported_as_not_kept(tmp_path: Path) -> None:
    path = _trace(tmp_path, 4000, 10)
    conclusion = _conclusion("twin:toshiba-xg5", _planned(Replay(trace=path, speed=100.0, depth=1)))
    assert conclusion.findings["pace_kept"].value is False
    assert "The pace was not kept" in conclusion.verdict


def test_a_replay_without_a_pace_has_no_finding_about_it(tmp_path: Path) -> None:
    conclusion = _conclusion("twin:toshiba-xg5", _planned(Replay(trace=_trace(tmp_path))))
    assert "pace_kept" not in conclusion.findings
    assert conclusion.findings["iops"].value is not None


def test_a_trace_is_replayed_in_a_real_directory(tmp_path: Path, drive_directory: Path) -> None:
    conclusion = _conclusion(str(drive_directory), _planned(Replay(trace=_trace(tmp_path)), None))
    assert sum(row["requests"] for row in conclusion.measures) == 400
    assert sum(row["errors"] for row in conclusion.measures) == 0


def test_parameters_out_of_range_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--format is 'csv'; it must be blktrace, fio,"):
        Replay(trace=tmp_path, format="csv").trace_input()
    with pytest.raises(UsageError, match="--depth is 0; it must be 1 to 1024"):
        Replay(trace=tmp_path, depth=0).trace_input()
    for size in (1024, 3 * MIB // 2):
        with pytest.raises(UsageError, match=r"--size is .*; it must be a multiple of 1 MiB"):
            Replay(trace=tmp_path, size=size).trace_input()
    with pytest.raises(UsageError, match="--speed is 0; it must be 1e-06 to 1e"):
        Replay(trace=tmp_path, speed=0.0).trace_input()
