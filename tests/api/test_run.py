"""A run by Python is the command line's run: same numbers, same records, nothing printed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ssdlab
from ssdlab import profiles
from ssdlab.cli.run.group import app


def test_python_and_the_command_line_give_the_same_result(
    aged: ssdlab.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["aging", "twin:toshiba-xg5", "--capacity", "256MiB", "--size", "16MiB", "--seed", "3"]
    app([*words, "--out", str(tmp_path), "--json", "--quiet"], standalone_mode=False)
    told, own = json.loads(capsys.readouterr().out), json.loads(aged.as_json())
    for name in ("experiment", "target", "seed", "parameters", "measures", "findings", "verdict"):
        assert told[name] == own[name], name
    (folder,) = tmp_path.iterdir()
    of_program = ssdlab.open_run(folder)
    assert (
        of_program.table("steps")
        .drop_columns(_OF_THE_HOST)
        .equals(aged.table("steps").drop_columns(_OF_THE_HOST))
    )
    assert of_program.record.manifest.plan == aged.record.manifest.plan


_OF_THE_HOST = ["own_user_s", "own_system_s", "foreign_cpu_s", "stolen_cpu_s"]


def test_a_run_prints_nothing_and_tells_a_listener_how_far_it_is(
    twin: ssdlab.Target, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    reports: list[ssdlab.Report] = []
    twin.run(ssdlab.Split(size="64MiB", quick=True), out=tmp_path, listener=reports.append)
    assert capfd.readouterr() == ("", "")
    assert {type(each) for each in reports} == {ssdlab.Report}
    assert all(0 <= each.run_share <= 1 for each in reports)


def test_findings_have_values_and_units_and_the_measures_are_a_table(aged: ssdlab.Run) -> None:
    slowdown = aged.findings["slowdown"]
    assert isinstance(slowdown.value, float)
    assert slowdown.unit == "x"
    table = aged.table()
    assert table.column_names[:2] == ["written_mib", "read_s"]
    assert table.num_rows == len(aged.record.result.measures)
    assert table["written_mib"].to_pylist()[0] == 0
    assert aged.table("steps").num_rows > table.num_rows
    with pytest.raises(ssdlab.UsageError, match="may be one of measures, "):
        aged.table("nothing")


def test_a_table_is_a_frame_of_pandas_and_of_polars_where_these_are(aged: ssdlab.Run) -> None:
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


def test_a_notebook_shows_what_the_page_of_the_report_has(aged: ssdlab.Run, tmp_path: Path) -> None:
    part, page = aged._repr_html_(), aged.save_html(tmp_path / "page.html").read_text()
    assert content(part) == content(page)
    assert "<svg" in content(part)
    assert aged.verdict in content(part)
    for style in styles(page).splitlines():
        assert style in styles(part)
    assert "<html" not in part
    assert "<body" not in part


def content(page: str) -> str:
    """What stands within `<main>`."""
    return page.split("<main>", 1)[1].split("</main>", 1)[0]


def styles(page: str) -> str:
    """Its looks."""
    return page.split("<style>", 1)[1].split("</style>", 1)[0].strip()


def test_the_looks_of_a_part_touch_nothing_outside_of_it(aged: ssdlab.Run) -> None:
    inner = styles(aged._repr_html_())
    assert inner.startswith(".ssdlab-report {")
    depth = 0
    for at, character in enumerate(inner):
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth > 0 or at < len(".ssdlab-report ") or at == len(inner) - 1
    assert ":root" not in inner


def test_ctrl_c_keeps_what_was_measured_and_ends_the_program_and_resume_goes_on(
    twin: ssdlab.Target, tmp_path: Path, aged: ssdlab.Run
) -> None:
    def stop(report: ssdlab.Report) -> None:
        if "over" in report.label:
            raise KeyboardInterrupt

    with pytest.raises(ssdlab.Interrupted, match=r"ssdlab\.resume"):
        twin.run(ssdlab.Aging(size="16MiB"), seed=3, out=tmp_path, listener=stop)
    (folder,) = tmp_path.iterdir()
    kept = ssdlab.open_run(folder)
    assert kept.outcome == "interrupted"
    assert kept.table("steps").num_rows > 0
    whole = ssdlab.resume(folder)
    assert (whole.outcome, whole.folder) == ("complete", folder)
    assert whole.findings == aged.findings
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
def test_what_may_not_be_is_refused_in_one_line_and_leaves_nothing(
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


def test_a_target_is_checked_when_it_is_named(tmp_path: Path) -> None:
    with pytest.raises(ssdlab.TargetError, match="No such file"):
        ssdlab.open_target(tmp_path / "nowhere")
    with pytest.raises(ssdlab.UsageError, match="no-such-drive"):
        ssdlab.open_target("twin:no-such-drive")
    with pytest.raises(ssdlab.UsageError, match="--capacity scales a twin"):
        ssdlab.open_target(tmp_path, capacity=1 << 30)


def test_a_profile_is_a_target_by_its_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(profiles.load("toshiba-xg5"))
    mine = ssdlab.open_target(file, capacity=1 << 30)
    assert mine.is_twin
    assert (
        mine.capacity_bytes
        == ssdlab.open_target("twin:toshiba-xg5", capacity="1GiB").capacity_bytes
    )


def test_a_directory_is_measured_and_left_as_it_was(drive_directory: Path, tmp_path: Path) -> None:
    (drive_directory / "mine").write_text("kept")
    run = ssdlab.open_target(drive_directory).run(
        ssdlab.Split(size="64MiB", quick=True), out=tmp_path / "runs"
    )
    assert not run.record.manifest.virtual
    assert [path.name for path in drive_directory.iterdir()] == ["mine"]


def test_a_block_device_is_destroyed_with_consent_alone(
    loop_device: Callable[..., Path], tmp_path: Path
) -> None:
    device = loop_device(128)
    with pytest.raises(ssdlab.TargetError, match="--destroy-data"):
        ssdlab.open_target(device)
    target = ssdlab.open_target(device, destroy_data=True)
    run = target.run(ssdlab.Split(size="64MiB", quick=True), out=tmp_path / "runs")
    assert target.capacity_bytes == 128 << 20
    assert run.record.manifest.device["kind"] == "block device"
