"""`ssdlab compare`: finished runs, targets measured in turns, usage errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forked import Program

Refused = Callable[..., str]
TURNS = ("--interleave", "--capacity", "256MiB", "--size", "16MiB", "--turn", "20ms", "--quiet")


@pytest.fixture
def run(ssdlab: Program, tmp_path: Path) -> Callable[..., Path]:
    """`run(*words)` -> the folder of a short run of a small twin."""
    file = tmp_path / "reads.fio"
    file.write_text("[reads]\nrw=read\nbs=64k\nsize=16m\nioengine=io_uring\ndirect=1\n")

    def measure(*words: object) -> Path:
        where = ("twin:toshiba-xg5", "--fio", file, "--quiet", "--json", "--out", tmp_path)
        done = ssdlab("run", "workload", *where, *words)
        assert done.returncode == 0, done.stderr
        folder: str = json.loads(done.stdout)["folder"]
        return Path(folder)

    return measure


def test_turns_find_the_faster_twin_and_their_runs_compare_the_same_later(
    ssdlab: Program, tmp_path: Path
) -> None:
    words = ("twin:intel-s3510-480", "twin:toshiba-xg5", "--out", tmp_path)
    done = ssdlab("compare", *words, *TURNS, "--turns", 10, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["verdicts"][0]["verdict"] == "faster"
    iops = next(row for row in result["contrasts"] if row["name"] == "iops")
    assert 1.2 < iops["low"] <= iops["ratio"] <= iops["high"]
    assert iops["p"] <= iops["p_holm"]
    folders = [side["runs"][0] for side in result["sides"]]
    page = tmp_path / "page.html"
    again = ssdlab("compare", *folders, "--json", "--html", page)
    assert json.loads(again.stdout)["contrasts"] == [
        {**row, "side": "twin:toshiba-xg5"} for row in result["contrasts"]
    ]
    assert page.read_text(encoding="utf-8").count("<svg") >= 4


def test_two_job_files_on_one_target_compare_settings(ssdlab: Program, tmp_path: Path) -> None:
    for name, depth in (("shallow", 1), ("deep", 8)):
        text = (
            f"[reads]\nrw=randread\nbs=4k\nsize=16m\niodepth={depth}\nruntime=20ms\ntime_based\n"
            "ioengine=io_uring\ndirect=1\nnorandommap\nrandrepeat=0\n"
        )
        (tmp_path / f"{name}.fio").write_text(text, encoding="utf-8")
    files = ("--fio", tmp_path / "shallow.fio", "--fio", tmp_path / "deep.fio")
    words = ("--interleave", "twin:toshiba-xg5", "--capacity", "256MiB", "--turns", 8, *files)
    done = ssdlab("compare", *words, "--quiet", "--json", "--out", tmp_path / "runs")
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    assert [side["name"] for side in result["sides"]] == [
        "twin:toshiba-xg5, shallow",
        "twin:toshiba-xg5, deep",
    ]
    assert "jobs" in [one["what"] for one in result["differences"]]
    verdicts = {row["name"]: row["verdict"] for row in result["contrasts"]}
    assert verdicts["iops"] == "faster"


def test_sides_in_one_directory_share_a_test_file_that_is_removed(
    ssdlab: Program, drive_directory: Path, tmp_path: Path
) -> None:
    words = (drive_directory, drive_directory, "--interleave", "--turns", 8, "--turn", "10ms")
    done = ssdlab("compare", *words, "--size", "16MiB", "--out", tmp_path / "runs", "--json")
    assert done.returncode == 0, done.stderr
    codes = [warning["code"] for warning in json.loads(done.stdout)["warnings"]]
    assert "another-run" not in codes
    assert "unwritten" not in codes
    assert list(drive_directory.iterdir()) == []


def test_runs_of_one_seed_are_equal_and_differences_are_listed(
    ssdlab: Program, run: Callable[..., Path]
) -> None:
    first, same = (run("--capacity", "256MiB") for _ in range(2))
    larger = run("--capacity", "512MiB")
    done = ssdlab("compare", first, same)
    assert done.returncode == 0, done.stderr
    assert "twin:toshiba-xg5 (2) compared with twin:toshiba-xg5:" in " ".join(done.stdout.split())
    assert "no difference shown" in done.stdout
    assert "differs" not in done.stdout
    assert "size of the target" in ssdlab("compare", first, larger).stdout


TWINS = ("twin:toshiba-xg5", "twin:intel-s3510-480")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("a", "b", "--depth", 8), "--depth needs --interleave"),
        (
            ("--interleave", "a", "b", "--fio", "x", "--op", "write"),
            "--op cannot be used",
        ),
        (("twin:toshiba-xg5", "--interleave"), "turns need two sides or more"),
        ((*TWINS, "--interleave", "--turns", 3), "it must be 8 to"),
        (("a", "b", "--interleave", "--turn", "0"), "must be above 0"),
        (("none", "missing"), "none does not exist"),
    ],
)
def test_usage_errors_are_one_line(
    refused: Refused, words: tuple[object, ...], reason: str
) -> None:
    assert reason in refused("compare", *words)
