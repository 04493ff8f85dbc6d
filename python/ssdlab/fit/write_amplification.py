"""Published write amplification (WAF) of real drives, and that of twins with the same spare.

WAF depends on no time and, for a given number of superblocks, on no size. So the twin has 4 GiB and
the drive's spare; its other numbers are those of a usual drive.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal

import numpy as np

from ssdlab import profiles
from ssdlab.device import Drive, Job, Listed, open_twin, run_job

Role = Literal["fitted", "by construction", "predicted"]
TABLE: Final = "write_amplification"
CAPACITY: Final = 4 << 30
UNIT: Final = 4096
TWENTIETHS: Final = 20
PASSES: Final = 3
"""Passes over the twin: the second and later ones repeat each other within 0.5 %."""
QUEUE_DEPTH: Final = 128
_STEADY_PASSES: Final = 3  # uniform random writes before WAF is measured, in drive writes
_BEGUN: Final = 1.02  # collection has begun where WAF exceeds this
_PROFILE: Final = """\
[drive]
model = "generic"
capacity = "{capacity} B"
interface = "nvme"
[link]
bandwidth = "3200 MiB/s"
read_overhead = "10 us"
write_overhead = "4 us"
[flash]
channels = 8
dies_per_channel = 4
planes = 2
page = "16 KiB"
pages_per_block = 6
read = "60 us"
program = "700 us"
erase = "3500 us"
channel_bandwidth = "800 MiB/s"
[ftl]
spare = {spare}
[buffer]
size = "1 MiB"
power_loss_protection = true
"""


@dataclass(frozen=True)
class Figure:
    """A published figure, and the same on a twin that has the drive's spare."""

    label: str
    published: float
    twin: float
    role: Role

    @property
    def error(self) -> float:
        """Relative error: positive where the twin's value is larger."""
        return self.twin / self.published - 1.0


def drives() -> dict[str, str]:
    """The drives of the table: the kind of measurement by name."""
    return {row["name"]: kind for kind, rows in _table().items() for row in rows}


def source_of(name: str) -> tuple[str, str]:
    """A drive's full name, and where its figures are from."""
    row = _row(name)
    return row["drive"], row["source"]


def compare(name: str) -> list[Figure]:
    """Measures a twin of a drive of the table.

    Raises:
        KeyError: the table does not have this drive.
    """
    return _COMPARE[drives()[name]](_row(name))


@cache
def _table() -> dict[str, list[dict[str, Any]]]:
    text = (profiles.tables() / f"{TABLE}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _row(name: str) -> dict[str, Any]:
    return next(row for rows in _table().values() for row in rows if row["name"] == name)


def _permutation(row: Mapping[str, Any]) -> list[Figure]:
    waf = permutation_waf(row["spare"])
    values = [float(value) for value in waf.ravel()]
    begins = next(at for at, value in enumerate(values) if value > _BEGUN)
    # Within its twentieth, collection begins where the rest of it raises the mean this much.
    share = min(1.0, (values[begins] - 1.0) / (values[begins + 1] - 1.0))
    mean = waf[1:].mean(axis=0)
    curve = [
        Figure(f"WAF, twentieth {number}", published, float(value), "predicted")
        for number, (published, value) in enumerate(zip(row["waf"], mean, strict=True), 1)
    ]
    return [
        Figure("WAF, mean of a pass", row["mean"], float(mean.mean()), "fitted"),
        Figure(
            "collection begins, drive writes",
            row["begins_at"],
            (begins + 1.0 - share) / TWENTIETHS,
            "predicted",
        ),
        *curve,
    ]


def permutation_waf(spare: float, passes: int = PASSES) -> np.ndarray:
    """WAF by pass and twentieth if each pass writes each block of a trimmed drive once, at random.

    The shape is (passes, 20).
    """
    drive, order = _twin(spare), np.random.default_rng(1)
    waf = [
        _waf(drive, Listed(tuple((int(unit) * UNIT, UNIT, "nothing") for unit in part)), len(part))
        for _ in range(passes)
        for part in np.array_split(order.permutation(CAPACITY // UNIT), TWENTIETHS)
    ]
    return np.array(waf).reshape(passes, TWENTIETHS)


def _uniform(row: Mapping[str, Any]) -> list[Figure]:
    waf = uniform_waf(_spare(row["visible_gb"], row["flash_gib"]))
    return [Figure("WAF, uniform writes", row["waf"], waf, "predicted")]


def _provisioned(row: Mapping[str, Any]) -> list[Figure]:
    first, *others = row["visible_gb"]
    waf = uniform_waf(_spare(first, row["flash_gib"]))
    return [
        Figure(
            f"rate at {visible} / at {first} GB",
            iops / row["iops"][0],
            waf / uniform_waf(_spare(visible, row["flash_gib"])),
            "predicted",
        )
        for visible, iops in zip(others, row["iops"][1:], strict=True)
    ]


def uniform_waf(spare: float) -> float:
    """WAF of uniform random writes over the whole drive in steady state."""
    drive, units = _twin(spare), CAPACITY // UNIT
    fill = Job(op="write", length_bytes=CAPACITY, block_bytes=1 << 20, amount_bytes=CAPACITY)
    run_job(drive, fill)
    for seed in range(_STEADY_PASSES):
        _waf(drive, "random", units, seed)
    return _waf(drive, "random", units, _STEADY_PASSES)


def _spare(visible_gb: float, flash_gib: float) -> float:
    return 1.0 - visible_gb * 1e9 / (flash_gib * 2**30)


def _twin(spare: float) -> Drive:
    return open_twin("generic", _PROFILE.format(capacity=CAPACITY, spare=spare), CAPACITY)


def _waf(drive: Drive, pattern: Literal["random"] | Listed, requests: int, seed: int = 0) -> float:
    """Runs random writes of a unit each, and returns their write amplification."""
    before = _counts(drive)
    job = Job(
        op="write",
        pattern=pattern,
        length_bytes=CAPACITY,
        block_bytes=UNIT,
        amount_bytes=requests * UNIT,
        queue_depth=QUEUE_DEPTH,
        seed=seed,
    )
    run_job(drive, job)
    host, flash = (now - then for now, then in zip(_counts(drive), before, strict=True))
    return flash / host


def _counts(drive: Drive) -> tuple[float, float]:
    """Mapping units that the host wrote, and that were programmed."""
    counters = drive.counters()
    assert counters is not None, "a twin counts"
    host = float(counters["host_writes"])
    return host, host * (counters["waf"] or 0.0)


_COMPARE: Final[dict[str, Callable[[Mapping[str, Any]], list[Figure]]]] = {
    "permutation": _permutation,
    "uniform": _uniform,
    "provisioned": _provisioned,
}
