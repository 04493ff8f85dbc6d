"""Power cuts below a file system: a served twin through nbdfuse and a loop device; needs root.

    python tools/witness_loop.py sqlite --cuts 200            every acknowledged row must be there
    python tools/witness_loop.py sqlite --cuts 20 --lying     rows must be missing
    python tools/witness_loop.py witness --cuts 20            `ssdlab witness` on a file on ext4

The drive is an `ssdlab serve` process, the writer another process. A cut is planned over the
control socket, to happen while a write is in progress; then everything is detached, the power
comes back, and a new mount replays the journal.
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
"""Journal modes. In mode DELETE only synchronous=EXTRA keeps the last row (see witness.md)."""
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
"""Commits rows until the drive fails; prints each number after its commit has returned."""


def run(*command: str) -> str:
    """Run a command that must succeed; returns its output."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout.strip()


@contextlib.contextmanager
def mounted(bench: Bench, folder: Path, *, make: bool = False) -> Iterator[Path]:
    """Mount the first part of the twin; always detaches it at the end."""
    fuse, point = folder / "fuse", folder / "mnt"
    for directory in (fuse, point):
        directory.mkdir(exist_ok=True)
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
            retry("umount", str(point))
    finally:
        retry("losetup", "--detach", device)
        retry("umount", str(fuse))
        server.wait()


def retry(*command: str) -> None:
    """Repeat a command until it succeeds, for 4 s: a device may be busy for a moment."""
    for _ in range(200):
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            return
        time.sleep(0.02)
    raise AssertionError(f"{command} never succeeded")


def sqlite_cuts(bench: Bench, folder: Path, cuts: int, seed: int) -> dict[str, Any]:
    """Commit rows with synchronous=FULL into one database, over several cuts."""
    counts: Counter[str] = Counter()
    chance, row = random.Random(seed), 0
    with mounted(bench, folder, make=True) as point:
        make_base(point)
    for cut in range(cuts):
        with mounted(bench, folder) as point:
            plan(bench, chance, cut)
            mode = MODES[cut % len(MODES)]
            words = [sys.executable, "-c", ROWS, str(point / "base"), mode, str(row)]
            output = subprocess.run(words, capture_output=True, text=True, check=False).stdout
        acknowledged = int(output.split()[-1]) if output.split() else row
        counts["acknowledged_rows"] += acknowledged - row
        power_on(bench, cut)
        with mounted(bench, folder, make=is_gone(bench, folder)) as point:
            damage, row = inspect(point, acknowledged)
            counts.update(damage)
            if damage["bad_cuts"]:
                make_base(point)
                row = 0
    return {"cuts": cuts, **counts}


def is_gone(bench: Bench, folder: Path) -> bool:
    """Whether the cut destroyed the file system, so that a new one is needed."""
    try:
        with mounted(bench, folder):
            return False
    except AssertionError:
        return True


def make_base(point: Path) -> None:
    """Replace the database by an empty one."""
    for old in point.glob("base*"):
        old.unlink()
    with contextlib.closing(sqlite3.connect(point / "base")) as base:
        base.execute("CREATE TABLE kept (id INTEGER PRIMARY KEY, noise BLOB)")
        base.commit()
    os.sync()


def inspect(point: Path, acknowledged: int) -> tuple[dict[str, int], int]:
    """The damage to the database after a cut, and its last row."""
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
    """Cut the power under `ssdlab witness write` on a file, then verify; one round per run."""
    counts: Counter[str] = Counter()
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
        counts["cuts_that_lost"] += lost > 0
        is_good = not is_gone(bench, folder)
        if not is_good:
            counts.update({"alarms": 1, "file_systems_gone": 1})
            continue
        with mounted(bench, folder) as point:
            words = ["witness", "verify", str(point / FILE), *options, "--power-was-cut", "--json"]
            done = subprocess.run([*PROGRAM, *words], capture_output=True, text=True, check=False)
        is_good = done.returncode == 0
        counts["alarms"] += not is_good
        if done.stdout:
            judgement = json.loads(done.stdout)["judgement"]
            counts["in_flight"] += judgement["in_flight"]["requests"]
            counts.update(judgement["kinds"])
        else:
            counts["files_gone"] += 1
    return {"cuts": cuts, **counts}


def make_file(path: Path) -> None:
    """Create the file; the command would keep 1 GiB free, more than this file system has."""
    with path.open("ab") as file:
        os.posix_fallocate(file.fileno(), 0, FILE_BYTES)
        os.fsync(file.fileno())
    os.sync()


def write_until_cut(bench: Bench, words: list[str], after: int, cut: int) -> None:
    """Run the writer; plan the cut once its region is filled."""
    writer = subprocess.Popen([*PROGRAM, *words], stderr=subprocess.PIPE, text=True)
    assert writer.stderr is not None
    last = ""
    while "CUT THE POWER NOW" not in (line := writer.stderr.readline()):
        assert line, f"the writer has ended: {last}"
        last = line
    with Control(bench.control) as control:
        control.plan_cut(after_writes=after)
        assert control.power().cuts == cut
    errors = writer.communicate()[1]
    assert "failed" in errors, f"the writer has ended: {errors}"


def plan(bench: Bench, chance: random.Random, cut: int) -> None:
    """Plan a cut after some of the next writes."""
    with Control(bench.control) as control:
        control.plan_cut(after_writes=chance.randint(20, 300))
        assert control.power().cuts == cut


def power_on(bench: Bench, cut: int) -> int:
    """Wait for the cut and switch the power on; returns the number of units that were lost."""
    with Control(bench.control) as control:
        last = control.wait_for_cut(cut + 1).last
        control.power_on()
    assert last is not None
    return last.lost_units


def main(words: list[str]) -> int:
    """Run the cuts and print a JSON row; exit status 1 if the twin was judged wrongly."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=["sqlite", "witness"])
    parser.add_argument("--cuts", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lying", action="store_true")
    options = parser.parse_args(words)
    cut_power = sqlite_cuts if options.what == "sqlite" else witness_cuts
    kind, begin = "flush" if options.lying else "volatile", time.monotonic()
    with tempfile.TemporaryDirectory() as place, started(kind, Path(place) / kind) as bench:
        row = cut_power(bench, Path(place) / kind, options.cuts, options.seed)
    seconds = round(time.monotonic() - begin, 1)
    print(json.dumps({"what": options.what, "twin": kind, **row, "seconds": seconds}))
    bad = row.get("bad_cuts", row.get("alarms", 0))
    return int((bad > 0) != options.lying)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
