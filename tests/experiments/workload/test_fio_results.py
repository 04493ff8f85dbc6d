"""fio's JSON results and logs as runs, and what compares, reports and fits them."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ssdlab.api import comparison
from ssdlab.device import Job, decode
from ssdlab.errors import UsageError
from ssdlab.experiments.stored_runs import read_runs
from ssdlab.experiments.workload.fio_results import NOMINAL_BYTES, read_fio
from ssdlab.fit.objective import experiment_objective
from ssdlab.fit.results import read_results
from ssdlab.profiles import load
from ssdlab.records import Run
from ssdlab.report import as_fio, render, write_html

MIB = 1 << 20


def _operation(requests: int, latency: dict[str, Any], **more: Any) -> dict[str, Any]:
    counted = {"total_ios": requests, "io_bytes": requests * 4096, "iops": requests / 2}
    return {**counted, "runtime": 2000, "clat_ns": latency, **more}


def _results(*jobs: dict[str, Any], **more: Any) -> dict[str, Any]:
    version = {"fio version": "fio-3.36", "timestamp": 1_700_000_000}
    return {
        **version,
        "global options": {"direct": "1", "ioengine": "libaio"},
        "jobs": [*jobs],
        **more,
    }


def _job(name: str, read: dict[str, Any], **options: str) -> dict[str, Any]:
    empty = {"total_ios": 0, "io_bytes": 0, "iops": 0.0, "runtime": 0}
    return {
        "jobname": name,
        "job options": {"rw": "randread", "size": "1g", "filename": "/dev/sdx", **options},
        "read": read,
        "write": empty,
        "trim": empty,
        "sync": {"total_ios": 0, "lat_ns": {"N": 0}},
        "job_runtime": 2000,
    }


def _read(folder: Path, content: object, name: str = "fio.json") -> Run:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_fio(path)


BINS = {"bins": {"100000": 1500, "200000": 480, "900000": 20}}
PRINTED = {"percentile": {"50.000000": 90_000, "99.000000": 300_000, "99.900000": 400_000}}


def test_the_histogram_of_json_plus_gives_percentiles_and_tables(tmp_path: Path) -> None:
    run = _read(tmp_path, _results(_job("a", _operation(2000, {**BINS, **PRINTED}))))
    [row] = run.result.measures
    assert (row["job"], row["op"], row["requests"], row["iops"]) == ("a", "read", 2000, 1000.0)
    assert row["mib_per_s"] == pytest.approx(2000 * 4096 / MIB / 2)
    assert [row["latency_us_p50"], row["latency_us_p99"], row["latency_us_p999"]] == [
        100,
        200,
        None,
    ]
    assert "p99.9 needs 11000" in row["why"]
    assert sum(run.tables["latency"]["count"].to_pylist()) == 2000
    assert run.manifest.target == "/dev/sdx"
    assert run.manifest.versions == {"fio": "3.36"}
    assert run.manifest.started.startswith("2023-11-14")
    [step] = run.tables["steps"].to_pylist()
    job = decode(step["job"], Job)
    assert (job.op, job.pattern, job.length_bytes) == ("read", "random_once", 1 << 30)
    assert step["engine"] == "fio libaio"


def test_plain_json_gives_the_percentiles_that_fio_printed(tmp_path: Path) -> None:
    run = _read(tmp_path, _results(_job("a", _operation(2000, PRINTED))))
    [row] = run.result.measures
    assert [row["latency_us_p50"], row["latency_us_p99"], row["latency_us_p999"]] == [90, 300, None]
    lat = {"lat_ns": {"percentile": {"50.000000": 95_000}}}
    [row] = _read(tmp_path, _results(_job("a", _operation(2000, PRINTED, **lat)))).result.measures
    assert (row["latency_us_p50"], row["latency_us_p99"]) == (95, None)
    assert "these results have no p99" in row["why"]


def test_threads_of_one_name_are_one_job(tmp_path: Path) -> None:
    each = _job("a", _operation(2000, BINS), numjobs="2")
    [row] = _read(tmp_path, _results(each, each)).result.measures
    assert (row["requests"], row["iops"], row["latency_us_p50"]) == (4000, 2000.0, 100)


def test_results_of_fio_2_are_in_kib_and_microseconds(tmp_path: Path) -> None:
    read: dict[str, Any] = {"total_ios": 2000, "io_bytes": 8000, "iops": 1000.0, "runtime": 2000}
    read["clat"] = {"percentile": {"50.000000": 90, "99.000000": 300}}
    old = {"fio version": "fio-2.2.10", "jobs": [{"jobname": "a", "error": 0, "read": read}]}
    run = _read(tmp_path, old)
    [row] = run.result.measures
    assert row["mib_per_s"] == pytest.approx(8000 / 1024 / 2)
    assert (row["latency_us_p50"], row["latency_us_p99"]) == (90, 300)
    assert run.tables["steps"].to_pylist()[0]["job"] is None


def test_messages_around_the_json_and_client_results_are_read(tmp_path: Path) -> None:
    results = _results(_job("a", _operation(2000, BINS)))
    text = f"fio: some note\n{json.dumps(results)}\na: (groupid=0, jobs=1)\n"
    assert _read(tmp_path, text).result.measures[0]["requests"] == 2000
    stats = results.pop("jobs")
    clients = {**results, "client_stats": [*stats, {**stats[0], "jobname": "All clients"}]}
    [row] = _read(tmp_path, clients).result.measures
    assert row["requests"] == 2000


def test_logs_of_single_requests_give_latencies_and_rates(tmp_path: Path) -> None:
    lines = [f"{ms}, {100_000 + ms}, {ms % 2}, 4096, 0" for ms in range(500)]
    (tmp_path / "x_lat.1.log").write_text("\n".join(lines))
    run = read_fio(tmp_path / "x_lat.1.log")
    read, write = run.result.measures
    assert (read["job"], read["op"], write["op"]) == ("x", "read", "write")
    assert read["requests"] == write["requests"] == 250
    assert read["latency_us_p50"] == pytest.approx(100.25, abs=0.01)
    intervals = run.tables["intervals"]
    assert intervals["reads"].to_pylist() == [50] * 5
    assert intervals["write_bytes"].to_pylist() == [50 * 4096] * 5


def test_averaged_logs_of_a_job_give_its_rate_over_time(tmp_path: Path) -> None:
    for thread in (1, 2):
        iops = [f"{ms + 3}, 1000, 0, 0, 0" for ms in range(500, 2001, 500)]
        (tmp_path / f"log_iops.{thread}.log").write_text("\n".join(iops))
        rates = [f"{ms + 4}, 4000, 0, 0, 0" for ms in range(500, 2001, 500)]
        (tmp_path / f"log_bw.{thread}.log").write_text("\n".join(rates))
    options = {"numjobs": "2", "write_bw_log": "log", "write_iops_log": "log"}
    run = _read(tmp_path, _results(_job("a", _operation(4000, BINS), **options)))
    intervals = run.tables["intervals"]
    assert intervals["start_ns"].to_pylist() == [0, 500_000_000, 1_000_000_000, 1_500_000_000]
    assert intervals["reads"].to_pylist() == pytest.approx([1000] * 4, rel=0.02)
    assert intervals["read_bytes"].to_pylist() == pytest.approx([4000 * 1024] * 4, rel=0.02)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "{", "is not a result of fio; give the output of `fio --output-format=json`"),
        ("a.json", '{"jobs": 3}', "is JSON, but not fio's"),
        ("a.json", '{"fio version": "fio-3.1", "jobs": [3]}', "cannot be read"),
        ("a.json", '{"fio version": "fio-3.1", "jobs": []}', "no job made a request"),
        ("a_bw.1.log", "1, 2", "is not a log of fio"),
        ("a_bw.1.log", "100, 2, 0, 0, 0", "no rate can be computed from this log alone"),
        ("notes.txt", "hello", "is not a result of fio"),
    ],
)
def test_a_file_that_is_no_result_is_refused_in_one_line(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(UsageError, match=message) as refused:
        read_runs(tmp_path / name)
    assert "\n" not in str(refused.value)


def test_results_are_compared_and_reported_as_runs_are(tmp_path: Path) -> None:
    for name, requests in (("slow", 2000), ("fast", 4000)):
        latency = {"bins": {"100000": requests}}
        (tmp_path / name).write_text(json.dumps(_results(_job("a", _operation(requests, latency)))))
    found = comparison.compare(tmp_path / "slow", tmp_path / "fast")
    rates = [row for row in found.as_json()["contrasts"] if row["name"] == "iops"]
    assert {row["ratio"] for row in rates} == {2.0}
    other = _results(_job("a", _operation(2000, BINS), iodepth="8"))
    (tmp_path / "deep").write_text(json.dumps(other))
    with pytest.raises(UsageError, match="not measured with the same method"):
        comparison.compare(tmp_path / "slow", tmp_path / "deep")
    [run] = read_runs(tmp_path / "slow")
    text = io.StringIO()
    render(run, Console(file=text, width=100))
    assert "Measured by fio-3.36: 1000 requests/s" in text.getvalue()
    assert "results of fio, which name no drive" in text.getvalue()
    assert "seed" not in text.getvalue()
    write_html([run], tmp_path / "page.html")
    assert "fio measured this" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("options", [{"size": "100%"}, {"size": "", "offset": "50%"}, {}])
def test_a_job_on_a_whole_device_is_compared_and_fitted_too(
    tmp_path: Path, options: dict[str, str]
) -> None:
    job = _job("a", _operation(20_000, BINS), **options)
    if not job["job options"]["size"] or not options:
        del job["job options"]["size"]
    run = _read(tmp_path, _results(job))
    text = run.tables["steps"].to_pylist()[0]["job"]
    assert decode(text, Job).length_bytes == NOMINAL_BYTES // (2 if "offset" in options else 1)
    [results] = read_results([tmp_path / "fio.json"]).others
    objective = experiment_objective(results)
    assert objective is not None
    assert 8_000 < objective.simulate(load("toshiba-xg5"))[0] < 20_000
    with pytest.raises(UsageError, match="its own job file says more"):
        as_fio(run)


def test_reads_by_direct_io_are_fitted_and_others_are_not(tmp_path: Path) -> None:
    jobs = [
        _job("one", _operation(20_000, BINS), iodepth="1"),
        _job("deep", _operation(200_000, BINS), iodepth="16"),
        _job("cached", _operation(9_000, BINS), direct="0"),
        _job("slow", _operation(9_000, BINS), rate_iops="100"),
    ]
    (tmp_path / "fio.json").write_text(json.dumps(_results(*jobs)))
    [results] = read_results([tmp_path / "fio.json"]).others
    assert set(results.parameters["job_texts"]) == {"one", "deep"}
    objective = experiment_objective(results)
    assert objective is not None
    assert [cell.case[0] for cell in objective.cells] == ["one", "deep"]
    one, deep = objective.simulate(load("toshiba-xg5"))
    assert 8_000 < one < 20_000
    assert deep > 5 * one


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_the_results_of_the_installed_fio_are_read(drive_directory: Path) -> None:
    command = ["fio", "--name=a", "--rw=randrw", "--bs=4k", "--size=4m", "--ioengine=psync"]
    command += [f"--filename={drive_directory / 'file'}", "--fsync=64", "--write_lat_log=a"]
    for form in ("json", "json+"):
        printed = subprocess.run(
            [*command, f"--output-format={form}"],
            check=True, capture_output=True, text=True, cwd=drive_directory,
        ).stdout  # fmt: skip
        run = _read(drive_directory, printed)
        rows = {row["op"]: row for row in run.result.measures}
        assert rows["read"]["requests"] + rows["write"]["requests"] == 1024
        assert rows["flush"]["requests"] > 0
        assert rows["read"]["latency_us_p50"] > 0
        intervals = run.tables["intervals"]
        assert sum(intervals["requests"].to_pylist()) == 1024
        assert sum(intervals["bytes"].to_pylist()) == 4 * MIB
