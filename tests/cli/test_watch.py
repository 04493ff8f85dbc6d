"""Live views: latencies of flushes, late answers, scaled curves, metrics for Prometheus."""

from __future__ import annotations

import io
import json
import queue
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from forked import Program
from rich.console import Console

from ssdlab.cli import live
from ssdlab.cli.control import line, table
from ssdlab.cli.live import curve
from ssdlab.device.control import Sample
from ssdlab.errors import TargetError, UsageError
from ssdlab.stats.rates import Rates, Totals


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
    assert "flush p50 │ 765 us" in shown
    assert "flush p99 │ 4,000 us" in shown


def test_late_answers_are_shown_while_a_twin_with_a_pace_runs() -> None:
    assert "us late" not in _shown(_sample(paced_answers=0.0))
    late = _shown(_sample(paced_answers=200.0, late_answers=192.0))
    assert "replies more than 20 us late │ 96.0%" in late


def test_the_range_of_a_byte_rate_has_the_unit_of_the_rate() -> None:
    rates = (27_610_702, 544_653_032)
    samples = []
    for rate in rates:
        sample = _sample()
        reads = msgspec.structs.replace(sample.read, bytes_rate=rate)
        samples.append(msgspec.structs.replace(sample, read=reads))
    text = io.StringIO()
    Console(file=text, width=100).print(table(samples))
    assert "26.33 MiB to 519.4 MiB" in text.getvalue()
    assert "27,610,702" not in text.getvalue()
    assert "the last 2 samples" in text.getvalue()
    assert "the last sample" in _shown(samples[0])


def test_on_50_columns_labels_fit_in_a_line() -> None:
    text = io.StringIO()
    Console(file=text, width=50).print(table([_sample()] * 8))
    assert all(f"{name}/s " in text.getvalue() for name in ("reads", "read bytes", "flushes"))
    assert text.getvalue().count("\n") < 25


def test_a_curve_names_its_largest_value() -> None:
    assert curve([0, 1234.5]) == " █ 0 to 1,234"
    assert curve([15_090.4]) == "█ 15,090"
    assert curve([0.25, None, 0.125]) == "█ ▄ 0.125 to 0.25"
    assert curve([0, None]) == "  "
    assert curve([None, 0]) == "  "


def test_it_warns_while_responses_are_late() -> None:
    assert "LATE" not in line(_sample())
    for share, warns in ((None, False), (0.02, False), (0.4, True)):
        sample = msgspec.structs.replace(_sample(), late_share=share)
        assert (
            "LATE: 40.0% of the replies were sent more than 20 us late" in line(sample)
        ) == warns
        assert ("LATE: 40.0%" in _shown(sample)) == warns


def test_metrics_are_in_prometheus_format() -> None:
    totals = {"read": Totals(3, 12288, 600.0, 0, ((100.0, 2), (400.0, 1)), 600.0)}
    metrics = [
        *live.request_metrics(totals, {"device": 'a"b\\'}),
        *live.gauge("ssdlab_in_flight", "Requests in flight.", 2, {"device": "a"}),
        *live.gauge("ssdlab_temperature_celsius", "Not known.", None, {"device": "a"}),
    ]
    lines = live.exposition(metrics).splitlines()
    own = r'device="a\"b\\",op="read"'
    assert f"ssdlab_requests_total{{{own}}} 3" in lines
    assert f"ssdlab_request_seconds_total{{{own}}} 0.0006" in lines
    name = "ssdlab_request_latency_seconds"
    assert lines.index(f'{name}_bucket{{{own},le="0.0001"}} 2') < lines.index(
        f'{name}_bucket{{{own},le="0.0004"}} 3'
    )
    assert f'{name}_bucket{{{own},le="+Inf"}} 3' in lines
    assert f"# TYPE {name} histogram" in lines
    assert 'ssdlab_in_flight{device="a"} 2' in lines
    assert "ssdlab_temperature_celsius" not in " ".join(lines)


def test_a_listener_answers_each_scrape_and_only_on_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pages = iter(("one\n", "two\n"))

    def page() -> str:
        text = next(pages, None)
        if text is None:
            raise TargetError("the drive is gone")
        return text

    failures: list[BaseException] = []
    printed: queue.Queue[str] = queue.Queue()
    monkeypatch.setattr(live, "write_out", printed.put)

    def serve() -> None:
        try:
            live.serve_metrics("127.0.0.1:0", page)
        except TargetError as error:
            failures.append(error)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    url = printed.get(timeout=60).strip()
    answers = []
    for path in ("", "", "/other", ""):
        try:
            with urllib.request.urlopen(url + path) as answer:
                answers.append(answer.read().decode())
        except urllib.error.HTTPError as error:
            answers.append(str(error.code))
    thread.join(60)
    assert answers == ["one\n", "two\n", "404", "500"]
    assert [str(failure) for failure in failures] == ["the drive is gone"]
    for listen in ("0.0.0.0:9000", "127.0.0.1", "127.0.0.1:99999", "host:80"):
        with pytest.raises(UsageError, match="it must be 127"):
            live.serve_metrics(listen, page)


def test_a_real_drive_is_shown_as_a_line_json_and_metrics(
    ssdlab: Program, refused: Callable[..., str]
) -> None:
    target = Path.home()
    done = ssdlab("top", target, "--once", "--every", "0.1", "--json")
    if "not on a drive of this machine" in done.stderr:
        pytest.skip("the home directory is on no drive")
    sample = json.loads(done.stdout)
    assert sample["seconds"] > 0
    assert set(sample["write"]) >= {"rate", "bytes_rate", "mean_us", "p99_us"}
    assert "write " in ssdlab("top", target, "--once", "--every", "0.1").stdout
    metrics = ssdlab("top", target, "--prometheus", "--every", "0.1").stdout
    assert f'ssdlab_requests_total{{device="{sample["drive"]}",op="read"}}' in metrics
    assert "exclude each other" in refused("top", target, "--json", "--prometheus")
    assert "shown by: ssdlab watch SOCKET.control" in refused("top", "twin:toshiba-xg5")
