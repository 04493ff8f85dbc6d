"""Placement in drives that collect: 20 lives of a small twin each, held against `striped`.

    PYTHONPATH=python python bench/twins/placement.py --seeds 20 --drive-writes 10
    PYTHONPATH=python python bench/twins/placement.py --size 2048 --pages 30 --processes 2

The published drive with superblocks of 1 MiB (`--pages` of a die's block: 4) and 192 MiB to see
(`--size`), 7 and 28 % spare, erases of 3.5 ms: filled, overwritten at random so many times, then
files that grow or are overwritten piece by piece, each read at once and after half a drive more of
random writes. The table has the mean over the lives, the least and the most of them.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ssdlab import profiles
from ssdlab.analysis.evidence import Evidence
from ssdlab.experiments.placement.analysis import conclude
from ssdlab.experiments.placement.drives import Changes, edit_profile
from ssdlab.experiments.placement.measure import Plan, measure
from ssdlab.runner.open_target import TargetOptions, open_for_run
from ssdlab.runner.session import RunSession
from ssdlab.target import parse_target

MIB = 1 << 20
WORK = (
    "contiguous",
    "append worst",
    "append worst, in its place",
    "append random",
    "overwrite worst",
    "overwrite random",
)
OF_FILE = ("read_mib_per_s", "of_contiguous", "of_contiguous_aged")
OF_LIFE = (
    "waf",
    "waf_of_striped",
    "erases_most",
    "erases_least",
    "erase_spread",
    "read_latency_us_p999",
    "write_latency_us_p999",
)
Cells = dict[tuple[str, str, str], list[float]]


def life(target: str, like: Plan, seed: int) -> Sequence[dict[str, Any]]:
    """The rows of one life of each drive."""
    chosen = replace(like, seed=seed)
    with open_for_run(TargetOptions(parse_target(target), 0, seed)) as opened:
        session = RunSession(opened)
        session.run_plan(measure, chosen)
    return conclude(Evidence(session.recording.tables(), chosen.parameters())).measures


def collect(cells: Cells, rows: Sequence[dict[str, Any]]) -> None:
    """Adds a life's figures by state, placement and what they are."""
    for row in rows:
        place = (row["state"], row["placement"])
        for key in OF_LIFE if "erase_spread" in row else OF_FILE:
            # A percentile of too few commands is none.
            if row[key] is not None:
                work = f"{row['workload']}, " if key in OF_FILE else ""
                cells[(*place, work + key)].append(row[key])


def plan(asked: argparse.Namespace) -> Plan:
    """What each life is: the drives that collect, and nothing else."""
    return Plan(
        placements=tuple(asked.placements.split(",")),
        drive_writes=asked.drive_writes,
        steady_size=asked.size * MIB,
        fresh_work=(),
        steady_work=tuple(asked.work.split(";")),
        laws=False,
        host_work=(),
        size=asked.size * MIB,
    )


def options() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description="placement in drives that collect")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--drive-writes", type=float, default=10.0)
    parser.add_argument("--placements", default="striped,hinted,inferred")
    parser.add_argument("--size", type=int, default=192, help="MiB that the host sees")
    parser.add_argument("--pages", type=int, default=4, help="pages of a die's block")
    parser.add_argument("--work", default=";".join(WORK), help="workloads, semicolons between")
    parser.add_argument("--processes", type=int, default=1)
    return parser.parse_args()


def main() -> None:
    """Prints the table."""
    asked = options()
    drive: Changes = {
        "drive": {"capacity": f"{asked.size} MiB"},
        "flash": {"pages_per_block": asked.pages, "blocks_per_plane": None},
        "ftl": {"spare": 0.07},
    }
    cells: Cells = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(asked.processes) as pool:
        path = Path(folder) / "small.toml"
        path.write_text(edit_profile(profiles.load("placement-study"), drive), encoding="utf-8")
        for rows in pool.map(partial(life, f"twin:{path}", plan(asked)), range(asked.seeds)):
            collect(cells, rows)
    print("| drive | placement | what | mean | least | most |\n|---|---|---|---|---|---|")
    for (state, placement, what), values in cells.items():
        bounds = f"{min(values):.3f} | {max(values):.3f}"
        print(f"| {state} | {placement} | {what} | {statistics.fmean(values):.3f} | {bounds} |")


if __name__ == "__main__":
    main()
