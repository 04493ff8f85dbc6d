"""`ssdlab run fsync` and `ssdlab run suite`: JSON, terminal and HTML output."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forked import Program

SMALL = ("--size", "16MiB", "--capacity", "1GiB", "--quick")


def _json(ssdlab: Program, *arguments: object) -> dict[str, Any]:
    done = ssdlab("run", *arguments, "--json", "--quiet")
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_fsync_has_the_documented_columns_and_findings(ssdlab: Program) -> None:
    result = _json(ssdlab, "fsync", "twin:toshiba-xg5", *SMALL)
    columns = {"mode", "read_mib_per_s", "write_mib_per_s", "sync_us_p50", "sync_us_p99"}
    assert all(columns <= set(row) for row in result["measures"])
    assert result["findings"]["class"]["value"] == "volatile"
    assert result["findings"]["penalty"]["value"] > 2


def test_data_sheet_accepts_only_its_three_values(
    ssdlab: Program, refused: Callable[..., str]
) -> None:
    arguments = ("fsync", "twin:toshiba-xg5", *SMALL)
    result = _json(ssdlab, *arguments, "--data-sheet", "protected")
    assert result["parameters"]["data_sheet"] == "protected"
    assert "--data-sheet" in refused("run", *arguments, "--data-sheet", "good")


def test_suite_has_the_documented_columns_and_finding(ssdlab: Program) -> None:
    result = _json(ssdlab, "suite", "twin:intel-s3510-480", *SMALL)
    columns = {"test", "op", "mib_per_s_all", "mean", "error", "error_percent"}
    assert all(columns <= set(row) for row in result["measures"])
    assert result["findings"]["content_sensitive"]["value"] is False


def test_both_are_reported_on_the_terminal_and_on_one_html_page(
    ssdlab: Program, tmp_path: Path
) -> None:
    for name in ("fsync", "suite"):
        done = ssdlab("run", name, "twin:toshiba-xg5", *SMALL, "--quiet", "--out", tmp_path)
        assert done.returncode == 0, done.stderr
        assert "=>" in done.stdout
    page = tmp_path / "report.html"
    done = ssdlab(
        "report", *tmp_path.glob("*-fsync-*"), *tmp_path.glob("*-suite-*"), "--html", page
    )
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert text.count("<svg") >= 2 * 2 * 2
    assert "Penalty of fsync" in text
    assert "Faster with zeros" in text


def test_a_buffered_step_is_exported_to_fio_as_buffered_psync(
    ssdlab: Program, drive_directory: Path, tmp_path: Path
) -> None:
    arguments = ("run", "suite", drive_directory, "--size", "16MiB", "--quick", "--quiet", "--json")
    done = ssdlab(*arguments, "--out", tmp_path / "runs")
    assert done.returncode == 0, done.stderr
    text = ssdlab("report", tmp_path / "runs", "--fio").stdout
    sections = {
        head: dict(line.split("=", 1) for line in lines.splitlines() if "=" in line)
        for head, lines in re.findall(r"^\[\d+-(.*?)\]\n((?:\w.*\n)*)", text, re.MULTILINE)
    }
    engines = {name: (each["ioengine"], each["direct"]) for name, each in sections.items()}
    assert engines["read buffered"] == ("psync", "0")
    assert engines["read sequential"] == ("io_uring", "1")
    assert "zero_buffers" in sections["write sequential zeros"]


@pytest.mark.parametrize("width", [80, 64])
def test_the_names_of_crystaldiskmark_are_dropped_last(
    ssdlab: Program, tmp_path: Path, width: int
) -> None:
    words = ("twin:toshiba-xg5", "--capacity", "256MiB", "--quick", "--quiet", "--out", tmp_path)
    done = ssdlab("run", "suite", *words, env={**os.environ, "COLUMNS": str(width)})
    assert done.returncode == 0, done.stderr
    assert "RND4K Q32T1" in done.stdout
    assert "not shown, too narrow: Error %, Error" in done.stdout
