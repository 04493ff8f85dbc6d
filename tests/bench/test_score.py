"""The scores of the probes: a few random drives on which no finding may be wrong, and the gate."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any, Final

import pytest

from random_drives import random_drive

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


@pytest.mark.parametrize(
    ("wrong", "drives", "percent", "expected"),
    [(0, 20, 0.0, False), (2, 20, 0.0, False), (4, 20, 0.0, True), (9, 20, 30.0, False)],
)
def test_more_wrong_findings_than_chance_explains_are_improbable(
    wrong: int, drives: int, percent: float, expected: bool
) -> None:
    assert SCORE["is_improbable"](wrong, drives, percent) is expected
