"""The scores of the probes: a few random drives on which no finding may be wrong, and the gate."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any, Final

import pytest

from random_drives import MIB, random_drive
from ssdlab.device import Job
from ssdlab.runner.open_target import OpenTarget
from ssdlab.runner.session import RunSession, Step

SCORE: Final[dict[str, Any]] = runpy.run_path(
    str(Path(__file__).parents[2] / "bench" / "twins" / "score.py")
)
EXACT: Final = (
    *(("stripe", seed) for seed in (0, 2)),
    *(("fsync", seed) for seed in (0, 2, 3)),
    *(("split", seed) for seed in (0, 1)),
    *(("trim", seed) for seed in (0, 10)),
    ("cache", 8),
    ("cache", 25),  # folds its cache while the host writes
    ("cache", 3020),  # capacitors, and programs that take longer than the first pauses
    ("fragments", 22),
)
"""Probes and seeds whose findings are all exact."""


@pytest.mark.parametrize(("probe", "seed"), EXACT)
def test_findings_that_are_known_to_be_exact_do_not_become_wrong(probe: str, seed: int) -> None:
    scores = SCORE["PROBES"][probe](random_drive(seed))
    assert scores
    assert {name: shown for name, (word, shown) in scores.items() if word != SCORE["EXACT"]} == {}


@pytest.mark.parametrize("seed", [77086, 77194, 77092])
def test_what_a_map_adds_to_waf_is_what_the_twin_counts(seed: int) -> None:
    drive = random_drive(seed)
    size = int(drive.describe()["capacity_bytes"]) // MIB * MIB
    session = RunSession(OpenTarget(drive.open(), {"kind": "twin"}))
    session.fill(size)
    counts = []
    for number in range(2):
        job = Job(
            op="write",
            pattern="random",
            length_bytes=size,
            block_bytes=4096,
            amount_bytes=100 * MIB,
            queue_depth=32,
            seed=number,
        )
        session.run(Step("write", "at random", "random"), job)
        counted = session.target.drive.counters()
        assert counted is not None
        counts.append(counted)
    first, second = counts
    unit = int(drive.get("ftl.mapping_unit").split()[0]) * 1024
    written = second["host_write_bytes"] - first["host_write_bytes"]
    mapping = unit * (second["nand_mapping_writes"] - first["nand_mapping_writes"])
    assert drive.map_waf == pytest.approx(mapping / written, rel=0.04)


@pytest.mark.parametrize(
    ("wrong", "drives", "percent", "expected"),
    [(0, 20, 0.0, False), (2, 20, 0.0, False), (4, 20, 0.0, True), (9, 20, 30.0, False)],
)
def test_more_wrong_findings_than_chance_explains_are_improbable(
    wrong: int, drives: int, percent: float, expected: bool
) -> None:
    assert SCORE["is_improbable"](wrong, drives, percent) is expected
