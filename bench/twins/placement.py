"""Placement policies under garbage collection: 20 runs of a small twin each, against `striped`.

    PYTHONPATH=python python bench/twins/placement.py --seeds 20 --drive-writes 10
    PYTHONPATH=python python bench/twins/placement.py --size 2048 --pages 30 --processes 2

The published drive with superblocks of 1 MiB (`--pages` 4 in a die's block), 192 MiB visible
(`--size`), 7 and 28 % spare, erases of 3.5 ms. It is filled, overwritten at random `--drive-writes`
times, and then files are appended to or overwritten piece by piece; each is read at once, and after
random writes of half the drive. The table has the mean, minimum and maximum over the runs.
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
WORKLOADS = (
    "contiguous",
    "append worst",
    "append worst, in its place",
    "append random",
    "overwrite worst",
    "overwrite random",
)
FILE_COLUMNS = ("read_mib_per_s", "of_contiguous", "of_contiguous_aged")
DRIVE_COLUMNS = (
    "waf",
    "waf_of_striped",
    "erases_most",
    "erases_least",
    "erase_spread",
    "read_latency_us_p999",
    "write_latency_us_p999",
)
Cells = dict[tuple[str, str, str], list[float]]


def run_once(target: str, plan_: Plan, seed: int) -> Sequence[dict[str, Any]]:
    """The rows of one run, with this seed."""
    seeded = replace(plan_, seed=seed)
    with open_for_run(TargetOptions(parse_target(target), 0, seed)) as opened:
        session = RunSession(opened)
        session.run_plan(measure, seeded)
    return conclude(Evidence(session.recording.tables(), seeded.parameters())).measures


def collect(cells: Cells, rows: Sequence[dict[str, Any]]) -> None:
    """Adds a run's values by state, placement, and column."""
    for row in rows:
        place = (row["state"], row["placement"])
        for key in DRIVE_COLUMNS if "erase_spread" in row else FILE_COLUMNS:
            # There is no percentile of too few commands.
            if row[key] is not None:
                workload = f"{row['workload']}, " if key in FILE_COLUMNS else ""
                cells[(*place, workload + key)].append(row[key])


def plan_of(options: argparse.Namespace) -> Plan:
    """The plan of each run: steady states only."""
    return Plan(
        placements=tuple(options.placements.split(",")),
        drive_writes=options.drive_writes,
        steady_size=options.size * MIB,
        fresh_work=(),
        steady_work=tuple(options.work.split(";")),
        laws=False,
        host_work=(),
        size=options.size * MIB,
    )


def parse_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="placement policies under garbage collection")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--drive-writes", type=float, default=10.0)
    parser.add_argument("--placements", default="striped,hinted,inferred")
    parser.add_argument("--size", type=int, default=192, help="visible MiB")
    parser.add_argument("--pages", type=int, default=4, help="pages in a die's block")
    parser.add_argument("--work", default=";".join(WORKLOADS), help="separated by semicolons")
    parser.add_argument("--processes", type=int, default=1)
    return parser.parse_args()


def main() -> None:
    """Prints the table."""
    options = parse_options()
    drive: Changes = {
        "drive": {"capacity": f"{options.size} MiB"},
        "flash": {"pages_per_block": options.pages, "blocks_per_plane": None},
        "ftl": {"spare": 0.07},
    }
    cells: Cells = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(options.processes) as pool:
        path = Path(folder) / "small.toml"
        path.write_text(edit_profile(profiles.load("placement-study"), drive), encoding="utf-8")
        run_seed = partial(run_once, f"twin:{path}", plan_of(options))
        for rows in pool.map(run_seed, range(options.seeds)):
            collect(cells, rows)
    print("| drive | placement | column | mean | minimum | maximum |\n|---|---|---|---|---|---|")
    for (state, placement, column), values in cells.items():
        bounds = f"{min(values):.3f} | {max(values):.3f}"
        print(f"| {state} | {placement} | {column} | {statistics.fmean(values):.3f} | {bounds} |")


if __name__ == "__main__":
    main()
