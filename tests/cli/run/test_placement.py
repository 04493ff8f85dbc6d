"""`ssdlab run placement`: twins are compared, and what is none is refused."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

Program = Callable[..., subprocess.CompletedProcess[str]]


def test_fresh_twins_are_compared_and_the_rows_are_as_the_contract_has_them(
    ssdlab: Program,
) -> None:
    options = ("--placements", "striped,hinted", "--spare", "", "--no-plots", "--capacity", "3GiB")
    done = ssdlab("run", "placement", "twin:placement-study", *options, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["findings"]["best_placement"]["value"] == "hinted"
    rows = result["measures"]
    assert all({"workload", "placement", "read_mib_per_s", "waf"} <= set(row) for row in rows)
    asked = {"append worst", "append random", "overwrite worst", "sqlite"}
    assert asked <= {row["workload"] for row in rows}


def test_a_directory_is_refused_since_hints_do_not_reach_a_real_drive(
    refused: Callable[..., str], tmp_path: Path
) -> None:
    assert "cannot be told what a write is; give twin:NAME" in refused("run", "placement", tmp_path)


def test_what_a_run_cannot_do_is_said_with_what_it_can(refused: Callable[..., str]) -> None:
    command = ("run", "placement", "twin:placement-study")
    words = refused(*command, "--placements", "random")
    assert "may have striped, hinted, inferred, packed" in words
    assert "3 GiB or more" in refused(*command, "--capacity", "1GiB")
