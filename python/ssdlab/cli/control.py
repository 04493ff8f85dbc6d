"""`ssdlab control` sends a request to a served twin; `ssdlab watch` shows its rates, live."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from ssdlab.cli.output import write_out
from ssdlab.errors import UsageError
from ssdlab.units import format_size, parse_size

if TYPE_CHECKING:
    from ssdlab.device import Sample, Watcher


app = typer.Typer(add_completion=False)

BARS = " ▁▂▃▄▅▆▇█"
CURVE_SAMPLES = 60

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

    The answer is one JSON object.
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
    every: Annotated[float, typer.Option(min=0.05, help="Seconds between two samples.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Print one sample and exit.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object per sample.")] = False,
) -> int:
    """Show a served twin's rates, latencies, write amplification and queue until Ctrl-C.

    Latencies are those of the twin, by its clock. In a pipe each sample is one line.
    """
    from ssdlab.device import Control, Watcher

    with Control(socket) as control:
        samples = _samples(Watcher(control), every, once=once)
        console = Console()
        try:
            if json:
                for sample in samples:
                    write_out(msgspec.json.encode(sample).decode() + "\n")
            elif once or not console.is_terminal:
                for sample in samples:
                    write_out(line(sample) + "\n")
            else:
                _show(samples, console)
        except KeyboardInterrupt:
            return 0
    return 0


def _samples(watcher: Watcher, every: float, *, once: bool) -> Iterator[Sample]:
    while True:
        time.sleep(every)
        yield watcher.sample()
        if once:
            return


def _show(samples: Iterator[Sample], console: Console) -> None:
    latest: list[Sample] = []
    with Live(console=console, auto_refresh=False) as live:
        for sample in samples:
            latest = [*latest[1 - CURVE_SAMPLES :], sample]
            live.update(table(latest), refresh=True)


def line(sample: Sample) -> str:
    """A sample as one line."""
    rates = "  ".join(
        f"{name} {rates.rate:,.0f}/s p50 {_us(rates.p50_us)} p99 {_us(rates.p99_us)}"
        for name, rates in (
            ("read", sample.read),
            ("write", sample.write),
            ("flush", sample.flush),
        )
    )
    return f"{rates}  WAF {_factor(sample.waf)}  queue {sample.in_flight}"


def table(samples: list[Sample]) -> Table:
    """The last sample as a table, with curves of all samples."""
    last = samples[-1]
    result = Table(
        title=f"power {last.power}, clients {last.clients}, drive time {last.virtual_s:.1f} s"
    )
    for column in ("", "now", f"the last {CURVE_SAMPLES} samples"):
        result.add_column(column, justify="right" if column == "now" else "left")
    plurals = {"read": "reads", "write": "writes", "trim": "trims", "flush": "flushes"}
    for name, plural in plurals.items():
        rates = [getattr(sample, name).rate for sample in samples]
        result.add_row(f"{plural} per second", f"{getattr(last, name).rate:,.0f}", curve(rates))
    for name in ("read", "write", "flush"):
        now = getattr(last, name)
        if name != "flush":
            result.add_row(f"{name} bytes per second", format_size(round(now.bytes_rate)), "")
        latencies = [getattr(sample, name).p99_us for sample in samples]
        result.add_row(f"{name} latency, median", _us(now.p50_us), "")
        result.add_row(f"{name} latency, p99", _us(now.p99_us), curve(latencies))
    wafs = [sample.waf for sample in samples]
    result.add_row("write amplification", _factor(last.waf), curve(wafs))
    result.add_row("since the drive was new", _factor(last.waf_ever), "")
    queues = [sample.in_flight for sample in samples]
    result.add_row("queue", f"{last.in_flight}", curve(queues))
    if last.counters.get("paced_answers"):
        result.add_row("answers more than 20 us late", _late(last.counters), "since the start")
    return result


def curve(values: list[Any]) -> str:
    """Values as bars, scaled to the largest, which is named; a space for None."""
    largest = max((value for value in values if value is not None), default=0)
    steps, scale = len(BARS) - 1, largest or 1
    bars = (BARS[0 if value is None else round(value / scale * steps)] for value in values)
    return f"{''.join(bars)} up to {largest:,.4g}" if largest else "".join(bars)


def _late(counters: Mapping[str, float | None]) -> str:
    """The share of late answers of a served twin with a pace."""
    late, paced = (counters.get(name) or 0.0 for name in ("late_answers", "paced_answers"))
    return f"{late / paced:.1%}"


def _us(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f} us"


def _factor(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
