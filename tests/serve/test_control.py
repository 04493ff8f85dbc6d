"""The control socket: crash images, logs, restarts, samples."""

from __future__ import annotations

import json
import signal
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from rig import PATIENCE_S, Serve, Served, need, run

from ssdlab.device import Watcher
from ssdlab.witness.nbd import NbdTarget

UNIT = 4096
HEAD = struct.Struct("<QI")


@contextmanager
def client(uri: str) -> Iterator[NbdTarget]:
    with closing(NbdTarget(uri, "fsync")) as target:
        yield target


class Journal:
    """Appends numbers to a drive; only flushed ones are promised.

    The body of a number is written and flushed before the slot that refers to it.
    """

    def __init__(self, target: NbdTarget) -> None:
        self.target, self.promised = target, 0

    def append(self) -> None:
        """Appends the next number."""
        number = self.promised + 1
        self.target.write(64 * UNIT + number * UNIT, memoryview(_body(number)))
        self.target.flush()
        slot = HEAD.pack(number, zlib.crc32(_body(number))).ljust(512, b"\0")
        self.target.write(number * 512, memoryview(slot))
        self.target.flush()
        self.promised = number


def _body(number: int) -> bytes:
    return number.to_bytes(8, "little") * (UNIT // 8)


def count_numbers(target: NbdTarget) -> int:
    """The numbers on a drive.

    Raises:
        AssertionError: a slot is there without its body.
    """
    number = 0
    while True:
        read, checksum = HEAD.unpack(bytes(target.read((number + 1) * 512, 512))[: HEAD.size])
        if read != number + 1:
            return number
        number += 1
        body = bytes(target.read(64 * UNIT + number * UNIT, UNIT))
        assert zlib.crc32(body) == checksum, f"slot {number} is there and its body is not"


def images(served: Served, journal: Journal, folder: Path) -> Iterator[tuple[int, int]]:
    """Fifty moments of a run: the numbers promised by then, and the numbers after a cut."""
    with served.control as control:
        for image in range(50):
            journal.append()
            body = memoryview(_body(journal.promised + 1))
            if image % 2:  # a body without its slot
                journal.target.write(64 * UNIT + (journal.promised + 1) * UNIT, body)
            control.request("snapshot", name=f"moment {image}")
        for image in range(50):
            socket = folder / f"image-{image}.sock"
            control.request("fork", unix=str(socket), **{"from": f"moment {image}"})
            with client(f"nbd+unix:///?socket={socket}") as target:
                yield image + 1, count_numbers(target)
            control.request("fork-end", unix=str(socket))


def test_fifty_crash_images_of_a_run_have_all_promised_data(serve: Serve, tmp_path: Path) -> None:
    served = serve()
    with client(served.uri) as target:
        journal = Journal(target)
        assert all(promised == kept for promised, kept in images(served, journal, tmp_path))
        assert count_numbers(target) == 50, "the run itself continued"
        assert served.count("power_cuts") == 0


def test_crash_images_of_a_drive_that_lies_about_flushes_lack_promised_data(
    serve: Serve, tmp_path: Path
) -> None:
    # The program time is longer than the test, so that no data reaches the flash.
    served = serve(honest=False, program="3600 s")
    with client(served.uri) as target:
        missing = [
            promised - kept
            for promised, kept in images(served, Journal(target), tmp_path)
            if kept < promised
        ]
    assert len(missing) == 50


def test_nbdinfo_shows_the_wear_of_a_units_block(serve: Serve) -> None:
    need("nbdinfo")
    served = serve()
    with client(served.uri) as target:
        target.write(1 << 20, memoryview(bytes([1]) * (1 << 20)))
        target.flush()
    rows = json.loads(run("nbdinfo", "--json", "--map=x-ssdlab:wear", served.uri).stdout)
    assert [(row["offset"], row["type"]) for row in rows] == [
        (0, 2**32 - 1),
        (1 << 20, 0),
        (2 << 20, 2**32 - 1),
    ]


def test_a_data_file_keeps_its_allocation_map_over_a_restart(serve: Serve, tmp_path: Path) -> None:
    need("nbdinfo")
    words = ("--data", str(tmp_path / "content"))
    first = serve(*words)
    with client(first.uri) as target:
        for place in (0, 3 << 20, 200 << 20):
            target.write(place, memoryview(bytes([7]) * (1 << 20)))
        target.flush()
    maps = [_map(first)]
    first.stop()
    second = serve(*words)
    maps.append(_map(second))
    assert maps[0] == maps[1]
    assert len(maps[0]) == 6
    with client(second.uri) as target:
        assert target.read(3 << 20, 512) == bytes([7]) * 512


def _map(served: Served) -> list[tuple[int, int]]:
    rows = json.loads(run("nbdinfo", "--json", "--map", served.uri).stdout)
    return [(row["offset"], row["type"]) for row in rows]


def test_a_log_has_the_writes_and_the_marks(serve: Serve, tmp_path: Path) -> None:
    log = tmp_path / "log"
    served = serve("--log", str(log))
    with client(served.uri) as target, served.control as control:
        target.write(8192, memoryview(bytes([5]) * 1024))
        target.flush()
        control.request("mark", name="here")
    served.stop()
    words = log.read_bytes()
    assert struct.unpack("<QQQI", words[:28]) == (0x6A736677736872, 1, 3, 512)
    entries = [struct.unpack("<QQQQ", words[at : at + 32]) for at in (512, 2048, 2560)]
    assert entries == [(16, 2, 0, 0), (0, 0, 1, 0), (0, 0, 8, 4)]
    assert words[1024:2048] == bytes([5]) * 1024
    assert words[2592:2596] == b"here"


def test_a_sample_has_rates_and_latencies(serve: Serve) -> None:
    served = serve()
    with client(served.uri) as target, served.control as control:
        watcher = Watcher(control)
        target.write(0, memoryview(bytes([1]) * (1 << 20)))
        target.flush()
        sample = watcher.sample()
        assert round(sample.write.bytes_rate * sample.seconds) == 1 << 20
        assert sample.waf is not None
        assert sample.waf >= 1
        assert sample.read.p50_us is None
        for place in range(0, 1 << 20, UNIT):
            target.read(place, UNIT)
        sample = watcher.sample()
        assert round(sample.read.rate * sample.seconds) == 256
        assert sample.read.p50_us is not None
        assert 50 < sample.read.p50_us < 100, "50 us for the sense, and the transfer"
        assert sample.waf is None


def test_watch_prints_lines_without_escapes_into_a_pipe(serve: Serve) -> None:
    served = serve()
    words = [str(Path(sys.executable).parent / "ssdlab"), "watch", f"{served.socket}.control"]
    sample = json.loads(run(*words, "--json", "--once", "--every", "0.05").stdout)
    assert sample["power"] == "on"
    words = [*words, "--every", "0.05"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        lines = [watching.stdout.readline() for _ in range(2)]
        watching.send_signal(signal.SIGINT)
        # Read the rest: a full pipe would block the program.
        watching.communicate(timeout=PATIENCE_S)
        assert watching.returncode == 0
    assert all(line.startswith("read 0/s") and "\x1b" not in line for line in lines)


def test_no_request_of_a_paced_twin_is_in_flight_after_its_time(serve: Serve) -> None:
    need("qemu-io")
    served = serve("--pace", "real")
    run("qemu-io", "-f", "raw", "-c", "write 1M 64k", "-c", "read 1M 64k", served.uri)
    time.sleep(0.1)  # a reply may leave before the time of its request is over
    with served.control as control:
        assert control.request("meter")["in_flight"] == 0
