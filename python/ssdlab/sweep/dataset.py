"""What came of a sweep: one Parquet dataset, a folder with a file a run.

    sweep.json     the spec, what varies, the keys of the runs that belong to it
    runs/KEY.parquet   a row: key, point, repeat, seed, what varied, what was found

A file is named by its run's key and appears whole or not at all, so that whoever goes on, or does
a run twice, counts it once. `pyarrow.dataset.dataset(FOLDER/runs)` reads all.
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
from ssdlab.sweep.design import Order
from ssdlab.sweep.here import Ended

ABOUT: Final = "sweep.json"
NUMBERS: Final = (
    *("write_iops", "waf", "read_mib_per_s", "latency_us_p50", "latency_us_p99", "cost"),
)
"""What is found of each run."""


class About(msgspec.Struct, frozen=True):
    """What a dataset is of: its name and spec, what varies (`numeric`: by number), its runs."""

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
    """A sweep's folder, and what it is of."""

    folder: Path
    about: About

    @property
    def schema(self) -> pa.Schema:
        """The columns of `runs`."""
        varied = [
            (name, pa.float64() if numeric else pa.string())
            for name, numeric in self.about.numeric.items()
        ]
        whole = [(name, pa.int64()) for name in ("point", "repeat", "seed")]
        words = [(name, pa.string()) for name in ("status", "reason")]
        numbers = [(name, pa.float64()) for name in NUMBERS]
        ends = [("ssdlab", pa.string()), ("seconds", pa.float64()), ("attempts", pa.int64())]
        return pa.schema([("key", pa.string()), *whole, *words, *varied, *numbers, *ends])

    def put(self, ended: Ended) -> None:
        """Keeps a run, and takes the place of what was kept of it.

        Raises:
            UsageError: the folder takes no more.
        """
        order = ended.order
        row: dict[str, Any] = {
            "key": order.key,
            "point": order.point,
            "repeat": order.repeat,
            "seed": order.plan["seed"],
            "status": "failed" if ended.row is None else "done",
            "reason": ended.reason,
            "attempts": ended.attempts,
            **{k: v if self.about.numeric[k] else _word(v) for k, v in order.values.items()},
            **(ended.row or {}),
        }
        table = pa.Table.from_pylist([row], schema=self.schema)
        try:
            write_parquet(self._file(order.key), table)
        except OSError as error:
            raise UsageError(f"{self.folder}: takes no more ({error.strerror})") from error

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the runs that belong to it and have come to an end, in order of the runs."""
        files = [self._file(key) for key in self.about.keys]
        return [row for file in files if file.exists() for row in read_parquet(file).to_pylist()]

    def done(self) -> set[str]:
        """The keys of the runs that need not be done again."""
        return {row["key"] for row in self.rows() if row["status"] == "done"}

    def _file(self, key: str) -> Path:
        return self.folder / "runs" / f"{key}.parquet"


def is_dataset(folder: Path) -> bool:
    """Whether a folder holds a sweep; one that cannot be asked holds none."""
    # Not Path.is_file: it raises where a name is too long.
    return os.path.isfile(folder / ABOUT)  # noqa: PTH113


def open_dataset(folder: Path) -> Dataset:
    """A sweep's folder as it is.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        return Dataset(folder, msgspec.json.decode(read_bytes(folder / ABOUT), type=About))
    except (OSError, msgspec.MsgspecError) as error:
        raise UsageError(f"{folder} holds a sweep that cannot be read: {error}") from error


@contextlib.contextmanager
def made(folder: Path, about: About) -> Iterator[Dataset]:
    """The dataset in a folder, made there or gone on with, for this process alone.

    Raises:
        UsageError: the folder cannot be written, another process is at it, or it holds runs that
            are none of this sweep.
    """
    try:
        (folder / "runs").mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise UsageError(
            f"{folder}: no sweep can be kept there ({error.strerror}); give --out another folder"
        ) from error
    try:
        _require_alone(descriptor, folder)
        _require_own(folder, about.keys)
        write_whole(folder / ABOUT, encode_json(about).encode())
        yield Dataset(folder, about)
    finally:
        os.close(descriptor)


def _require_alone(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise UsageError(
            f"{folder}: another sweep writes there now; wait for it, or give --out"
        ) from error


def _require_own(folder: Path, keys: Sequence[str]) -> None:
    strange = {path.stem for path in (folder / "runs").glob("*.parquet")} - set(keys)
    if strange:
        raise UsageError(
            f"{folder} holds {len(strange)} runs that are none of this sweep (another spec, or "
            "another version of ssdlab); give --out another folder"
        )


def numeric_of(orders: Sequence[Order]) -> dict[str, bool]:
    """Of each key that varies, whether all its values are numbers."""
    found: dict[str, bool] = {}
    for values in (order.values for order in orders):
        for key, value in values.items():
            found[key] = found.get(key, True) and _is_number(value)
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
