"""`ssdlab run fragments`: options, JSON, errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from forked import Program

SMALL = ("--distance", "1MiB", "--size", "72MiB", "--quick", "--capacity", "16GiB")


def test_the_result_has_slowdowns_and_causes_by_depth(ssdlab: Program) -> None:
    done = ssdlab("run", "fragments", "twin:samsung-980-pro", *SMALL, "--json", "--quiet")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert {"slowdown_depth_1", "slowdown_depth_32", "cause"} <= result["findings"].keys()
    assert {row["gap"] for row in result["measures"]} == {"worst", "random"}
    assert {row["degree"] for row in result["measures"]} == {1, 64}


def test_the_options_for_gaps_order_and_host_take_effect(ssdlab: Program) -> None:
    options = ("--gaps", "random", "--order", "file", "--no-host")
    done = ssdlab("run", "fragments", "twin:wd-sn850", *SMALL, *options, "--json", "--quiet")
    result = json.loads(done.stdout)
    parameters = result["parameters"]
    assert (parameters["gaps"], parameters["order"]) == (["random"], "file")
    assert parameters["twin_host_per_command_us"] == 0
    assert "slowdown_depth_32" in result["findings"]


def test_the_report_shows_the_command_that_repeats_the_run(ssdlab: Program, tmp_path: Path) -> None:
    folder, page = tmp_path / "runs", tmp_path / "page.html"
    ssdlab("run", "fragments", "twin:wd-sn850", *SMALL, "--out", folder, "--quiet")
    done = ssdlab("report", folder, "--html", page)
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert "ssdlab run fragments twin:wd-sn850 --size 72MiB --distance 1MiB --quick" in text
    assert "Time to read a fragmented file at queue depth 32" in text


def test_a_distance_without_gaps_is_refused(refused: Callable[..., str]) -> None:
    line = refused("run", "fragments", "twin:wd-sn850", "--distance", "32KiB")
    assert "--distance is 32 KiB; it must be a multiple of 4 KiB above 32 KiB" in line
