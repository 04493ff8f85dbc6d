"""Power cuts under a file system: a served twin by nbdfuse and a loop device; needs root.

    python tools/witness_loop.py sqlite --cuts 200            every acknowledged row must be there
    python tools/witness_loop.py sqlite --cuts 20 --lying     rows must be missing
    python tools/witness_loop.py witness --cuts 20            `ssdlab witness` on a file on ext4

The drive is `ssdlab serve` in a process of its own, the writer another. A cut is planned at the
control socket, while some write is half way; then everything is detached, the power comes back, and
a new mount replays the journal.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from ssdlab.device import Control
from witness_cuts import Bench, started

MODES: Final = ("wal", "persist")
"""Of the journal; in mode DELETE only synchronous=EXTRA keeps the last row (see the document)."""
FILE: Final = "witness.bin"
FILE_BYTES: Final = 8 << 20
QUIET: Final = subprocess.DEVNULL
SIZE_MIB: Final = 64
PROGRAM: Final = (sys.executable, "-c", "from ssdlab.cli import main; main()")
ROWS: Final = """
import sqlite3, sys
base = sqlite3.connect(sys.argv[1], isolation_level=None)
base.execute("PRAGMA synchronous=FULL")
base.execute("PRAGMA journal_mode=" + sys.argv[2])
row = int(sys.argv[3])
try:
    while True:
        row += 1
        base.execute("INSERT INTO kept VALUES (?, randomblob(600))", (row,))
        print(row, flush=True)
except sqlite3.Error:
    pass
"""
"""Commits rows until the drive goes away; a number is printed once its commit has returned."""


def run(*command: str) -> str:
    """A command that must succeed; its output."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout.strip()


@contextlib.contextmanager
def mounted(bench: Bench, folder: Path, *, make: bool = False) -> Iterator[Path]:
    """The twin's first part as a file system; detached in any state at the end."""
    fuse, point = folder / "fuse", folder / "mnt"
    for each in (fuse, point):
        each.mkdir(exist_ok=True)
    server = subprocess.Popen(["nbdfuse", str(fuse), bench.uri], stdout=QUIET, stderr=QUIET)
    while not (fuse / "nbd").exists():
        assert server.poll() is None, "nbdfuse did not start"
        time.sleep(0.01)
    limit = ("--sizelimit", str(SIZE_MIB << 20), "--sector-size", str(bench.block))
    device = run("losetup", "--find", "--show", "--direct-io=on", *limit, str(fuse / "nbd"))
    try:
        if make:
            run("mkfs.ext4", "-q", "-F", device)
        run("mount", device, str(point))
        try:
            yield point
        finally:
            until("umount", str(point))
    finally:
        until("losetup", "--detach", device)
        until("umount", str(fuse))
        server.wait()


def until(*command: str) -> None:
    """Repeats a command until it succeeds: a device may be busy for a moment."""
    for _ in range(200):
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            return
        time.sleep(0.02)
    raise AssertionError(f"{command} never succeeded")


def sqlite_cuts(bench: Bench, folder: Path, cuts: int, seed: int) -> dict[str, Any]:
    """Rows committed with synchronous=FULL, cut after cut in one database."""
    seen: Counter[str] = Counter()
    chance, row = random.Random(seed), 0
    with mounted(bench, folder, make=True) as point:
        make_base(point)
    for cut in range(cuts):
        with mounted(bench, folder) as point:
            plan(bench, chance, cut)
            mode = MODES[cut % len(MODES)]
            words = [sys.executable, "-c", ROWS, str(point / "base"), mode, str(row)]
            told = subprocess.run(words, capture_output=True, text=True, check=False).stdout
        acknowledged = int(told.split()[-1]) if told.split() else row
        seen["acknowledged_rows"] += acknowledged - row
        power_on(bench, cut)
        with mounted(bench, folder, make=is_gone(bench, folder)) as point:
            found, row = look(point, acknowledged)
            seen.update(found)
            if found["bad_cuts"]:
                make_base(point)
                row = 0
    return {"cuts": cuts, **seen}


def is_gone(bench: Bench, folder: Path) -> bool:
    """Whether the cut took the file system itself: then a new one is made."""
    try:
        with mounted(bench, folder):
            return False
    except AssertionError:
        return True


def make_base(point: Path) -> None:
    """An empty database, in place of one that is there."""
    for old in point.glob("base*"):
        old.unlink()
    with contextlib.closing(sqlite3.connect(point / "base")) as base:
        base.execute("CREATE TABLE kept (id INTEGER PRIMARY KEY, noise BLOB)")
        base.commit()
    os.sync()


def look(point: Path, acknowledged: int) -> tuple[dict[str, int], int]:
    """What is wrong with the database after a cut, and its last row."""
    newest = "SELECT coalesce(max(id), 0), count(*) FILTER (WHERE id <= ?) FROM kept"
    try:
        with contextlib.closing(sqlite3.connect(point / "base")) as base:
            (answer,) = base.execute("PRAGMA integrity_check").fetchone()
            last, rows = base.execute(newest, (acknowledged,)).fetchone()
    except sqlite3.Error:
        return {"bad_cuts": 1, "damaged": 1, "lost_rows": acknowledged}, 0
    lost, damaged = acknowledged - int(rows), int(answer != "ok")
    return {"bad_cuts": int(lost > 0 or damaged), "damaged": damaged, "lost_rows": lost}, int(last)


def witness_cuts(bench: Bench, folder: Path, cuts: int, seed: int) -> dict[str, Any]:
    """`ssdlab witness write` and `verify` on a file; a run has one round."""
    seen: Counter[str] = Counter()
    chance, is_good = random.Random(seed), False
    host, port = bench.witness.address
    options = ["--server", f"{host}:{port}", "--secret", str(folder / "journals" / "secret")]
    for cut in range(cuts):
        with mounted(bench, folder, make=not is_good) as point:
            make_file(point / FILE)
            sync = ("fdatasync", "fsync", "dsync", "fua")[cut % 4]
            words = ["witness", "write", str(point / FILE), "--sync", sync, *options]
            write_until_cut(bench, words, chance.randint(20, 300), cut)
        lost = power_on(bench, cut)
        seen["cuts_that_lost"] += lost > 0
        is_good = not is_gone(bench, folder)
        if not is_good:
            seen.update({"alarms": 1, "file_systems_gone": 1})
            continue
        with mounted(bench, folder) as point:
            words = ["witness", "verify", str(point / FILE), *options, "--power-was-cut", "--json"]
            done = subprocess.run([*PROGRAM, *words], capture_output=True, text=True, check=False)
        is_good = done.returncode == 0
        seen["alarms"] += not is_good
        if done.stdout:
            found = json.loads(done.stdout)["judgement"]
            seen["in_flight"] += found["in_flight"]["requests"]
            seen.update(found["kinds"])
        else:
            seen["files_gone"] += 1
    return {"cuts": cuts, **seen}


def make_file(path: Path) -> None:
    """The file to be written; the verb itself would leave 1 GiB free, which is not here."""
    with path.open("ab") as file:
        os.posix_fallocate(file.fileno(), 0, FILE_BYTES)
        os.fsync(file.fileno())
    os.sync()


def write_until_cut(bench: Bench, words: list[str], after: int, cut: int) -> None:
    """Runs the writer; once it has filled its region, a cut is planned."""
    writer = subprocess.Popen([*PROGRAM, *words], stderr=subprocess.PIPE, text=True)
    assert writer.stderr is not None
    said = ""
    while "CUT THE POWER NOW" not in (line := writer.stderr.readline()):
        assert line, f"the writer has ended: {said}"
        said = line
    with Control(bench.control) as control:
        control.plan_cut(after_writes=after)
        assert control.power().cuts == cut
    ended = writer.communicate()[1]
    assert "failed" in ended, f"the writer has ended: {ended}"


def plan(bench: Bench, chance: random.Random, cut: int) -> None:
    """A cut within the next writes of the drive."""
    with Control(bench.control) as control:
        control.plan_cut(after_writes=chance.randint(20, 300))
        assert control.power().cuts == cut


def power_on(bench: Bench, cut: int) -> int:
    """The cut has come; the power comes back. How many units of the drive it took."""
    with Control(bench.control) as control:
        last = control.wait_for_cut(cut + 1).last
        control.power_on()
    assert last is not None
    return last.lost_units


def main(words: list[str]) -> int:
    """Runs the cuts and prints a row; 1 if the twin was judged wrongly."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=["sqlite", "witness"])
    parser.add_argument("--cuts", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lying", action="store_true")
    given = parser.parse_args(words)
    conduct = sqlite_cuts if given.what == "sqlite" else witness_cuts
    kind, begin = "flush" if given.lying else "volatile", time.monotonic()
    with tempfile.TemporaryDirectory() as place, started(kind, Path(place) / kind) as bench:
        row = conduct(bench, Path(place) / kind, given.cuts, given.seed)
    seconds = round(time.monotonic() - begin, 1)
    print(json.dumps({"what": given.what, "twin": kind, **row, "seconds": seconds}))
    bad = row.get("bad_cuts", row.get("alarms", 0))
    return int((bad > 0) != given.lying)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
