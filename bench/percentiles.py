"""Latency percentiles against fio's on the same steady load: alternating pairs and ratios.

Usage: python bench/percentiles.py [--rounds 10] [--seconds 3] [--only WORD] [DIRECTORY]

Each case is a fio job file. ssdlab converts it by `parse_fio`; fio runs the output of `to_fio` for
the same job. Both read the same written file. A ratio is the median of the pairs' ratios (ssdlab /
fio). fio's latency is `lat`, from the submission of a request. ssdlab's is the same in a closed
loop; with a rate it counts from the arrival, which fio does not, so such loads are not compared.
Nor are requests of about 1 us, of which fio spends a tenth reading the clock. At its end fio reaps
all requests in flight at once, so the last ones seem up to twice as slow: a percentile is
comparable if the queue depth is far below the number of requests above the percentile.

The steadiest load is one limited by a cgroup: with depth 64 for 20 s, echo "MAJOR:MINOR 500" >
blkio.throttle.read_iops_device.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ssdlab.device import FioJob, HostWatch, open_engine, parse_fio, run_job, to_fio

MIB = 1 << 20
PERCENTS = (50.0, 99.0, 99.9)
COMMON = "rw=randread\nnorandommap\nbs=4k\nrandrepeat=0\nrandseed=1\ntime_based\n"
CACHED = f"{COMMON}direct=0\ninvalidate=0\n"
DIRECT = f"{COMMON}direct=1\n"
CASES = {
    "cache, 64k psync": f"{CACHED}ioengine=psync\nbs=64k\n",
    "cache, 256k psync": f"{CACHED}ioengine=psync\nbs=256k\n",
    "cache, 1m psync": f"{CACHED}ioengine=psync\nbs=1m\n",
    "direct, 4k depth 1": f"{DIRECT}ioengine=io_uring\n",
    "direct, 4k depth 64": f"{DIRECT}ioengine=io_uring\niodepth=64\n",
}


@dataclass(frozen=True)
class Reading:
    """Percentiles in us, requests per second, processors kept busy by other processes."""

    us: tuple[float, ...]
    rate: float
    load: float


def by_ssdlab(job: FioJob, path: Path) -> Reading:
    """One run of ssdlab."""
    outcome = run_job(open_engine(path, job.options, job.engine), job.job)
    outcome.raise_if_failed(job.name)
    latency = outcome.percentiles_ns()
    us = tuple((value or 0.0) / 1e3 for value in (latency.p50, latency.p99, latency.p999))
    return Reading(us, outcome.requests / outcome.seconds, outcome.host.foreign_cores)


def by_fio(job: FioJob, path: Path) -> Reading:
    """One run of fio, with the job file that `to_fio` writes."""
    file = path.with_suffix(".fio")
    file.write_text(to_fio(msgspec.structs.replace(job, filename=str(path))))
    listed = ":".join(f"{percent:g}" for percent in PERCENTS)
    options = ["--lat_percentiles=1", "--clat_percentiles=0", f"--percentile_list={listed}"]
    file.write_text(file.read_text() + "".join(f"{option[2:]}\n" for option in options))
    watch = HostWatch()
    done = subprocess.run(
        ["fio", "--output-format=json", file], check=True, capture_output=True, text=True
    )
    file.unlink()
    host = watch.load()
    result = json.loads(done.stdout)["jobs"][0]
    read, cpu_share = result["read"], (result["usr_cpu"] + result["sys_cpu"]) / 100
    us = tuple(read["lat_ns"]["percentile"][f"{percent:.6f}"] / 1e3 for percent in PERCENTS)
    own_s = cpu_share * result["job_runtime"] / 1e3
    return Reading(us, read["iops"], max(0.0, host.foreign_cpu_s - own_s) / host.wall_s)


def main(arguments: argparse.Namespace) -> None:
    """Writes the file, compares case by case, and removes the file."""
    arguments.directory.mkdir(parents=True, exist_ok=True)
    path = arguments.directory.resolve() / f"percentiles-{os.getpid()}.tmp"
    try:
        with path.open("wb") as file:
            for _ in range(arguments.size):
                file.write(os.urandom(MIB))
            os.fsync(file.fileno())
        for name, options in CASES.items():
            if arguments.only in name:
                size = f"size={arguments.size}m\nruntime={round(arguments.seconds * 1e6)}us\n"
                [job] = parse_fio(f"[bench]\n{options}{size}")
                _compare(name, job, path, arguments.rounds)
    finally:
        path.unlink(missing_ok=True)


def _compare(name: str, job: FioJob, path: Path, rounds: int) -> None:
    by_ssdlab(job, path)  # warms caches and clocks
    pairs = []
    for number in range(rounds):
        ours = by_ssdlab(job, path) if number % 2 == 0 else None
        fio = by_fio(job, path)
        pairs.append((ours or by_ssdlab(job, path), fio))
    load = statistics.median(each.load for pair in pairs for each in pair)
    rates = statistics.median(ours.rate / fio.rate for ours, fio in pairs)
    print(f"{name}: {rounds} pairs, load {load:.2f}, rate ssdlab/fio {rates:.3f}")
    for at, percent in enumerate(PERCENTS):
        if not all(pair[0].us[at] for pair in pairs):
            print(f"  p{percent:<5g} too few requests")
            continue
        ours, fio = (statistics.median(pair[side].us[at] for pair in pairs) for side in (0, 1))
        ratios = [pair[0].us[at] / pair[1].us[at] for pair in pairs]
        spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
        print(
            f"  p{percent:<5g} ours {ours:9.2f} us  fio {fio:9.2f} us  "
            f"ratio {statistics.median(ratios):.3f} ({spread})",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", nargs="?", type=Path, default=Path("build/bench"))
    parser.add_argument("--rounds", type=int, default=10, help="pairs of each comparison")
    parser.add_argument("--seconds", type=float, default=3.0, help="duration of each run")
    parser.add_argument("--size", type=int, default=128, help="size of the file in MiB")
    parser.add_argument("--only", default="", help="cases with this in their name")
    main(parser.parse_args())
