"""Percentiles of latency as they were recorded: by step, by kind of request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ssdlab.stats.quantile import Percentiles, percentiles, samples_needed

Column: TypeAlias = npt.NDArray[Any]
OPS: Final = ("read", "write", "trim", "flush")
"""By the number that the column `op` has."""
SHARES: Final = {"p50": 0.5, "p99": 0.99, "p999": 0.999, "p9999": 0.9999}
"""The percentiles that are told, by the last part of a column's name."""


@dataclass(frozen=True)
class Latencies:
    """How many requests there were, and their percentiles in us; None where too few support one."""

    requests: int
    us: Percentiles

    def columns(self) -> dict[str, float | None]:
        """`latency_us_p50` and so on."""
        return {f"latency_us_{name}": getattr(self.us, name) for name in SHARES}

    def unsupported(self) -> str | None:
        """The percentiles that are None and how many requests they take; None where none is."""
        missing = [name for name in SHARES if getattr(self.us, name) is None]
        if not missing:
            return None
        takes = ", ".join(f"{told(name)} takes {samples_needed(SHARES[name])}" for name in missing)
        return f"{takes} requests, and {self.requests} were made"


def told(name: str) -> str:
    """A percentile for people: "p99.99"."""
    return f"p{SHARES[name] * 100:g}"


def of_kinds(tables: Mapping[str, pa.Table], steps: Iterable[int]) -> dict[str, Latencies]:
    """The latencies of some steps together, by kind of request, in the order of `OPS`."""
    return {op: each for (_, op), each in by_group(tables, dict.fromkeys(steps, 0)).items()}


def by_group(
    tables: Mapping[str, pa.Table], groups: Mapping[int, int]
) -> dict[tuple[int, str], Latencies]:
    """The latencies of the steps of each group together, by kind of request, both in order.

    `groups` has a group for each step that counts. What was not recorded by kind is of kind "".
    """
    table = tables["interval_latency"]
    kinds: tuple[str, ...] = OPS
    if not len(table):
        table, kinds = tables["latency"], ("",)
    steps = table["step"].to_numpy()
    wanted = np.isin(steps, np.array(list(groups), dtype=np.int64))
    keys, values, counts = _columns(table, wanted, groups)
    order = np.lexsort((values, keys))
    keys, values, counts = keys[order], values[order], counts[order]
    edges = np.flatnonzero(np.diff(keys, prepend=-1))
    return {
        (int(keys[start]) // len(OPS), kinds[int(keys[start]) % len(OPS)]): _latencies(
            values[start:stop], counts[start:stop]
        )
        for start, stop in zip(edges, [*edges[1:], len(keys)], strict=True)
    }


def of_all(tables: Mapping[str, pa.Table], steps: Iterable[int]) -> Latencies:
    """The latencies of all requests of some steps together."""
    table = tables["latency"]
    rows = table.filter(pc.is_in(table["step"], pa.array(list(steps), pa.uint32())))
    return _latencies(rows["latency_ns"].to_numpy(), rows["count"].to_numpy())


def _columns(
    table: pa.Table, wanted: Column, groups: Mapping[int, int]
) -> tuple[Column, Column, Column]:
    """Of the wanted rows: group and kind as one number, the latency, how often it was."""
    found, places = np.unique(table["step"].to_numpy()[wanted], return_inverse=True)
    group = np.array([groups[int(step)] for step in found], dtype=np.int64)[places]
    kind = table["op"].to_numpy()[wanted] if "op" in table.column_names else 0
    keys = group * len(OPS) + kind
    return keys, table["latency_ns"].to_numpy()[wanted], table["count"].to_numpy()[wanted]


def _latencies(latency_ns: Column, count: Column) -> Latencies:
    values, places = np.unique(latency_ns, return_inverse=True)
    counts = np.zeros(len(values), dtype=np.int64)
    np.add.at(counts, places, count.astype(np.int64))
    return Latencies(int(counts.sum()), percentiles(values / 1e3, counts))
