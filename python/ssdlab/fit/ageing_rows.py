"""Reads ageing rows from runs, CSV and TOML, selects one by model, and checks that they agree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, Final

from ssdlab.errors import UsageError
from ssdlab.experiments.aging.analysis import complete_stages, measures
from ssdlab.fit.ageing import AgeingRow
from ssdlab.fit.measurement import Limits, Measurement, check_number
from ssdlab.records import Run

HINT: Final = "give a run of `ssdlab run aging`, or a TOML or CSV file with an ageing row"
_SIZE: Final = Limits("MiB", 1, 1 << 30)
_WRITTEN: Final = Limits("MiB", 0, 1 << 30)
_RATE: Final = Limits("MiB/s", 0.1, 1e5)


def of_run(run: Run, drive: str) -> AgeingRow:
    """The ageing row of an `aging` run; `drive` is the drive's name, empty if unknown.

    Raises:
        UsageError: the run has no row.
    """
    repeats = len(run.manifest.parameters["rests_s"])
    rows = complete_stages(measures(run.tables["steps"], repeats), repeats)
    times = [(row["written_mib"], row["read_s"]) for row in rows]
    size_mib = run.manifest.parameters["size_mib"]
    return _make_row(drive or run.manifest.target, size_mib, times, str(run.folder), drive)


def of_csv(lines: list[dict[str, Any]], path: Path) -> AgeingRow:
    """The ageing row in a table with columns file_mib, written_mib (cumulative) and read_s.

    Raises:
        UsageError: not an ageing row.
    """
    for n, line in enumerate(lines, start=2):
        for column in ("file_mib", "written_mib", "read_s"):
            if column not in line:
                raise UsageError(f"{path}: row {n}: {column} is empty; give a number")
    times = [(line["written_mib"], line["read_s"]) for line in lines]
    sizes = {line["file_mib"] for line in lines}
    if len(sizes) != 1:
        raise UsageError(f"{path}: file_mib must be the same in all rows")
    return _make_row(path.stem, sizes.pop(), times, str(path))


def of_toml(table: Any, path: Path) -> list[AgeingRow]:
    """The ageing rows of `[aging]`: one for its own `seconds`, or one per `[[aging.drive]]`.

    Raises:
        UsageError: a key is missing, or not a number.
    """
    where = f"{path}: [aging]"
    if not isinstance(table, dict):
        raise UsageError(f"{where} is {table!r}; it must be a table with file_mib, written_mib ...")
    drives = table.get("drive", [table] if "seconds" in table else [])
    if not isinstance(drives, list) or not all(isinstance(drive, dict) for drive in drives):
        raise UsageError(f"{where} drive must be a list of tables; give [[aging.drive]]")
    size_mib, totals = _numbers(table, "file_mib", where), [0.0]
    for mib in _numbers(table, "written_mib", where):
        totals.append(totals[-1] + mib)
    rows = []
    for drive in drives:
        seconds, model = _numbers(drive, "seconds", where), str(drive.get("model", ""))
        if len(seconds) != len(totals):
            raise UsageError(
                f"{where} has {len(seconds)} seconds for {len(totals) - 1} amounts; it must have "
                f"{len(totals)}: the fresh file's first"
            )
        times = list(zip(totals, seconds, strict=True))
        rows.append(_make_row(model or path.stem, size_mib[0], times, str(path), model))
    return rows


def _numbers(table: dict[str, Any], key: str, where: str) -> list[float]:
    """The numbers stored under a key; a single number becomes a list of one."""
    if key not in table:
        raise UsageError(
            f"{where} has no {key}; give file_mib, written_mib and seconds, which has one value "
            "more than written_mib"
        )
    value = table[key]
    values = value if isinstance(value, list) else [value]
    for x in values:
        if isinstance(x, bool) or not isinstance(x, int | float) or not math.isfinite(x):
            unit = "seconds" if key == "seconds" else "MiB"
            raise UsageError(f"{where} {key} has {x!r}; it must be a number of {unit}, such as 4.5")
    return [float(x) for x in values]


def _make_row(
    model: str, file_mib: float, times: list[tuple[float, float]], where: str, drive: str = ""
) -> AgeingRow:
    """A checked row from (cumulative MiB written, seconds) pairs, the fresh file first."""
    if len(times) < 2 or times[0][0] != 0 or min(seconds for _, seconds in times) <= 0:
        raise UsageError(
            f"{where}: an ageing row must have the fresh file's time (written_mib 0) and at least "
            "one after writing, all above zero"
        )
    check_number(file_mib, _SIZE, f"{where}: file_mib")
    for mib, seconds in times:
        check_number(mib, _WRITTEN, f"{where}: written_mib")
        check_number(file_mib / seconds, _RATE, f"{where}: file_mib / {seconds:g} s")
    amounts = tuple(after[0] - before[0] for before, after in pairwise(times))
    if min(amounts) <= 0:
        raise UsageError(f"{where}: written_mib must grow from row to row")
    seconds_all = tuple(float(seconds) for _, seconds in times)
    return AgeingRow(model, float(file_mib), amounts, seconds_all, where, drive)


def select_row(rows: Sequence[AgeingRow], model: str | None, where: str) -> AgeingRow:
    """The only row, or the only one with `model` in its name.

    Raises:
        UsageError: no row, or more than one.
    """
    matching = [row for row in rows if model is None or model.lower() in row.model.lower()]
    if len(matching) == 1:
        return matching[0]
    names = ", ".join(row.model for row in rows)
    if not matching:
        raise UsageError(
            f"{where} has no ageing row{'' if model is None else f' of {model}'}; "
            f"{f'it has {names}' if rows else HINT}"
        )
    if len({row.drive for row in matching if row.drive}) > 1:
        raise UsageError(
            f"{where} has {len(matching)} ageing rows ({names}); select one with --model"
        )
    raise UsageError(_duplicate_message(*matching[:2]))


def _duplicate_message(one: AgeingRow, other: AgeingRow) -> str:
    """The error message for two rows of one drive: they contradict or duplicate each other."""
    first, second = one.file_mib / one.seconds[0], other.file_mib / other.seconds[0]
    if max(first / second, second / first) > MAX_RATIO:
        return (
            f"aging: the fresh file is read at {first:.4g} MiB/s in {one.where} and at "
            f"{second:.4g} MiB/s in {other.where}; these cannot be one drive in one state, leave "
            "one out"
        )
    return f"{one.where} and {other.where} are two ageing rows of one drive; leave one out"


MAX_RATIO: Final = 1.5
"""Results of one drive may differ by this factor, because hosts and drive states differ."""
EXACT: Final = frozenset(
    {"chunk_kib", "stripe_kib", "units", "chunks_per_unit", "chunk_distance_kib"}
)
_NOT_COMPARABLE: Final = frozenset({"iops", "fresh_iops", "refill_s", "penalty"})
"""Findings that depend on the options of the run, so they are not compared."""


def check_agreement(results: Sequence[Measurement], rows: Sequence[AgeingRow] = ()) -> None:
    """Refuses results and ageing rows that cannot come from one drive in one state.

    Otherwise the fit would be a compromise between two drives.

    Raises:
        UsageError: names the two results that contradict each other.
    """
    models = [(one.model, one.where) for one in results if one.model]
    models += [(row.drive, row.where) for row in rows if row.drive]
    for one, other in pairwise(models):
        if not _may_be_one_model(one[0], other[0]):
            raise UsageError(
                f"the results are of two drives, {one[0]} in {one[1]} and {other[0]} in "
                f"{other[1]}; give those of one"
            )
    for measurement in results:
        _check_stripe(measurement)
        _check_cells(measurement, measurement)
    for first, second in combinations(results, 2):
        if first.experiment == second.experiment:
            _check_findings(first, second)
            _check_cells(first, second)


def _may_be_one_model(one: str, other: str) -> bool:
    """Whether one model name contains the other: some sources shorten the names."""
    one, other = one.lower(), other.lower()
    return one in other or other in one


def _check_stripe(results: Measurement) -> None:
    chunk, stripe, units = (results.number(x) for x in ("chunk_kib", "stripe_kib", "units"))
    if None in {chunk, stripe, units} or not chunk or not units:
        return
    count = units * (results.number("chunks_per_unit") or 1)
    if chunk * count != stripe:
        raise UsageError(
            f"{results.where}: a stripe of {stripe:g} KiB is not {count:g} chunks of {chunk:g} "
            "KiB; correct one of the three"
        )
    distance = results.number("chunk_distance_kib")
    if distance is not None and distance % chunk:
        raise UsageError(
            f"{results.where}: chunk_distance_kib is {distance:g}, which is not a whole number of "
            f"chunks of {chunk:g} KiB; correct one of the two"
        )


def _check_findings(one: Measurement, other: Measurement) -> None:
    for name in sorted(set(one.findings) & set(other.findings) - _NOT_COMPARABLE):
        first, second = one.findings[name].value, other.findings[name].value
        if isinstance(first, str) and isinstance(second, str) and first != second:
            raise UsageError(_contradiction(name, (first, second), one, other))
        low, high = one.number(name), other.number(name)
        if low is None or high is None or min(low, high) <= 0:
            continue
        if max(low, high) / min(low, high) > (1.0 if name in EXACT else MAX_RATIO):
            raise UsageError(_contradiction(name, (f"{low:g}", f"{high:g}"), one, other))


def _check_cells(one: Measurement, other: Measurement) -> None:
    """Compares values of the same test case; `other` may be `one`, to find duplicate cases."""
    first_cells = {cell.key: cell for cell in reversed(one.cells)}
    for cell in other.cells:
        if (first := first_cells.get(cell.key)) is None or min(first.value, cell.value) <= 0:
            continue
        if max(first.value / cell.value, cell.value / first.value) > MAX_RATIO**2:
            values = (f"{first.value:.4g}", f"{cell.value:.4g}")
            raise UsageError(_contradiction(f"{cell.name} of {cell.label}", values, one, other))


def _contradiction(name: str, values: tuple[str, str], one: Measurement, other: Measurement) -> str:
    where = "in another row" if one.where == other.where else f"in {other.where}"
    return (
        f"{one.experiment}: {name} is {values[0]} in {one.where} and {values[1]} {where}; "
        "these cannot be one drive in one state, leave one out"
    )
