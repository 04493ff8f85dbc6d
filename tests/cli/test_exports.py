"""`--html`, `--markdown` and `--csv`: files, or standard output with nothing else."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from forked import Program

Refused = Callable[..., str]
QUICK = ("twin:toshiba-xg5", "--capacity", "256MiB", "--size", "16MiB", "--quick", "--quiet")


def test_a_run_writes_all_three_files_and_prints_their_paths(
    ssdlab: Program, tmp_path: Path
) -> None:
    page, text, rows = (tmp_path / name for name in ("run.html", "run.md", "run.csv"))
    files = ("--html", page, "--markdown", text, "--csv", rows)
    done = ssdlab("run", "aging", *QUICK, "--out", tmp_path, *files)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-3:] == [str(page), str(text), str(rows)]
    assert "=> " in done.stdout
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert text.read_text(encoding="utf-8").startswith("# Ageing by random writes")
    table = list(csv.DictReader(io.StringIO(rows.read_text(encoding="utf-8"))))
    assert float(table[0]["written_mib"]) == 0.0
    assert table[0]["experiment"] == "aging"


def test_a_resumed_run_writes_the_same_files(ssdlab: Program, tmp_path: Path) -> None:
    words = ("run", "split", *QUICK, "--out", tmp_path)
    folder = Path(json.loads(ssdlab(*words, "--json").stdout)["folder"])
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "outcome": "interrupted"}))
    (folder / "result.json").unlink()
    page, rows = tmp_path / "run.html", tmp_path / "run.csv"
    for unusable in (tmp_path / "none" / "a.html", tmp_path):
        missing = ssdlab("run", "resume", folder, "--html", unusable)
        assert missing.returncode == 2
        assert "give a file in an existing directory" in missing.stderr
    assert not (folder / "result.json").exists(), "refused before it measures"
    done = ssdlab(
        "run", "resume", folder, "--quiet", "--html", page, "--csv", rows, "--markdown", "-"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("# Cost of splitting a read: twin:toshiba-xg5\n")
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert {row["experiment"] for row in csv.DictReader(rows.read_text().splitlines())} == {"split"}


def test_on_standard_output_a_report_is_alone(ssdlab: Program, tmp_path: Path) -> None:
    done = ssdlab("run", "split", *QUICK, "--out", tmp_path, "--csv", "-")
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert {row["experiment"] for row in rows} == {"split"}
    (folder,) = (path.parent for path in tmp_path.glob("*/result.json"))
    shown = ssdlab("report", folder, "--markdown", "-").stdout
    assert shown.startswith("# Cost of splitting a read: twin:toshiba-xg5\n")
    page = ssdlab("report", folder, "--html", "-").stdout
    assert page.startswith("<!DOCTYPE html>")
    assert page.rstrip().endswith("</html>")
    assert not (tmp_path / "working-directory" / "-").exists()


def test_a_comparison_has_a_row_for_each_number(ssdlab: Program, tmp_path: Path) -> None:
    folders = []
    for seed in (1, 2):
        out = tmp_path / str(seed)
        words = ("run", "split", *QUICK, "--json", "--seed", seed, "--out", out)
        folders.append(json.loads(ssdlab(*words).stdout)["folder"])
    contrasts = json.loads(ssdlab("compare", *folders, "--json").stdout)["contrasts"]
    rows = list(csv.DictReader(io.StringIO(ssdlab("compare", *folders, "--csv", "-").stdout)))
    assert [row["name"] for row in rows] == [row["name"] for row in contrasts]
    assert [row["verdict"] for row in rows] == [row["verdict"] for row in contrasts]
    text = ssdlab("compare", *folders, "--markdown", "-").stdout
    assert text.startswith("# ")
    assert "| Number | Verdict | Ratio |" in text


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--csv", "-", "--json"), "--csv - and --json both print on standard output"),
        (("--csv", "-", "--markdown", "-"), "both print on standard output"),
        (("--markdown", "none/run.md"), "--markdown is none/run.md; give a file in an existing"),
    ],
)
def test_outputs_that_cannot_be_written_are_refused_before_the_run(
    refused: Refused, tmp_path: Path, words: tuple[str, ...], reason: str
) -> None:
    assert reason in refused("run", "aging", *QUICK, "--out", tmp_path / "runs", *words)
    assert not (tmp_path / "runs").exists()
