"""A twin served in real time: what fio sees against what the model says, in one run.

Usage: python bench/pace.py [--rounds 3] [--seconds 3]

4 KiB reads at random of a twin whose flash reads take 80 us, at depths 1, 4 and 16: fio's NBD
engine over a unix socket with `--pace real`, and the same job on the same twin in virtual time. The
twin has three dies: at depth 16 they bound the rate, at 36,000 requests a second; sixteen dies
would ask for 150,000, more than fio makes. Aimed at: the median within 5 %, p99 within 10 %.

Server and fio share one processor in real-time scheduling where the system lets them (as `chrt -r
10 taskset -c 0` does): a machine with other work keeps no time else. `late` is the share of answers
that left more than 20 us after their time; `load` the machine's load average.

The last line is of an ideal server: it has no drive and no other thread, and looks at the clock
until it answers. What fio sees of its p99 over its median at depth 1 is the machine's own (its
timer's ticks, its host): no answer can be more punctual.
"""

from __future__ import annotations

import argparse
import json
import os
import socket as sockets
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ssdlab.device import Job, ServeOptions, Server, open_twin, run_job, serve

SIZE = 256 << 20
PROFILE = """
[drive]
model = "Twin of 80 us reads"
capacity = "1 GiB"
interface = "nvme"
[link]
bandwidth = "3 GiB/s"
read_overhead = "10 us"
[flash]
channels = 3
dies_per_channel = 1
planes = 1
page = "16 KiB"
pages_per_block = 64
read = ["80 us"]
program = "500 us"
erase = "3 ms"
channel_bandwidth = "800 MB/s"
[ftl]
mapping_unit = "4 KiB"
spare = 0.1
[buffer]
size = "8 MiB"
power_loss_protection = true
honours_flush = true
"""


def modelled_us(depth: int, seconds: float) -> tuple[float, float]:
    """Median and p99 in virtual time."""
    drive = open_twin("twin", PROFILE)
    fill = Job(
        op="write",
        pattern="sequential",
        length_bytes=SIZE,
        block_bytes=128 << 10,
        amount_bytes=SIZE,
    )
    run_job(drive, fill)
    drive.rest(1.0)
    outcome = run_job(
        drive,
        Job(
            op="read",
            pattern="random",
            length_bytes=SIZE,
            block_bytes=4096,
            queue_depth=depth,
            seconds=seconds,
        ),
    )
    percentiles = [float(value or 0) / 1e3 for value in outcome.percentiles_ns()]
    return percentiles[0], percentiles[2]


def seen_us(socket: Path, rw: str, depth: int, seconds: float) -> tuple[float, float]:
    """Median and p99 as fio sees them."""
    block = "4k" if rw == "randread" else "128k"
    length = ["--time_based", f"--runtime={seconds}"] if rw == "randread" else []
    command = [
        *("fio", "--name=t", "--ioengine=nbd", f"--uri=nbd+unix:///?socket={socket}"),
        *(f"--rw={rw}", f"--bs={block}", f"--iodepth={depth}", f"--size={SIZE}"),
        *(*length, "--output-format=json", "--percentile_list=50:99"),
    ]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    job = json.loads(out[out.index("{") :])["jobs"][0]
    told = job["read" if rw == "randread" else "write"]["clat_ns"]["percentile"]
    return told["50.000000"] / 1e3, told["99.000000"] / 1e3


def answer_ideally(path: str, wait_us: float) -> None:
    """Serves reads of zeros to one client after another, each answered after so long.

    The numbers are those of NBD's protocol (doc/proto.md): a fixed newstyle handshake, simple
    replies.
    """
    with sockets.socket(sockets.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        while True:
            with listener.accept()[0] as client:
                serve_ideally(client, int(wait_us * 1e3))


def serve_ideally(client: sockets.socket, wait_ns: int) -> None:
    """One client, until it leaves."""

    def take(count: int) -> bytes:
        return client.recv(count, sockets.MSG_WAITALL)

    def tell(option: int, kind: int, told: bytes = b"") -> None:
        client.sendall(struct.pack(">QIII", 0x3E889045565A9, option, kind, len(told)) + told)

    client.sendall(b"NBDMAGICIHAVEOPT\0\3")
    take(4)
    option = 0
    while option != 7:  # GO
        _, option, length = struct.unpack(">QII", take(16))
        take(length)
        if option == 7:
            tell(option, 3, struct.pack(">HQH", 0, SIZE, 1))
            tell(option, 1)
        else:
            tell(option, 0x80000001)
    while len(asked := take(28)) == 28:
        due = time.perf_counter_ns() + wait_ns
        _, kind, cookie, _, length = struct.unpack(">IIQQI", asked)
        if kind:
            return
        answer = struct.pack(">IIQ", 0x67446698, 0, cookie) + bytes(length)
        while time.perf_counter_ns() < due:
            pass
        client.sendall(answer)


def show_ideal(folder: Path, wait_us: float, arguments: argparse.Namespace) -> None:
    """Prints what fio sees of an ideal server."""
    path = folder / "ideal"
    command = [sys.executable, __file__, "--ideal", str(path), str(wait_us)]
    with subprocess.Popen(command) as process:
        while not path.exists():
            time.sleep(0.02)
        seen = [seen_us(path, "randread", 1, arguments.seconds) for _ in range(arguments.rounds)]
        process.terminate()
    median, p99 = (statistics.median(column) for column in zip(*seen, strict=True))
    print(
        f"ideal      median {median:7.1f} us, p99 {p99:7.1f} us: {(p99 / median - 1) * 100:+.1f} %"
    )


def take_a_processor() -> None:
    """Real-time scheduling on one processor, for this process and those it starts."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(10))
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    except PermissionError:
        print("no real-time scheduling here: other work on the machine will show")


def compare(server: Server, socket: Path, depth: int, arguments: argparse.Namespace) -> None:
    """Prints one line about a depth."""
    model = modelled_us(depth, arguments.seconds)
    before = server.counters()
    seen = [seen_us(socket, "randread", depth, arguments.seconds) for _ in range(arguments.rounds)]
    after = server.counters()
    answers, late = (
        (after[name] or 0.0) - (before[name] or 0.0) for name in ("paced_answers", "late_answers")
    )
    words = [f"depth {depth:<3}"]
    for number, (name, aim) in enumerate((("median", 5), ("p99", 10))):
        ours = statistics.median(pair[number] for pair in seen)
        off = (ours / model[number] - 1) * 100
        mark = "" if abs(off) <= aim else f" beyond {aim} %"
        words.append(
            f"{name} {ours:7.1f} us, modelled {model[number]:7.1f} us: {off:+6.1f} %{mark}"
        )
    words.append(f"late {late / max(answers, 1):.1%}  load {os.getloadavg()[0]:.1f}")
    print("  ".join(words), flush=True)


def main() -> None:
    """All depths."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--ideal", nargs=2, metavar=("SOCKET", "US"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ideal:
        answer_ideally(arguments.ideal[0], float(arguments.ideal[1]))
        return
    take_a_processor()
    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder) / "twin"
        server = serve(PROFILE, ServeOptions("twin", "unix", str(socket), pace=1.0))
        print(f"answers leave {server.transport_us:.1f} us early")
        seen_us(socket, "write", 4, 0)
        for depth in (1, 4, 16):
            compare(server, socket, depth, arguments)
        server.stop()
        show_ideal(Path(folder), modelled_us(1, 1.0)[0] - server.transport_us, arguments)


if __name__ == "__main__":
    main()
