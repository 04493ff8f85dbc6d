"""The results of the suite as CrystalDiskMark's default table, in its unit: MB/s."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ssdlab.checkup.record import Checkup
from ssdlab.experiments.suite.analysis import CRYSTALDISKMARK

_BYTES_PER_MIB: Final = 1 << 20


class TableRow(msgspec.Struct, frozen=True):
    """A test by CrystalDiskMark's name; MB/s are millions of bytes a second, None if unmeasured."""

    test: str
    read_mb_per_s: float | None
    write_mb_per_s: float | None


def mb_per_s(mib_per_s: float) -> float:
    """Millions of bytes a second."""
    return mib_per_s * _BYTES_PER_MIB / 1e6


def table(checkup: Checkup) -> list[TableRow]:
    """The four tests in CrystalDiskMark's order; [] if none was measured."""
    run = checkup.runs.get("suite")
    if run is None or not run.result.measures:
        return []
    means = {(row["test"], row["op"]): row["mean"] for row in run.result.measures}
    return [
        TableRow(name, _value(means, test, "read"), _value(means, test, "write"))
        for test, name in CRYSTALDISKMARK.items()
    ]


def _value(means: dict[tuple[str, str], Any], test: str, op: str) -> float | None:
    mean = means.get((test, op))
    return None if mean is None else round(mb_per_s(mean), 2)
