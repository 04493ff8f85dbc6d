"""Client and server: authenticated, durable before acknowledged, no message lost or duplicated."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ssdlab.errors import UsageError
from ssdlab.witness.client import MessageSender, Witness
from ssdlab.witness.journal import Batch, ledger_of, read
from ssdlab.witness.ledger import decode_messages, flushed, issued
from ssdlab.witness.limits import SUFFIX
from ssdlab.witness.protocol import NUMBER, Frame, ProtocolError, Session
from ssdlab.witness.server import CutTrigger, Server
from ssdlab.witness.stamps import Request

SECRET = b"a secret of both sides"
RUN = "0" * 31 + "1"
PATIENCE_S = 60
OWN = f"127.{0x80 | os.getpid() >> 16 & 0x3F}.{os.getpid() >> 8 & 0xFF}.{os.getpid() & 0xFF}"
"""A loopback address used by this process only: no other program takes a port of it."""


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
    return [int(row["sequence"]) for each in batches for row in decode_messages(each.messages)]


class Proxy:
    """Forwards between client and server; breaks each connection after `bytes_max` bytes."""

    def __init__(self, to: tuple[str, int], bytes_max: int) -> None:
        self._to, self._bytes_max = to, bytes_max
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = self._listener.getsockname()
        self.breaks = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Stops to accept connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._to)
                for pair in ((near, far, self._bytes_max), (far, near, 1 << 60)):
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


def test_messages_arrive_in_order_and_once_over_a_connection_that_keeps_breaking(
    server: Server, tmp_path: Path
) -> None:
    proxy = Proxy(server.address, 3000)
    sender = MessageSender(Witness(proxy.address, SECRET), begin("a"))
    for number in range(1, 501):
        sender.send(message(number))
        if number % 50 == 0:
            assert sender.drain(PATIENCE_S)
    sender.close()
    proxy.close()
    assert proxy.breaks >= 3
    assert sender.reconnects >= 3
    assert sequences(tmp_path / f"{RUN}{SUFFIX}") == list(range(1, 501))


def test_messages_survive_a_restart_of_the_server(tmp_path: Path) -> None:
    first = Server(tmp_path, SECRET, (OWN, 0))
    sender = MessageSender(Witness(first.address, SECRET), begin("a"))
    sender.send(message(1))
    assert sender.drain(PATIENCE_S)
    first.stop()
    sender.send(message(2))
    second = Server(tmp_path, SECRET, first.address)
    assert sender.drain(PATIENCE_S)
    sender.close()
    second.stop()
    assert sequences(tmp_path / f"{RUN}{SUFFIX}") == [1, 2]
    assert sender.round == 1


def test_a_client_with_another_secret_is_refused(server: Server) -> None:
    with pytest.raises(UsageError, match="cannot be used"):
        Witness(server.address, b"another secret, as long").connect_first()


def test_a_changed_replayed_or_dropped_frame_is_refused() -> None:
    left, right = socket.socketpair()
    client, server = Session(left), Session(right)
    thread = threading.Thread(target=server.server_handshake, args=(SECRET,))
    thread.start()
    client.client_handshake(SECRET)
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


def test_a_skipped_or_repeated_message_is_refused(server: Server, tmp_path: Path) -> None:
    for number in (1, 0, 0):
        session = Witness(server.address, SECRET).connect_first()
        session.request(
            Frame.BEGIN, {**begin("a"), "purpose": "write", "resumes": False}, Frame.WELCOME
        )
        session.send(Frame.BATCH, NUMBER.pack(number) + message(5))
        with contextlib.suppress(ProtocolError):
            session.expect(Frame.DURABLE)
        session.close()
    assert sequences(tmp_path / f"{RUN}{SUFFIX}") == [5]


def test_a_second_writer_begins_a_new_round_and_ends_the_first(
    server: Server, tmp_path: Path
) -> None:
    witness = Witness(server.address, SECRET)
    first = MessageSender(witness, begin("a"))
    second = MessageSender(witness, begin("b"))
    assert (first.round, second.round) == (1, 2)
    first.send(message(9))
    first.drain(PATIENCE_S)
    second.send(message(1))
    assert second.drain(PATIENCE_S)
    assert first.failure is not None
    with pytest.raises(UsageError, match="another writer"):
        first.send(message(10))
    first.close()
    second.close()
    assert sequences(tmp_path / f"{RUN}{SUFFIX}") == [1]


def test_a_run_that_lost_data_is_closed_for_new_rounds(server: Server) -> None:
    witness = Witness(server.address, SECRET)
    sender = MessageSender(witness, begin("a"))
    sender.close()
    witness.record_event(RUN, {"event": "verified", "judgement": {"kinds": {"stale": 1}}})
    with pytest.raises(UsageError, match="begin a new run"):
        MessageSender(witness, begin("b"))


def test_a_record_left_incomplete_by_a_crash_is_truncated_and_sent_again(tmp_path: Path) -> None:
    server = Server(tmp_path, SECRET, ("127.0.0.1", 0))
    sender = MessageSender(Witness(server.address, SECRET), begin("a"))
    for number in (1, 2, 3):
        sender.send(message(number))
        assert sender.drain(PATIENCE_S)
    server.stop()
    path = tmp_path / f"{RUN}{SUFFIX}"
    os.truncate(path, path.stat().st_size - 5)
    assert sequences(path) == [1, 2]
    again = Server(tmp_path, SECRET, ("127.0.0.1", 0))
    witness = Witness(again.address, SECRET)
    session = witness.connect_first()
    request = {**begin("a"), "purpose": "write", "resumes": True}
    assert session.request(Frame.BEGIN, request, Frame.WELCOME)["received"] == 2
    session.close()
    again.stop()
    sender.close()


def test_without_a_name_the_newest_run_of_a_target_is_fetched(server: Server) -> None:
    witness = Witness(server.address, SECRET)
    for run in ("1" * 32, "2" * 32):
        sender = MessageSender(witness, begin("a", run))
        sender.send(message(1))
        assert sender.drain(PATIENCE_S)
        sender.close()
    name, records = witness.fetch(None, "/dev/drive")
    assert name == "2" * 32
    assert len(ledger_of(records)) == 1
    with pytest.raises(UsageError, match="no run of"):
        witness.fetch(None, "/dev/other")


def test_the_cut_is_triggered_once_a_round_after_n_flushes(server: Server) -> None:
    cuts: list[int] = []
    server.cut_trigger = CutTrigger(lambda: 3, lambda: cuts.append(1))
    for session in ("a", "b"):
        sender = MessageSender(Witness(server.address, SECRET), begin(session))
        for number in range(1, 7):
            sender.send(flushed(1, number))
            assert sender.drain(PATIENCE_S)
        sender.close()
    assert len(cuts) == 2


def test_writers_do_not_wait_for_an_unreachable_witness(tmp_path: Path) -> None:
    server = Server(tmp_path, SECRET, ("127.0.0.1", 0))
    sender = MessageSender(Witness(server.address, SECRET), begin("a"))
    server.stop()
    for number in range(1, 1001):
        sender.send(message(number))
    assert sender.queued >= 1
    assert not sender.drain(0.0)
    sender.close()
