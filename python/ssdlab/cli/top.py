"""`ssdlab top`: a real drive live: rates, latencies, temperature, write amplification."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.table import Table

from ssdlab.cli import live
from ssdlab.cli.live import Every, JsonLines, Listen, LiveOptions, Once, Prometheus
from ssdlab.units import format_size

if TYPE_CHECKING:
    from ssdlab.storage_stack.live_drive import DriveSample, LiveDrive

app = typer.Typer(add_completion=False)

SMART_EVERY_S: Final = 60.0
HISTOGRAM_ROWS: Final = 12


@app.command(name="top", epilog="Example: ssdlab top /dev/nvme0n1")
def top(
    target: Annotated[
        str,
        typer.Argument(metavar="PATH|DEVICE", help="A block device, or a directory on the drive."),
    ] = ".",
    *,
    every: Every = 1.0,
    once: Once = False,
    json: JsonLines = False,
    prometheus: Prometheus = False,
    listen: Listen = None,
    smart_every: Annotated[
        float,
        typer.Option(min=1.0, help="Seconds between two readings of the drive's own counters."),
    ] = SMART_EVERY_S,
) -> int:
    """Show a real drive's rates, latencies, temperature and write amplification until Ctrl-C.

    Reads /sys/block, and as root the kernel's block tracepoints (for latency percentiles and a
    histogram) and the drive's counters of host and flash writes (by smartctl and nvme). Changes
    nothing, and sends the drive no requests except for those counters.
    """
    from ssdlab.storage_stack.live_drive import LiveDrive, drive_at

    with LiveDrive.open(drive_at(target), smart_every) as drive:
        one_page = once or prometheus or listen is not None

        def take() -> DriveSample:
            return drive.sample(wait_for_smart=one_page)

        def page() -> str:
            return live.exposition(_metrics(take(), drive))

        view = live.View(line, lambda samples: table(samples, drive))
        live.run(take, view, page, LiveOptions(every, once, json, prometheus, listen))
    return 0


def _metrics(sample: DriveSample, drive: LiveDrive) -> Iterator[live.Metric]:
    labels = {"device": sample.drive}
    yield from live.request_metrics(drive.totals, labels)
    for name, text, value in (
        ("in_flight", "Requests in flight.", sample.in_flight),
        ("busy_ratio", "Share of the time with a request in flight.", sample.busy),
        ("temperature_celsius", "Temperature of the drive.", sample.temperature_c),
        ("write_amplification", "Flash writes / host writes, over its life.", sample.waf_ever),
    ):
        yield from live.gauge(f"ssdlab_{name}", text, value, labels)
    for name, text, value in (
        ("host_write_bytes", "Bytes written by hosts over the drive's life.", sample.host_bytes),
        ("flash_write_bytes", "Bytes written to its flash.", sample.flash_bytes),
    ):
        yield from live.counter(f"ssdlab_{name}_total", text, value, labels)


def line(sample: DriveSample) -> str:
    """A sample as one line."""
    rates = "  ".join(
        f"{name} {rates.rate:,.0f}/s {format_size(round(rates.bytes_rate))}/s "
        f"mean {live.format_us(rates.mean_us)} p99 {live.format_us(rates.p99_us)}"
        for name, rates in (("read", sample.read), ("write", sample.write))
    )
    degrees = "" if sample.temperature_c is None else f"  {sample.temperature_c:.0f} °C"
    flush = f"flush {sample.flush.rate:,.0f}/s mean {live.format_us(sample.flush.mean_us)}"
    waf = f"WAF {live.format_factor(sample.waf)}"
    return f"{rates}  {flush}  busy {sample.busy:.0%}  queue {sample.in_flight}  {waf}{degrees}"


def table(samples: list[DriveSample], drive: LiveDrive) -> Table:
    """The last sample as a table, with curves of all samples and the histogram of latencies."""
    last = samples[-1]
    model = f" ({drive.device.model})" if drive.device.model else ""
    result = Table(title=f"{last.drive}{model}, busy {last.busy:.0%}")
    live.add_rates(result, samples)
    for name in ("read", "write", "flush"):
        _add_latencies(result, name, samples)
    queues = [sample.in_flight for sample in samples]
    result.add_row("queue", f"{last.in_flight}", live.curve(queues))
    _add_drive(result, samples)
    for text, count in _histogram(drive):
        result.add_row(*text, count)
    if drive.no_trace:
        result.caption = f"no percentiles: {drive.no_trace}"
    elif last.traced_dropped:
        result.caption = "percentiles and histogram: of a sample, as the drive is busy"
    return result


def _add_latencies(result: Table, name: str, samples: list[DriveSample]) -> None:
    now = getattr(samples[-1], name)
    if name != "flush":
        moved = [getattr(sample, name).bytes_rate for sample in samples]
        size, sizes = live.format_rate(now.bytes_rate), live.curve(moved, live.format_rate)
        result.add_row(f"{name} bytes/s", size, sizes)
    means = [getattr(sample, name).mean_us for sample in samples]
    result.add_row(f"{name} mean", live.format_us(now.mean_us), live.curve(means))
    if now.p99_us is not None:
        p99 = [getattr(sample, name).p99_us for sample in samples]
        result.add_row(f"{name} p99", live.format_us(now.p99_us), live.curve(p99))


def _add_drive(result: Table, samples: list[DriveSample]) -> None:
    last = samples[-1]
    if last.temperature_c is not None:
        limit = last.temperature_limit_c
        warns = "" if limit is None else f", warns at {limit:.0f} °C"
        degrees = [sample.temperature_c for sample in samples]
        result.add_row("temperature", f"{last.temperature_c:.0f} °C", live.curve(degrees) + warns)
    if last.host_bytes is not None:
        result.add_row("written by hosts, ever", format_size(last.host_bytes), "")
    if last.flash_bytes is not None:
        result.add_row("written to flash, ever", format_size(last.flash_bytes), "")
        ever = live.format_factor(last.waf_ever)
        result.add_row("WAF", live.format_factor(last.waf), f"{ever} ever")


def _histogram(drive: LiveDrive) -> Iterator[tuple[tuple[str, str], str]]:
    """Rows of powers of two: the upper end, the number of requests since the start, and a bar."""
    counts: dict[float, int] = {}
    for total in drive.totals.values():
        for upper, count in total.bins:
            power = 1.0
            while power < upper:
                power *= 2
            counts[power] = counts.get(power, 0) + count
    most = max(counts.values(), default=0)
    for power in sorted(counts)[-HISTOGRAM_ROWS:]:
        bar = "█" * max(1, round(40 * counts[power] / most))
        yield (f"up to {power:,.0f} us", f"{counts[power]:,}"), bar
