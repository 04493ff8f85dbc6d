"""`ssdlab twin what-if`: two runs, one comparison, and errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from forked import Program

Refused = Callable[..., str]
WHAT_IF = ("twin", "what-if", "toshiba-xg5", "--capacity", "512MiB", "--quick", "--quiet")


def test_more_spare_increases_the_steady_rate(ssdlab: Program, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    words = ("--change", "ftl.spare=0.27", "--run", "steady --depth 16", "--html", page, "--json")
    result = ssdlab(*WHAT_IF, *words)
    assert result.returncode == 0, result.stderr
    output = json.loads(result.stdout)
    assert output["changes"] == [{"key": "ftl.spare", "was": 0.0687, "becomes": 0.27}]
    iops = next(row for row in output["contrasts"] if row["name"] == "iops")
    assert 2 < iops["low"] < iops["ratio"] < iops["high"]
    assert [run["parameters"]["write_queue_depth"] for run in output["runs"]] == [16, 16]
    text = page.read_text(encoding="utf-8")
    assert "What if ftl.spare were 0.27 instead of 0.0687?" in text
    assert text.count("<svg") >= 4


def test_measures_are_shown_side_by_side_and_the_changed_profile_is_stored(
    ssdlab: Program, tmp_path: Path
) -> None:
    words = ("--change", "flash.read=80 us", "--run", "split", "--out", tmp_path)
    result = ssdlab(*WHAT_IF, *words)
    assert result.returncode == 0, result.stderr
    assert "Ratio" in result.stdout
    assert "as is: Reading with commands" in result.stdout
    [profile] = tmp_path.glob("*/toshiba-xg5-changed.toml")
    assert ssdlab("twin", "check", profile).returncode == 0
    assert len(list(tmp_path.glob("*/*/result.json"))) == 2


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--change", "ftl.spar=1", "--run", "steady"), "did you mean spare"),
        (("--change", "ftl.spare=2", "--run", "steady"), "may be a share"),
        (("--change", "ftl.spare=0.2", "--run", "stead"), "it must start with one of aging"),
        (("--change", "ftl.spare=0.2", "--run", "steady --json"), "outside of --run"),
        (("--change", "ftl.spare=0.2", "--run", "steady --depth 0"), "it must be 1 to"),
    ],
)
def test_invalid_options_are_refused_with_one_line(
    refused: Refused, words: tuple[str, ...], reason: str
) -> None:
    assert reason in refused(*WHAT_IF, *words)
