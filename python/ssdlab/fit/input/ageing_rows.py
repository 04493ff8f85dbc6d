"""Ageing rows as they are given, in a run, in CSV or in TOML: checked as they are read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from ssdlab.errors import UsageError
from ssdlab.experiments.aging.analysis import complete_stages, measures
from ssdlab.fit.ageing import Ageing
from ssdlab.fit.input.agreement import APART
from ssdlab.fit.input.plausible import Allowed, check_number
from ssdlab.records import Run

HINT: Final = "give a run of `ssdlab run aging`, or a TOML or CSV file with an ageing row"
_SIZE: Final = Allowed("MiB", 1, 1 << 30)
_WRITTEN: Final = Allowed("MiB", 0, 1 << 30)
_RATE: Final = Allowed("MiB/s", 0.1, 1e5)


def of_run(run: Run, drive: str) -> Ageing:
    """The row of a run of `aging` on a drive of that name, empty if unknown.

    Raises:
        UsageError: the run has no row.
    """
    repeats = len(run.manifest.parameters["rests_s"])
    rows = complete_stages(measures(run.tables["steps"], repeats), repeats)
    found = [(row["written_mib"], row["read_s"]) for row in rows]
    size_mib, where = run.manifest.parameters["size_mib"], str(run.folder)
    return _made((drive or run.manifest.target, drive), size_mib, found, where)


def of_csv(lines: list[dict[str, Any]], path: Path) -> Ageing:
    """The row of a table with the columns file_mib, written_mib (in all) and read_s.

    Raises:
        UsageError: it is no ageing row.
    """
    for n, line in enumerate(lines, start=2):
        for column in ("file_mib", "written_mib", "read_s"):
            if column not in line:
                raise UsageError(f"{path}: row {n}: {column} is empty; give a number")
    found = [(line["written_mib"], line["read_s"]) for line in lines]
    sizes = {line["file_mib"] for line in lines}
    if len(sizes) != 1:
        raise UsageError(f"{path}: file_mib differs from row to row; it may be one size")
    return _made((path.stem, ""), sizes.pop(), found, str(path))


def of_toml(table: Any, path: Path) -> list[Ageing]:
    """The rows of `[aging]`: one drive's `seconds`, or those of several `[[aging.drive]]`.

    Raises:
        UsageError: something is missing, or is no number.
    """
    where = f"{path}: [aging]"
    if not isinstance(table, dict):
        raise UsageError(f"{where} is {table!r}; it may be a table with file_mib, written_mib ...")
    drives = table.get("drive", [table] if "seconds" in table else [])
    if not isinstance(drives, list) or not all(isinstance(each, dict) for each in drives):
        raise UsageError(f"{where} drive is no list of tables; give [[aging.drive]]")
    size_mib, totals = _listed(table, "file_mib", where), [0.0]
    for mib in _listed(table, "written_mib", where):
        totals.append(totals[-1] + mib)
    rows = []
    for drive in drives:
        seconds, name = _listed(drive, "seconds", where), str(drive.get("model", ""))
        if len(seconds) != len(totals):
            raise UsageError(
                f"{where} has {len(seconds)} seconds for {len(totals) - 1} amounts; it may have "
                f"{len(totals)}: the fresh file's first"
            )
        times = list(zip(totals, seconds, strict=True))
        rows.append(_made((name or path.stem, name), size_mib[0], times, str(path)))
    return rows


def _listed(table: dict[str, Any], key: str, where: str) -> list[float]:
    """The numbers of a key; one alone is a list of one."""
    if key not in table:
        raise UsageError(
            f"{where} lacks {key}; file_mib, written_mib and seconds, one more than amounts, "
            "must be there"
        )
    value = table[key]
    values = value if isinstance(value, list) else [value]
    for each in values:
        if isinstance(each, bool) or not isinstance(each, int | float) or not math.isfinite(each):
            unit = "seconds" if key == "seconds" else "MiB"
            raise UsageError(f"{where} {key} has {each!r}; it may be a number of {unit}, as in 4.5")
    return [float(each) for each in values]


def _made(
    named: tuple[str, str], file_mib: float, times: list[tuple[float, float]], where: str
) -> Ageing:
    """A row of (written in all, seconds), fresh first; `named`: by what it is called, the drive."""
    if len(times) < 2 or times[0][0] != 0 or min(seconds for _, seconds in times) <= 0:
        raise UsageError(
            f"{where}: an ageing row has the fresh file's time (written_mib 0) and "
            "at least one after writing, all above zero"
        )
    check_number(file_mib, _SIZE, f"{where}: file_mib")
    for mib, seconds in times:
        check_number(mib, _WRITTEN, f"{where}: written_mib")
        check_number(file_mib / seconds, _RATE, f"{where}: file_mib / {seconds:g} s")
    amounts = tuple(after[0] - before[0] for before, after in pairwise(times))
    if min(amounts) <= 0:
        raise UsageError(f"{where}: written_mib must grow from row to row")
    seconds_all = tuple(float(seconds) for _, seconds in times)
    return Ageing(named[0], float(file_mib), amounts, seconds_all, where, named[1])


def picked(rows: Sequence[Ageing], model: str | None, where: str) -> Ageing:
    """The one row, or that of the drive with `model` in its name.

    Raises:
        UsageError: there is none, several drives have one, or one drive has several.
    """
    wanted = [row for row in rows if model is None or model.lower() in row.model.lower()]
    if len(wanted) == 1:
        return wanted[0]
    names = ", ".join(row.model for row in rows)
    if not wanted:
        raise UsageError(
            f"{where} has no ageing row{'' if model is None else f' of {model}'}; "
            f"{f'it has {names}' if rows else HINT}"
        )
    if len({row.drive for row in wanted if row.drive}) > 1:
        raise UsageError(f"{where} has {len(wanted)} ageing rows ({names}); pick one by --model")
    raise UsageError(_one_too_many(*wanted[:2]))


def _one_too_many(one: Ageing, other: Ageing) -> str:
    """Why two rows that may be of one drive are too many: they differ, or say the same."""
    first, second = one.file_mib / one.seconds[0], other.file_mib / other.seconds[0]
    if max(first / second, second / first) > APART:
        return (
            f"aging: the fresh file is read at {first:.4g} MiB/s in {one.where} and at "
            f"{second:.4g} MiB/s in {other.where}; both cannot be of one drive in one state, "
            "leave one out"
        )
    return f"{one.where} and {other.where} are two ageing rows of one drive; leave one out"
