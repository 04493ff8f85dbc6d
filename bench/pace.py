"""Latency of a twin served in real time, measured by fio, against the model.

Usage: python bench/pace.py [--rounds 3] [--seconds 3]

Random 4 KiB reads of a twin with tR = 80 us, at queue depths 1, 4 and 16: fio's NBD engine over a
Unix socket with `--pace real`, and the same job on the same twin in virtual time. The twin has
three dies, which limit the rate at depth 16 to 36,000 requests per second; sixteen dies would need
150,000, more than fio can issue. Aim: the median within 5 %, p99 within 10 %.

Server and fio share one processor with real-time scheduling if permitted (as with `chrt -r 10
taskset -c 0`), because other load disturbs the timing. `late` is the share of answers that left
more than 20 us after they were due; `load` is the load average.

The last line is for an ideal server, without a drive or other threads, that busy-waits until an
answer is due. The difference of its p99 and its median is jitter of the machine: no server can do
better.
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
    """Median and p99 in virtual time, in microseconds."""
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


def measured_us(socket: Path, rw: str, depth: int, seconds: float) -> tuple[float, float]:
    """Median and p99 measured by fio, in microseconds."""
    block = "4k" if rw == "randread" else "128k"
    length = ["--time_based", f"--runtime={seconds}"] if rw == "randread" else []
    command = [
        *("fio", "--name=t", "--ioengine=nbd", f"--uri=nbd+unix:///?socket={socket}"),
        *(f"--rw={rw}", f"--bs={block}", f"--iodepth={depth}", f"--size={SIZE}"),
        *(*length, "--output-format=json", "--percentile_list=50:99"),
    ]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    job = json.loads(out[out.index("{") :])["jobs"][0]
    percentiles = job["read" if rw == "randread" else "write"]["clat_ns"]["percentile"]
    return percentiles["50.000000"] / 1e3, percentiles["99.000000"] / 1e3


def answer_ideally(path: str, wait_us: float) -> None:
    """Serves zeros to one NBD client after another; answers each read after `wait_us`.

    Fixed newstyle handshake and simple replies, as in NBD's doc/proto.md.
    """
    with sockets.socket(sockets.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        while True:
            with listener.accept()[0] as client:
                serve_ideally(client, int(wait_us * 1e3))


def serve_ideally(client: sockets.socket, wait_ns: int) -> None:
    """Serves one client until it disconnects."""

    def receive(size: int) -> bytes:
        return client.recv(size, sockets.MSG_WAITALL)

    def reply(option: int, kind: int, payload: bytes = b"") -> None:
        head = struct.pack(">QIII", 0x3E889045565A9, option, kind, len(payload))
        client.sendall(head + payload)

    client.sendall(b"NBDMAGICIHAVEOPT\0\3")
    receive(4)
    option = 0
    while option != 7:  # NBD_OPT_GO
        _, option, length = struct.unpack(">QII", receive(16))
        receive(length)
        if option == 7:
            reply(option, 3, struct.pack(">HQH", 0, SIZE, 1))
            reply(option, 1)
        else:
            reply(option, 0x80000001)
    while len(request := receive(28)) == 28:
        due = time.perf_counter_ns() + wait_ns
        _, kind, cookie, _, length = struct.unpack(">IIQQI", request)
        if kind:
            return
        answer = struct.pack(">IIQ", 0x67446698, 0, cookie) + bytes(length)
        while time.perf_counter_ns() < due:
            pass
        client.sendall(answer)


def show_ideal(folder: Path, wait_us: float, arguments: argparse.Namespace) -> None:
    """Prints fio's latencies with the ideal server."""
    path = folder / "ideal"
    command = [sys.executable, __file__, "--ideal", str(path), str(wait_us)]
    with subprocess.Popen(command) as process:
        while not path.exists():
            time.sleep(0.02)
        measured = [
            measured_us(path, "randread", 1, arguments.seconds) for _ in range(arguments.rounds)
        ]
        process.terminate()
    median, p99 = (statistics.median(column) for column in zip(*measured, strict=True))
    print(
        f"ideal      median {median:7.1f} us, p99 {p99:7.1f} us: {(p99 / median - 1) * 100:+.1f} %"
    )


def use_one_processor() -> None:
    """Sets real-time scheduling on one processor, for this process and its children."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(10))
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    except PermissionError:
        print("no permission for real-time scheduling: other load will disturb the latencies")


def compare(server: Server, socket: Path, depth: int, arguments: argparse.Namespace) -> None:
    """Prints one line for a queue depth."""
    model = modelled_us(depth, arguments.seconds)
    before = server.counters()
    measured = [
        measured_us(socket, "randread", depth, arguments.seconds) for _ in range(arguments.rounds)
    ]
    after = server.counters()
    answers, late = (
        (after[name] or 0.0) - (before[name] or 0.0) for name in ("paced_answers", "late_answers")
    )
    words = [f"depth {depth:<3}"]
    for number, (name, aim) in enumerate((("median", 5), ("p99", 10))):
        by_fio = statistics.median(pair[number] for pair in measured)
        error = (by_fio / model[number] - 1) * 100
        mark = "" if abs(error) <= aim else f" above {aim} %"
        words.append(
            f"{name} {by_fio:7.1f} us, modelled {model[number]:7.1f} us: {error:+6.1f} %{mark}"
        )
    words.append(f"late {late / max(answers, 1):.1%}  load {os.getloadavg()[0]:.1f}")
    print("  ".join(words), flush=True)


def main() -> None:
    """Measures all depths."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--ideal", nargs=2, metavar=("SOCKET", "US"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ideal:
        answer_ideally(arguments.ideal[0], float(arguments.ideal[1]))
        return
    use_one_processor()
    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder) / "twin"
        server = serve(PROFILE, ServeOptions("twin", "unix", str(socket), pace=1.0))
        print(f"answers leave {server.transport_us:.1f} us early")
        measured_us(socket, "write", 4, 0)
        for depth in (1, 4, 16):
            compare(server, socket, depth, arguments)
        server.stop()
        show_ideal(Path(folder), modelled_us(1, 1.0)[0] - server.transport_us, arguments)


if __name__ == "__main__":
    main()
