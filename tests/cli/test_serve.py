"""`ssdlab serve` and `ssdlab control` in processes, as a user runs them."""

from __future__ import annotations

import json
import signal
import socket as socketlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from forked import Program

from ssdlab.attach.remains import free_socket
from ssdlab.cli import serve
from ssdlab.cli.serve import Lateness
from ssdlab.errors import UsageError

Refused = Callable[..., str]
PATIENCE_S = 60


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


def test_a_served_twin_is_controlled_from_the_command_line(ssdlab: Program, socket: Path) -> None:
    counters = json.loads(ssdlab("control", socket, "counters").stdout)
    assert counters["host_writes"] == 0
    planned = json.loads(
        ssdlab("control", socket, "power-cut", 'random={"seed":1,"writes":9}').stdout
    )["planned"]
    assert 1 <= planned["after_writes"] <= 9
    cut = json.loads(ssdlab("control", socket, "power-cut", "on=true").stdout)["cut"]
    assert cut["lost_units"] == 0
    assert json.loads(ssdlab("control", socket, "power").stdout)["power"] == "on"


def test_an_invalid_control_request_is_refused_in_one_line(
    refused: Refused, socket: Path, tmp_path: Path
) -> None:
    assert "no server listens" in refused("control", tmp_path / "none", "counters")
    message = refused("control", socket, "dance")
    assert "dance: no request `dance`, expected one of `counters`" in message
    assert "column" not in message
    assert "KEY=VALUE" in refused("control", socket, "power-cut", "now")
    assert "expected a boolean" in refused("control", socket, "power-cut", "on=1MiB")


def test_the_drives_own_socket_is_taken_as_its_control_socket(
    ssdlab: Program, refused: Refused, socket: Path, tmp_path: Path
) -> None:
    drive = socket.with_suffix("")
    assert json.loads(ssdlab("control", drive, "counters").stdout)["host_writes"] == 0
    assert ssdlab("watch", drive, "--once", "--every", "0.05").returncode == 0
    alone = tmp_path / "alone.sock"
    alone.symlink_to(drive)  # it has no control socket
    for words in (("control", alone, "counters"), ("watch", alone, "--once")):
        assert f"{alone} is the drive's own socket; give the control" in refused(*words)


@pytest.mark.parametrize(
    ("words", "first_line"),
    [
        ((), "pace real: clients feel the drive's latencies"),
        (("--pace", "none"), "pace none: replies are sent at once, so clients do not feel"),
        (("--pace", "10x"), "pace 10x: 10 seconds of drive time pass in a second"),
    ],
)
def test_a_server_says_its_pace_first(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    first_line: str,
) -> None:
    from ssdlab.cli.app import app

    monkeypatch.setattr("ssdlab.cli.serve.time.sleep", _interrupt)
    twin = [
        "serve",
        "twin:toshiba-xg5",
        "--capacity",
        "256MiB",
        "--unix",
        str(tmp_path / "twin.sock"),
    ]
    assert app([*twin, *words], standalone_mode=False) == 0
    assert capsys.readouterr().err.startswith(first_line)


def test_an_unusable_path_of_a_server_is_named(refused: Refused, tmp_path: Path) -> None:
    at = ("serve", "toshiba-xg5", "--capacity", "256MiB", "--unix", tmp_path / "socket")
    missing = tmp_path / "none" / "x"
    for words in (("--control", missing), ("--log", missing), ("--data", missing)):
        message = refused(*at, *words)
        assert f"{missing}: No such file" in message, message
    two = (*at[:4], "--unix", missing, "--nvme-tcp", "127.0.0.1:0")
    assert f"cannot be served: {missing}: No such file or directory; give" in refused(*two)
    short = tmp_path / "short"
    short.write_bytes(b"x")
    assert f"cannot be served: {short}" in refused(*at, "--data", short)


def test_an_invalid_secret_or_one_without_nvme_is_refused(refused: Refused, tmp_path: Path) -> None:
    nvme = ("serve", "toshiba-xg5", "--capacity", "256MiB", "--nvme-tcp", "127.0.0.1:0")
    secret = tmp_path / "secret"
    assert f"{secret}: No such file" in refused(*nvme, "--dhchap-secret", secret)
    for content in (b"password\n", b"", b"DHHC-1:00:password:\n"):
        secret.write_bytes(content)
        assert "secret" in refused(*nvme, "--dhchap-secret", secret)
    secret.write_bytes(b"\xff")
    assert "it is not text" in refused(*nvme, "--dhchap-secret", secret)
    nbd = (*nvme[:4], "--unix", tmp_path / "socket")
    assert "--nvme-tcp" in refused(*nbd, "--dhchap-secret", secret)
    message = refused("serve", "toshiba-xg5", "--nvme-tcp", "0.0.0.0:0")
    assert "anyone can connect without --dhchap-secret" in message


HEAVY = ("numpy", "pyarrow", "scipy", "matplotlib", "ssdlab.device", "ssdlab._native")


@pytest.mark.parametrize(
    "words",
    [
        ("serve", "--help"),
        ("serve", "toshiba-xg5", "--tcp", "here"),
        ("serve", "no-such-profile", "--unix", "free"),
        ("watch", "--help"),
        ("watch", "socket", "--every", "0"),
        ("control", "--help"),
        ("control", "socket", "power-cut", "now"),
        *(("witness", name, "--help") for name in ("serve", "write", "verify", "report")),
        ("witness", "serve", "--listen", "a:b"),
        ("witness", "serve", "--cut-after", "0", "--cut-command", "true"),
        ("witness", "write", "file", "--server", "host", "--sync", "maybe"),
        ("witness", "verify", "file", "--server", "host", "--secret", "missing"),
    ],
)
def test_help_and_usage_errors_import_no_heavy_module(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    script = (
        "import os, sys; sys.argv[0] = 'ssdlab'; os._exit = lambda status: None\n"
        "import ssdlab.cli; ssdlab.cli.main()\n"
        f"print('HEAVY', [name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert "HEAVY []" in done.stdout


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_ctrl_c_right_after_the_start_stops_a_served_twin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ssdlab.cli.app import app

    path = tmp_path / "twin.sock"
    monkeypatch.setattr("ssdlab.cli.serve._print_usage", _interrupt)
    words = ["serve", "toshiba-xg5", "--capacity", "256MiB", "--unix", str(path)]
    assert app(words, standalone_mode=False) == 0
    assert not Path(f"{path}.control").exists()


@pytest.mark.parametrize("option", ["--unix", "--control"])
def test_only_the_socket_of_a_killed_server_is_replaced(
    option: str, refused: Refused, tmp_path: Path
) -> None:
    path, other = tmp_path / "given.sock", tmp_path / "other.sock"
    words = ["serve", "toshiba-xg5", "--capacity", "256MiB", option, path]
    if option == "--control":
        words += ["--unix", other]
    with socketlib.socket(socketlib.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        message = refused(*words)
        assert f"{option} {path} is the socket of a running server; give another path" in message
    free_socket(option, path)
    assert not path.exists()
    path.touch()
    with pytest.raises(UsageError, match="exists and is not a socket"):
        free_socket(option, path)
    assert path.exists()


def test_ctrl_c_right_after_the_start_stops_a_witness(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from ssdlab.cli.app import app

    monkeypatch.setattr("ssdlab.cli.witness.serve.print_line", _interrupt)
    words = ["witness", "serve", "--listen", "127.0.0.1:0", "--out", str(tmp_path), "--json"]
    assert app(words, standalone_mode=False) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == []


def test_late_replies_are_reported_while_the_twin_is_served_once_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [1000.0]
    monkeypatch.setattr(serve, "time", SimpleNamespace(monotonic=lambda: now[0]))
    lateness = Lateness({"paced_answers": 0.0, "late_answers": 0.0})
    said = []
    for after_s, answers, late in (
        *((10, 1000, 29), (20, 1050, 79)),  # few are late; few answers
        *((30, 2050, 1079), (40, 3050, 2079), (95, 4050, 2329)),
    ):
        now[0] = 1000.0 + after_s
        said.append(lateness.warning({"paced_answers": answers, "late_answers": late}))
    assert [line[:35] for line in said] == [
        *("", "", "late: 100% of the last 1000 replies", ""),
        "late: 25% of the last 1000 replies ",
    ]
