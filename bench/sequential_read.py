"""Sequential reads of one written file: ssdlab against dd and fio, interleaved, medians and ratios.

Usage: python bench/sequential_read.py [DIRECTORY [SIZE_MIB [ROUNDS]]]
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from ssdlab.device import Job, open_real, run_job

MIB = 1 << 20


def by_ssdlab(path: Path) -> float:
    """MiB/s by ssdlab's engine, 1 MiB requests at queue depth 1."""
    size = path.stat().st_size
    drive = open_real(path, writable=False)
    outcome = run_job(drive, Job(op="read", length_bytes=size, block_bytes=MIB, amount_bytes=size))
    outcome.raise_if_failed("read")
    return size / MIB / outcome.seconds


def by_dd(path: Path) -> float:
    """MiB/s by dd, over the time of the whole process."""
    started = time.monotonic()
    command = ["dd", f"if={path}", "of=/dev/null", "bs=1M", "iflag=direct", "status=none"]
    subprocess.run(command, check=True)
    return path.stat().st_size / MIB / (time.monotonic() - started)


def by_fio(path: Path) -> float:
    """MiB/s by fio's io_uring engine, as fio reports it."""
    command = [
        *("fio", "--name=read", f"--filename={path}", "--rw=read", "--bs=1M", "--iodepth=1"),
        *("--ioengine=io_uring", "--direct=1", "--invalidate=0", "--output-format=json"),
    ]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout)["jobs"][0]["read"]["bw_bytes"]) / MIB


TOOLS: dict[str, Callable[[Path], float]] = {"ssdlab": by_ssdlab, "dd": by_dd, "fio": by_fio}


def main(directory: Path, size_mib: int = 1024, rounds: int = 10) -> None:
    """Prints each round, then medians and the ratios of ssdlab to the others."""
    path = directory / f"bench-{os.getpid()}.tmp"
    try:
        with path.open("wb") as file:
            for _ in range(size_mib):
                file.write(os.urandom(MIB))
            os.fsync(file.fileno())
        rates = _measure(path, rounds)
    finally:
        path.unlink(missing_ok=True)
    for name, values in rates.items():
        ratios = [a / b for a, b in zip(rates["ssdlab"], values, strict=True)]
        print(
            f"{name:8} median {statistics.median(values):8.0f} MiB/s"
            f"   ssdlab/{name} median of pairs {statistics.median(ratios):.3f}"
            f"   ratio of medians "
            f"{statistics.median(rates['ssdlab']) / statistics.median(values):.3f}"
        )


def _measure(path: Path, rounds: int) -> dict[str, list[float]]:
    rates: dict[str, list[float]] = {name: [] for name in TOOLS}
    for number in range(rounds):
        # The tools take turns in going first, because a cloud disk may limit bursts.
        order = list(TOOLS)[number % 3 :] + list(TOOLS)[: number % 3]
        for name in order:
            rates[name].append(TOOLS[name](path))
        print(f"{number + 1:3}", *(f"{name} {rates[name][-1]:7.0f}" for name in TOOLS))
    return rates


if __name__ == "__main__":
    where = Path(sys.argv[1] if len(sys.argv) > 1 else "build/bench")
    where.mkdir(parents=True, exist_ok=True)
    main(where, *(int(argument) for argument in sys.argv[2:]))
