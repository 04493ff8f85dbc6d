"""`ssdlab twin what-if`: two runs, one comparison; wrong questions are one line."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Program = Callable[..., subprocess.CompletedProcess[str]]
Refused = Callable[..., str]
ASK = ("twin", "what-if", "toshiba-xg5", "--capacity", "512MiB", "--quick", "--quiet")


def test_more_spare_makes_the_lasting_rate_higher(ssdlab: Program, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    words = ("--change", "ftl.spare=0.27", "--run", "steady --depth 16", "--html", page, "--json")
    done = ssdlab(*ASK, *words)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["changes"] == [{"key": "ftl.spare", "was": 0.0687, "becomes": 0.27}]
    iops = next(row for row in told["contrasts"] if row["name"] == "iops")
    assert 2 < iops["low"] < iops["ratio"] < iops["high"]
    assert [run["parameters"]["write_queue_depth"] for run in told["runs"]] == [16, 16]
    text = page.read_text(encoding="utf-8")
    assert "What if ftl.spare were 0.27 instead of 0.0687?" in text
    assert text.count("<svg") >= 4


def test_measures_stand_side_by_side_and_the_changed_profile_is_kept(
    ssdlab: Program, tmp_path: Path
) -> None:
    words = ("--change", "flash.read=80 us", "--run", "split", "--out", tmp_path)
    done = ssdlab(*ASK, *words)
    assert done.returncode == 0, done.stderr
    assert "changed / as is" in done.stdout.lower()
    assert "as is: Reading with commands" in done.stdout
    [profile] = tmp_path.glob("*/toshiba-xg5-changed.toml")
    assert ssdlab("twin", "check", profile).returncode == 0
    assert len(list(tmp_path.glob("*/*/result.json"))) == 2


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--change", "ftl.spar=1", "--run", "steady"), "did you mean spare"),
        (("--change", "ftl.spare=2", "--run", "steady"), "may be a share"),
        (("--change", "ftl.spare=0.2", "--run", "stead"), "it may be one of aging"),
        (("--change", "ftl.spare=0.2", "--run", "steady --json"), "outside of --run"),
        (("--change", "ftl.spare=0.2", "--run", "steady --depth 0"), "it must be 1 to"),
    ],
)
def test_a_wrong_question_is_one_line(
    refused: Refused, words: tuple[str, ...], reason: str
) -> None:
    assert reason in refused(*ASK, *words)
