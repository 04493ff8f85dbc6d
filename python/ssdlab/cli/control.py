"""`ssdlab control` sends a request to a served twin; `ssdlab watch` shows its rates, live."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer
from rich.table import Table

from ssdlab.cli import live
from ssdlab.cli.live import Every, JsonLines, Listen, LiveOptions, Once, Prometheus
from ssdlab.cli.output import write_out
from ssdlab.errors import UsageError
from ssdlab.units import parse_size

if TYPE_CHECKING:
    from ssdlab.device import Control, Sample, Watcher


app = typer.Typer(add_completion=False)

LATE_MAX: Final = 0.03
"""The largest share of late responses without a warning."""

_SIZE: Final = re.compile(r"\d+(\.\d+)?\s*[KMGT]?i?B", re.IGNORECASE)


@app.command(
    name="control",
    epilog="Example: ssdlab control /tmp/xg5.sock.control power-cut after_writes=100 on=true",
)
def control(
    socket: Annotated[
        Path, typer.Argument(metavar="SOCKET", help="Control socket of a running ssdlab serve.")
    ],
    do: Annotated[str, typer.Argument(metavar="DO", help="The request, such as counters.")],
    more: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Its arguments; sizes as 1MiB, ranges as 0-1MiB."),
    ] = None,
) -> int:
    """Send a request to a served twin: counters, power, faults; docs/serve.md lists all.

    The reply is one JSON object.
    """
    values = dict(_parse_argument(argument) for argument in more or [])
    from ssdlab.device import Control
    from ssdlab.json_text import encode_json

    with Control(socket) as client:
        answer = client.request(do, **values)
    write_out(encode_json(answer))
    return 0


def _parse_argument(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key.isidentifier() or key == "do":
        raise UsageError(f"argument {text!r} must be KEY=VALUE, such as after_writes=100")
    return key, _parse_value(value)


def _parse_value(text: str) -> Any:
    """A range of sizes as [first, end], a size in bytes, a JSON value, or the text itself."""
    first, dash, end = text.partition("-")
    if dash and _is_size(first) and _is_size(end):
        return [parse_size(first), parse_size(end)]
    if _SIZE.fullmatch(text):
        return parse_size(text)
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _is_size(text: str) -> bool:
    return text.isdecimal() or _SIZE.fullmatch(text) is not None


@app.command(name="watch", epilog="Example: ssdlab watch /tmp/xg5.sock.control")
def watch(
    socket: Annotated[
        Path, typer.Argument(metavar="SOCKET", help="Control socket of a running ssdlab serve.")
    ],
    *,
    every: Every = 1.0,
    once: Once = False,
    json: JsonLines = False,
    prometheus: Prometheus = False,
    listen: Listen = None,
    page: Annotated[
        bool,
        typer.Option(
            "--page",
            help="Show the inside of the twin in a browser: serves a page on this machine until "
            "Ctrl-C and prints its address; --listen chooses the port.",
        ),
    ] = False,
) -> int:
    """Show a served twin's rates, latencies, write amplification and queue until Ctrl-C.

    Latencies are those of the twin, by its clock. In a pipe each sample is one line. A warning
    appears while the twin's replies are late, because clients then do not see its latencies.
    """
    from ssdlab.device import Control, Watcher

    if page and (once or json or prometheus):
        raise UsageError("--page excludes --once, --json and --prometheus; leave those out")
    with Control(socket) as control:
        if page:
            _serve_page(control, every, listen)
            return 0
        watcher = Watcher(control)
        metrics = lambda: live.exposition(_metrics(watcher.sample(), watcher, socket))  # noqa: E731
        view = live.View(line, table)
        live.run(watcher.sample, view, metrics, LiveOptions(every, once, json, prometheus, listen))
    return 0


def _serve_page(control: Control, every: float, listen: str | None) -> None:
    from ssdlab.cli.watch_page import ANY_PORT, serve_page
    from ssdlab.studio import Recorder

    try:
        serve_page(Recorder(control), Path(control.path).name, every, listen or ANY_PORT)
    except KeyboardInterrupt:
        return


def _metrics(sample: Sample, watcher: Watcher, socket: Path) -> Iterator[live.Metric]:
    labels = {"twin": str(socket)}
    yield from live.request_metrics(watcher.totals, labels)
    yield from live.gauge("ssdlab_in_flight", "Requests in flight.", sample.in_flight, labels)
    yield from live.gauge(
        "ssdlab_write_amplification", "Flash writes / host writes over the drive's life.",
        sample.waf_ever, labels,
    )  # fmt: skip
    for name, text in (
        ("host_write_bytes", "Bytes written by hosts."),
        ("late_answers", "Replies that were sent more than 20 us late."),
        ("paced_answers", "Replies that were delayed to the drive's time."),
    ):
        yield from live.counter(f"ssdlab_{name}_total", text, sample.counters.get(name), labels)


def line(sample: Sample) -> str:
    """A sample as one line."""
    rates = "  ".join(
        f"{name} {rates.rate:,.0f}/s p50 {live.format_us(rates.p50_us)} "
        f"p99 {live.format_us(rates.p99_us)}"
        for name, rates in (
            ("read", sample.read),
            ("write", sample.write),
            ("flush", sample.flush),
        )
    )
    late = _warning(sample)
    warning = f"  {late}" if late else ""
    return f"{rates}  WAF {live.format_factor(sample.waf)}  queue {sample.in_flight}{warning}"


def _warning(sample: Sample) -> str:
    """That responses are late, if more than a few are; "" otherwise."""
    if sample.late_share is None or sample.late_share < LATE_MAX:
        return ""
    return f"LATE: {sample.late_share:.1%} of the replies were sent more than 20 us late"


def table(samples: list[Sample]) -> Table:
    """The last sample as a table, with curves of all samples."""
    last = samples[-1]
    result = Table(
        title=f"power {last.power}, clients {last.clients}, drive time {last.virtual_s:.1f} s"
    )
    live.add_rates(result, samples)
    for name in ("read", "write", "flush"):
        now = getattr(last, name)
        if name != "flush":
            moved = [getattr(sample, name).bytes_rate for sample in samples]
            sizes = live.curve(moved, live.format_rate)
            result.add_row(f"{name} bytes/s", live.format_rate(now.bytes_rate), sizes)
        latencies = [getattr(sample, name).p99_us for sample in samples]
        result.add_row(f"{name} p50", live.format_us(now.p50_us), "")
        result.add_row(f"{name} p99", live.format_us(now.p99_us), live.curve(latencies))
    wafs = [sample.waf for sample in samples]
    result.add_row("WAF", live.format_factor(last.waf), live.curve(wafs))
    result.add_row("WAF, ever", live.format_factor(last.waf_ever), "")
    queues = [sample.in_flight for sample in samples]
    result.add_row("queue", f"{last.in_flight}", live.curve(queues))
    if last.counters.get("paced_answers"):
        result.add_row("replies more than 20 us late", _late(last.counters), "since the start")
    if late := _warning(last):
        result.caption = (
            f"{late}: the machine is too busy, so clients do not see the twin's latencies"
        )
        result.caption_style = "bold red"
    return result


def _late(counters: Mapping[str, float | None]) -> str:
    """The share of late answers of a served twin with a pace, since its start."""
    late, paced = (counters.get(name) or 0.0 for name in ("late_answers", "paced_answers"))
    return f"{late / paced:.1%}"
