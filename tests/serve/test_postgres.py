"""PostgreSQL on a served twin: after a power cut every acknowledged row is there."""

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
        """A command run as the user postgres: PostgreSQL refuses root."""
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
        """Kills the server after its drive is lost; otherwise it would block the unmount."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.kill(self.process, signal.SIGQUIT)
            wait_for(lambda: not Path(f"/proc/{self.process}").exists(), "PostgreSQL's end")

    def sql(self, text: str) -> str:
        """The output of psql, which stops at the first error."""
        with self.psql() as process:
            return process.communicate(text)[0]

    def psql(self) -> subprocess.Popen[str]:
        """A running psql, which stops at the first error."""
        words = ("-h", str(self.folder), "-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "postgres")
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        return subprocess.Popen(
            self.program("psql", *words), stderr=subprocess.DEVNULL, text=True, **pipes
        )


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    """PostgreSQL's programs and a folder that its user can access, unlike `tmp_path`."""
    need("runuser", "mkfs.ext4", "e2fsck", root=True)
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not installed:
        pytest.skip("needs PostgreSQL (Debian: apt-get install postgresql)")
    folder = Path(tempfile.mkdtemp())
    shutil.chown(folder, "postgres")
    server = Postgres(installed[-1].parent, folder)
    server.point.mkdir()
    yield server
    server.kill()
    unmount(server.point)
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
        acknowledged = _insert_until_cut(inserting, control)
        control.wait_for_cut(1)
        postgres.kill()
        unmount(postgres.point)
        first.detach()
        control.power_on()
    assert 0 < acknowledged < ROWS
    second = attach(served)
    run("mount", second.device, str(postgres.point))
    postgres.start()
    rows = int(postgres.sql("SELECT count(*) FROM rows"))
    assert rows in (acknowledged, acknowledged + 1), "the row in flight may be there or not"
    assert int(postgres.sql("SELECT max(number) FROM rows")) == rows - 1
    assert postgres.sql("SELECT sum(abalance) FROM pgbench_accounts").strip().lstrip("-").isdigit()
    postgres.control("stop")
    run(*postgres.program("pg_checksums", "--check", "-D", str(postgres.point / "data")))
    unmount(postgres.point)
    run("e2fsck", "-f", "-n", second.device)


def _insert_until_cut(inserting: subprocess.Popen[str], control: Control) -> int:
    """Inserts rows until the power cut, planned after the first row; returns those acknowledged."""
    assert inserting.stdin is not None
    assert inserting.stdout is not None
    inserting.stdin.write("INSERT INTO rows VALUES (0);\n")
    inserting.stdin.flush()
    assert inserting.stdout.readline() == "INSERT 0 1\n"
    control.plan_cut(random=(1, 2000))
    others = "\n".join(f"INSERT INTO rows VALUES ({number});" for number in range(1, ROWS))
    return 1 + inserting.communicate(others)[0].count("INSERT 0 1")
