"""Client of a served twin's control socket: counters, power, faults."""

from __future__ import annotations

import re
import socket
import time
from pathlib import Path
from typing import Any, Final, Literal, Self

import msgspec

from ssdlab.errors import TargetError, UsageError
from ssdlab.stats.rates import Rates, Totals, rates_between

ANSWER_TIMEOUT_S: Final = 60.0
GREETING_TIMEOUT_S: Final = 5.0
KINDS: Final = ("read", "write", "trim", "flush")
_NBD_GREETING: Final = b"NBDMAGIC"


class CutResult(msgspec.Struct, frozen=True):
    """Counts of a power cut: mapping units that lost writes, lost writes, unanswered requests."""

    lost_units: int
    lost_writes: int
    unanswered: int


class Power(msgspec.Struct, frozen=True):
    """State of a drive's power: the number of cuts, the planned cut, the effect of the last cut."""

    power: Literal["on", "off"]
    cuts: int
    planned: dict[str, Any] | None = None
    last: CutResult | None = None


class Control:
    """A connection to the control socket of a server; `SOCKET.control` is used if it exists.

    Raises:
        UsageError: no server listens there; in any method: the server refused the request, or the
            socket is another one.
        TargetError: in any method: the server has ended.
    """

    def __init__(self, path: str | Path) -> None:
        usual = Path(f"{path}.control")
        self.path = str(usual if usual.exists() else path)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(ANSWER_TIMEOUT_S)
        try:
            self._socket.connect(self.path)
        except OSError as error:
            self._socket.close()
            raise UsageError(
                f"no server listens on {path} ({error.strerror}); give the control socket of a "
                "running `ssdlab serve`, by default SOCKET.control"
            ) from error
        self._answers = self._socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection; the server continues."""
        self._answers.close()
        self._socket.close()

    def request(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Sends a request of docs/serve.md, without arguments that are None; returns the answer."""
        body = {"do": do} | {key: value for key, value in arguments.items() if value is not None}
        try:
            self._socket.sendall(msgspec.json.encode(body) + b"\n")
            line = self._answers.readline()
        except OSError as error:
            if _is_drive(self.path):
                raise self._not_a_control_socket() from error
            reason = error.strerror or error
            raise TargetError(f"{self.path}: the server has ended ({reason})") from error
        if not line:
            raise TargetError(f"{self.path}: the server has ended")
        try:
            answer = msgspec.json.decode(line, type=dict[str, Any])
        except msgspec.MsgspecError as error:
            raise self._not_a_control_socket() from error
        if "error" in answer:
            raise UsageError(f"{self.path}: {do}: {_plain_error(str(answer['error']))}")
        return answer

    def _not_a_control_socket(self) -> UsageError:
        own = "the drive's own socket" if _is_drive(self.path) else "not a control socket of ssdlab"
        return UsageError(
            f"{self.path} is {own}; give the control socket of `ssdlab serve`: SOCKET.control, or "
            "the one of --control"
        )

    def counters(self) -> dict[str, float | None]:
        """Counters of the drive and its server, by name; None if not known yet."""
        return self.request("counters")

    def inside(self) -> dict[str, Any]:
        """The twin's dimensions, superblocks, dies and all its counters: see docs/serve.md."""
        return self.request("inside")

    def power(self) -> Power:
        """State of the drive's power."""
        return msgspec.convert(self.request("power"), Power)

    def power_cut(self, *, on: bool = False) -> CutResult:
        """Cuts the power now, for all clients; `on` turns it on again at once."""
        return msgspec.convert(self.request("power-cut", on=on)["cut"], CutResult)

    def plan_cut(
        self,
        *,
        after_writes: int | None = None,
        after_s: float | None = None,
        random: tuple[int, int] | None = None,
        on: bool = False,
    ) -> dict[str, Any]:
        """Plans a cut and returns the plan; exactly one argument says when to cut.

        `after_writes`: in the middle of this write (1 is the next). `after_s`: after this time.
        `random`: (seed, writes), at a random point of one of the next `writes` writes.
        """
        draw = None if random is None else {"seed": random[0], "writes": random[1]}
        planned = self.request(
            "power-cut", after_writes=after_writes, after_s=after_s, random=draw, on=on
        )["planned"]
        assert isinstance(planned, dict)
        return planned

    def wait_for_cut(self, cuts: int, *, timeout_s: float = 60.0) -> Power:
        """Waits until the drive has counted `cuts` power cuts.

        Raises:
            TargetError: the timeout passed first.
        """
        end = time.monotonic() + timeout_s
        while (power := self.power()).cuts < cuts:
            if time.monotonic() > end:
                raise TargetError(f"{self.path}: no power cut within {timeout_s:g} s")
            time.sleep(0.002)
        return power

    def power_on(self) -> Power:
        """Turns the power on; clients can connect again."""
        return msgspec.convert(self.request("power-on"), Power)


def _is_drive(path: str) -> bool:
    """Whether a server of NBD listens there: it greets first."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(GREETING_TIMEOUT_S)
        try:
            probe.connect(path)
            return probe.recv(len(_NBD_GREETING), socket.MSG_WAITALL) == _NBD_GREETING
        except OSError:
            return False


class Sample(msgspec.Struct, frozen=True):
    """Activity of a drive since the previous sample, over `seconds` of wall-clock time.

    `waf` is the write amplification since the previous sample, `waf_ever` since the drive was new;
    None without host writes. `late_share` is the share of paced answers that left more than 20 us
    late; None without a pace. `counters` has all counters. Latencies are by the drive's clock, and
    percentiles at most a quarter too high.
    """

    seconds: float
    power: str
    clients: int
    in_flight: int
    virtual_s: float
    waf: float | None
    waf_ever: float | None
    read: Rates
    write: Rates
    trim: Rates
    flush: Rates
    counters: dict[str, float | None]
    late_share: float | None = None


class Watcher:
    """Takes samples of a served twin."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._previous = _Reading(control)

    @property
    def totals(self) -> dict[str, Totals]:
        """The totals at the last sample, by kind of request."""
        return self._previous.totals

    def sample(self) -> Sample:
        """Activity since the previous sample, or since the watcher was created."""
        before, now = self._previous, _Reading(self._control)
        self._previous = now
        seconds = max(now.at_s - before.at_s, 1e-9)
        rates = {
            kind: rates_between(before.totals[kind], now.totals[kind], seconds) for kind in KINDS
        }
        return Sample(
            seconds=seconds,
            power=self._control.power().power,
            clients=int(now.counters["clients"] or 0),
            in_flight=now.meter["in_flight"],
            virtual_s=now.counters["virtual_s"] or 0.0,
            waf=_waf(before.counters, now.counters),
            waf_ever=now.counters["waf"],
            counters=now.counters,
            late_share=_late_share(before.counters, now.counters),
            **rates,
        )


class _Reading:
    """A drive's counters and meter readings, and the monotonic time at which they were read."""

    def __init__(self, control: Control) -> None:
        self.at_s = time.monotonic()
        self.counters = control.counters()
        self.meter = control.request("meter")
        self.totals = {kind: _totals(self.meter[kind]) for kind in KINDS}


def _totals(meter: dict[str, Any]) -> Totals:
    bins = tuple((upper, count) for upper, count in meter["histogram_us"])
    return Totals(
        requests=meter["commands"],
        bytes=meter["bytes"],
        busy_us=meter["latency_us"],
        failed=meter["failed"],
        bins=bins,
        binned_us=meter["latency_us"],
    )


def _late_share(before: dict[str, float | None], now: dict[str, float | None]) -> float | None:
    late, paced = (
        (now.get(name) or 0.0) - (before.get(name) or 0.0)
        for name in ("late_answers", "paced_answers")
    )
    return late / paced if paced > 0 else None


def _waf(before: dict[str, float | None], now: dict[str, float | None]) -> float | None:
    host = (now["host_write_bytes"] or 0) - (before["host_write_bytes"] or 0)
    return (_flash_bytes(now) - _flash_bytes(before)) / host if host > 0 else None


def _flash_bytes(counters: dict[str, float | None]) -> float:
    return (counters["waf"] or 0) * (counters["host_write_bytes"] or 0)


def _plain_error(error: str) -> str:
    """The server's error without the words of its JSON parser."""
    return re.sub(r" at line \d+ column \d+$", "", error).replace("unknown variant", "no request")
