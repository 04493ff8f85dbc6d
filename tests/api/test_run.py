"""Runs by the Python API: same numbers and records as the command line, nothing printed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ssdlab
from ssdlab import profiles
from ssdlab.cli.run import app


def test_python_and_the_command_line_give_the_same_result(
    aged: ssdlab.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["aging", "twin:toshiba-xg5", "--capacity", "256MiB", "--size", "16MiB", "--seed", "3"]
    app([*words, "--out", str(tmp_path), "--json", "--quiet"], standalone_mode=False)
    printed, own = json.loads(capsys.readouterr().out), json.loads(aged.as_json())
    for name in ("experiment", "target", "seed", "parameters", "measures", "findings", "verdict"):
        assert printed[name] == own[name], name
    (folder,) = tmp_path.iterdir()
    by_command = ssdlab.open_run(folder)
    assert (
        by_command.table("steps")
        .drop_columns(_HOST_COLUMNS)
        .equals(aged.table("steps").drop_columns(_HOST_COLUMNS))
    )
    assert by_command.record.manifest.plan == aged.record.manifest.plan


_HOST_COLUMNS = ["own_user_s", "own_system_s", "foreign_cpu_s", "stolen_cpu_s"]


def test_a_run_prints_nothing_and_reports_progress_to_its_listener(
    twin: ssdlab.Target, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    reports: list[ssdlab.Report] = []
    twin.run(ssdlab.Split(size="64MiB", quick=True), out=tmp_path, listener=reports.append)
    assert all(report.is_virtual for report in reports)
    assert capfd.readouterr() == ("", "")
    assert {type(report) for report in reports} == {ssdlab.Report}
    assert all(0 <= report.run_share <= 1 for report in reports)


def test_findings_have_values_and_units_and_the_measures_are_a_table(aged: ssdlab.Run) -> None:
    slowdown = aged.findings["slowdown"]
    assert isinstance(slowdown.value, float)
    assert slowdown.unit == "x"
    table = aged.table()
    assert table.column_names[:2] == ["written_mib", "read_s"]
    assert table.num_rows == len(aged.record.result.measures)
    assert table["written_mib"].to_pylist()[0] == 0
    assert aged.table("steps").num_rows > table.num_rows
    with pytest.raises(ssdlab.UsageError, match="give one of measures, "):
        aged.table("nothing")


def test_a_table_converts_to_a_pandas_frame(aged: ssdlab.Run) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = aged.table().to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["written_mib"]) == aged.table()["written_mib"].to_pylist()


def test_a_run_is_read_back_from_its_folder(aged: ssdlab.Run) -> None:
    again = ssdlab.open_run(aged.folder)
    assert again.as_json() == aged.as_json()
    assert again.record.manifest.label == "first"
    assert repr(again) == f"<aging twin:toshiba-xg5: {aged.verdict}>"
    with pytest.raises(ssdlab.UsageError, match="not the folder of a finished run"):
        ssdlab.open_run(aged.folder.parent)


def test_a_notebook_shows_the_content_of_the_page(aged: ssdlab.Run, tmp_path: Path) -> None:
    part, page = aged._repr_html_(), aged.save_html(tmp_path / "page.html").read_text()
    assert content(part) == content(page)
    assert "<svg" in content(part)
    assert aged.verdict in content(part)
    for style in styles(page).splitlines():
        assert style in styles(part)
    assert "<html" not in part
    assert "<body" not in part


def content(page: str) -> str:
    """The content of `<main>`."""
    return page.split("<main>", 1)[1].split("</main>", 1)[0]


def styles(page: str) -> str:
    """The content of `<style>`."""
    return page.split("<style>", 1)[1].split("</style>", 1)[0].strip()


def test_the_styles_of_a_notebook_part_are_nested(aged: ssdlab.Run) -> None:
    inner = styles(aged._repr_html_())
    assert inner.startswith(".ssdlab-report {")
    depth = 0
    for at, character in enumerate(inner):
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth > 0 or at < len(".ssdlab-report ") or at == len(inner) - 1
    assert ":root" not in inner


def test_ctrl_c_saves_the_run_and_resume_completes_it(
    twin: ssdlab.Target, tmp_path: Path, aged: ssdlab.Run
) -> None:
    def stop(report: ssdlab.Report) -> None:
        if "over" in report.label:
            raise KeyboardInterrupt

    with pytest.raises(ssdlab.Interrupted, match=r"ssdlab\.resume"):
        twin.run(ssdlab.Aging(size="16MiB"), seed=3, out=tmp_path, listener=stop)
    (folder,) = tmp_path.iterdir()
    saved = ssdlab.open_run(folder)
    assert saved.outcome == "interrupted"
    assert saved.table("steps").num_rows > 0
    resumed = ssdlab.resume(folder)
    assert (resumed.outcome, resumed.folder) == ("complete", folder)
    assert resumed.findings == aged.findings
    with pytest.raises(ssdlab.UsageError, match="is complete"):
        ssdlab.resume(folder)


@pytest.mark.parametrize(
    ("question", "seed", "told"),
    [
        (ssdlab.Aging(size="1KiB"), 0, "--size is 1KiB; it must be"),
        (ssdlab.Aging(size=-1), 0, "--size is -1 bytes; it must be"),
        (ssdlab.Aging(rest=-1), 0, "--rest is -1 s; it must be"),
        (ssdlab.Aging(size="16"), 0, "a size needs a unit"),
        (ssdlab.Steady(depth=0), 0, "--depth is 0"),
        (ssdlab.Aging(size="512MiB"), 0, "holds 256 MiB"),
        (ssdlab.Split(), -1, "the seed is -1"),
        (ssdlab.Workload(fio="none.fio"), 0, "none.fio cannot be read"),
    ],
)
def test_invalid_parameters_are_refused_and_leave_no_files(
    twin: ssdlab.Target, tmp_path: Path, question: Any, seed: int, told: str
) -> None:
    with pytest.raises(ssdlab.UsageError) as caught:
        twin.run(question, seed=seed, out=tmp_path / "none")
    assert told in str(caught.value)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("asked", ["aging", ssdlab.Aging, None])
def test_what_is_no_question_is_refused_with_an_example_of_one(
    twin: ssdlab.Target, tmp_path: Path, asked: Any
) -> None:
    with pytest.raises(
        ssdlab.UsageError,
        match=r"are not the parameters of an experiment; give, for example, ssdlab\.Aging",
    ):
        twin.run(asked, out=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_open_target_checks_the_target(tmp_path: Path) -> None:
    with pytest.raises(ssdlab.TargetError, match="No such file"):
        ssdlab.open_target(tmp_path / "nowhere")
    with pytest.raises(ssdlab.UsageError, match="no-such-drive"):
        ssdlab.open_target("twin:no-such-drive")
    with pytest.raises(ssdlab.UsageError, match="--capacity scales a twin"):
        ssdlab.open_target(tmp_path, capacity=1 << 30)


def test_a_profile_file_is_a_target(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(profiles.load("toshiba-xg5"))
    mine = ssdlab.open_target(file, capacity=1 << 30)
    assert mine.is_twin
    assert (
        mine.capacity_bytes
        == ssdlab.open_target("twin:toshiba-xg5", capacity="1GiB").capacity_bytes
    )


def test_a_directory_is_left_unchanged(drive_directory: Path, tmp_path: Path) -> None:
    (drive_directory / "mine").write_text("kept")
    run = ssdlab.open_target(drive_directory).run(
        ssdlab.Split(size="64MiB", quick=True), out=tmp_path / "runs"
    )
    assert not run.record.manifest.virtual
    assert [path.name for path in drive_directory.iterdir()] == ["mine"]


def test_a_block_device_needs_consent(loop_device: Callable[..., Path], tmp_path: Path) -> None:
    device = loop_device(128)
    with pytest.raises(ssdlab.TargetError, match="--destroy-data"):
        ssdlab.open_target(device)
    target = ssdlab.open_target(device, destroy_data=True)
    run = target.run(ssdlab.Split(size="64MiB", quick=True), out=tmp_path / "runs")
    assert target.capacity_bytes == 128 << 20
    assert run.record.manifest.device["kind"] == "block device"
