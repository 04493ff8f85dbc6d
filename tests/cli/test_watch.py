"""The live view of a served twin: latencies of flushes, late answers, scaled curves."""

from __future__ import annotations

import io

from rich.console import Console

from ssdlab.cli.control import curve, line, table
from ssdlab.device.control import Rates, Sample


def _rates(p99_us: float) -> Rates:
    return Rates(rate=10, bytes_rate=0, failed=0, mean_us=1.0, p50_us=765.0, p99_us=p99_us)


def _sample(**counters: float | None) -> Sample:
    read, write, trim, flush = (_rates(1000.0 * at) for at in range(1, 5))
    return Sample(
        seconds=1.0,
        power="on",
        clients=1,
        in_flight=3,
        virtual_s=9.0,
        waf=1.5,
        waf_ever=1.2,
        read=read,
        write=write,
        trim=trim,
        flush=flush,
        counters=counters,
    )


def _shown(sample: Sample) -> str:
    text = io.StringIO()
    Console(file=text, width=100).print(table([sample]))
    return " ".join(text.getvalue().split())


def test_the_latencies_of_flushes_are_shown() -> None:
    assert "flush 10/s p50 765 us p99 4,000 us" in line(_sample())
    shown = _shown(_sample())
    assert "flush latency, median │ 765 us" in shown
    assert "flush latency, p99 │ 4,000 us" in shown


def test_late_answers_are_shown_while_a_twin_with_a_pace_runs() -> None:
    assert "us late" not in _shown(_sample(paced_answers=0.0))
    late = _shown(_sample(paced_answers=200.0, late_answers=192.0))
    assert "answers more than 20 us late │ 96.0%" in late


def test_a_curve_names_its_largest_value() -> None:
    assert curve([0, 1234.5]) == " █ up to 1,234"
    assert curve([None, 0]) == "  "
