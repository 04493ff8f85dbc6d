"""PostgreSQL on a served twin: it runs, and after a power cut every acknowledged row is there."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rig import Attach, Serve, need, run, unmount, wait_for

from ssdlab.device import Control

ROWS = 100_000


@dataclass
class Postgres:
    """A server's programs, and the folder with its mount point, socket and log."""

    programs: Path
    folder: Path
    process: int | None = None

    @property
    def point(self) -> Path:
        return self.folder / "point"

    def program(self, name: str, *words: str) -> list[str]:
        """A command of the user that the server runs as: it refuses root."""
        return ["runuser", "-u", "postgres", "--", str(self.programs / name), *words]

    def control(self, *words: str, check: bool = True) -> None:
        command = self.program("pg_ctl", "-w", "-D", str(self.point / "data"), *words)
        run(*command, check=check)

    def start(self) -> None:
        options = f"-k {self.folder} -c listen_addresses="
        log = self.folder / "log"
        log.unlink(missing_ok=True)
        self.control("start", "-l", str(log), "-o", options, check=False)
        assert "ready to accept connections" in log.read_text(), log.read_text()
        self.process = int((self.point / "data/postmaster.pid").read_text().split()[0])

    def kill(self) -> None:
        """Ends it when its files are gone; a process that is left would hold up the next."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.kill(self.process, signal.SIGQUIT)
            wait_for(lambda: not Path(f"/proc/{self.process}").exists(), "PostgreSQL's end")

    def sql(self, text: str) -> str:
        """What psql prints; it stops at the first error."""
        with self.psql() as asked:
            return asked.communicate(text)[0]

    def psql(self) -> subprocess.Popen[str]:
        """A psql at work, which stops at the first error."""
        words = ("-h", str(self.folder), "-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "postgres")
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        return subprocess.Popen(
            self.program("psql", *words), stderr=subprocess.DEVNULL, text=True, **pipes
        )


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    """Its folder is where the server's user gets to, unlike a test's own."""
    need("runuser", "mkfs.ext4", "e2fsck", root=True)
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        pytest.skip("needs PostgreSQL (Debian: apt-get install postgresql)")
    folder = Path(tempfile.mkdtemp())
    shutil.chown(folder, "postgres")
    made = Postgres(found[-1].parent, folder)
    made.point.mkdir()
    yield made
    made.kill()
    unmount(made.point)
    shutil.rmtree(folder)


def test_postgresql_has_every_acknowledged_row_after_a_power_cut(
    serve: Serve, attach: Attach, postgres: Postgres
) -> None:
    served = serve(capacity="512 MiB")
    first = attach(served)
    run("mkfs.ext4", "-q", "-F", first.device)
    run("mount", first.device, str(postgres.point))
    shutil.chown(postgres.point, "postgres")
    run(*postgres.program("initdb", "--data-checksums", "-D", str(postgres.point / "data")))
    postgres.start()
    run(*postgres.program("pgbench", "-h", str(postgres.folder), "-i", "-q", "postgres"))
    run(*postgres.program("pgbench", "-h", str(postgres.folder), "-c4", "-t50", "postgres"))
    postgres.sql("CREATE TABLE rows (number integer)")
    with served.control as control, postgres.psql() as inserting:
        acknowledged = _inserted(inserting, control)
        control.wait_for_cut(1)
        postgres.kill()
        unmount(postgres.point)
        first.detach()
        control.power_on()
    assert 0 < acknowledged < ROWS
    second = attach(served)
    run("mount", second.device, str(postgres.point))
    postgres.start()
    found = int(postgres.sql("SELECT count(*) FROM rows"))
    assert found in (acknowledged, acknowledged + 1), "the one on its way may be there or not"
    assert int(postgres.sql("SELECT max(number) FROM rows")) == found - 1
    assert postgres.sql("SELECT sum(abalance) FROM pgbench_accounts").strip().lstrip("-").isdigit()
    postgres.control("stop")
    run(*postgres.program("pg_checksums", "--check", "-D", str(postgres.point / "data")))
    unmount(postgres.point)
    run("e2fsck", "-f", "-n", second.device)


def _inserted(inserting: subprocess.Popen[str], control: Control) -> int:
    """How many rows are acknowledged until the power is cut: that is planned after the first."""
    assert inserting.stdin is not None
    assert inserting.stdout is not None
    inserting.stdin.write("INSERT INTO rows VALUES (0);\n")
    inserting.stdin.flush()
    assert inserting.stdout.readline() == "INSERT 0 1\n"
    control.plan_cut(random=(1, 2000))
    others = "\n".join(f"INSERT INTO rows VALUES ({number});" for number in range(1, ROWS))
    return 1 + inserting.communicate(others)[0].count("INSERT 0 1")
