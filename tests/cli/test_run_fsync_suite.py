"""`ssdlab run fsync` and `ssdlab run suite` as scripts see them."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

Program = Callable[..., subprocess.CompletedProcess[str]]
SMALL = ("--size", "16MiB", "--capacity", "1GiB", "--quick")


def _json(ssdlab: Program, *words: object) -> dict[str, Any]:
    done = ssdlab("run", *words, "--json", "--quiet")
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_fsync_has_the_promised_columns_and_findings(ssdlab: Program) -> None:
    result = _json(ssdlab, "fsync", "twin:toshiba-xg5", *SMALL)
    promised = {"mode", "read_mib_per_s", "write_mib_per_s", "sync_us_p50", "sync_us_p99"}
    assert all(promised <= set(row) for row in result["measures"])
    assert result["findings"]["class"]["value"] == "volatile"
    assert result["findings"]["penalty"]["value"] > 2


def test_a_data_sheet_is_one_of_three_words(ssdlab: Program, refused: Callable[..., str]) -> None:
    words = ("fsync", "twin:toshiba-xg5", *SMALL)
    told = _json(ssdlab, *words, "--data-sheet", "protected")
    assert told["parameters"]["data_sheet"] == "protected"
    assert "--data-sheet" in refused("run", *words, "--data-sheet", "good")


def test_suite_has_the_promised_columns_and_finding(ssdlab: Program) -> None:
    result = _json(ssdlab, "suite", "twin:intel-s3510-480", *SMALL)
    promised = {"test", "op", "mib_per_s_all", "mean", "error", "error_percent"}
    assert all(promised <= set(row) for row in result["measures"])
    assert result["findings"]["content_sensitive"]["value"] is False


def test_both_are_shown_on_the_terminal_and_as_one_page(ssdlab: Program, tmp_path: Path) -> None:
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


def test_a_buffered_step_is_exported_to_fio_as_what_it_was(
    ssdlab: Program, drive_directory: Path, tmp_path: Path
) -> None:
    """Through the page cache by pread and pwrite, where the other steps are direct."""
    words = ("run", "suite", drive_directory, "--size", "16MiB", "--quick", "--quiet", "--json")
    done = ssdlab(*words, "--out", tmp_path / "runs")
    assert done.returncode == 0, done.stderr
    text = ssdlab("report", tmp_path / "runs", "--fio").stdout
    sections = {
        head: dict(line.split("=", 1) for line in lines.splitlines() if "=" in line)
        for head, lines in re.findall(r"^\[\d+-(.*?)\]\n((?:\w.*\n)*)", text, re.MULTILINE)
    }
    said = {name: (each["ioengine"], each["direct"]) for name, each in sections.items()}
    assert said["read buffered"] == ("psync", "0")
    assert said["read sequential"] == ("io_uring", "1")
    assert "zero_buffers" in sections["write sequential zeros"]
