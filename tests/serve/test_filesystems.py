"""File systems and a database on a served twin: discards, power cuts, crash images."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest
from rig import Attach, Mounted, Serve, Served, make_file_system, need, run, unmount

MKFS = {"ext4": ("mkfs.ext4", "-q", "-F"), "xfs": ("mkfs.xfs", "-q", "-f")}
CHECK = {"ext4": ("e2fsck", "-f", "-n"), "xfs": ("xfs_repair", "-n")}


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_a_file_system_is_trimmed_and_clean_after_a_power_cut(
    kind: str, serve: Serve, attach: Attach, mounted: Mounted
) -> None:
    need(MKFS[kind][0], CHECK[kind][0], "fstrim")
    served = serve(capacity="384 MiB")
    first = attach(served)
    make_file_system(*MKFS[kind], first.device)
    point = mounted(first.device, kind)
    content = random.Random(3).randbytes(64 << 20)
    kept, doomed = point / "kept", point / "doomed"
    doomed.write_bytes(content)
    kept.write_bytes(content[: 8 << 20])
    run("sync", "-f", str(kept))
    doomed.unlink()
    run("sync", "-f", str(point))
    trimmed = served.count("host_trims")
    run("fstrim", str(point))
    units = 4096
    assert served.count("host_trims") - trimmed >= (64 << 20) / units, "the discard arrived"
    with served.control as control:
        # Planned first: the kernel may write back at any time.
        control.plan_cut(after_writes=2)
        with suppress(OSError):
            for number in range(50):
                (point / f"unsynced-{number}").write_bytes(content[: 40 << 10])
        run("sync", check=False)
        control.wait_for_cut(1)
        unmount(point)
        first.detach()
        control.power_on()
    second = attach(served)
    again = mounted(second.device, kind)
    assert (again / "kept").read_bytes() == content[: 8 << 20]
    unmount(again)
    run(*CHECK[kind], second.device)


def test_a_database_has_every_commit_after_each_of_five_cuts(
    serve: Serve, attach: Attach, mounted: Mounted
) -> None:
    need("mkfs.ext4", "e2fsck")
    served = serve()
    attached = attach(served)
    make_file_system(*MKFS["ext4"], attached.device)
    committed = 0
    for cut in range(1, 6):
        point = mounted(attached.device, "ext4")
        with served.control as control:
            control.plan_cut(random=(cut, 200))
            committed = _commit_until_it_fails(point / "database", committed)
            control.wait_for_cut(cut)
            unmount(point)
            attached.detach()
            control.power_on()
        attached = attach(served)
        point = mounted(attached.device, "ext4")
        with closing(sqlite3.connect(point / "database")) as database:
            state = database.execute("PRAGMA integrity_check").fetchone()
            (rows_found,) = database.execute("SELECT count(*) FROM rows").fetchone()
        assert state == ("ok",)
        # The commit in flight may be there or not.
        assert rows_found in (committed, committed + 1), f"cut {cut}: {rows_found} of {committed}"
        committed = rows_found
        unmount(point)
        run(*CHECK["ext4"], attached.device)
    assert committed > 5


def test_a_database_is_intact_in_each_crash_image_of_a_run(
    serve: Serve, attach: Attach, mounted: Mounted, tmp_path: Path
) -> None:
    need("mkfs.ext4", "e2fsck")
    served = serve()
    attached = attach(served)
    make_file_system(*MKFS["ext4"], attached.device)
    path = mounted(attached.device, "ext4") / "database"
    with (
        served.control as control,
        closing(sqlite3.connect(path, isolation_level=None)) as database,
    ):
        database.execute("PRAGMA synchronous = EXTRA")
        database.execute("CREATE TABLE rows (number INTEGER, filling BLOB)")
        for row in range(40):
            filling = random.Random(row).randbytes(3000)
            database.execute("INSERT INTO rows VALUES (?, ?)", (row, filling))
            if row % 5 == 4:
                control.request("snapshot", name=f"{row + 1} rows")
        for rows in range(5, 41, 5):
            socket = tmp_path / f"image-{rows}.sock"
            control.request("fork", unix=str(socket), **{"from": f"{rows} rows"})
            image = attach(Served(socket, served.process, served.messages))
            point = mounted(image.device, "ext4")
            with closing(sqlite3.connect(point / "database")) as copy:
                state = copy.execute("PRAGMA integrity_check").fetchone()
                (rows_found,) = copy.execute("SELECT count(*) FROM rows").fetchone()
            assert (state, rows_found) == (("ok",), rows)
            unmount(point)
            run(*CHECK["ext4"], image.device)
            image.detach()
            control.request("fork-end", unix=str(socket))


def _commit_until_it_fails(path: Path, committed: int) -> int:
    """Commits row after row until the drive is lost; returns the number of commits."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        try:
            # FULL alone may bring back the journal of the last commit: its removal is not synced.
            database.execute("PRAGMA synchronous = EXTRA")
            database.execute("CREATE TABLE IF NOT EXISTS rows (number INTEGER, filling BLOB)")
            while True:
                row = (committed, random.Random(committed).randbytes(3000))
                database.execute("INSERT INTO rows VALUES (?, ?)", row)
                committed += 1
        except sqlite3.OperationalError:
            return committed
