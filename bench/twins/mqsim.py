"""Compares MQSim's results with those of twins that are configured like its drives.

Usage: python bench/twins/mqsim.py [TRACE...]

MQSim's values are the means that it printed (commit 7ec40e3); it prints no percentiles. Variants of
the twin each adopt one property of MQSim's model: docs/models/mqsim.md explains the differences. A
TRACE is an ASCII trace in MQSim's format, such as its own tpcc-small.trace and wsrch-small.trace;
it is replayed at its original speed.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from ssdlab.device import Drive, Job, Replay, open_twin, read_trace_statistics, run_job
from ssdlab.device.kinds import Aligned, Listed, Pattern, WriteHint
from ssdlab.profiles.toml_edit import set_value

FOLDER: Final = Path(__file__).parents[2] / "examples/simulators"
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SECTOR, PAGE = 512, 8 * KIB
DEPTHS: Final = (1, 4, 16, 64, 256)
Kind = Literal["random reads", "random writes", "reads in order", "writes in order"]
Changes = dict[str, Any]

MEASURED: Final[dict[Kind, tuple[float, ...]]] = {
    "random reads": (55, 68, 140, 469, 1725),
    "random writes": (505, 619, 1269, 4212, 15137),
    "reads in order": (174, 538, 2154, 8606, 34260),
    "writes in order": (1068, 4074, 16293, 65096, 259135),
}
"""Mean response time in us of the empty 16 GiB drive, cache off, at each of `DEPTHS`."""
LENGTH: Final[dict[Kind, int]] = {
    "random reads": 4 * KIB,
    "random writes": 4 * KIB,
    "reads in order": 128 * KIB,
    "writes in order": 128 * KIB,
}
AMPLIFICATION: Final = {0.07: 7.344, 0.28: 2.006}
"""Write amplification of the fully mapped 16 GiB drive, by its spare."""
SCENARIOS: Final = {"write": (18, 371_432 / 10, 484.0), "read": (32, 1_531_462 / 10, 208.6)}
"""workload.xml of the default drive: queue depth of both flows, requests/s, mean in us."""
TRACE_MEANS: Final = {"tpcc-small.trace": 3458.0}
"""Mean response time in us of the traces on the default drive."""

AS_CONFIGURED: Final = "as configured"
SMALL_DRIVE: Final[dict[str, Changes]] = {
    AS_CONFIGURED: {},
    "planes independent": {"flash.planes": 1, "flash.blocks_per_plane": 4096},
    "each plane a separate die": {"flash.planes": 1, "flash.dies_per_channel": 4},
    "cache register": {"flash.cache_register": True},
    "unlimited link": {"link.bandwidth": "1000 GB/s"},
}
STATIC_ALLOCATION: Final[Changes] = {
    "flash.planes": 1,
    "flash.blocks_per_plane": 4096,
    "flash.read": ["500 us"],
}
"""Reads as slow as programs: the wait of writes if the address determined the die."""
ONE_PLANE: Final[Changes] = {
    "flash.dies_per_channel": 4,
    "flash.planes": 1,
    "flash.blocks_per_plane": 8192,
}
MAP_IN_MEMORY: Final[Changes] = {"ftl.map_cache": None}
DEFAULT_DRIVE: Final[dict[str, Changes]] = {
    AS_CONFIGURED: {},
    "map in memory": MAP_IN_MEMORY,
    "map in memory, one die per chip": {
        **MAP_IN_MEMORY,
        "flash.dies_per_channel": 4,
        "flash.blocks_per_plane": 4096,
    },
    "map in memory, one die of one plane per chip": {**MAP_IN_MEMORY, **ONE_PLANE},
    "one die of one plane per chip": ONE_PLANE,
}


@dataclass(frozen=True)
class Row:
    """Latency in us, and requests per second."""

    mean_us: float
    p99_us: float
    per_s: float


def profile(name: str, changes: Changes) -> str:
    """The text of one of the two profiles, with changed values."""
    text = (FOLDER / f"{name}.toml").read_text()
    for key, value in changes.items():
        text = set_value(text, key, value)
    return text


def row_of(drive: Drive, job: Job) -> Row:
    """Runs a job."""
    result = run_job(drive, job)
    latency = result.latency
    total = float((latency["latency_ns"] * latency["count"]).sum())
    p99 = result.percentiles_ns().p99 or float("nan")
    count = float(latency["count"].sum())
    return Row(total / count / 1e3, p99 / 1e3, result.requests / result.seconds)


def fill(drive: Drive, length: int) -> None:
    """Writes the first `length` bytes sequentially."""
    whole = length // MIB * MIB
    run_job(drive, Job(op="write", length_bytes=whole, block_bytes=MIB, amount_bytes=whole))
    run_job(drive, Job(op="flush"))


def closed(text: str, kind: Kind, depth: int, area: int = 2 * GIB) -> Row:
    """A closed loop at `depth`: reads of data written sequentially, or writes to a new drive.

    Writes complete when they are in flash, as without a cache.
    """
    drive = open_twin("mqsim", text)
    if "reads" in kind:
        fill(drive, area)
    pattern: Pattern = "random" if "random" in kind else "sequential"
    requests = 200 * depth + 4000 if "random" in kind else 40 * depth + 1200
    job = Job(
        op="read" if "reads" in kind else "write",
        pattern=pattern,
        length_bytes=area,
        block_bytes=LENGTH[kind],
        amount_bytes=requests * LENGTH[kind],
        queue_depth=depth,
        sync="none" if "reads" in kind else "durable",
        seed=depth,
    )
    return row_of(drive, job)


def amplification(spare: float, kept: int, *, blockwise: bool) -> float:
    """Write amplification in steady state: random 4 KiB writes over a full drive.

    `kept` of 2048 blocks stay free. With `blockwise`, the drive has 1 GiB in one die of one plane
    and collects single blocks; otherwise 4 GiB, and it collects a block of each plane together.
    """
    flash, blocks = (1, 2048) if blockwise else (4, 512)
    changes: Changes = {"ftl.spare": spare, "flash.blocks_per_plane": blocks}
    changes["ftl.reserve"] = round(kept / 2048 * blocks)
    if blockwise:
        changes |= {"flash.channels": 1, "flash.dies_per_channel": 1, "flash.planes": 1}
    drive = open_twin("mqsim", profile("mqsim-16gib", changes))
    capacity = int(flash * GIB * (1 - spare)) // MIB * MIB
    fill(drive, capacity)
    before = _written(drive)
    for times, seed in ((3, 1), (1, 2)):
        before = _written(drive)
        job = Job(
            op="write",
            pattern="random",
            length_bytes=capacity,
            block_bytes=4 * KIB,
            amount_bytes=times * capacity,
            seed=seed,
            interval_us=60_000_000,
        )
        run_job(drive, job)
    host, flashed = (now - was for now, was in zip(_written(drive), before, strict=True))
    return flashed / host


def _written(drive: Drive) -> tuple[int, int]:
    """Mapping units written by the host, and to flash."""
    counted = drive.counters()
    assert counted is not None, "a twin counts"
    flashed = counted["nand_host_writes"] + counted["nand_collection_writes"]
    return counted["host_writes"], flashed


def scenario(changes: Changes, op: Literal["read", "write"], seconds: float = 1.0) -> Row:
    """The default drive's workload: 4 KiB at random multiples of 8 KiB in half of the drive."""
    drive = open_twin("mqsim", profile("mqsim-default", changes))
    half = 238 * GIB
    if op == "read":
        fill(drive, half)
    job = Job(
        op=op,
        pattern=Aligned(8 * KIB),
        length_bytes=half,
        block_bytes=4 * KIB,
        seconds=seconds,
        queue_depth=SCENARIOS[op][0],
        seed=3,
    )
    return row_of(drive, job)


def replay(text: str, trace: Path, *, filled: bool = False) -> Row:
    """Replays a trace at its original speed, with all volumes mapped to the same addresses.

    Only the data that it reads was written before, in random order, as in MQSim; with `filled`,
    the whole address range was written sequentially.
    """
    options = Replay(str(trace), "mqsim", speed=1.0)
    info = read_trace_statistics(options)
    drive = open_twin("mqsim", text)
    length = -(-max(size for _, size in info.volumes) // MIB) * MIB
    reads = [] if filled else _reads(trace)
    if filled:
        fill(drive, length)
    elif reads:
        job = Job(
            op="write",
            pattern=Listed(tuple(reads)),
            length_bytes=length,
            block_bytes=max(size for _, size, _ in reads),
            amount_bytes=sum(size for _, size, _ in reads),
        )
        run_job(drive, job)
        run_job(drive, Job(op="flush"))
    job = Job(
        op="write" if info.writes else "read",
        length_bytes=length,
        amount_bytes=info.bytes,
        queue_depth=1024,
        replay=msgspec.structs.replace(options, requests=info.requests),
    )
    return row_of(drive, job)


def _reads(trace: Path) -> list[tuple[int, int, WriteHint]]:
    """The trace's reads as (offset, bytes, hint), in whole pages and random order."""
    reads: list[tuple[int, int, WriteHint]] = []
    for line in trace.read_text().splitlines():
        _, _, sector, count, kind = line.split()
        if kind == "1":
            start = int(sector) * SECTOR // PAGE * PAGE
            end = -(-(int(sector) + int(count)) * SECTOR // PAGE) * PAGE
            reads.append((start, end - start, "nothing"))
    random.Random(1).shuffle(reads)
    return reads


def print_depths() -> None:
    """Prints a table for each kind of load: MQSim, then each variant of the twin."""
    for kind, theirs in MEASURED.items():
        size = LENGTH[kind] // KIB
        print(f"\n{size} KiB {kind}, mean us (p99), by requests in flight\n")
        print(f"| | {' | '.join(map(str, DEPTHS))} |")
        print("|---" * (len(DEPTHS) + 1) + "|")
        print(f"| MQSim | {' | '.join(f'{value:.0f}' for value in theirs)} |")
        for name, changes in SMALL_DRIVE.items():
            text = profile("mqsim-16gib", changes)
            print_depth(name, [closed(text, kind, depth) for depth in DEPTHS])
        if kind == "random writes":
            text = profile("mqsim-16gib", STATIC_ALLOCATION)
            rows = [closed(text, "random reads", depth) for depth in DEPTHS]
            print_depth("address determines the die", rows)


def print_depth(name: str, rows: list[Row]) -> None:
    """Prints one row of such a table."""
    cells = " | ".join(f"{row.mean_us:.0f} ({row.p99_us:.0f})" for row in rows)
    print(f"| {name} | {cells} |", flush=True)


def print_amplification() -> None:
    """Prints write amplification by the number of free blocks and the unit of collection."""
    print("\nWrite amplification, random 4 KiB, all of the drive mapped\n")
    print("| unit of collection | kept free, of 2048 | spare 7 % | spare 28 % |")
    print("|---|---|---|---|")
    print(f"| MQSim: a block | 10 to 29 | {AMPLIFICATION[0.07]} | {AMPLIFICATION[0.28]} |")
    for name, blockwise, kept in (
        ("a block", True, 29),
        ("a block", True, 10),
        ("a block", True, 2),
        ("a block of each plane", False, 28),
        ("a block of each plane", False, 8),
    ):
        values = [amplification(spare, kept, blockwise=blockwise) for spare in AMPLIFICATION]
        print(f"| {name} | {kept} | {values[0]:.3f} | {values[1]:.3f} |", flush=True)


def print_scenarios() -> None:
    """Prints the default drive's synthetic workloads."""
    print("\nThe default drive's workload.xml: requests/s, mean us (p99)\n")
    print("| | 4 KiB random writes, 18 in flight | 4 KiB random reads, 32 in flight |")
    print("|---|---|---|")
    theirs = (f"{per_s:.0f}, {mean:.0f}" for _, per_s, mean in SCENARIOS.values())
    print(f"| MQSim | {' | '.join(theirs)} |")
    for name, changes in DEFAULT_DRIVE.items():
        rows = [scenario(changes, "write"), scenario(changes, "read")]
        cells = (f"{row.per_s:.0f}, {row.mean_us:.0f} ({row.p99_us:.0f})" for row in rows)
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def print_trace(trace: Path) -> None:
    """Prints a trace's latencies on each variant of the default drive."""
    theirs = TRACE_MEANS.get(trace.name)
    print(f"\n{trace.name}, at its original speed: us\n\n| | mean | p99 |\n|---|---|---|")
    print(f"| MQSim | {'not known' if theirs is None else f'{theirs:.0f}'} | not printed |")
    for name, changes in DEFAULT_DRIVE.items():
        row = replay(profile("mqsim-default", changes), trace)
        print(f"| {name} | {row.mean_us:.0f} | {row.p99_us:.0f} |", flush=True)
    text = profile("mqsim-default", {**MAP_IN_MEMORY, **ONE_PLANE})
    row = replay(text, trace, filled=True)
    name = "map in memory, one die of one plane per chip, filled before"
    print(f"| {name} | {row.mean_us:.0f} | {row.p99_us:.0f} |")


def main(traces: list[Path]) -> None:
    """Prints all tables."""
    print_depths()
    print_amplification()
    print_scenarios()
    for trace in traces:
        print_trace(trace)


if __name__ == "__main__":
    main([Path(each) for each in sys.argv[1:]])
