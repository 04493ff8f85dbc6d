"""The results of a sweep: one Parquet dataset, a folder with one file for each run.

    sweep.json          the spec, the varied parameters, the keys of all runs
    runs/KEY.parquet    one row: key, point, repeat, seed, the varied parameters, the results

A file is named after its run's key and written atomically, so repeating a run replaces its file.
`pyarrow.dataset.dataset(FOLDER/runs)` reads all runs.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa

from ssdlab.errors import UsageError
from ssdlab.input_files import read_bytes
from ssdlab.records import encode_json, read_parquet, write_parquet, write_whole
from ssdlab.sweep.execute import Outcome
from ssdlab.sweep.spec import SweepRun

MANIFEST: Final = "sweep.json"
RESULTS: Final = (
    *("write_iops", "waf", "read_mib_per_s", "latency_us_p50", "latency_us_p99", "cost"),
)
"""The result columns of each run."""


class SweepManifest(msgspec.Struct, frozen=True):
    """The content of sweep.json; `numeric` says which varied parameters are numbers."""

    ssdlab: str
    name: str
    design: str
    profile: str
    spec: str
    numeric: dict[str, bool]
    keys: list[str]
    repeats: int


@dataclass(frozen=True)
class Dataset:
    """A sweep's folder and its manifest."""

    folder: Path
    manifest: SweepManifest

    @property
    def schema(self) -> pa.Schema:
        """The columns of the files in `runs`."""
        varied = [
            (name, pa.float64() if numeric else pa.string())
            for name, numeric in self.manifest.numeric.items()
        ]
        integers = [(name, pa.int64()) for name in ("point", "repeat", "seed")]
        texts = [(name, pa.string()) for name in ("status", "reason")]
        results = [(name, pa.float64()) for name in RESULTS]
        last = [("ssdlab", pa.string()), ("seconds", pa.float64()), ("attempts", pa.int64())]
        return pa.schema([("key", pa.string()), *integers, *texts, *varied, *results, *last])

    def store(self, outcome: Outcome) -> None:
        """Stores an outcome, replacing any earlier outcome of the same run.

        Raises:
            UsageError: the folder cannot be written.
        """
        run, numeric = outcome.run, self.manifest.numeric
        row: dict[str, Any] = {
            "key": run.key,
            "point": run.point,
            "repeat": run.repeat,
            "seed": run.plan["seed"],
            "status": "failed" if outcome.row is None else "done",
            "reason": outcome.reason,
            "attempts": outcome.attempts,
            **{k: v if numeric[k] else _as_text(v) for k, v in run.values.items()},
            **(outcome.row or {}),
        }
        table = pa.Table.from_pylist([row], schema=self.schema)
        try:
            write_parquet(self._file(run.key), table)
        except OSError as error:
            raise UsageError(
                f"{self.folder} cannot be written ({error.strerror}); free space, and repeat the "
                "command to resume"
            ) from error

    def rows(self) -> list[dict[str, Any]]:
        """The rows of all stored runs, successful or failed, in the order of the plan."""
        files = [self._file(key) for key in self.manifest.keys]
        return [row for file in files if file.exists() for row in read_parquet(file).to_pylist()]

    def done(self) -> set[str]:
        """The keys of the runs that succeeded."""
        return {row["key"] for row in self.rows() if row["status"] == "done"}

    def _file(self, key: str) -> Path:
        return self.folder / "runs" / f"{key}.parquet"


def is_dataset(folder: Path) -> bool:
    """Whether a folder contains a sweep; false if the folder cannot be accessed."""
    # Not Path.is_file, which raises if a name is too long.
    return os.path.isfile(folder / MANIFEST)  # noqa: PTH113


def open_dataset(folder: Path) -> Dataset:
    """The dataset in a sweep's folder, for reading.

    Raises:
        UsageError: the dataset cannot be read.
    """
    try:
        manifest = msgspec.json.decode(read_bytes(folder / MANIFEST), type=SweepManifest)
    except (OSError, msgspec.MsgspecError) as error:
        raise UsageError(f"the sweep in {folder} cannot be read: {error}") from error
    return Dataset(folder, manifest)


@contextlib.contextmanager
def open_for_writing(folder: Path, manifest: SweepManifest) -> Iterator[Dataset]:
    """The dataset in a folder, created or resumed, locked for this process.

    Raises:
        UsageError: the folder cannot be written, another process holds its lock, or it contains
            runs of another sweep.
    """
    try:
        (folder / "runs").mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise UsageError(
            f"{folder}: cannot store a sweep there ({error.strerror}); give --out another folder"
        ) from error
    try:
        _lock(descriptor, folder)
        _refuse_other_runs(folder, manifest.keys)
        write_whole(folder / MANIFEST, encode_json(manifest).encode())
        yield Dataset(folder, manifest)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise UsageError(
            f"{folder}: another sweep is writing there; wait for it, or give --out"
        ) from error


def _refuse_other_runs(folder: Path, keys: Sequence[str]) -> None:
    others = {path.stem for path in (folder / "runs").glob("*.parquet")} - set(keys)
    if others:
        raise UsageError(
            f"{folder} contains {len(others)} runs of another sweep (another spec, or another "
            "version of ssdlab); give --out another folder"
        )


def numeric_keys(runs: Sequence[SweepRun]) -> dict[str, bool]:
    """For each varied key, whether all its values are numbers."""
    numeric: dict[str, bool] = {}
    for run in runs:
        for key, value in run.values.items():
            numeric[key] = numeric.get(key, True) and _is_number(value)
    return numeric


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
