"""`ssdlab serve` and `ssdlab control`: started, asked, told and ended as a user does."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Program = Callable[..., subprocess.CompletedProcess[str]]
Refused = Callable[..., str]
PATIENCE_S = 600


@pytest.fixture
def socket(executable: str, tmp_path: Path) -> Iterator[Path]:
    """The control socket of a served twin."""
    path = tmp_path / "twin.sock"
    words = [executable, "serve", "toshiba-xg5", "--capacity", "256MiB", "--unix", str(path)]
    control = Path(f"{path}.control")
    server = subprocess.Popen([*words, "--quiet"])
    end = time.monotonic() + PATIENCE_S
    while not control.exists():
        assert server.poll() is None, "it has ended"
        assert time.monotonic() < end, "it does not listen"
        time.sleep(0.02)
    yield control
    server.send_signal(signal.SIGINT)
    assert server.wait(PATIENCE_S) == 0


def test_a_served_twin_is_asked_and_told_from_the_command_line(
    ssdlab: Program, socket: Path
) -> None:
    counted = json.loads(ssdlab("control", socket, "counters").stdout)
    assert counted["host_writes"] == 0
    planned = json.loads(
        ssdlab("control", socket, "power-cut", 'random={"seed":1,"writes":9}').stdout
    )["planned"]
    assert 1 <= planned["after_writes"] <= 9
    cut = json.loads(ssdlab("control", socket, "power-cut", "on=true").stdout)["cut"]
    assert cut["lost_units"] == 0
    assert json.loads(ssdlab("control", socket, "power").stdout)["power"] == "on"


def test_what_a_twin_cannot_be_told_is_refused_in_one_line(
    refused: Refused, socket: Path, tmp_path: Path
) -> None:
    assert "no server listens" in refused("control", tmp_path / "none", "counters")
    assert "unknown variant" in refused("control", socket, "dance")
    assert "KEY=VALUE" in refused("control", socket, "power-cut", "now")
    assert "expected a boolean" in refused("control", socket, "power-cut", "on=1MiB")


def test_what_stands_in_a_servers_way_is_named(refused: Refused, tmp_path: Path) -> None:
    at = ("serve", "toshiba-xg5", "--capacity", "256MiB", "--unix", tmp_path / "socket")
    missing = tmp_path / "none" / "x"
    for words in (("--control", missing), ("--log", missing), ("--data", missing)):
        told = refused(*at, *words)
        assert f"{missing}: No such file" in told, told
    two = (*at[:4], "--unix", missing, "--nvme-tcp", "127.0.0.1:0")
    assert f"cannot be served: {missing}: No such file or directory; give" in refused(*two)
    short = tmp_path / "short"
    short.write_bytes(b"x")
    assert f"cannot be served: {short}" in refused(*at, "--data", short)


def test_a_secret_is_one_and_is_for_hosts_of_nvme(refused: Refused, tmp_path: Path) -> None:
    nvme = ("serve", "toshiba-xg5", "--capacity", "256MiB", "--nvme-tcp", "127.0.0.1:0")
    secret = tmp_path / "secret"
    assert f"{secret}: No such file" in refused(*nvme, "--dhchap-secret", secret)
    for content in (b"password\n", b"", b"DHHC-1:00:password:\n"):
        secret.write_bytes(content)
        assert "secret" in refused(*nvme, "--dhchap-secret", secret)
    secret.write_bytes(b"\xff")
    assert "it is no text" in refused(*nvme, "--dhchap-secret", secret)
    nbd = (*nvme[:4], "--unix", tmp_path / "socket")
    assert "--nvme-tcp" in refused(*nbd, "--dhchap-secret", secret)
    told = refused("serve", "toshiba-xg5", "--nvme-tcp", "0.0.0.0:0")
    assert "anybody unless --dhchap-secret" in told
