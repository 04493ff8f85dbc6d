"""`ssdlab run placement`: JSON and errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from forked import Program


def test_the_result_has_the_best_placement_and_the_documented_columns(
    ssdlab: Program,
) -> None:
    options = ("--placements", "striped,hinted", "--spare", "", "--no-plots", "--capacity", "3GiB")
    done = ssdlab("run", "placement", "twin:placement-study", *options, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["findings"]["best_placement"]["value"] == "hinted"
    rows = result["measures"]
    assert all({"workload", "placement", "read_mib_per_s", "waf"} <= set(row) for row in rows)
    workloads = {"append worst", "append random", "overwrite worst", "sqlite"}
    assert workloads <= {row["workload"] for row in rows}


def test_a_directory_is_refused(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "cannot receive hints; give twin:NAME" in refused("run", "placement", tmp_path)


def test_errors_say_what_is_allowed(refused: Callable[..., str]) -> None:
    command = ("run", "placement", "twin:placement-study")
    message = refused(*command, "--placements", "random")
    assert "must be one of striped, hinted, inferred, packed" in message
    assert "3 GiB or more" in refused(*command, "--capacity", "1GiB")
