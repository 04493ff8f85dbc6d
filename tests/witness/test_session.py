"""Client and server: proven to each other, durable before it is said, and none lost or twice."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ssdlab.errors import UsageError
from ssdlab.witness.client import Link, Witness
from ssdlab.witness.journal import SUFFIX, Batch, ledger_of, read
from ssdlab.witness.ledger import entries, flushed, issued
from ssdlab.witness.protocol import NUMBER, Frame, ProtocolError, Session
from ssdlab.witness.server import Server, Watch
from ssdlab.witness.stamps import Request

SECRET = b"a secret of both sides"
RUN = "0" * 31 + "1"
PATIENCE_S = 600
OWN = f"127.{0x80 | os.getpid() >> 16 & 0x3F}.{os.getpid() >> 8 & 0xFF}.{os.getpid() & 0xFF}"
"""An address of this machine that no other program uses: none takes a port there meanwhile."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server on a free port."""
    running = Server(tmp_path, SECRET, ("127.0.0.1", 0))
    yield running
    running.stop()


def begin(session: str, run: str = RUN) -> dict[str, str]:
    return {"run": run, "session": session, "target": "/dev/drive"}


def message(number: int) -> bytes:
    return issued(Request(number, 1, number, number, 1))


def sequences(path: Path) -> list[int]:
    batches = [each for each in read(path) if isinstance(each, Batch)]
    return [int(row["sequence"]) for each in batches for row in entries(each.messages)]


class Proxy:
    """Stands between client and server; `break_off` ends all connections after so many bytes."""

    def __init__(self, to: tuple[str, int], bytes_each: int) -> None:
        self._to, self._each = to, bytes_each
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = self._listener.getsockname()
        self.breaks = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Takes no more connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._to)
                for pair in ((near, far, self._each), (far, near, 1 << 60)):
                    threading.Thread(target=self._pump, args=pair, daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, budget: int) -> None:
        with contextlib.suppress(OSError):
            while budget > 0 and (data := source.recv(min(4096, budget))):
                sink.sendall(data)
                budget -= len(data)
        self.breaks += budget <= 0
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


def test_messages_arrive_in_order_and_once_over_a_connection_that_breaks_again_and_again(
    server: Server, tmp_path: Path
) -> None:
    proxy = Proxy(server.address, 3000)
    link = Link(Witness(proxy.address, SECRET), begin("a"))
    for number in range(1, 501):
        link.tell(message(number))
        if number % 50 == 0:
            assert link.drain(PATIENCE_S)
    link.close()
    proxy.close()
    assert proxy.breaks >= 3
    assert link.reconnects >= 3
    assert sequences(tmp_path / f"{RUN}{SUFFIX}") == list(range(1, 501))


def test_messages_survive_a_server_that_ends_and_comes_back(tmp_path: Path) -> None:
    first = Server(tmp_path, SECRET, (OWN, 0))
    link = Link(Witness(first.address, SECRET), begin("a"))
    link.tell(message(1))
    assert link.drain(PATIENCE_S)
    first.stop()
    link.tell(message(2))
    second = Server(tmp_path, SECRET, first.address)
    assert link.drain(PATIENCE_S)
    link.close()
    second.stop()
    assert sequences(tmp_path / f"{RUN}{SUFFIX}") == [1, 2]
    assert link.round == 1


def test_a_stranger_is_turned_away_and_so_is_a_false_server(server: Server) -> None:
    with pytest.raises(UsageError, match="cannot be used"):
        Witness(server.address, b"another secret, as long").reach()


def test_a_frame_that_was_changed_repeated_or_left_out_is_refused() -> None:
    left, right = socket.socketpair()
    client, server = Session(left), Session(right)
    thread = threading.Thread(target=server.admit, args=(SECRET,))
    thread.start()
    client.greet(SECRET)
    thread.join()
    client.send(Frame.EVENT, b"{}")
    assert server.receive() == (Frame.EVENT, b"{}")
    sent = bytearray()
    tap_left, tap_right = socket.socketpair()
    client._socket = tap_left
    client.send(Frame.EVENT, b"1")
    client.send(Frame.EVENT, b"2")
    sent += tap_right.recv(1 << 16)
    half = len(sent) // 2
    for forged in (sent[half:], bytes([*sent[:5], sent[5] ^ 1, *sent[6:half]])):
        number = server._received
        left.sendall(forged)
        with pytest.raises(ProtocolError, match="signature"):
            server.receive()
        server._received = number
    for end in (left, right, tap_left, tap_right):
        end.close()


def test_a_message_that_was_skipped_or_comes_again_is_refused(
    server: Server, tmp_path: Path
) -> None:
    for number in (1, 0, 0):
        session = Witness(server.address, SECRET).reach()
        session.ask(
            Frame.BEGIN, {**begin("a"), "purpose": "write", "resumes": False}, Frame.WELCOME
        )
        session.send(Frame.BATCH, NUMBER.pack(number) + message(5))
        with contextlib.suppress(ProtocolError):
            session.expect(Frame.DURABLE)
        session.close()
    assert sequences(tmp_path / f"{RUN}{SUFFIX}") == [5]


def test_a_second_writer_begins_a_new_round_and_the_first_cannot_go_on(
    server: Server, tmp_path: Path
) -> None:
    witness = Witness(server.address, SECRET)
    first = Link(witness, begin("a"))
    second = Link(witness, begin("b"))
    assert (first.round, second.round) == (1, 2)
    first.tell(message(9))
    first.drain(PATIENCE_S)
    second.tell(message(1))
    assert second.drain(PATIENCE_S)
    assert first.failure is not None
    with pytest.raises(UsageError, match="another writer"):
        first.tell(message(10))
    first.close()
    second.close()
    assert sequences(tmp_path / f"{RUN}{SUFFIX}") == [1]


def test_a_run_that_has_lost_data_takes_no_more_rounds(server: Server) -> None:
    witness = Witness(server.address, SECRET)
    link = Link(witness, begin("a"))
    link.close()
    witness.note(RUN, {"event": "verified", "judgement": {"kinds": {"stale": 1}}})
    with pytest.raises(UsageError, match="begin a new run"):
        Link(witness, begin("b"))


def test_what_a_crash_of_the_witness_cut_short_is_cut_off_and_told_again(tmp_path: Path) -> None:
    server = Server(tmp_path, SECRET, ("127.0.0.1", 0))
    link = Link(Witness(server.address, SECRET), begin("a"))
    for number in (1, 2, 3):
        link.tell(message(number))
        assert link.drain(PATIENCE_S)
    server.stop()
    path = tmp_path / f"{RUN}{SUFFIX}"
    os.truncate(path, path.stat().st_size - 5)
    assert sequences(path) == [1, 2]
    again = Server(tmp_path, SECRET, ("127.0.0.1", 0))
    witness = Witness(again.address, SECRET)
    session = witness.reach()
    asked = {**begin("a"), "purpose": "write", "resumes": True}
    assert session.ask(Frame.BEGIN, asked, Frame.WELCOME)["received"] == 2
    session.close()
    again.stop()
    link.close()


def test_the_newest_run_of_a_target_is_found_by_the_target(server: Server) -> None:
    witness = Witness(server.address, SECRET)
    for run in ("1" * 32, "2" * 32):
        link = Link(witness, begin("a", run))
        link.tell(message(1))
        assert link.drain(PATIENCE_S)
        link.close()
    name, records = witness.records(None, "/dev/drive")
    assert name == "2" * 32
    assert len(ledger_of(records)) == 1
    with pytest.raises(UsageError, match="no run of"):
        witness.records(None, "/dev/other")


def test_the_cut_is_called_once_a_round_after_so_many_flushes(server: Server) -> None:
    cuts: list[int] = []
    server.watch = Watch(lambda: 3, lambda: cuts.append(1))
    for session in ("a", "b"):
        link = Link(Witness(server.address, SECRET), begin(session))
        for number in range(1, 7):
            link.tell(flushed(1, number))
            assert link.drain(PATIENCE_S)
        link.close()
    assert len(cuts) == 2


def test_writers_do_not_wait_for_a_witness_that_is_away(tmp_path: Path) -> None:
    server = Server(tmp_path, SECRET, ("127.0.0.1", 0))
    link = Link(Witness(server.address, SECRET), begin("a"))
    server.stop()
    for number in range(1, 1001):
        link.tell(message(number))
    assert link.waiting >= 1
    assert not link.drain(0.0)
    link.close()
