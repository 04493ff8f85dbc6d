"""A small sweep: twelve twins of 128 MiB, each run takes a fraction of a second."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ssdlab.sweep.spec import SweepRun, plan_runs, read_spec

SMALL = """\
name = "small"
profile = "toshiba-xg5"
capacity = "128MiB"
seed = 1
{more}
[vary]
{vary}
[workload]
drive_writes = 0.5
"""
GRID = (
    '"ftl.spare" = [0.1, 0.2, 0.3]\n"ftl.victim" = ["greedy", "fifo"]\n"workload.skew" = [0, 1.1]'
)


@pytest.fixture
def spec_file(tmp_path: Path) -> Callable[..., Path]:
    """`spec_file(vary, more)` -> the path of a spec."""

    def make(vary: str = GRID, more: str = "") -> Path:
        path = tmp_path / "small.toml"
        path.write_text(SMALL.format(vary=vary, more=more), encoding="utf-8")
        return path

    return make


@pytest.fixture
def small(spec_file: Callable[..., Path]) -> list[SweepRun]:
    """The runs of the small sweep."""
    return plan_runs(read_spec(spec_file())[0])


@pytest.fixture
def repeatable() -> Callable[[dict[str, Any] | None], dict[str, Any]]:
    """`repeatable(row)` -> the row without the columns that differ between machines."""

    def select(row: dict[str, Any] | None) -> dict[str, Any]:
        assert row is not None
        return {key: value for key, value in row.items() if key != "seconds"}

    return select
