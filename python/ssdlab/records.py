"""The run folder: tables with their columns and units, manifest and result.

manifest.json             target, host, versions, seed, parameters
steps.parquet             one row per step: `STEPS`
intervals.parquet         requests and bytes per interval of each step: `INTERVALS`
interval_latency.parquet  latency histogram per interval: `INTERVAL_LATENCY`
latency.parquet           latency histogram per step: `LATENCY`
observations.parquet      other measurements between steps: `OBSERVATIONS`
result.json               measures, findings, verdict, warnings: the output of `--json`
"""

from __future__ import annotations

import contextlib
import errno
import re
import secrets
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ssdlab import json_text
from ssdlab.errors import UsageError
from ssdlab.input_files import MAX_TABLE_BYTES, read_bytes
from ssdlab.json_text import encode_json_bytes
from ssdlab.warning import MeasurementWarning

encode_json: Final = json_text.encode_json
CHECKUP_FILE: Final = "checkup.json"
"""The file that makes a folder with runs the folder of a checkup."""
STEPS: Final = pa.schema(
    [
        ("step", pa.uint32()),  # number within the run, from 0
        ("phase", pa.string()),  # fill, flush, read, overwrite, ...; set by the experiment
        ("stage", pa.uint32()),  # equal for steps that belong together, from 0
        ("repeat", pa.uint32()),  # number of the repeat within its stage, from 0
        ("case", pa.string()),  # the experiment's case, such as a mode or a test; "" for none
        ("value", pa.float64()),  # the varied parameter; its unit is in the experiment's page
        ("rest_s", pa.float64()),  # idle time right before the step
        ("block_bytes", pa.uint64()),  # of each request; 0 for a flush or a rest
        ("queue_depth", pa.uint32()),
        ("start_ns", pa.uint64()),  # on the device's clock
        ("end_ns", pa.uint64()),
        ("requests", pa.uint64()),
        ("bytes", pa.uint64()),
        ("errors", pa.uint64()),
        ("extents", pa.uint32()),  # extents of the test file after it; null without a file
        # CPU time in seconds on the measuring host during the step; null if not measured.
        ("own_user_s", pa.float64()),  # of this process (getrusage)
        ("own_system_s", pa.float64()),
        ("foreign_cpu_s", pa.float64()),  # of all other processes (/proc/stat; resolution 0.01 s)
        ("stolen_cpu_s", pa.float64()),  # steal time
        ("job", pa.string()),  # the workload job as JSON; null in runs of older versions
        ("opened", pa.string()),  # open options as JSON; null for a twin or ssdlab's default
        ("engine", pa.string()),  # "twin", "io_uring direct registered_buffers", ...
        ("unserved", pa.uint64()),  # requests of an open loop that were due but not sent
    ]
)
INTERVALS: Final = pa.schema(
    [
        ("step", pa.uint32()),
        ("start_ns", pa.uint64()),  # on the device's clock
        ("requests", pa.uint64()),  # completed successfully in the interval
        ("bytes", pa.uint64()),
        ("latency_ns_max", pa.uint64()),
        # By operation; null if the run did not record them.
        ("reads", pa.uint64()),
        ("writes", pa.uint64()),
        ("trims", pa.uint64()),
        ("flushes", pa.uint64()),
        ("read_bytes", pa.uint64()),
        ("write_bytes", pa.uint64()),
        ("errors", pa.uint64()),  # failed requests
        # Bytes programmed to a twin's flash since the interval before; null for a real drive.
        ("flash_write_bytes", pa.uint64()),
    ]
)
LATENCY: Final = pa.schema(
    [
        ("step", pa.uint32()),
        ("latency_ns", pa.uint64()),  # upper bound of the bucket; three digits
        ("count", pa.uint64()),
    ]
)
INTERVAL_LATENCY: Final = pa.schema(
    [
        ("step", pa.uint32()),
        ("interval", pa.uint32()),  # index within the intervals of its step, from 0
        ("op", pa.uint8()),  # read 0, write 1, trim 2, flush 3
        ("latency_ns", pa.uint64()),  # as in LATENCY; several rows may have the same latency
        ("count", pa.uint64()),
    ]
)
OBSERVATIONS: Final = pa.schema(
    [
        ("step", pa.uint32()),  # number of steps recorded before the observation
        ("name", pa.string()),  # temperature_c, waf, ...; ends in the unit
        ("detail", pa.string()),  # text; "" for none
        ("value", pa.float64()),  # null if not a number
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
"""Tables recorded by rows; the others are recorded by columns."""


class Finding(msgspec.Struct, frozen=True):
    """A result of the analysis.

    `low` and `high` are its 95 % interval, or None if not known. `unit` is "x" for a ratio and ""
    for text or a truth value. `why` is the evidence in one sentence.
    """

    value: float | bool | str | None
    unit: str
    low: float | None
    high: float | None
    why: str


class Result(msgspec.Struct, frozen=True):
    """The result of a run, as `--json` prints it."""

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
    """The origin of a run: target, host, versions, parameters."""

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
    device: dict[str, Any]  # a twin's model and geometry, or a drive and its storage stack
    profile: str | None  # the TOML of a twin
    outcome: str = "complete"  # or "interrupted", "failed"
    plan: dict[str, Any] = {}  # the experiment's plan and the target's options: for resuming
    wish: dict[str, Any] = {}
    label: str = ""  # set by the user
    # Command-line options by name, without those at their default. None: from an older version.
    options: dict[str, str | bool] | None = None


@dataclass(frozen=True)
class StepRow:
    """One step: a row of `STEPS` without its number, and columns for the other tables."""

    values: Mapping[str, Any]
    intervals: Mapping[str, Any] = field(default_factory=dict)
    latency: Mapping[str, Any] = field(default_factory=dict)
    interval_latency: Mapping[str, Any] = field(default_factory=dict)


class Recording:
    """Collects the tables of a run; numbers the steps in order."""

    def __init__(self) -> None:
        """No steps yet."""
        self._rows: dict[str, list[dict[str, Any]]] = {name: [] for name in _ROWS}
        names = [name for name in _TABLES if name not in _ROWS]
        self._parts: dict[str, list[pa.Table]] = {name: [] for name in names}
        self._new: dict[str, list[tuple[int, Mapping[str, Any]]]] = {name: [] for name in names}

    def add(self, row: StepRow) -> None:
        """Adds the next step.

        `row.values` has the columns of `STEPS` except `step`; the other fields are empty or have
        the columns of their tables as arrays of equal length. Missing columns become null.
        """
        step = len(self._rows["steps"])
        self._rows["steps"].append({"step": step, **row.values})
        for name, new in self._new.items():
            if columns := getattr(row, name):
                new.append((step, columns))

    def observe(self, name: str, value: float | None = None, detail: str = "") -> None:
        """Adds a row to `OBSERVATIONS`."""
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
            if new := self._new[name]:
                parts.append(_joined(new, _TABLES[name]))
                new.clear()
            tables[name] = pa.concat_tables(parts) if parts else _TABLES[name].empty_table()
        return tables


def _joined(steps: Sequence[tuple[int, Mapping[str, Any]]], schema: pa.Schema) -> pa.Table:
    """One table of the columns of several steps: a table for each would take far longer."""
    lengths = [len(next(iter(columns.values()))) for _, columns in steps]
    arrays = {"step": pa.array(np.repeat([step for step, _ in steps], lengths), schema.types[0])}
    for name, kind in zip(schema.names[1:], schema.types[1:], strict=True):
        recorded = [columns[name] for _, columns in steps if name in columns]
        types = {column.dtype if isinstance(column, np.ndarray) else None for column in recorded}
        # Arrays of different types are converted singly: NumPy would join them as float64.
        if len(recorded) == len(steps) and len(types) == 1 and None not in types:
            arrays[name] = pa.array(np.concatenate(recorded), kind)
        else:
            arrays[name] = pa.chunked_array(
                [
                    pa.array(columns[name], kind) if name in columns else pa.nulls(length, kind)
                    for (_, columns), length in zip(steps, lengths, strict=True)
                ],
                kind,
            )
    return pa.table(arrays, schema=schema)


@dataclass(frozen=True)
class Run:
    """A run that was read from its folder."""

    folder: Path
    manifest: Manifest
    result: Result
    tables: dict[str, pa.Table]


def run_name(experiment: str, label: str, started: datetime) -> str:
    """A folder name that sorts by time: 20261121-101500-aging-toshiba-xg5-3f2a."""
    word = re.sub(r"[^a-z0-9]+", "-", label.lower())[-32:].strip("-")
    word = word or ("root" if label.startswith("/") else "here")
    return f"{started:%Y%m%d-%H%M%S}-{experiment}-{word}-{secrets.token_hex(2)}"


def make_folder(results: Path, name: str) -> Path:
    """Creates the folder of a new run in `results`.

    Raises:
        UsageError: the folder cannot be created.
    """
    folder = results / name
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        is_full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        advice = (
            "free some space there, or give --out a directory on another file system"
            if is_full
            else "give --out a directory with write permission"
        )
        raise UsageError(
            f"{results}: no run folder can be created there ({error.strerror}); {advice}"
        ) from error
    return folder


def write_run(
    folder: Path, manifest: Manifest, recording: Recording, result: Result | None
) -> None:
    """Writes a run; each file is written atomically.

    Raises:
        UsageError: the folder cannot be written.
    """
    try:
        write_whole(folder / "manifest.json", encode_json_bytes(manifest))
        for name, table in recording.tables().items():
            write_parquet(folder / f"{name}.parquet", table)
        if result is not None:
            write_whole(folder / "result.json", encode_json_bytes(result))
    except OSError as error:
        for partial in folder.glob("*.part"):
            partial.unlink(missing_ok=True)
        reason = error.strerror or str(error)
        raise UsageError(
            f"{folder}: the run cannot be written there ({reason}); free some space, or give --out "
            "another directory"
        ) from error


def read_run(folder: Path) -> Run:
    """Reads a finished run.

    Raises:
        UsageError: the folder has no finished run, or one in another format.
    """
    manifest, tables = read_recorded(folder)
    path = folder / "result.json"
    _require(path)
    try:
        result = msgspec.json.decode(read_bytes(path), type=Result)
    except (OSError, msgspec.MsgspecError) as error:
        raise UsageError(f"{folder} holds a run that cannot be read: {error}") from error
    return Run(folder, manifest, result, tables)


def read_recorded(folder: Path) -> tuple[Manifest, dict[str, pa.Table]]:
    """The manifest and tables of a run, finished or not.

    Raises:
        UsageError: the folder has no run, or one in another format.
    """
    tables = [name for name in _TABLES if name != "observations"]  # older versions lack this one
    for name in ("manifest.json", *(f"{table}.parquet" for table in tables)):
        _require(folder / name)
    if (folder / "observations.parquet").exists():
        tables.append("observations")
    try:
        manifest = msgspec.json.decode(read_bytes(folder / "manifest.json"), type=Manifest)
        recorded = {name: read_parquet(folder / f"{name}.parquet") for name in tables}
    except (OSError, msgspec.MsgspecError, pa.ArrowException) as error:
        raise UsageError(f"{folder} holds a run that cannot be read: {error}") from error
    return manifest, {"observations": OBSERVATIONS.empty_table(), **recorded}


def _require(path: Path) -> None:
    if path.exists():
        return
    folder = path.parent
    sentence = f"{folder} is not the folder of a finished run (no {path.name})"
    if path.name == "result.json" and (folder / "manifest.json").exists():
        raise UsageError(
            f"{sentence}: it was killed, or is still running; to resume it, ssdlab run resume "
            f"{shlex.quote(str(folder))}"
        )
    raise UsageError(f"{sentence}; give a folder that `ssdlab run` created")


def find_runs(path: Path, *, in_checkups: bool = False) -> list[Path]:
    """The run folder itself, or all finished runs in a results folder, oldest first.

    With `in_checkups` also those in the folders of checkups.

    Raises:
        UsageError: `path` has no run.
    """
    try:
        if (path / "manifest.json").is_file():
            return [path]
        folders = [result.parent for result in path.glob("*/result.json")]
        if in_checkups:
            deeper = (result.parent for result in path.glob("*/*/result.json"))
            folders += (run for run in deeper if (run.parent / CHECKUP_FILE).is_file())
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}); give a run folder") from error
    if not folders:
        if not path.exists():
            raise UsageError(f"{path} does not exist; give a run folder or a results folder")
        raise UsageError(
            f"{path} holds no run; give the folder of a run, or the results folder of --out"
        )
    return sorted(folders)


def unfinished_runs(path: Path) -> list[tuple[Path, Manifest]]:
    """Runs of a results folder without a result: killed, or still running; oldest first."""
    found = []
    for file in sorted(path.glob("*/manifest.json")):
        if not (file.parent / "result.json").exists():
            with contextlib.suppress(OSError, msgspec.MsgspecError):
                found.append((file.parent, msgspec.json.decode(read_bytes(file), type=Manifest)))
    return found


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file atomically: to a `.part` file that replaces `path`."""
    partial = path.with_suffix(path.suffix + ".part")
    partial.write_bytes(content)
    partial.replace(path)


def write_parquet(path: Path, table: pa.Table) -> None:
    """Writes a table atomically."""
    # Through memory: pyarrow rejects paths that are not UTF-8, and accesses Python files from its
    # own threads, which may outlive the interpreter.
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    write_whole(path, sink.getvalue().to_pybytes())


def read_parquet(path: Path) -> pa.Table:
    """Reads a table that `write_parquet` wrote."""
    source = pa.BufferReader(read_bytes(path, MAX_TABLE_BYTES))
    return pq.read_table(source, use_threads=False, pre_buffer=False)


def utc_now() -> datetime:
    """The wall clock, for names and manifests; never for measurements."""
    return datetime.now(UTC)
