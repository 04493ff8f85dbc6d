"""A served twin against nbdkit's memory plugin: alternating pairs and ratios.

Usage: python bench/serve.py [--rounds 10] [--seconds 1] [--only WORD] [--profile NAME]

fio's NBD engine over a Unix socket: random 4 KiB at depths 1, 16 and 64 and with four jobs, and
sequential 128 KiB; the twin with `--pace none` and its model. Both were written once before. A
ratio is the median of the pairs' ratios (ssdlab / nbdkit), with minimum and maximum. `load` is the
load average after the case, which includes fio and the servers.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ssdlab import profiles
from ssdlab.device import ServeOptions, serve

SIZE = 1 << 30


@dataclass(frozen=True)
class Case:
    """One fio job."""

    rw: str
    block: str
    depth: int
    jobs: int = 1

    @property
    def name(self) -> str:
        """The name in the table."""
        jobs = f", {self.jobs} jobs" if self.jobs > 1 else ""
        return f"{self.rw} {self.block} depth {self.depth}{jobs}"

    @property
    def target(self) -> float:
        """The ratio to reach."""
        return 1.0 if self.depth == 1 else 1.3


CASES = (
    *(Case(rw, "4k", depth) for rw in ("randread", "randwrite") for depth in (1, 16, 64)),
    *(Case(rw, "4k", 16, jobs=4) for rw in ("randread", "randwrite")),
    *(Case(rw, "128k", 16) for rw in ("read", "write")),
)


def requests_per_second(socket: Path, case: Case, seconds: float) -> float:
    """One run of fio."""
    command = [
        *("fio", "--name=t", "--ioengine=nbd", f"--uri=nbd+unix:///?socket={socket}"),
        *(f"--rw={case.rw}", f"--bs={case.block}", f"--iodepth={case.depth}", f"--size={SIZE}"),
        *(f"--numjobs={case.jobs}", "--group_reporting", "--time_based"),
        *(f"--runtime={seconds}", "--output-format=json"),
    ]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    job = json.loads(out[out.index("{") :])["jobs"][0]
    return float(job["read"]["iops"] + job["write"]["iops"])


def wait_for(socket: Path) -> None:
    """Waits until a server listens."""
    for _ in range(500):
        if socket.exists():
            return
        time.sleep(0.02)
    sys.exit(f"no server listens on {socket}")


@contextmanager
def by_nbdkit(folder: Path) -> Iterator[Path]:
    """Runs nbdkit with a disk in memory; yields its socket."""
    socket = folder / "nbdkit"
    command = ["nbdkit", "-f", "-U", str(socket), "memory", f"size={SIZE}"]
    with subprocess.Popen(command) as process:
        wait_for(socket)
        yield socket
        process.terminate()


@contextmanager
def by_ssdlab(folder: Path, profile: str) -> Iterator[Path]:
    """Serves a twin in its own process; yields its socket."""
    socket = folder / "twin"
    options = ServeOptions(profile, "unix", str(socket), capacity_bytes=SIZE)
    command = [sys.executable, __file__, "--serve", profile, str(socket)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        wait_for(Path(options.address))
        yield socket
        process.terminate()


def serve_here(profile: str, socket: str) -> None:
    """The main function of the process of `by_ssdlab`."""
    options = ServeOptions(profile, "unix", socket, capacity_bytes=SIZE)
    server = serve(profiles.load(profile), options)
    sys.stdin.read()
    server.stop()


def compare(ours: Path, theirs: Path, case: Case, arguments: argparse.Namespace) -> None:
    """Prints one line for a case."""
    pairs = []
    for number in range(arguments.rounds):
        order = (ours, theirs) if number % 2 == 0 else (theirs, ours)
        got = {socket: requests_per_second(socket, case, arguments.seconds) for socket in order}
        pairs.append((got[ours], got[theirs]))
    ratios = sorted(mine / other for mine, other in pairs)
    ratio = statistics.median(ratios)
    mine, other = (statistics.median(column) for column in zip(*pairs, strict=True))
    verdict = "" if ratio >= case.target else f"  below {case.target}"
    print(
        f"{case.name:30}{mine / 1e3:8.1f} k/s{other / 1e3:8.1f} k/s  ratio {ratio:5.2f} "
        f"({ratios[0]:.2f} to {ratios[-1]:.2f})  load {os.getloadavg()[0]:.1f}{verdict}",
        flush=True,
    )


def main() -> None:
    """Runs all cases, or those whose names contain --only."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--profile", default="toshiba-xg5")
    parser.add_argument("--serve", nargs=2)
    arguments = parser.parse_args()
    if arguments.serve:
        serve_here(*arguments.serve)
        return
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        ours = stack.enter_context(by_ssdlab(Path(folder), arguments.profile))
        theirs = stack.enter_context(by_nbdkit(Path(folder)))
        fill = Case("write", "128k", 16)
        for socket in (ours, theirs):
            requests_per_second(socket, fill, 3)
        for case in CASES:
            if arguments.only in case.name:
                compare(ours, theirs, case, arguments)


if __name__ == "__main__":
    main()
