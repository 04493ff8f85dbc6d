"""The measuring engine against fio: alternating pairs, medians and ratios.

Usage: python bench/engine.py [--rounds 10] [--size 2048] [--seconds 2] [--only WORD] [DIRECTORY]

Random 4 KiB reads and sequential 1 MiB reads of a preallocated and written file, direct and from
the page cache; the null device; io_uring's NOP rate as the upper limit. A ratio is the median of
the pairs' ratios (ssdlab / fio), with minimum and maximum. CPU time per request is user and system
time: of this process during the job; of fio as fio reports it (cpu, without its start) and as
getrusage of its parent reports it (cpu+, with its start). `load` is the mean number of processors
that other processes kept busy, `stolen` the number that the hypervisor took.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

# As in ssdlab.cli: no worker threads of OpenBLAS.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import msgspec

from ssdlab.device import (
    Drive,
    HostWatch,
    Job,
    RealOptions,
    nop_rate,
    open_engine,
    open_null,
    run_job,
)

MIB = 1 << 20
PERCENTS = (50.0, 90.0, 99.0)  # the first three of `Outcome.percentiles_ns`


@dataclass(frozen=True)
class Case:
    """One comparison: a job, ssdlab's options and engine, and fio's engine."""

    name: str
    target: str
    options: RealOptions | None = None
    engine: Literal["io_uring", "sync"] = "io_uring"
    fio_engine: str = "io_uring"
    block: int = 4096
    pattern: Literal["sequential", "random"] = "random"
    depth: int = 32


@dataclass(frozen=True)
class Reading:
    """Requests per second, CPU time per request in us (fio: by two methods), percentiles in ns."""

    rate: float
    cpu_us: float
    cpu_us_parent: float
    percentiles: tuple[float, ...]
    load: float
    stolen: float


DIRECT = RealOptions(writable=False, queue_depth=128)
BUFFERED = RealOptions(writable=False, queue_depth=128, direct=False)
FAST = RealOptions(writable=False, queue_depth=128, batch=True, registered_buffers=True)
CASES = (
    *(
        Case(f"direct 4k depth {depth}", "rate 0.97, cpu 0.90", DIRECT, depth=depth)
        for depth in (1, 32, 64)
    ),
    Case("direct 4k depth 32, batch + registered", "cpu 0.70", FAST),
    Case("direct 4k depth 64, batch + registered", "cpu 0.70", FAST, depth=64),
    Case("direct 1M in order, depth 8", "-", DIRECT, block=MIB, pattern="sequential", depth=8),
    Case("page cache 4k depth 32", "rate 1.1", BUFFERED),
    Case("page cache 4k psync", "rate 1.0", BUFFERED, "sync", "psync", depth=1),
    Case("null depth 1", "40 ns", None, fio_engine="null", depth=1),
    Case("null depth 32", "40 ns", None, fio_engine="null"),
)


def by_ssdlab(case: Case, path: Path, seconds: float) -> Reading:
    """One run of ssdlab."""
    drive: Drive
    if case.options is None:
        drive = open_null(case.depth)
    else:
        options = msgspec.structs.replace(case.options, request_bytes_max=case.block)
        drive = open_engine(path, options, case.engine)
    job = Job(
        op="read",
        pattern=case.pattern,
        length_bytes=path.stat().st_size,
        block_bytes=case.block,
        seconds=seconds,
        queue_depth=case.depth,
        seed=os.getpid(),
    )
    outcome = run_job(drive, job)
    outcome.raise_if_failed(case.name)
    cpu_us = outcome.host.own_cpu_s * 1e6 / outcome.requests
    percentiles = tuple(float(value or 0) for value in outcome.percentiles_ns()[: len(PERCENTS)])
    rate = outcome.requests / outcome.seconds
    host = outcome.host
    stolen = host.stolen_cpu_s / host.wall_s
    return Reading(rate, cpu_us, cpu_us, percentiles, host.foreign_cores, stolen)


def by_fio(case: Case, path: Path, seconds: float) -> Reading:
    """One run of fio."""
    direct = case.options is not None and case.options.direct
    command = [
        *("fio", "--name=read", f"--filename={path}", f"--bs={case.block}"),
        f"--rw={'randread' if case.pattern == 'random' else 'read'}",
        *(f"--ioengine={case.fio_engine}", f"--iodepth={case.depth}", f"--direct={direct:d}"),
        *("--time_based", f"--runtime={seconds}", "--norandommap", "--randrepeat=0"),
        *("--invalidate=0", "--lat_percentiles=1", "--output-format=json"),
        f"--percentile_list={':'.join(f'{percent:g}' for percent in PERCENTS)}",
    ]
    if case.fio_engine == "null":
        command[2:3] = [f"--size={path.stat().st_size}"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    watch = HostWatch()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    host = watch.load()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    child = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    job: dict[str, Any] = json.loads(done.stdout)["jobs"][0]
    read = job["read"]
    requests = read["total_ios"]
    own = (job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"] / 1e3
    percentiles = read["lat_ns"].get("percentile", {})
    return Reading(
        rate=read["iops"],
        cpu_us=own * 1e6 / requests,
        cpu_us_parent=child * 1e6 / requests,
        percentiles=tuple(float(percentiles.get(f"{p:.6f}", 0)) for p in PERCENTS),
        load=max(0.0, host.foreign_cpu_s - child) / host.wall_s,
        stolen=host.stolen_cpu_s / host.wall_s,
    )


def main(arguments: argparse.Namespace) -> None:
    """Writes the file, compares case by case, and removes the file."""
    arguments.directory.mkdir(parents=True, exist_ok=True)
    path = arguments.directory / f"engine-{os.getpid()}.tmp"
    rates = [nop_rate() / 1e6 for _ in range(arguments.rounds)]
    print(f"io_uring NOP: median {statistics.median(rates):.2f} M/s, best {max(rates):.2f} (8)")
    try:
        _write(path, arguments.size)
        for case in CASES:
            if arguments.only in case.name:
                _compare(case, path, arguments)
    finally:
        path.unlink(missing_ok=True)


def _write(path: Path, size_mib: int) -> None:
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, size_mib * MIB)
        for _ in range(size_mib):
            file.write(os.urandom(MIB))
        os.fsync(file.fileno())


def _compare(case: Case, path: Path, arguments: argparse.Namespace) -> None:
    pairs: list[tuple[Reading, Reading]] = []
    if case.options is not None and not case.options.direct:
        subprocess.run(["cat", path], check=True, stdout=subprocess.DEVNULL)
    for number in range(arguments.rounds):
        if number % 2:
            fio = by_fio(case, path, arguments.seconds)
            ours = by_ssdlab(case, path, arguments.seconds)
        else:
            ours = by_ssdlab(case, path, arguments.seconds)
            fio = by_fio(case, path, arguments.seconds)
        pairs.append((ours, fio))
    _print(case, pairs)


def _print(case: Case, pairs: list[tuple[Reading, Reading]]) -> None:
    def medians(pick: Callable[[Reading], float]) -> str:
        ours, fio = (statistics.median(pick(pair[side]) for pair in pairs) for side in (0, 1))
        ratios = [pick(ours) / (pick(fio) or 1) for ours, fio in pairs]
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        ratio = statistics.median(ratios)
        return f"ours {ours:10.2f}  fio {fio:10.2f}  ratio {ratio:.3f} ({spread})"

    load = statistics.median(reading.load for pair in pairs for reading in pair)
    stolen = statistics.median(reading.stolen for pair in pairs for reading in pair)
    print(f"\n{case.name}: target {case.target}; {len(pairs)} pairs")
    print(f"  load {load:.2f}, stolen {stolen:.2f}")
    print("  thousand/s ", medians(lambda reading: reading.rate / 1e3))
    print("  cpu, us    ", medians(lambda reading: reading.cpu_us))
    print("  cpu+, us   ", medians(lambda reading: reading.cpu_us_parent))
    if case.options is None:
        print("  ns each    ", medians(lambda reading: 1e9 / reading.rate))
        return
    for at, percent in enumerate(PERCENTS):
        line = medians(lambda reading, at=at: reading.percentiles[at] / 1e3)
        print(f"  p{percent:<4g} us   ", line)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", nargs="?", type=Path, default=Path("build/bench"))
    parser.add_argument("--rounds", type=int, default=10, help="pairs of each comparison")
    parser.add_argument("--size", type=int, default=2048, help="size of the file in MiB")
    parser.add_argument("--seconds", type=float, default=2.0, help="duration of each run")
    parser.add_argument("--only", default="", help="cases with this in their name")
    main(parser.parse_args())
