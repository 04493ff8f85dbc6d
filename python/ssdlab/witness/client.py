"""The client of the witness: sends messages in order, each exactly once.

Callers do not wait for the network: messages are queued, sent in batches, and kept until the server
has them on its disk. After a lost connection the client reconnects and resends what is missing.
"""

from __future__ import annotations

import socket
import threading
from collections import deque
from dataclasses import dataclass
from typing import Any, Final

from ssdlab.errors import UsageError
from ssdlab.witness.journal import Record, unpack
from ssdlab.witness.protocol import NUMBER, Frame, ProtocolError, Session, keep_alive

BATCH_MAX: Final = 4096
QUEUE_MAX: Final = 200_000
"""While more messages than this are queued, `send` blocks."""
RETRY_S: Final = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
CONNECT_TIMEOUT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Witness:
    """Address (host, port) and shared secret of a witness."""

    address: tuple[str, int]
    secret: bytes

    def connect(self) -> Session:
        """An authenticated session.

        Raises:
            ProtocolError, OSError: no witness answers, or it has another secret.
        """
        connection = socket.create_connection(self.address, timeout=CONNECT_TIMEOUT_S)
        keep_alive(connection)
        session = Session(connection)
        try:
            session.client_handshake(self.secret)
        except BaseException:
            session.close()
            raise
        return session

    def connect_first(self) -> Session:
        """As `connect`, with an error that suggests what to check.

        Raises:
            UsageError: the witness cannot be reached, or the secret is wrong.
        """
        host, port = self.address
        try:
            return self.connect()
        except OSError as error:
            raise UsageError(
                f"the witness {host}:{port} cannot be used ({error.strerror or error}); start "
                "`ssdlab witness serve` there, and give --secret the file that it made"
            ) from error

    def fetch(self, run: str | None, target: str | None) -> tuple[str, list[Record]]:
        """Name and journal of a run; without `run`, of the target's newest run.

        Raises:
            UsageError: the witness has no such run, or cannot be reached.
        """
        session = self.connect_first()
        try:
            answer = session.request(Frame.FETCH, {"run": run, "target": target}, Frame.WELCOME)
            data = bytearray()
            while part := session.expect(Frame.LOG):
                data += part
        except OSError as error:
            raise _lost_connection(error) from error
        finally:
            session.close()
        return answer["run"], [record for record, _ in unpack(bytes(data))]

    def record_event(self, run: str, event: dict[str, Any]) -> None:
        """Appends an event to the journal of a run.

        Raises:
            UsageError: the witness cannot be reached.
        """
        session = self.connect_first()
        try:
            session.request(Frame.BEGIN, {"run": run, "purpose": "verify"}, Frame.WELCOME)
            session.request(Frame.EVENT, event, Frame.NOTED)
        except OSError as error:
            raise _lost_connection(error) from error
        finally:
            session.close()


class MessageSender:
    """Sends the messages of a round to the witness from a background thread."""

    def __init__(self, witness: Witness, begin: dict[str, Any]) -> None:
        """Begins a round; `begin` has run, session, target, size, options and target state.

        Raises:
            UsageError: the witness cannot be reached or refuses.
        """
        self._witness, self._begin = witness, {"purpose": "write", "resumes": False, **begin}
        self._queue: deque[bytes] = deque()
        self._first = 0
        """The number of the first message in the queue."""
        self._changed = threading.Condition()
        self._closing = False
        self.failure: UsageError | None = None
        self.reconnects = -1
        session = witness.connect_first()
        try:
            self.round: int = self._begin_round(session)
        except OSError as error:
            session.close()
            raise _lost_connection(error) from error
        except UsageError:
            session.close()
            raise
        self._thread = threading.Thread(target=self._run, args=(session,), daemon=True)
        self._thread.start()

    def send(self, message: bytes) -> None:
        """Queues a message; blocks only if the queue is full.

        Raises:
            UsageError: the witness refused further messages.
        """
        with self._changed:
            while len(self._queue) >= QUEUE_MAX and self.failure is None:
                self._changed.wait()
            if self.failure is not None:
                raise self.failure
            self._queue.append(message)
            self._changed.notify_all()

    @property
    def queued(self) -> int:
        """Number of messages that the witness has not yet made durable."""
        return len(self._queue)

    def drain(self, timeout_s: float) -> bool:
        """Waits until the queue is empty or the witness refuses; False after the timeout."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not self._queue or self.failure is not None, timeout_s
            )

    def close(self) -> None:
        """Closes the connection; queued messages are dropped."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()

    def _run(self, first: Session) -> None:
        """Sends messages, and reconnects when the connection is lost, until closed or refused."""
        session: Session | None = first
        pause = iter(RETRY_S)
        while not self._is_closing():
            try:
                if session is None:
                    session = self._witness.connect()
                    self._begin["resumes"] = True
                    self._begin_round(session)
                    pause = iter(RETRY_S)
                self._send_batches(session)
            except UsageError as error:
                if session is not None:
                    session.close()
                with self._changed:
                    self.failure = error
                    self._changed.notify_all()
                return
            except OSError:
                if session is not None:
                    session.close()
                session = None
                with self._changed:
                    self._changed.wait_for(self._is_closing, next(pause, RETRY_S[-1]))

    def _is_closing(self) -> bool:
        return self._closing

    def _begin_round(self, session: Session) -> int:
        answer = session.request(Frame.BEGIN, self._begin, Frame.WELCOME)
        with self._changed:
            self._drop_durable(answer["received"])
            self.reconnects += 1
        return int(answer["round"])

    def _send_batches(self, session: Session) -> None:
        """Sends one batch at a time and waits for its acknowledgement; returns when closed."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closing or self._queue)
                if self._closing:
                    session.close()
                    return
                batch = [self._queue[at] for at in range(min(len(self._queue), BATCH_MAX))]
                number = self._first
            session.send(Frame.BATCH, NUMBER.pack(number) + b"".join(batch))
            (durable,) = NUMBER.unpack(session.expect(Frame.DURABLE))
            with self._changed:
                self._drop_durable(durable)

    def _drop_durable(self, durable: int) -> None:
        if not self._first <= durable <= self._first + len(self._queue):
            raise ProtocolError(
                f"the witness acknowledged message {durable}, which was not sent to it"
            )
        while self._first < durable:
            self._queue.popleft()
            self._first += 1
        self._changed.notify_all()


def _lost_connection(error: OSError) -> UsageError:
    return UsageError(f"the connection to the witness was lost ({error}); try again")
