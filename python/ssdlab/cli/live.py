"""What live views share: curves, samples, Prometheus metrics, a server for this machine."""

from __future__ import annotations

import http.server
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Generic, TypeVar

import msgspec
import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from ssdlab.cli.output import write_out
from ssdlab.errors import UsageError
from ssdlab.stats.rates import Totals
from ssdlab.units import format_size

BARS: Final = " ▁▂▃▄▅▆▇█"
CURVE_SAMPLES: Final = 60
"""Maximum number of samples in a curve; a narrow terminal has room for fewer."""
_BESIDES_CURVE: Final = 62
"""Columns that the table needs apart from its curves."""
NAMES: Final = {"read": "reads", "write": "writes", "trim": "trims", "flush": "flushes"}
METRICS_PATH: Final = "/metrics"
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
S = TypeVar("S", bound=msgspec.Struct)


@dataclass(frozen=True)
class View(Generic[S]):
    """How a sample is shown: as one line, and the last ones as a table."""

    line: Callable[[S], str]
    table: Callable[[list[S]], Table]


Every = Annotated[float, typer.Option(min=0.05, help="Seconds between two samples.")]
Once = Annotated[bool, typer.Option("--once", help="Print one sample and exit.")]
JsonLines = Annotated[bool, typer.Option("--json", help="One JSON object per sample.")]
Prometheus = Annotated[
    bool, typer.Option("--prometheus", help="Print the metrics once, in Prometheus' text format.")
]
Listen = Annotated[
    str | None,
    typer.Option(
        metavar="127.0.0.1:PORT",
        help="Answer Prometheus at http://127.0.0.1:PORT/metrics until Ctrl-C; port 0: a free one.",
    ),
]


@dataclass(frozen=True)
class LiveOptions:
    """How often samples are taken, and how they are given out."""

    every: float = 1.0
    once: bool = False
    json: bool = False
    prometheus: bool = False
    listen: str | None = None


def run(
    take: Callable[[], S], view: View[S], page: Callable[[], str], options: LiveOptions
) -> None:
    """Shows samples until Ctrl-C, as the options say; `page` is the Prometheus page of one.

    Raises:
        UsageError: options that exclude each other.
        SsdlabError: what `take` or `page` raised.
    """
    if options.json and (options.prometheus or options.listen):
        raise UsageError("--json and --prometheus exclude each other; leave one out")
    try:
        if options.listen is not None:
            serve_metrics(options.listen, page)
        elif options.prometheus:
            time.sleep(options.every)
            write_out(page())
        else:
            _show(_samples(take, options), view, options)
    except KeyboardInterrupt:
        return


def _samples(take: Callable[[], S], options: LiveOptions) -> Iterator[S]:
    while True:
        time.sleep(options.every)
        yield take()
        if options.once:
            return


def _show(found: Iterator[S], view: View[S], options: LiveOptions) -> None:
    """Prints samples as JSON lines, as lines (in a pipe), or as a table that is drawn again."""
    console = Console()
    if options.json:
        for sample in found:
            write_out(msgspec.json.encode(sample).decode() + "\n")
    elif options.once or not console.is_terminal:
        for sample in found:
            write_out(view.line(sample) + "\n")
    else:
        latest: list[S] = []
        most = max(8, min(CURVE_SAMPLES, console.width - _BESIDES_CURVE))
        with Live(console=console, auto_refresh=False) as live:
            for sample in found:
                latest = [*latest[1 - most :], sample]
                live.update(view.table(latest), refresh=True)


def add_rates(table: Table, samples: Sequence[Any]) -> None:
    """Adds the columns of a table of samples, and the rows of requests per second."""
    for column in ("", "now", _last(len(samples))):
        table.add_column(column, justify="right" if column == "now" else "left")
    for name, plural in NAMES.items():
        rates = [getattr(sample, name).rate for sample in samples]
        table.add_row(f"{plural}/s", f"{rates[-1]:,.0f}", curve(rates))


def _last(count: int) -> str:
    return "the last sample" if count == 1 else f"the last {count} samples"


def format_rate(value: float) -> str:
    """Bytes per second as a size."""
    return format_size(round(value))


def _format_number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def curve(values: Sequence[Any], text: Callable[[float], str] = _format_number) -> str:
    """Values as bars, scaled to the largest, and their range as `text`; a space for None."""
    known = [value for value in values if value is not None]
    largest = max(known, default=0)
    steps, scale = len(BARS) - 1, largest or 1
    bars = (BARS[0 if value is None else round(value / scale * steps)] for value in values)
    if not largest:
        return "".join(bars)
    shown = [text(value) for value in (min(known), largest)]
    return f"{''.join(bars)} {' to '.join(dict.fromkeys(shown))}"


def format_us(value: float | None) -> str:
    """A latency in us."""
    return "-" if value is None else f"{value:,.0f} us"


def format_factor(value: float | None) -> str:
    """A write amplification."""
    return "-" if value is None else f"{value:.2f}"


@dataclass(frozen=True)
class Metric:
    """A metric with its samples: labels and value. `kind` is counter, gauge or histogram."""

    name: str
    kind: str
    help: str
    values: list[tuple[str, Mapping[str, str], float]] = field(default_factory=list)
    """Suffix of the name (for a histogram), labels, value."""


def gauge(name: str, text: str, value: float | None, labels: Mapping[str, str]) -> list[Metric]:
    """A gauge; [] if its value is not known."""
    return [] if value is None else [Metric(name, "gauge", text, [("", labels, value)])]


def counter(name: str, text: str, value: float | None, labels: Mapping[str, str]) -> list[Metric]:
    """A counter; [] if its value is not known."""
    return [] if value is None else [Metric(name, "counter", text, [("", labels, value)])]


def request_metrics(totals: Mapping[str, Totals], labels: Mapping[str, str]) -> list[Metric]:
    """Counters of requests, bytes and latencies by operation, and a histogram of latencies."""
    requests = Metric("ssdlab_requests_total", "counter", "Requests completed.")
    moved = Metric("ssdlab_bytes_total", "counter", "Bytes of completed requests.")
    latency = Metric("ssdlab_request_seconds_total", "counter", "Sum of the latencies of requests.")
    bins = Metric("ssdlab_request_latency_seconds", "histogram", "Latencies of single requests.")
    for op, total in totals.items():
        own = {**labels, "op": op}
        requests.values.append(("", own, total.requests))
        moved.values.append(("", own, total.bytes))
        latency.values.append(("", own, total.busy_us / 1e6))
        if total.bins:
            bins.values.extend(_buckets(total, own))
    return [requests, moved, latency, *([bins] if bins.values else [])]


def _buckets(
    total: Totals, labels: Mapping[str, str]
) -> Iterator[tuple[str, Mapping[str, str], float]]:
    below = 0
    for upper, count in total.bins:
        below += count
        yield "_bucket", {**labels, "le": f"{upper / 1e6:.9g}"}, below
    yield "_bucket", {**labels, "le": "+Inf"}, below
    yield "_sum", labels, total.binned_us / 1e6
    yield "_count", labels, below


def exposition(metrics: Iterable[Metric]) -> str:
    """Metrics in Prometheus' text format (version 0.0.4)."""
    lines = []
    for metric in metrics:
        lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}"]
        for suffix, labels, value in metric.values:
            words = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
            lines.append(f"{metric.name}{suffix}{{{words}}} {value:.15g}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def serve_metrics(listen: str, page: Callable[[], str]) -> None:
    """Answers each GET of /metrics with `page()`, until Ctrl-C.

    Raises:
        UsageError: `listen` is not a local HOST:PORT, or is in use.
        SsdlabError: what `page` raised.
    """
    one_at_a_time = threading.Lock()  # a page is a reading of the drive

    def content_of(path: str) -> Content | None:
        if path.partition("?")[0] != METRICS_PATH:
            return None
        with one_at_a_time:
            return Content("text/plain; version=0.0.4; charset=utf-8", page().encode())

    server = LocalServer(listen, content_of)
    write_out(f"{server.url}{METRICS_PATH[1:]}\n")
    server.run()


@dataclass(frozen=True)
class Content:
    """What a path has: a media type, the bytes, and further headers."""

    media_type: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


class LocalServer(http.server.ThreadingHTTPServer):
    """Answers each GET with `content_of(path with query)`; None is 404.

    An exception of `content_of` ends the server; `failure` then has it. A request whose header Host
    is another name than this machine's loopback is refused: a page of another site, whose name was
    made to resolve to 127.0.0.1 (DNS rebinding), must not read the answers.

    Raises:
        UsageError: `listen` is not a local HOST:PORT, or is in use.
    """

    daemon_threads = True

    def __init__(self, listen: str, content_of: Callable[[str], Content | None]) -> None:
        host, _, port = listen.rpartition(":")
        if not port.isdecimal() or int(port) > 65535 or host not in _LOOPBACK:
            raise UsageError(
                f"--listen is {listen}; it must be 127.0.0.1:PORT: only this machine may "
                "connect, because there is no password"
            )
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host.strip("[]"), int(port)), _Handler)
        except OSError as error:
            raise UsageError(f"--listen {listen}: {error.strerror}; give a free port") from error
        self.url = f"http://{host}:{self.server_port}/"
        self.content_of = content_of
        self.failure: Exception | None = None

    def run(self) -> None:
        """Answers until Ctrl-C.

        Raises:
            SsdlabError: what `content_of` raised.
        """
        with self:
            self.serve_forever(poll_interval=0.1)
        if self.failure is not None:
            raise self.failure

    def handle_error(self, request: object, client_address: object) -> None:
        """Prints nothing if a client has left."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(http.server.BaseHTTPRequestHandler):
    server: LocalServer
    timeout = 10.0

    def do_GET(self) -> None:
        """Answers with the content of the path, 403 for another host's name, or 404."""
        if re.sub(r":\d*$", "", self.headers.get("Host", "")) not in _LOOPBACK:
            self.send_error(403, "the header Host must be 127.0.0.1:PORT")
            return
        try:
            content = self.server.content_of(self.path)
        except Exception as error:  # noqa: BLE001 -- it ends the server and is raised there
            self.server.failure = error
            self.send_error(500)
            threading.Thread(target=self.server.shutdown, daemon=True).start()
            return
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", content.media_type)
        self.send_header("Content-Length", str(len(content.body)))
        for name, value in content.headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content.body)

    def log_message(self, *_: object) -> None:
        """Prints nothing: standard error is the user's."""
