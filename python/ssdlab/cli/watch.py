"""`ssdlab watch`: what a served twin does, second by second."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from ssdlab.cli.output import write_out
from ssdlab.device import Control, Look, Watcher
from ssdlab.units import format_size

app = typer.Typer(add_completion=False)

BARS = " ▁▂▃▄▅▆▇█"
SHOWN = 60
"""Looks of a curve."""


@app.command(name="watch", epilog="Example: ssdlab watch /tmp/xg5.sock.control")
def run(
    socket: Annotated[
        Path, typer.Argument(metavar="SOCKET", help="Control socket of a running ssdlab serve.")
    ],
    *,
    every: Annotated[float, typer.Option(min=0.05, help="Seconds between two looks.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="One look, and end.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a look.")] = False,
) -> int:
    """Show a served twin's rates, latencies, write amplification and queue until Ctrl-C.

    Latencies are the twin's own, by its clock. In a pipe each look is one line.
    """
    with Control(socket) as control:
        looks = _looks(Watcher(control), every, once=once)
        console = Console()
        try:
            if json:
                for look in looks:
                    write_out(msgspec.json.encode(look).decode() + "\n")
            elif once or not console.is_terminal:
                for look in looks:
                    write_out(line(look) + "\n")
            else:
                _show(looks, console)
        except KeyboardInterrupt:
            return 0
    return 0


def _looks(watcher: Watcher, every: float, *, once: bool) -> Iterator[Look]:
    while True:
        time.sleep(every)
        yield watcher.look()
        if once:
            return


def _show(looks: Iterator[Look], console: Console) -> None:
    shown: list[Look] = []
    with Live(console=console, auto_refresh=False) as live:
        for look in looks:
            shown = [*shown[1 - SHOWN :], look]
            live.update(table(shown), refresh=True)


def line(look: Look) -> str:
    """A look as one line."""
    rates = "  ".join(
        f"{name} {each.rate:,.0f}/s p50 {_us(each.p50_us)} p99 {_us(each.p99_us)}"
        for name, each in (("read", look.read), ("write", look.write))
    )
    return f"{rates}  WAF {_factor(look.waf)}  queue {look.in_flight}"


def table(looks: list[Look]) -> Table:
    """The last look as a table, with curves of those before it."""
    last = looks[-1]
    shown = Table(
        title=f"power {last.power}, clients {last.clients}, its time {last.virtual_s:.1f} s"
    )
    for column in ("", "now", f"the last {SHOWN} looks"):
        shown.add_column(column, justify="right" if column == "now" else "left")
    named = {"read": "reads", "write": "writes", "trim": "trims", "flush": "flushes"}
    for name, names in named.items():
        now = getattr(last, name)
        rates = [getattr(each, name).rate for each in looks]
        shown.add_row(f"{names} a second", f"{now.rate:,.0f}", curve(rates))
    for name in ("read", "write"):
        now = getattr(last, name)
        shown.add_row(f"{name} bytes a second", format_size(round(now.bytes_rate)), "")
        latencies = [getattr(each, name).p99_us for each in looks]
        shown.add_row(f"{name} latency, median", _us(now.p50_us), "")
        shown.add_row(f"{name} latency, p99", _us(now.p99_us), curve(latencies))
    shown.add_row("write amplification", _factor(last.waf), curve([each.waf for each in looks]))
    shown.add_row("since it began", _factor(last.waf_ever), "")
    shown.add_row("queue", f"{last.in_flight}", curve([each.in_flight for each in looks]))
    return shown


def curve(values: list[Any]) -> str:
    """Values as bars from zero to their largest; a gap where there is none."""
    most = max((value for value in values if value is not None), default=0) or 1
    steps = len(BARS) - 1
    return "".join(BARS[0 if value is None else round(value / most * steps)] for value in values)


def _us(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f} us"


def _factor(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
