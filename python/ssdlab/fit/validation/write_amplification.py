"""Published write amplification (WAF) of real drives, and that of twins with the same spare.

The twin has 4 GiB and the drive's spare (see `usual_twin`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import numpy as np

from ssdlab import profiles
from ssdlab.device import Drive, Job, Listed, describe_twin, run_job
from ssdlab.errors import UsageError
from ssdlab.fit.validation.cache_writes import cache_waf
from ssdlab.fit.validation.figure import Figure, Role
from ssdlab.fit.validation.usual_twin import usual_twin, waf_of

TABLE: Final = "write_amplification"
CAPACITY: Final = 4 << 30
UNIT: Final = 4096
TWENTIETHS: Final = 20
PASSES: Final = 3
"""Passes over the twin: the second and later ones repeat each other within 0.5 %."""
QUEUE_DEPTH: Final = 128
SPARES: Final = (0.03, 0.5)
"""Limits of a spare that is fitted."""
SPARE_STEPS: Final = 4
KINDS: Final[dict[str, dict[str, tuple[float, float, int | None]]]] = {
    "permutation": {
        "spare": (0.01, 0.9, 0),
        "mean": (1.0, 100.0, 0),
        "begins_at": (0.5, 10.0, 0),
        "waf": (1.0, 100.0, TWENTIETHS),
    },
    "uniform": {
        "visible_gb": (1.0, 1e6, 0),
        "flash_gib": (1.0, 1e6, 0),
        "waf": (1.0, 100.0, 0),
    },
    "cache": {
        "spare": (0.01, 0.9, 0),
        "small_share": (0.0, 0.99, 0),
        "fitted_at": (1.0, 99.0, 0),
        "soc": (1.0, 99.0, None),
        "handles": (1.0, 100.0, None),
        "shared": (1.0, 100.0, None),
    },
    "provisioned": {
        "flash_gib": (1.0, 1e6, 0),
        "visible_gb": (1.0, 1e6, None),
        "iops": (1.0, 1e9, None),
    },
}
"""The kinds of rows: their numbers, the limits of each, and how many (0: one, None: a list)."""
_STEADY_PASSES: Final = 3  # uniform random writes before WAF is measured, in drive writes
_BEGUN: Final = 1.02  # collection has begun where WAF exceeds this


def compare_row(kind: str, row: Mapping[str, Any]) -> list[Figure]:
    """Measures a twin of the drive of a row."""
    return _COMPARE[kind](row)


def with_spare_of(kind: str, row: Mapping[str, Any], profile: str) -> dict[str, Any]:
    """The row with the spare, or the flash, of the profile `profile` (a name or a file).

    Raises:
        TargetError: the profile is invalid.
    """
    twin = describe_twin(profile, profiles.load(profile))
    if kind in {"permutation", "cache"}:
        return {**row, "spare": twin["spare"], "fitted": False}
    flash = twin["flash_bytes"] / 2**30
    if kind == "uniform":
        flash = row["visible_gb"] * 1e9 / (1.0 - twin["spare"]) / 2**30
    return {**row, "flash_gib": flash}


def check(kind: str, row: Mapping[str, Any]) -> None:
    """Checks that a row of a kind has its keys, and plausible numbers.

    Raises:
        UsageError: it has not.
    """
    where = f"[[{kind}]] {row['name']}"
    for key, (low, high, count) in KINDS[kind].items():
        if key not in row and key == "spare":
            continue  # it is fitted to the mean
        if key not in row:
            raise UsageError(f"{where} has no {key}; it must have {', '.join(KINDS[kind])}")
        values = row[key] if isinstance(row[key], list) else [row[key]]
        if count != (len(values) if isinstance(row[key], list) else 0) and count is not None:
            what = f"{count} numbers" if count else "one number"
            raise UsageError(f"{where} {key} must have {what}")
        for value in values:
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not low <= value <= high:
                raise UsageError(
                    f"{where} {key} has {value!r}; it must be a number from {low:g} to {high:g}"
                )
    lists = [key for key, (_, _, count) in KINDS[kind].items() if count is None]
    if len({len(row[key]) for key in lists}) > 1:
        raise UsageError(f"{where} must have as many values in {' as in '.join(lists)}")


def _permutation(row: Mapping[str, Any]) -> list[Figure]:
    waf = permutation_waf(row["spare"] if "spare" in row else spare_for(row["mean"]))
    values = [float(value) for value in waf.ravel()]
    begins = next(at for at, value in enumerate(values) if value > _BEGUN)
    # Within its twentieth, collection begins where the rest of it raises the mean this much.
    share = min(1.0, (values[begins] - 1.0) / (values[begins + 1] - 1.0))
    mean = waf[1:].mean(axis=0)
    role: Role = "fitted" if row.get("fitted", True) else "predicted"
    curve = [
        Figure(f"WAF, twentieth {number}", published, float(value), "predicted")
        for number, (published, value) in enumerate(zip(row["waf"], mean, strict=True), 1)
    ]
    return [
        Figure("WAF, mean of a pass", row["mean"], float(mean.mean()), role),
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
    drive, order = usual_twin(CAPACITY, spare), np.random.default_rng(1)
    waf = [
        _waf(drive, Listed(tuple((int(unit) * UNIT, UNIT, "nothing") for unit in part)), len(part))
        for _ in range(passes)
        for part in np.array_split(order.permutation(CAPACITY // UNIT), TWENTIETHS)
    ]
    return np.array(waf).reshape(passes, TWENTIETHS)


def spare_for(mean: float) -> float:
    """The spare with which the mean WAF of a pass is `mean`, found by false position."""
    low, high = SPARES
    logs = [np.log(permutation_waf(spare, 2)[1].mean() / mean) for spare in SPARES]
    spare = low
    for _ in range(SPARE_STEPS):
        spare = float(np.exp(np.interp(0.0, logs[::-1], np.log([high, low]))))
        log = np.log(permutation_waf(spare, 2)[1].mean() / mean)
        low, high = (spare, high) if log > 0 else (low, spare)
        logs = [log, logs[1]] if log > 0 else [logs[0], log]
    return spare


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


def _cache(row: Mapping[str, Any]) -> list[Figure]:
    figures = []
    for name in ("handles", "shared"):
        for soc, published in zip(row["soc"], row[name], strict=True):
            handles = name == "handles"
            waf = cache_waf(row["spare"], soc / 100, row["small_share"], handles=handles)
            role: Role = "fitted" if handles and soc == row["fitted_at"] else "predicted"
            words = "with handles" if handles else "without handles"
            figures.append(Figure(f"WAF, {words}, small area {soc:g} %", published, waf, role))
    return figures


def uniform_waf(spare: float) -> float:
    """WAF of uniform random writes over the whole drive in steady state."""
    drive, units = usual_twin(CAPACITY, spare), CAPACITY // UNIT
    fill = Job(op="write", length_bytes=CAPACITY, block_bytes=1 << 20, amount_bytes=CAPACITY)
    run_job(drive, fill)
    for seed in range(_STEADY_PASSES):
        _waf(drive, "random", units, seed)
    return _waf(drive, "random", units, _STEADY_PASSES)


def _spare(visible_gb: float, flash_gib: float) -> float:
    return 1.0 - visible_gb * 1e9 / (flash_gib * 2**30)


def _waf(drive: Drive, pattern: Literal["random"] | Listed, requests: int, seed: int = 0) -> float:
    """Runs random writes of a unit each, and returns their write amplification."""
    job = Job(
        op="write",
        pattern=pattern,
        length_bytes=CAPACITY,
        block_bytes=UNIT,
        amount_bytes=requests * UNIT,
        queue_depth=QUEUE_DEPTH,
        seed=seed,
    )
    return waf_of(drive, job)


_COMPARE: Final[dict[str, Callable[[Mapping[str, Any]], list[Figure]]]] = {
    "permutation": _permutation,
    "uniform": _uniform,
    "provisioned": _provisioned,
    "cache": _cache,
}
