"""What a run leaves on disk: its columns and their units, written down once, and its folder.

A run folder holds

    manifest.json      who measured what, where, with which versions, seed and parameters
    steps.parquet      one row a step: `STEPS`
    intervals.parquet  what happened in each interval of each step: `INTERVALS`
    interval_latency.parquet  how often each latency occurred in each interval: `INTERVAL_LATENCY`
    latency.parquet    how often each latency occurred in each step: `LATENCY`
    observations.parquet  what else was seen, and after which step: `OBSERVATIONS`
    result.json        measures, findings, verdict, warnings: what `--json` prints

Whoever reads a folder years later needs nothing but this module.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from ssdlab.errors import UsageError
from ssdlab.input_files import TABLE_BYTES_MOST, read_bytes
from ssdlab.warning import MeasurementWarning

STEPS: Final = pa.schema(
    [
        ("step", pa.uint32()),  # number in the run, from 0
        ("phase", pa.string()),  # fill, flush, read, overwrite, ...: the experiment's own words
        ("stage", pa.uint32()),  # the same for steps that belong together, from 0
        ("repeat", pa.uint32()),  # number among the equal steps of its stage, from 0
        ("case", pa.string()),  # which of the experiment's cases: a mode, a test; "" for none
        ("value", pa.float64()),  # what it varies, in the unit that its page names; null for none
        ("rest_s", pa.float64()),  # seconds of rest right before it
        ("block_bytes", pa.uint64()),  # of each request; 0 for a flush or a rest
        ("queue_depth", pa.uint32()),
        ("start_ns", pa.uint64()),  # on the device's clock
        ("end_ns", pa.uint64()),
        ("requests", pa.uint64()),
        ("bytes", pa.uint64()),
        ("errors", pa.uint64()),
        ("extents", pa.uint32()),  # fragments of the test file after it; null where none is
        # The measuring host meanwhile, in seconds of CPU time; null where it was not looked at.
        ("own_user_s", pa.float64()),  # of this process (getrusage)
        ("own_system_s", pa.float64()),
        ("foreign_cpu_s", pa.float64()),  # of all others (/proc/stat, steps of 0.01 s)
        ("stolen_cpu_s", pa.float64()),  # kept by the hypervisor
        # What was asked, as the JSON text that the loop read; null in what an older version made.
        ("job", pa.string()),
        ("opened", pa.string()),  # how the drive was, as JSON; null for ssdlab's own way or a twin
        ("engine", pa.string()),  # by which way: "twin", "io_uring direct registered_buffers", ...
        ("unserved", pa.uint64()),  # requests of an open loop that should have started and did not
    ]
)
INTERVALS: Final = pa.schema(
    [
        ("step", pa.uint32()),
        ("start_ns", pa.uint64()),  # of the interval, on the device's clock
        ("requests", pa.uint64()),  # that succeeded and ended in it
        ("bytes", pa.uint64()),
        ("latency_ns_max", pa.uint64()),
        # The same by kind; null in what was not recorded so finely.
        ("reads", pa.uint64()),
        ("writes", pa.uint64()),
        ("trims", pa.uint64()),
        ("flushes", pa.uint64()),
        ("read_bytes", pa.uint64()),
        ("write_bytes", pa.uint64()),
        ("errors", pa.uint64()),  # requests that failed in it
    ]
)
LATENCY: Final = pa.schema(
    [
        ("step", pa.uint32()),
        ("latency_ns", pa.uint64()),  # upper end of the bucket; three digits
        ("count", pa.uint64()),
    ]
)
INTERVAL_LATENCY: Final = pa.schema(
    [
        ("step", pa.uint32()),
        ("interval", pa.uint32()),  # row among the intervals of its step, from 0
        ("op", pa.uint8()),  # read 0, write 1, trim 2, flush 3
        ("latency_ns", pa.uint64()),  # as in LATENCY: rows of one latency may be added up
        ("count", pa.uint64()),
    ]
)
OBSERVATIONS: Final = pa.schema(
    [
        ("step", pa.uint32()),  # steps recorded before it
        ("name", pa.string()),  # temperature_c, waf, ...: a measure's name, with its unit
        ("detail", pa.string()),  # in words; "" for none
        ("value", pa.float64()),  # null where it is no number
    ]
)
_TABLES: Final = {
    "steps": STEPS,
    "intervals": INTERVALS,
    "latency": LATENCY,
    "interval_latency": INTERVAL_LATENCY,
    "observations": OBSERVATIONS,
}
_ROWS: Final = ("steps", "observations")
"""Tables that grow by rows, the others by columns."""


class Finding(msgspec.Struct, frozen=True):
    """A number or a fact that the measures support.

    `low` and `high` bound the value (95 % interval), or are None where no interval is known.
    `unit` is "x" for a ratio and "" for a fact. `why` is one sentence of evidence.
    """

    value: float | bool | str | None
    unit: str
    low: float | None
    high: float | None
    why: str


class Result(msgspec.Struct, frozen=True):
    """What a run says: the JSON of the command line (design, section 5)."""

    ssdlab: str
    experiment: str
    target: str
    virtual: bool
    seed: int
    duration_s: float
    parameters: dict[str, Any]
    measures: list[dict[str, Any]]
    findings: dict[str, Finding]
    verdict: str
    warnings: list[MeasurementWarning]
    folder: str


class Manifest(msgspec.Struct, frozen=True):
    """Where a run comes from."""

    run: str
    ssdlab: str
    experiment: str
    target: str
    virtual: bool
    seed: int
    started: str  # UTC, ISO 8601
    parameters: dict[str, Any]
    versions: dict[str, str]  # python, kernel and libraries
    host: dict[str, Any]  # machine, processor, cores, memory
    device: dict[str, Any]  # identity: a twin's model and geometry, or a drive and its stack
    profile: str | None  # the TOML that the twin was made of
    outcome: str = "complete"  # or "interrupted", "failed"
    plan: dict[str, Any] = {}  # the experiment's plan and the target's options: for resuming
    wish: dict[str, Any] = {}
    label: str = ""  # what its user called it
    # Options as asked, by name; those with their default are left out. None: an older version.
    options: dict[str, str | bool] | None = None


@dataclass(frozen=True)
class StepRow:
    """One step: a row of `STEPS` without its number, and the columns of its outcome."""

    values: Mapping[str, Any]
    intervals: Mapping[str, Any] = field(default_factory=dict)
    latency: Mapping[str, Any] = field(default_factory=dict)
    interval_latency: Mapping[str, Any] = field(default_factory=dict)


class Recording:
    """The tables of a run while it is measured; step numbers are given in order."""

    def __init__(self) -> None:
        """No steps yet."""
        self._rows: dict[str, list[dict[str, Any]]] = {name: [] for name in _ROWS}
        self._parts: dict[str, list[pa.Table]] = {n: [] for n in _TABLES if n not in _ROWS}

    def add(self, row: StepRow) -> None:
        """Adds the next step.

        `row.values` has the columns of `STEPS` but `step`; the others have those of their tables
        as equally long arrays, or nothing. A column that is missing is null.
        """
        step = len(self._rows["steps"])
        self._rows["steps"].append({"step": step, **row.values})
        for name, parts in self._parts.items():
            columns = getattr(row, name)
            if columns:
                parts.append(_numbered(step, columns, _TABLES[name]))

    def observe(self, name: str, value: float | None = None, detail: str = "") -> None:
        """Adds a row of `OBSERVATIONS`."""
        step = len(self._rows["steps"])
        row = {"step": step, "name": name, "detail": detail, "value": value}
        self._rows["observations"].append(row)

    def tables(self) -> dict[str, pa.Table]:
        """The tables of a run, by name."""
        tables = {
            name: pa.Table.from_pylist(rows, schema=_TABLES[name])
            for name, rows in self._rows.items()
        }
        for name, parts in self._parts.items():
            tables[name] = pa.concat_tables(parts) if parts else _TABLES[name].empty_table()
        return tables


def _numbered(step: int, columns: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    length = len(next(iter(columns.values())))
    empty = dict.fromkeys(schema.names, [None] * length)
    return pa.table({**empty, "step": [step] * length, **columns}, schema=schema)


@dataclass(frozen=True)
class Run:
    """A run as read back from its folder."""

    folder: Path
    manifest: Manifest
    result: Result
    tables: dict[str, pa.Table]


def run_name(experiment: str, label: str, started: datetime) -> str:
    """A folder name that sorts by time: 20261121-101500-aging-toshiba-xg5-3f2a."""
    word = re.sub(r"[^a-z0-9]+", "-", label.lower())[-32:].strip("-")
    return f"{started:%Y%m%d-%H%M%S}-{experiment}-{word or 'root'}-{secrets.token_hex(2)}"


def make_folder(results: Path, name: str) -> Path:
    """Makes the folder of a new run below `results`.

    Raises:
        UsageError: it cannot be made or written there.
    """
    folder = results / name
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        reason = error.strerror
        raise UsageError(
            f"{results}: no run folder can be made there ({reason}); give --out a directory "
            "that you may write to"
        ) from error
    return folder


def write_run(
    folder: Path, manifest: Manifest, recording: Recording, result: Result | None
) -> None:
    """Writes a run; each file appears whole or not at all.

    Raises:
        UsageError: the folder takes no more.
    """
    try:
        write_whole(folder / "manifest.json", _json(manifest))
        for name, table in recording.tables().items():
            write_parquet(folder / f"{name}.parquet", table)
        if result is not None:
            write_whole(folder / "result.json", _json(result))
    except OSError as error:
        for partial in folder.glob("*.part"):
            partial.unlink(missing_ok=True)
        reason = error.strerror or str(error)
        raise UsageError(
            f"{folder}: the run cannot be written there ({reason}); make room, or give --out "
            "another directory"
        ) from error


def read_run(folder: Path) -> Run:
    """Reads a run back.

    Raises:
        UsageError: the folder holds no complete run, or one of another layout.
    """
    manifest, tables = read_begun(folder)
    path = folder / "result.json"
    _require(path)
    try:
        result = msgspec.json.decode(read_bytes(path), type=Result)
    except (OSError, msgspec.MsgspecError) as error:
        raise UsageError(f"{folder} holds a run that cannot be read: {error}") from error
    return Run(folder, manifest, result, tables)


def read_begun(folder: Path) -> tuple[Manifest, dict[str, pa.Table]]:
    """What a run has recorded, finished or not.

    Raises:
        UsageError: the folder holds no run, or one of another layout.
    """
    tables = [name for name in _TABLES if name != "observations"]  # came later than the others
    for name in ("manifest.json", *(f"{table}.parquet" for table in tables)):
        _require(folder / name)
    if (folder / "observations.parquet").exists():
        tables.append("observations")
    try:
        manifest = msgspec.json.decode(read_bytes(folder / "manifest.json"), type=Manifest)
        found = {name: read_parquet(folder / f"{name}.parquet") for name in tables}
    except (OSError, msgspec.MsgspecError, pa.ArrowException) as error:
        raise UsageError(f"{folder} holds a run that cannot be read: {error}") from error
    return manifest, {"observations": OBSERVATIONS.empty_table(), **found}


def _require(path: Path) -> None:
    if not path.exists():
        raise UsageError(
            f"{path.parent} is not the folder of a finished run (no {path.name}); give a folder "
            "that `ssdlab run` made"
        )


def find_runs(path: Path) -> list[Path]:
    """The run folder itself, or all finished runs right below a results folder, oldest first.

    Raises:
        UsageError: there is none.
    """
    try:
        if (path / "manifest.json").is_file():
            return [path]
        found = sorted(manifest.parent for manifest in path.glob("*/result.json"))
    except OSError as error:
        raise UsageError(f"{path} cannot be looked into ({error.strerror}); give a run") from error
    if not found:
        raise UsageError(
            f"{path} holds no run; give the folder of a run, or the folder that --out named"
        )
    return found


def encode_json(value: Any) -> str:
    """Any record as indented JSON text."""
    return _json(value).decode()


def _json(value: Any) -> bytes:
    try:
        text = msgspec.json.encode(value)
    except UnicodeEncodeError:  # a file name need not be text
        text = msgspec.json.encode(_readable(msgspec.to_builtins(value)))
    return msgspec.json.format(text, indent=2) + b"\n"


def _readable(value: Any) -> Any:
    r"""The same, with the bytes of file names that are no UTF-8 written as \xff."""
    if isinstance(value, dict):
        return {key: _readable(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_readable(each) for each in value]
    if isinstance(value, str):
        return os.fsencode(value).decode("utf-8", "backslashreplace")
    return value


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file that appears whole or not at all."""
    partial = path.with_suffix(path.suffix + ".part")
    partial.write_bytes(content)
    partial.replace(path)


def write_parquet(path: Path, table: pa.Table) -> None:
    """Writes a table, as `write_whole`."""
    # Through memory: pyarrow takes no path that is not UTF-8, and a Python file would be read by
    # threads of its own that may outlive the interpreter.
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    write_whole(path, sink.getvalue().to_pybytes())


def read_parquet(path: Path) -> pa.Table:
    """A table that `write_parquet` wrote."""
    source = pa.BufferReader(read_bytes(path, TABLE_BYTES_MOST))
    return pq.read_table(source, use_threads=False, pre_buffer=False)


def utc_now() -> datetime:
    """The wall clock, for names and manifests only: nothing is measured with it."""
    return datetime.now(UTC)
