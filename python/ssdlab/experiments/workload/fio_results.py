"""fio's own results as a run of `workload`: the JSON of `--output-format=json` or `json+`, or logs.

Supported are fio 2 and 3. With `json+` the percentiles come from fio's histogram, otherwise they
are those that fio printed. They are of `lat` if fio recorded its percentiles (`lat_percentiles=1`),
else of `clat`, which starts at submission: the two differ by the time of the system call. Entries
of one name (`numjobs` without `group_reporting`) become one job. Logs of a job in the same folder
give its rate over time; see `fio_logs.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np

from ssdlab.analysis.evidence import Conclusion
from ssdlab.analysis.latency import OPS, SHARES, percentile_label
from ssdlab.device import FioJob, encode, parse_fio
from ssdlab.errors import UsageError
from ssdlab.experiments.workload.fio_logs import LogSet, intervals_of, logs_of, logs_of_job
from ssdlab.input_files import read_text
from ssdlab.records import Finding, Manifest, Recording, Result, Run, StepRow, utc_now
from ssdlab.stats.quantile import percentiles, quantile_supported, samples_needed
from ssdlab.units import format_duration
from ssdlab.wording import number

MIB: Final = 1 << 20
HINT: Final = (
    "give the output of `fio --output-format=json` or `json+`, or a log such as NAME_bw.1.log"
)
NOMINAL_BYTES: Final = 1 << 40
"""The size of a device of which fio used all or a share."""
_KEYS: Final = {"read": "read", "write": "write", "trim": "trim", "flush": "sync"}
"""fio's name for each operation."""


@dataclass
class _Operation:
    """The requests of one operation of a job: counts, sums over its threads, and latencies."""

    requests: int = 0
    bytes: float = 0.0
    iops: float = 0.0
    seconds: float = 0.0
    bins: dict[int, int] = field(default_factory=dict)
    """Number of requests by latency in ns; empty without `json+`."""
    printed: dict[str, float] = field(default_factory=dict)
    """Percentiles in ns that fio printed, by their name in `SHARES`; of one entry only."""

    def add(self, entry: Mapping[str, Any], scale: _Scale) -> None:
        """Adds what fio printed for one thread or group."""
        requests = int(entry.get("total_ios", 0))
        if not requests:
            return
        self.printed = {} if self.requests else _printed(entry, scale)
        self.requests += requests
        self.bytes += float(entry.get("io_bytes", 0)) * scale.bytes
        self.iops += float(entry.get("iops", 0.0))
        self.seconds = max(self.seconds, float(entry.get("runtime", 0)) / 1e3)
        for nanoseconds, count in _bins(entry).items():
            self.bins[nanoseconds] = self.bins.get(nanoseconds, 0) + count

    def latencies(self) -> dict[str, float | None]:
        """The percentiles in us, by column; None with too few requests, or if fio printed none."""
        if self.bins and sum(self.bins.values()) >= self.requests:
            latencies, counts = _histogram(self.bins)
            found = percentiles(latencies / 1e3, counts)
            return {f"latency_us_{name}": getattr(found, name) for name in SHARES}
        return {
            f"latency_us_{name}": self.printed[name] / 1e3
            if name in self.printed and quantile_supported(self.requests, share)
            else None
            for name, share in SHARES.items()
        }

    def unsupported(self) -> str | None:
        """Why percentiles are missing; None if none is."""
        latencies = self.latencies()
        missing = [name for name in SHARES if latencies[f"latency_us_{name}"] is None]
        few = [name for name in missing if not quantile_supported(self.requests, SHARES[name])]
        needs = [f"{percentile_label(name)} needs {samples_needed(SHARES[name])}" for name in few]
        absent = [percentile_label(name) for name in missing if name not in few]
        parts = [f"{', '.join(needs)} requests, and the job made {self.requests}"] if needs else []
        parts += [f"these results have no {', '.join(absent)}"] if absent else []
        return "; ".join(parts) or None


@dataclass(frozen=True)
class _Scale:
    """What fio's numbers are to be multiplied by: versions before 2.99 used KiB and us."""

    bytes: int
    nanoseconds: int
    suffix: str


@dataclass
class _FioJob:
    """A job of fio's results: its options, and its operations that had requests."""

    name: str
    options: dict[str, str]
    operations: dict[str, _Operation]
    errors: int = 0
    threads: int = 0

    @property
    def seconds(self) -> float:
        """The longest time of an operation."""
        return max((each.seconds for each in self.operations.values()), default=0.0)


def read_fio(path: Path) -> Run:
    """The run that a JSON file or a log of fio describes.

    Raises:
        UsageError: it cannot be read, or is neither.
    """
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise UsageError(f"{path} cannot be read ({reason}); {HINT}") from error
    output = _json_of(text)
    if output is None:
        return _run_of_logs(path, logs_of(path, HINT))
    entries = output.get("jobs", output.get("client_stats"))
    if not isinstance(entries, list) or "fio version" not in output:
        raise UsageError(f"{path} is JSON, but not fio's (no 'fio version' and 'jobs'); {HINT}")
    try:
        jobs = _jobs(output, entries)
    except (AttributeError, TypeError, ValueError) as error:
        raise UsageError(
            f"{path}: these results of fio cannot be read ({error}); {HINT}"
        ) from error
    if not any(job.operations for job in jobs):
        raise UsageError(f"{path}: no job made a request; {HINT}")
    return _run_of(path, output, [job for job in jobs if job.operations])


def _json_of(text: str) -> dict[str, Any] | None:
    """The first JSON object in fio's output, which may have messages before and after it."""
    start = 0 if text.startswith("{") else text.find("\n{") + 1
    if not start and not text.startswith("{"):
        return None
    try:
        found, _ = json.JSONDecoder().raw_decode(text, start)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _jobs(output: Mapping[str, Any], entries: Sequence[Any]) -> list[_FioJob]:
    """The jobs by name, in order; the options of [global] are part of each."""
    by_name: dict[str, _FioJob] = {}
    release = str(output["fio version"]).removeprefix("fio-")
    common = {str(k): str(v) for k, v in output.get("global options", {}).items()}
    for entry in entries:
        if entry.get("jobname") == "All clients":  # the sum of the others
            continue
        own = {str(k): str(v) for k, v in entry.get("job options", {}).items()}
        name = str(entry.get("jobname", f"job {len(by_name) + 1}"))
        job = by_name.setdefault(name, _FioJob(name, {**common, **own}, {}))
        job.threads = max(job.threads + 1, int(job.options.get("numjobs", "1")))
        job.errors += int(entry.get("total_err", 0))
        for op, key in _KEYS.items():
            found = entry.get(key)
            if isinstance(found, Mapping) and found.get("total_ios"):
                seconds = float(entry.get("job_runtime", 0)) or _longest(entry)
                filled = {"runtime": seconds, "iops": 0.0, **found}
                job.operations.setdefault(op, _Operation()).add(filled, _scale(found, release))
    return list(by_name.values())


def _longest(entry: Mapping[str, Any]) -> float:
    """The longest runtime of reads, writes and trims in ms; fio prints none for flushes."""
    return max(float(entry.get(op, {}).get("runtime", 0)) for op in ("read", "write", "trim"))


def _scale(entry: Mapping[str, Any], release: str) -> _Scale:
    old = not any(f"{kind}_ns" in entry for kind in ("lat", "clat", "slat"))
    if not old:
        return _Scale(1, 1, "_ns")
    return _Scale(1024 if release.startswith(("1.", "2.")) else 1, 1000, "")


def _latency_entry(entry: Mapping[str, Any], suffix: str, key: str) -> Mapping[str, Any]:
    """fio's latencies that have `key`: those of `lat`, else of `clat`."""
    for kind in ("lat", "clat"):
        found = entry.get(f"{kind}{suffix}", {})
        if isinstance(found, Mapping) and found.get(key):
            return found
    return {}


def _bins(entry: Mapping[str, Any]) -> dict[int, int]:
    bins = _latency_entry(entry, "_ns", "bins").get("bins", {})
    return {int(nanoseconds): int(count) for nanoseconds, count in bins.items() if int(count)}


def _printed(entry: Mapping[str, Any], scale: _Scale) -> dict[str, float]:
    printed = _latency_entry(entry, scale.suffix, "percentile").get("percentile", {})
    by_percent = {round(float(percent), 4): float(value) for percent, value in printed.items()}
    return {
        name: by_percent[round(100 * share, 4)] * scale.nanoseconds
        for name, share in SHARES.items()
        if by_percent.get(round(100 * share, 4))
    }


def _histogram(bins: Mapping[int, int]) -> tuple[Any, Any]:
    latencies = np.array(sorted(bins), dtype=np.float64)
    return latencies, np.array([bins[int(each)] for each in latencies], dtype=np.int64)


def _run_of(path: Path, output: Mapping[str, Any], jobs: Sequence[_FioJob]) -> Run:
    recording = Recording()
    clock_ns, thread = 0, 1
    for at, job in enumerate(jobs):
        logs = logs_of_job(path.parent, job.options, range(thread, thread + job.threads))
        thread += job.threads
        recording.add(_step(job, at, clock_ns, logs))
        clock_ns += round(job.seconds * 1e9)
    release = str(output["fio version"])
    target = next((job.options["filename"] for job in jobs if "filename" in job.options), "")
    return _run(
        path,
        recording,
        _conclude([row for job in jobs for row in _rows(job)], jobs, release),
        _Origin(
            target or str(jobs[0].options.get("directory", path.stem)),
            _started(output),
            release.removeprefix("fio-"),
            [job.name for job in jobs],
        ),
    )


@dataclass(frozen=True)
class _Origin:
    """What a manifest says of where the results are from."""

    target: str
    started: str
    version: str
    jobs: list[str]


def _run(path: Path, recording: Recording, conclusion: Conclusion, origin: _Origin) -> Run:
    tables = recording.tables()
    duration = sum(row["end_ns"] - row["start_ns"] for row in tables["steps"].to_pylist()) / 1e9
    manifest = Manifest(
        run=path.name,
        ssdlab=version("ssdlab"),
        experiment="workload",
        target=origin.target,
        virtual=False,
        seed=0,
        started=origin.started,
        parameters={"jobs": origin.jobs},
        versions={"fio": origin.version},
        host={},
        device={"kind": "results of fio", "name": origin.target},
        profile=None,
    )
    result = Result(
        ssdlab=manifest.ssdlab,
        experiment=manifest.experiment,
        target=origin.target,
        virtual=False,
        seed=0,
        duration_s=duration,
        parameters=manifest.parameters,
        measures=conclusion.measures,
        findings=conclusion.findings,
        verdict=conclusion.verdict,
        warnings=[],
        folder=str(path),
    )
    return Run(path, manifest, result, tables)


def _started(output: Mapping[str, Any]) -> str:
    """fio's time stamp, which is the time of its output."""
    stamp = output.get("timestamp")
    return _iso(stamp if isinstance(stamp, int) else utc_now().timestamp())


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _step(job: _FioJob, number: int, start_ns: int, logs: LogSet) -> StepRow:
    parsed = _parsed(job)
    opened = None
    if parsed is not None:
        opened = f'{{"engine":"{parsed.engine}",{encode(parsed.options)[1:]}'
    values = {
        "phase": "job",
        "stage": number,
        "repeat": 0,
        "case": job.name,
        "rest_s": 0.0,
        "start_ns": start_ns,
        "end_ns": start_ns + round(job.seconds * 1e9),
        "requests": sum(each.requests for each in job.operations.values()),
        "bytes": round(sum(each.bytes for each in job.operations.values())),
        "errors": job.errors,
        "job": None if parsed is None else encode(parsed.job),
        "opened": opened,
        "engine": f"fio {job.options.get('ioengine', 'psync')}",
    }
    columns = list(_bucket_columns(job))
    latency = {name: [row[name] for row in columns] for name in columns[0]} if columns else {}
    whole = {key: latency[key] for key in ("latency_ns", "count")} if latency else {}
    return StepRow(values, intervals_of(logs, start_ns, job.options), whole, latency)


def _bucket_columns(job: _FioJob) -> Iterator[dict[str, int]]:
    for op, operation in job.operations.items():
        for nanoseconds, count in sorted(operation.bins.items()):
            yield {
                "interval": 0,
                "op": OPS.index(op),
                "latency_ns": nanoseconds,
                "count": count,
            }


def _parsed(job: _FioJob) -> FioJob | None:
    """The job as ssdlab would run it; None if ssdlab cannot.

    fio does not record the size of a device, so a job on all of it gets a nominal one.
    """
    if not {"rw", "readwrite"} & job.options.keys():  # old versions of fio record no options
        return None
    lines = [f"{key}={value}" if value else key for key, value in job.options.items()]
    text = "\n".join([f"[{job.name}]", *lines, ""])
    try:
        [fio] = parse_fio(text, None if _has_size(job) else NOMINAL_BYTES, environment={})
    except (UsageError, ValueError):
        return None
    return fio


def _has_size(job: _FioJob) -> bool:
    """Whether the job says in bytes how much of its file or device it uses."""
    given = [job.options[name] for name in ("size", "filesize") if name in job.options]
    return bool(given) and not any("%" in text for text in (*given, job.options.get("offset", "")))


def _rows(job: _FioJob) -> Iterator[dict[str, Any]]:
    for op in OPS:
        if (each := job.operations.get(op)) is None:
            continue
        yield {
            "job": job.name,
            "op": op,
            "requests": each.requests,
            "iops": each.iops or (each.requests / each.seconds if each.seconds else None),
            "mib_per_s": each.bytes / MIB / each.seconds if each.seconds and each.bytes else None,
            **each.latencies(),
            "waf": None,
            "errors": job.errors,
            "unserved": None,
            "why": each.unsupported(),
        }


def _conclude(rows: list[dict[str, Any]], jobs: Sequence[_FioJob], release: str) -> Conclusion:
    seconds = sum(job.seconds for job in jobs)
    operations = [each for job in jobs for each in job.operations.values()]
    requests, moved = sum(each.requests for each in operations), sum(e.bytes for e in operations)
    if not seconds:
        return Conclusion(rows, {}, f"{release}: its results have no times.")
    count = f"{len(jobs)} jobs" if len(jobs) > 1 else "the job"
    why = f"{requests} requests of {count} in {format_duration(seconds)}, measured by {release}"
    findings = {
        "iops": Finding(requests / seconds, "/s", None, None, why),
        "mib_per_s": Finding(moved / MIB / seconds, "MiB/s", None, None, why),
    }
    for name in ("latency_us_p50", "latency_us_p99") if len(rows) == 1 else ():
        findings[name] = Finding(rows[0][name], "us", None, None, rows[0]["why"] or why)
    verdict = (
        f"Measured by {release}: {number(requests / seconds)} requests/s, "
        f"{number(moved / MIB / seconds)} MiB/s."
    )
    return Conclusion(rows, findings, verdict)


def _run_of_logs(path: Path, logs: LogSet) -> Run:
    """The run that logs alone describe: rates over time; latencies if each request has a line."""
    intervals = intervals_of(logs, 0, {})
    if not intervals:
        raise UsageError(f"{path}: no rate can be computed from this log alone; {HINT}")
    job = _FioJob(logs.name, {}, {})
    seconds = logs.end_ms / 1e3
    moved_by = {op: sum(intervals[f"{op}_bytes"]) for op in ("read", "write")}
    moved_by["trim"] = sum(intervals["bytes"]) - sum(moved_by.values())
    for op, name in (("read", "reads"), ("write", "writes"), ("trim", "trims")):
        requests = int(sum(intervals[name]))
        moved = moved_by[op]
        if not requests and not moved:
            continue
        operation = _Operation(requests, float(moved), requests / seconds, seconds)
        operation.bins = logs.bins(op)
        job.operations[op] = operation
    recording = Recording()
    recording.add(_step(job, 0, 0, logs))
    return _run(
        path,
        recording,
        _conclude(list(_rows(job)), [job], "fio (its logs)"),
        _Origin(logs.name, _iso(path.stat().st_mtime), "of unknown version", [logs.name]),
    )
