"""Limits: clients cannot exhaust threads, file descriptors, memory or log of a server."""

from __future__ import annotations

import resource
import socket
import struct
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from nvme_host import FABRICS, Queue, connect_line
from rig import PATIENCE_S, Serve, Served, executable, wait_for

MIB = 1 << 20
GREETING = 18


class Client:
    """An NBD client; without `negotiates` it stops after the greeting.

    Raises:
        OSError: the server refused the connection.
    """

    def __init__(self, served: Served, *, negotiates: bool = True) -> None:
        with ExitStack() as undo:
            self.stream = undo.enter_context(socket.socket(socket.AF_UNIX))
            self.stream.settimeout(PATIENCE_S)
            self.stream.connect(str(served.socket))
            self.receive(GREETING)
            if negotiates:
                self.stream.sendall(struct.pack(">I8sII", 3, b"IHAVEOPT", 1, 0))
                self.receive(10)
            undo.pop_all()

    def receive(self, size: int) -> bytes:
        received = b""
        while len(received) < size:
            part = self.stream.recv(size - len(received))
            if not part:
                raise ConnectionError
            received += part
        return received

    def send(self, kind: int, length: int, data: bytes = b"") -> None:
        self.stream.sendall(struct.pack(">IHHQQI", 0x25609513, 0, kind, 1, 0, length) + data)

    def write_and_read(self) -> None:
        self.send(1, 4096, b"x" * 4096)
        assert self.receive(16)[4:8] == bytes(4)
        self.send(0, 4096)
        assert self.receive(16 + 4096)[16:] == b"x" * 4096


def is_served(served: Served) -> bool:
    try:
        client = Client(served)
    except OSError:
        return False
    with client.stream:
        client.write_and_read()
    return True


def status(served: Served, field: str) -> int:
    """A field of /proc/PID/status: a number of threads, or memory in KiB."""
    lines = Path(f"/proc/{served.process.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(f"{field}:")).split()[1])


def fill(served: Served, undo: ExitStack, most: int, *, negotiates: bool = True) -> int:
    """Connects until the server refuses, at most `most` times; returns the connections."""
    for count in range(most):
        try:
            client = Client(served, negotiates=negotiates)
        except OSError:
            return count
        undo.enter_context(client.stream)
    return most


def test_a_server_that_cannot_create_a_thread_refuses_clients_and_continues(serve: Serve) -> None:
    served = serve()
    limit = status(served, "VmSize") * 1024 + 96 * MIB
    resource.prlimit(served.process.pid, resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    with ExitStack() as undo:
        assert fill(served, undo, 400) < 400, "a thread needs 2 MiB of address space"
        assert served.count("refused_connections") >= 1, "the control socket answers"
        with served.control as control:
            assert control.request("power")["power"] == "on"
    wait_for(lambda: is_served(served), served.messages)
    messages = served.messages.read_text()
    assert "no thread for" in messages, "which of the two is said first is a race"
    assert "panicked" not in messages


def test_without_free_descriptors_the_control_socket_answers_and_the_listener_does_not_spin(
    serve: Serve,
) -> None:
    served = serve()
    process = served.process.pid
    highest = max(int(fd.name) for fd in Path(f"/proc/{process}/fd").iterdir())
    resource.prlimit(process, resource.RLIMIT_NOFILE, (highest + 20, highest + 20))
    with ExitStack() as undo:
        assert fill(served, undo, 100) < 100
        waiting = [socket.socket(socket.AF_UNIX) for _ in range(20)]
        for each in waiting:
            undo.enter_context(each).connect(str(served.socket))
        for _ in range(3):
            assert served.count("refused_connections") >= 1
        before = cpu_s(process)
        time.sleep(1.0)
        assert cpu_s(process) - before < 0.5, "the listener spins"
    wait_for(lambda: is_served(served), served.messages)
    lines = [line for line in served.messages.read_text().splitlines() if "refused" in line]
    assert 1 <= len(lines) <= 3, lines


def cpu_s(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def test_announced_payloads_take_little_memory_and_other_clients_are_served(serve: Serve) -> None:
    served = serve("--max-connections", "1200")
    with ExitStack() as undo:
        fill(served, undo, 1000)
        for length in (64 * MIB, 32 * MIB):
            for _ in range(50):
                client = Client(served)
                undo.enter_context(client.stream)
                client.send(1, length)
        assert is_served(served)
        assert status(served, "VmRSS") < 512 * 1024
        assert status(served, "Threads") > 1100


def test_a_client_that_does_not_finish_the_handshake_is_disconnected(serve: Serve) -> None:
    served = serve("--handshake-timeout", "200ms", "--max-connections", "8")
    with ExitStack() as undo:
        resting = Client(served)
        undo.enter_context(resting.stream)
        silent = [Client(served, negotiates=False) for _ in range(7)]
        for each in silent:
            undo.enter_context(each.stream)
        assert is_served(served), "a silent client gives way to a new one"
        for each in silent:
            assert not each.stream.recv(1)
        resting.write_and_read()


def test_failed_authentications_are_counted_and_logged_at_a_limited_rate(
    serve: Serve, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("DHHC-1:00:ICUqLzQ5PkNITVJXXGFma3B1en+EiY6TmJ2ip6yxtrsWjykY:")
    served = serve("--nvme-tcp", "127.0.0.1:0", "--dhchap-secret", str(secret))
    address, name = connect_line(served)
    for _ in range(20):
        queue = Queue(address, name, 0, 0xFFFF)
        with queue.stream:
            words = {1: 5, 10: 0xE9010100, 11: 4}
            assert queue.submit(FABRICS, words, sent=bytes(4)).code == 0
            with pytest.raises((OSError, AssertionError, struct.error, IndexError)):
                queue.submit(FABRICS, words, sent=bytes(4))
    assert served.count("failed_authentications") == 20
    lines = [line for line in served.messages.read_text().splitlines() if "authenticate" in line]
    assert 1 <= len(lines) <= 3, lines
    assert lines[0].startswith("ssdlab serve: 127.0.0.1:")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--max-connections", "5000"], "--max-connections is 5000; this process may open 256"),
        (["--payload-memory", "1KiB"], "--payload-memory is 1KiB; it must be 1MiB to 1TiB"),
        (["--handshake-timeout", "0s"], "--handshake-timeout is 0s; it must be 10ms to 24h"),
    ],
)
def test_a_limit_out_of_range_is_refused(tmp_path: Path, words: list[str], message: str) -> None:
    command = [executable(), "serve", "toshiba-xg5", "--unix", str(tmp_path / "socket")]
    done = subprocess.run(
        ["prlimit", "--nofile=256:256", *command, "--capacity", "256MiB", *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
