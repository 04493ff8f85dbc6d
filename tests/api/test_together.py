"""Several runs: a results folder as a dataset, comparisons, sweeps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

import ssdlab
from ssdlab.api import sweep as swept
from ssdlab.cli.compare import app as compare_app
from ssdlab.sweep.execute import Outcome, execute_locally
from ssdlab.sweep.spec import SweepRun

SPEC: dict[str, Any] = {
    "name": "few",
    "profile": "toshiba-xg5",
    "capacity": "256MiB",
    "vary": {"ftl.spare": [0.1, 0.2]},
    "workload": {"drive_writes": 0.2},
}


def test_a_results_folder_is_a_sequence_of_runs_and_a_table(
    results: Path, aged: ssdlab.Run, split: ssdlab.Run
) -> None:
    runs = ssdlab.open_runs(results)
    assert [run.folder for run in runs] == [aged.folder, split.folder]
    assert (len(runs), runs[1].experiment) == (2, "split")
    rows = runs.table().to_pylist()
    assert [row["experiment"] for row in rows] == ["aging", "split"]
    assert rows[0]["finding.slowdown"] == aged.findings["slowdown"].value
    assert aged.verdict in runs._repr_html_()
    with pytest.raises(ssdlab.UsageError, match="does not exist"):
        ssdlab.open_runs(results / "none")


def test_open_runs_includes_the_sides_of_a_comparison_in_turns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--interleave", "twin:toshiba-xg5", "twin:wd-sn850", "--capacity", "256MiB"]
    words += ["--size", "16MiB", "--turn", "1ms", "--turns", "8", "--out", str(tmp_path)]
    compare_app([*words, "--json", "--quiet"], standalone_mode=False)
    capsys.readouterr()
    runs = ssdlab.open_runs(tmp_path)
    assert [(run.experiment, run.target) for run in runs] == [
        ("turns", "twin:toshiba-xg5"),
        ("turns", "twin:wd-sn850"),
    ]
    (folder,) = tmp_path.iterdir()
    assert runs.table()["run"].to_pylist() == [f"{folder.name}/1", f"{folder.name}/2"]


def test_targets_are_measured_in_turns_and_compared(tmp_path: Path) -> None:
    reads, deeper = _jobs(tmp_path, "read"), _jobs(tmp_path, "read", depth=8)
    fast, slow = (
        ssdlab.open_target(f"twin:{name}", capacity="256MiB")
        for name in ("toshiba-xg5", "intel-s3510-480")
    )
    reports: list[ssdlab.Report] = []
    comparison = ssdlab.compare_in_turns(
        [(fast, reads), (slow, reads)], number=8, out=tmp_path, listener=reports.append
    )
    assert comparison.verdicts == {"twin:intel-s3510-480": "slower"}
    assert [run.target for run in ssdlab.open_runs(tmp_path)] == [fast.name, slow.name]
    assert reports[-1].run_share == 1.0
    again = ssdlab.compare_in_turns([(fast, reads), (slow, reads)], number=8, out=tmp_path / "2")
    assert again.table() == comparison.table(), "the same seed gives the same turns"
    settings = ssdlab.compare_in_turns(
        [(fast, reads), (fast, deeper)], number=8, out=tmp_path / "3"
    )
    assert settings.verdicts == {"twin:toshiba-xg5, read-8": "faster"}


def test_turns_without_two_comparable_sides_are_refused(tmp_path: Path) -> None:
    twin, reads = ssdlab.open_target("twin:toshiba-xg5", capacity="256MiB"), _jobs(tmp_path, "read")
    with pytest.raises(ssdlab.UsageError, match="two sides or more, not 1"):
        ssdlab.compare_in_turns([(twin, reads)], out=tmp_path)
    with pytest.raises(ssdlab.UsageError, match="it must be 8 to"):
        ssdlab.compare_in_turns([(twin, reads), (twin, reads)], number=3, out=tmp_path)
    with pytest.raises(ssdlab.UsageError, match="no job name in common"):
        ssdlab.compare_in_turns([(twin, reads), (twin, _jobs(tmp_path, "write"))], out=tmp_path)
    with pytest.raises(ssdlab.TargetError, match="nowhere"):
        ssdlab.compare_in_turns([(twin, reads), (tmp_path / "nowhere", reads)], out=tmp_path)
    assert not [path for path in tmp_path.iterdir() if path.is_dir()], "no run was started"


def _jobs(folder: Path, kind: str, depth: int = 1) -> ssdlab.Workload:
    file = folder / f"{kind}-{depth}.fio"
    options = f"rw=rand{kind}\nbs=4k\nsize=16m\nioengine=io_uring\niodepth={depth}\n"
    file.write_text(f"[{kind}]\n{options}direct=1\nruntime=1ms\ntime_based\n")
    return ssdlab.Workload(fio=file)


def test_compare_takes_runs_and_run_folders(
    twin: ssdlab.Target, aged: ssdlab.Run, tmp_path: Path
) -> None:
    other = ssdlab.open_target("twin:intel-s3510-480", capacity="256MiB")
    slower = other.run(ssdlab.Aging(size="16MiB"), seed=3, out=tmp_path)
    comparison = ssdlab.compare(aged, slower)
    assert list(comparison.verdicts) == ["twin:intel-s3510-480"]
    assert comparison.sentences[0].startswith("twin:intel-s3510-480")
    rows = comparison.table().to_pylist()
    assert {"case", "name", "unit", "reference", "other", "ratio", "low", "high"} <= set(rows[0])
    by_folder = ssdlab.compare(str(aged.folder), [slower.folder])
    assert by_folder.as_json()["contrasts"] == comparison.as_json()["contrasts"]
    part, page = comparison._repr_html_(), comparison.save_html(tmp_path / "page.html").read_text()
    assert (
        part.split("<main>")[1].split("</main>")[0] == page.split("<main>")[1].split("</main>")[0]
    )


def test_runs_that_cannot_be_compared_are_refused(aged: ssdlab.Run, split: ssdlab.Run) -> None:
    with pytest.raises(ssdlab.UsageError, match="two sides or more"):
        ssdlab.compare(aged)
    with pytest.raises(ssdlab.UsageError, match="different experiments"):
        ssdlab.compare(aged, split)
    with pytest.raises(ssdlab.UsageError, match="has no run"):
        ssdlab.compare(aged, [])


def test_a_sweep_from_a_mapping_is_saved_and_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def counted(runs: list[SweepRun], workers: int) -> Iterator[Outcome]:
        for outcome in execute_locally(runs, workers):
            done.append(outcome.run.key)
            yield outcome

    monkeypatch.setattr(swept, "execute_locally", counted)
    sweep = ssdlab.run_sweep(SPEC, workers=1, out=tmp_path / "few")
    table = sweep.table()
    assert table["ftl.spare"].to_pylist() == [0.1, 0.2]
    assert table["waf"].to_pylist()[0] > table["waf"].to_pylist()[1] > 0
    assert "2 of 2 runs done" in sweep.verdict
    assert "<svg" in sweep._repr_html_()
    again = ssdlab.run_sweep(SPEC, workers=1, out=tmp_path / "few")
    assert again.table().equals(table)
    assert len(done) == 2
    assert ssdlab.open_sweep(tmp_path / "few").as_json() == sweep.as_json()
    assert ds.dataset(tmp_path / "few" / "runs").to_table().num_rows == 2


def test_ctrl_c_in_a_sweep_keeps_finished_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def one_then_stop(runs: list[SweepRun], _workers: int) -> Iterator[Outcome]:
        row = dict.fromkeys(("write_iops", "waf", "read_mib_per_s"), 1.0)
        yield Outcome(runs[0], row, "", 1)
        raise KeyboardInterrupt

    monkeypatch.setattr(swept, "execute_locally", one_then_stop)
    with pytest.raises(ssdlab.Interrupted, match="the same call resumes"):
        ssdlab.run_sweep(SPEC, out=tmp_path / "few")
    assert ssdlab.open_sweep(tmp_path / "few").table()["status"].to_pylist() == ["done"]


def test_an_invalid_spec_is_one_line() -> None:
    with pytest.raises(ssdlab.UsageError, match=r"the spec: .*a spec has name"):
        ssdlab.run_sweep({**SPEC, "colour": "blue"})
    with pytest.raises(ssdlab.UsageError, match="--workers is 0"):
        ssdlab.run_sweep(SPEC, workers=0)
