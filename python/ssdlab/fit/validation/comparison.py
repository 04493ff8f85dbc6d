"""All published figures of real drives against their twins: what `ssdlab twin validate` shows."""

from __future__ import annotations

import difflib
import shlex
import signal
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import active_children, get_context
from pathlib import Path
from statistics import median

from ssdlab import profiles
from ssdlab.errors import UsageError
from ssdlab.fit.validation.figure import Figure
from ssdlab.fit.validation.tables import (
    TABLES,
    Row,
    is_profile,
    of_model,
    read_rows,
    shipped_rows,
)


@dataclass(frozen=True)
class Item:
    """A row of a table to compare: with its own twin, or with that of the file `profile`.

    `file` is the reader's table that the row is from, if it is not a shipped one.
    """

    row: Row
    profile: str = ""
    file: str = ""

    @property
    def command(self) -> str:
        """The command that computes these figures again."""
        words = [word for word in (self.profile, self.file, self.row.name) if word]
        return shlex.join(["ssdlab", "twin", "validate", *words, "--table", self.row.table])


@dataclass(frozen=True)
class Comparison:
    """The figures of one drive in one table, where they are from, and how to compute them again."""

    name: str
    drive: str
    table: str
    figures: tuple[Figure, ...]
    source: str = ""
    command: str = ""


@dataclass(frozen=True)
class Summary:
    """Figures with the same role: how many, of how many drives, and their absolute errors."""

    role: str
    drives: int
    figures: int
    mean_error: float
    median_error: float
    worst_error: float


def select(words: Sequence[str], chosen: Sequence[str]) -> list[Item]:
    """The comparisons that names, files and tables select; without any, all.

    A file is a profile, or a table. Names select rows of these tables or else of the shipped ones;
    without names, a profile is compared with the rows of its model.

    Raises:
        UsageError: there is no such table or row, or a file is not usable.
    """
    for table in chosen:
        if table not in TABLES:
            raise UsageError(f"--table is {table!r}; it must be one of {', '.join(TABLES)}")
    files = [word for word in words if word.endswith(".toml")]
    names = [word for word in words if not word.endswith(".toml")]
    own, tables = _sort_files(files)
    rows = [(row, file) for file in tables for row in read_rows(Path(file))]
    if not tables:
        rows = [(row, "") for row in shipped_rows()]
    rows = [(row, file) for row, file in rows if row.table in (chosen or TABLES)]
    _require_known(names, [row for row, _ in rows])
    if names:
        rows = [(row, file) for row, file in rows if row.name in names]
    if not own:
        return [Item(row, file=file) for row, file in rows]
    return [
        Item(row, profile, file)
        for profile in own
        for row, file in (rows if names else _of_profile(profile, rows))
    ]


def _sort_files(files: Sequence[str]) -> tuple[list[str], list[str]]:
    """The profiles and the tables among files."""
    own: list[str] = []
    tables: list[str] = []
    for file in files:
        try:
            content = tomllib.loads(profiles.read(Path(file)))
        except tomllib.TOMLDecodeError as error:
            raise UsageError(f"{file} is not valid TOML ({error}); correct it") from error
        (own if is_profile(content) else tables).append(file)
    return own, tables


def _require_known(names: Sequence[str], rows: Sequence[Row]) -> None:
    known = sorted({row.name for row in rows})
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.5)
            hint = (
                f"did you mean {' or '.join(near)}?" if near else f"give one of {', '.join(known)}"
            )
            raise UsageError(f"no published table contains {name!r}; {hint}")


def _of_profile(profile: str, rows: Sequence[tuple[Row, str]]) -> list[tuple[Row, str]]:
    model = str(tomllib.loads(profiles.load(profile))["drive"].get("model", ""))
    found = of_model([row for row, _ in rows], model)
    if not found:
        raise UsageError(
            f"no published table has a drive of the model of {profile}, {model!r}; name a row to "
            "compare it with, or give a table of its figures"
        )
    return [(row, file) for row, file in rows if row in found]


def compare(item: Item) -> Comparison:
    """Measures the twin of a row. Takes seconds."""
    row = item.row
    figures = tuple(row.compare(item.profile or None))
    return Comparison(row.name, row.drive, row.table, figures, row.source, item.command)


def compare_all(items: Sequence[Item], processes: int) -> Iterator[Comparison]:
    """Measures several twins at once, and yields each comparison as it is complete."""
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        # The processes inherit the signal mask: this process handles Ctrl-C, and ends them.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            futures = [pool.submit(compare, item) for item in items]
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            if any(not future.done() for future in futures):
                for process in active_children():
                    process.kill()
            pool.shutdown(cancel_futures=True)


def summaries(comparisons: Sequence[Comparison]) -> list[Summary]:
    """One summary for each role that occurs."""
    roles = dict.fromkeys(figure.role for each in comparisons for figure in each.figures)
    result = []
    for role in sorted(roles):
        errors = [
            (each.drive, abs(figure.error))
            for each in comparisons
            for figure in each.figures
            if figure.role == role
        ]
        sizes = sorted(error for _, error in errors)
        count = len({drive for drive, _ in errors})
        result.append(
            Summary(role, count, len(errors), sum(sizes) / len(sizes), median(sizes), sizes[-1])
        )
    return result
