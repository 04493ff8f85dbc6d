"""`ssdlab watch --page`: the page of a served twin has the twin's own numbers, and only for us."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from browser import WIDTHS, run_address
from rig import PATIENCE_S, Serve, Served, executable, run, wait_for

from ssdlab.studio import Recorder
from ssdlab.witness.nbd import NbdTarget

UNIT = 4096
CAPACITY = 256 << 20
WRITES = 30_000
NUMBERS = ("host_write_bytes", "host_writes", "erases")


@dataclass
class Watched:
    """A running `ssdlab watch --page`."""

    url: str
    process: subprocess.Popen[str]

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path) as answer:
            return json.load(answer)

    def status(self, path: str, method: str = "GET", **headers: str) -> int:
        request = urllib.request.Request(self.url + path, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    def samples(self) -> int:
        return int(self.get("rows/0")["rows"][-1]["number"])

    def wait_for_samples(self, more: int) -> None:
        wanted = self.samples() + more
        wait_for(lambda: self.samples() >= wanted, "samples")


Watch = Callable[..., Watched]


@pytest.fixture
def watch() -> Iterator[Watch]:
    """`watch(served)` -> `ssdlab watch --page` on its control socket, ten samples a second."""
    with ExitStack() as undo:

        def start(served: Served) -> Watched:
            command = [executable(), "watch", f"{served.socket}.control", "--page"]
            process = subprocess.Popen(
                [*command, "--every", "0.1"],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            undo.callback(process.communicate)
            undo.callback(process.kill)
            assert process.stdout is not None
            return Watched(process.stdout.readline().strip(), process)

        yield start


def _write(served: Served, seed: int, writes: int = WRITES) -> None:
    """Fills the drive in order, writes at random, trims nothing, and flushes."""
    chosen = random.Random(seed)
    with closing(NbdTarget(served.uri, "fsync")) as target:
        body = memoryview(bytes([1]) * (1 << 20))
        for offset in range(0, CAPACITY, 1 << 20):
            target.write(offset, body)
        for _ in range(writes):
            target.write(UNIT * chosen.randrange(CAPACITY // UNIT), body[:UNIT])
        target.flush()


@pytest.fixture
def after_writes(serve: Serve, watch: Watch) -> tuple[Served, Watched]:
    """A served twin that was watched while it was filled and written at random."""
    served = serve()
    watched = watch(served)
    _write(served, seed=5)
    watched.wait_for_samples(2)
    return served, watched


@pytest.mark.pages
def test_what_the_page_draws_is_what_the_twin_has_counted(
    after_writes: tuple[Served, Watched], tmp_path: Path
) -> None:
    served, watched = after_writes
    seen, console = run_address(f"{watched.url}#selftest=frames", tmp_path)
    assert not console
    assert seen["fault"] == ""
    assert seen["differences"] == []
    assert seen["frames"] >= 5
    assert len(set(seen["positions"])) >= 4, "samples of a drive that was at work"
    with served.control as control:
        counters, inside = control.counters(), control.inside()
        meter = control.request("meter")
    assert {name: seen["counters"][name] for name in NUMBERS} == {
        name: counters[name] for name in NUMBERS
    }
    assert seen["counters"] == inside["counters"]
    assert seen["counters"]["erases"] > 0
    assert seen["drawn"]["valid"] == inside["mapped_units"] == CAPACITY // UNIT
    assert seen["drawn"]["programmed"] == inside["programmed_units"]
    # The rows of the curves add up, too: nothing is lost between two samples.
    assert seen["sums"]["host"] == counters["host_write_bytes"]
    assert seen["sums"]["flash"] == UNIT * inside["programmed_units"]
    assert seen["sums"]["bytes"] == pytest.approx(meter["write"]["bytes"])
    kinds = ("read", "write", "trim", "flush")
    assert seen["sums"]["requests"] == sum(meter[kind]["commands"] for kind in kinds)
    assert counters["waf"] == pytest.approx(float(seen["texts"]["waf"]), rel=0.01)
    free, _, count = seen["texts"]["free"].partition(" of ")
    assert (int(free), int(count)) == (inside["free_superblocks"], len(inside["superblocks"]))


@pytest.mark.pages
def test_the_page_goes_back_as_far_as_the_record(
    after_writes: tuple[Served, Watched], tmp_path: Path
) -> None:
    _, watched = after_writes
    seen, console = run_address(f"{watched.url}#selftest=keys", tmp_path)
    assert not console
    live, last, status = seen["live"]
    assert (live, status) == (None, "live")
    assert seen["paused"][:2] == [last, last]
    assert seen["paused"][2].startswith("paused")
    assert seen["back"][:2] == [last - 1, last - 1]
    assert seen["home"][:2] == [0, 0]
    assert seen["on"][:2] == [1, 1]
    assert seen["again"][:2] == [None, last]


@pytest.mark.pages
def test_the_page_fits_a_desk_and_a_telephone(
    after_writes: tuple[Served, Watched], tmp_path: Path
) -> None:
    _, watched = after_writes
    seen, console = run_address(f"{watched.url}#selftest=fits", tmp_path)
    assert not console
    assert [each["width"] for each in seen] == list(WIDTHS)
    assert [each for each in seen if each["letters"] < 500 or each["beyond"]] == []


def test_only_pages_of_this_machine_may_read_it(serve: Serve, watch: Watch) -> None:
    watched = watch(serve())
    assert watched.url.startswith("http://127.0.0.1:")
    assert watched.status("") == watched.status("rows/0") == watched.status("frame/0") == 200
    for name in ("localhost", "localhost:8000", "127.0.0.1:1", "[::1]:80"):
        assert watched.status("", Host=name) == 200, name
    for name in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "127.0.0.1@evil", ""):
        assert watched.status("rows/0", Host=name) == 403, name
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert watched.status("rows/0", method) == 501, method
    for path in ("other", "frame/x", "frame/-1", "frame/99999999", "../etc/passwd", "rows/"):
        assert watched.status(path) == 404, path
    with urllib.request.urlopen(watched.url) as answer:
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "access-control-allow-origin" not in {name.lower() for name in answer.headers}
        assert b"https://" not in answer.read()


def test_ctrl_c_ends_it_and_the_record_outlives_the_twin(serve: Serve, watch: Watch) -> None:
    served = serve()
    watched = watch(served)
    watched.wait_for_samples(2)
    served.stop()
    wait_for(lambda: watched.get("rows/0")["ended"] is not None, "the end of the twin")
    assert "the server has ended" in watched.get("rows/0")["ended"]
    assert watched.status("frame/0") == 200
    watched.process.send_signal(signal.SIGINT)
    out, err = watched.process.communicate(timeout=PATIENCE_S)
    assert (watched.process.returncode, out) == (0, "")
    assert err.count("\n") == 1
    assert "the page keeps the record until Ctrl-C" in err


def test_a_record_that_is_full_forgets_its_oldest_samples(serve: Serve) -> None:
    with serve().control as control:
        recorder = Recorder(control, memory=1)
        for _ in range(3):
            recorder.take()
        rows = recorder.rows(0)
        assert (rows.first, [row.number for row in rows.rows]) == (3, [3])
        assert recorder.frame(2) is None
        assert recorder.frame(3) is not None
        assert recorder.rows(4).rows == []


def test_wrong_use_is_one_line(serve: Serve) -> None:
    socket = serve().socket

    def refused(*words: object) -> str:
        done = run(executable(), "watch", *map(str, words), "--page", check=False)
        assert (done.returncode, done.stdout) == (2, "")
        return " ".join(done.stderr.split())

    for option in ("--json", "--once", "--prometheus"):
        assert "--page excludes" in refused(socket, option)
    assert "it must be 127.0.0.1:PORT" in refused(socket, "--listen", "0.0.0.0:80")
    assert "no server listens" in refused(socket.with_name("no.sock"))
