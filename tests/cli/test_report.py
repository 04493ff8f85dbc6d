"""`ssdlab report`: runs on the terminal, as JSON, or as one HTML file."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forked import Program

Refused = Callable[..., str]
Results = dict[str, dict[str, Any]]
XG5 = "toshiba-xg5"


def test_a_run_is_shown_with_target_table_and_verdict(ssdlab: Program, results: Results) -> None:
    done = ssdlab("report", results[XG5]["folder"], env={"COLUMNS": "200", "PATH": "/usr/bin"})
    assert (done.returncode, done.stderr) == (0, "")
    text = " ".join(done.stdout.split())
    assert "twin:toshiba-xg5" in text
    assert results[XG5]["verdict"] in text
    assert "5050" in text


def test_json_of_one_run_equals_the_output_of_the_run(ssdlab: Program, results: Results) -> None:
    done = ssdlab("report", results[XG5]["folder"], "--json")
    assert json.loads(done.stdout) == results[XG5]


def test_a_results_folder_stands_for_all_its_runs(
    ssdlab: Program, results: Results, runs_folder: Path
) -> None:
    done = ssdlab("report", runs_folder, "--json")
    runs = json.loads(done.stdout)["runs"]
    assert sorted(run["target"] for run in runs) == sorted(r["target"] for r in results.values())


def test_html_is_one_self_contained_file_and_its_path_is_printed(
    ssdlab: Program, results: Results, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    done = ssdlab("report", *(result["folder"] for result in results.values()), "--html", page)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == str(page)
    text = page.read_text(encoding="utf-8")
    assert not re.search(
        r"""(?:src|href)\s*=\s*["']?(?:https?:|//|[\w./]+\.(?:js|css|png))""", text
    )
    assert "<script src" not in text
    assert "@import" not in text
    for result in results.values():
        assert result["target"] in text
        assert result["verdict"] in text


@pytest.mark.parametrize("extra", [[], ["--json"], ["--html", "page.html"]])
def test_a_path_that_is_not_a_run_is_one_line(
    refused: Refused, tmp_path: Path, extra: list[str]
) -> None:
    (tmp_path / "file").write_text("")
    for name in (".", "missing", "file", "a" * 300):
        assert "give" in refused("report", tmp_path / name, *extra)
    assert not (tmp_path / "working-directory" / "page.html").exists()


def test_a_damaged_run_is_refused_by_name(
    refused: Refused, results: Results, tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    for file in Path(results[XG5]["folder"]).iterdir():
        (damaged / file.name).write_bytes(file.read_bytes()[:100])
    assert f"{damaged} holds a run that cannot be read" in refused("report", damaged)


def test_a_damaged_run_of_a_results_folder_is_left_out(
    ssdlab: Program, refused: Refused, results: Results, tmp_path: Path
) -> None:
    folder = tmp_path / "results"
    for name in ("damaged", "whole"):
        shutil.copytree(results[XG5]["folder"], folder / name)
    (folder / "damaged" / "steps.parquet").unlink()
    done = ssdlab("report", folder, "--json")
    assert json.loads(done.stdout)["verdict"] == results[XG5]["verdict"]
    assert re.fullmatch(r"left out: .*/damaged .*\n", done.stderr)
    shutil.rmtree(folder / "whole")
    assert "damaged" in refused("report", folder)


def test_a_page_that_cannot_be_written_is_refused(
    refused: Refused, results: Results, tmp_path: Path
) -> None:
    folder = results[XG5]["folder"]
    for place in (tmp_path / "none" / "page.html", tmp_path):
        assert str(place) in refused("report", folder, "--html", place)


def test_report_needs_a_run(refused: Refused) -> None:
    assert "report needs a run; give a run folder" in refused("report")


def test_out_is_another_name_of_the_results_folder(
    ssdlab: Program, results: Results, runs_folder: Path
) -> None:
    assert ssdlab("report", "--out", runs_folder).stdout == ssdlab("report", runs_folder).stdout
    assert ssdlab("runs", "--out", runs_folder).stdout == ssdlab("runs", runs_folder).stdout
    assert results[XG5]["verdict"][:20] in ssdlab("runs", "--out", runs_folder).stdout


def test_several_runs_end_with_their_list(
    ssdlab: Program, results: Results, runs_folder: Path
) -> None:
    done = ssdlab("report", runs_folder, env={"COLUMNS": "200", "PATH": "/usr/bin"})
    listed = " ".join(done.stdout.rpartition("Started")[2].split())
    for result in results.values():
        assert " ".join(result["verdict"].split())[:60] in listed
