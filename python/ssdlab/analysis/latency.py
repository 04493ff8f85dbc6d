"""Latency percentiles of steps, by operation."""

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
"""Indexed by the values of the column `op`."""
SHARES: Final = {"p50": 0.5, "p99": 0.99, "p999": 0.999, "p9999": 0.9999}
"""Reported percentiles by the suffix of their column."""


@dataclass(frozen=True)
class Latencies:
    """Number of requests, and percentiles in us; None with too few requests for a percentile."""

    requests: int
    us: Percentiles

    def columns(self) -> dict[str, float | None]:
        """The percentiles by column name: `latency_us_p50` and so on."""
        return {f"latency_us_{name}": getattr(self.us, name) for name in SHARES}

    def unsupported(self) -> str | None:
        """The missing percentiles and how many requests each needs; None if none is missing."""
        missing = [name for name in SHARES if getattr(self.us, name) is None]
        if not missing:
            return None
        needs = ", ".join(
            f"{percentile_label(name)} needs {samples_needed(SHARES[name])}" for name in missing
        )
        return f"{needs} requests, and the run made {self.requests}"


def percentile_label(name: str) -> str:
    """The label of a percentile: "p99.99" for "p9999"."""
    return f"p{SHARES[name] * 100:g}"


def latencies_by_op(tables: Mapping[str, pa.Table], steps: Iterable[int]) -> dict[str, Latencies]:
    """The pooled latencies of the steps, by operation, in the order of `OPS`."""
    groups = latencies_by_group(tables, dict.fromkeys(steps, 0))
    return {op: latencies for (_, op), latencies in groups.items()}


def latencies_by_group(
    tables: Mapping[str, pa.Table], groups: Mapping[int, int]
) -> dict[tuple[int, str], Latencies]:
    """The pooled latencies of each group of steps, by operation, both in order.

    `groups` maps a step to its group; other steps are ignored. The operation is "" if the run did
    not record latencies by operation.
    """
    table = tables["interval_latency"]
    ops: tuple[str, ...] = OPS
    if not len(table):
        table, ops = tables["latency"], ("",)
    selected = np.isin(table["step"].to_numpy(), np.array(list(groups), dtype=np.int64))
    keys, values, counts = _columns(table, selected, groups)
    order = np.lexsort((values, keys))
    keys, values, counts = keys[order], values[order], counts[order]
    if not len(keys):  # the run ended before its first request
        return {}
    if not len(keys):  # the run ended before its first request
        return {}
    edges = np.flatnonzero(np.diff(keys, prepend=-1))
    return {
        (int(keys[start]) // len(OPS), ops[int(keys[start]) % len(OPS)]): _latencies(
            values[start:stop], counts[start:stop]
        )
        for start, stop in zip(edges, [*edges[1:], len(keys)], strict=True)
    }


def latencies_of_steps(tables: Mapping[str, pa.Table], steps: Iterable[int]) -> Latencies:
    """The pooled latencies of all requests of the steps."""
    table = tables["latency"]
    rows = table.filter(pc.is_in(table["step"], pa.array(list(steps), pa.uint32())))
    return _latencies(rows["latency_ns"].to_numpy(), rows["count"].to_numpy())


def _columns(
    table: pa.Table, selected: Column, groups: Mapping[int, int]
) -> tuple[Column, Column, Column]:
    """Columns of the selected rows: key (group and operation), latency in ns, count."""
    steps, inverse = np.unique(table["step"].to_numpy()[selected], return_inverse=True)
    group = np.array([groups[int(step)] for step in steps], dtype=np.int64)[inverse]
    op = table["op"].to_numpy()[selected] if "op" in table.column_names else 0
    keys = group * len(OPS) + op
    return keys, table["latency_ns"].to_numpy()[selected], table["count"].to_numpy()[selected]


def _latencies(latency_ns: Column, count: Column) -> Latencies:
    values, inverse = np.unique(latency_ns, return_inverse=True)
    counts = np.zeros(len(values), dtype=np.int64)
    np.add.at(counts, inverse, count.astype(np.int64))
    return Latencies(int(counts.sum()), percentiles(values / 1e3, counts))
