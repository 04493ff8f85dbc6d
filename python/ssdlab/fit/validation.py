"""All published figures of real drives against their twins: what `ssdlab twin validate` shows."""

from __future__ import annotations

import signal
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import active_children, get_context

from ssdlab import profiles
from ssdlab.errors import UsageError
from ssdlab.fit import write_amplification
from ssdlab.fit.published import SOURCE_PHRASES, compare_twin, is_fitted_to, twins_of
from ssdlab.fit.write_amplification import Figure


@dataclass(frozen=True)
class Comparison:
    """The figures of one drive in one table; `name` selects it again."""

    name: str
    drive: str
    table: str
    figures: tuple[Figure, ...]

    @property
    def command(self) -> str:
        """The command that computes these figures again."""
        return f"ssdlab twin validate {self.name} --table {self.table}"


@dataclass(frozen=True)
class Summary:
    """Figures with the same role: how many, of how many drives, and their absolute errors."""

    role: str
    drives: int
    figures: int
    mean_error: float
    worst_error: float


def tables() -> list[str]:
    """The names of all tables."""
    return [*SOURCE_PHRASES, write_amplification.TABLE]


def select(names: Sequence[str], chosen: Sequence[str]) -> list[tuple[str, str]]:
    """Table and drive of each comparison; without names or tables, of all.

    Raises:
        UsageError: there is no such table, or no selected table contains the drive.
    """
    for table in chosen:
        if table not in tables():
            raise UsageError(f"--table is {table!r}; it must be one of {', '.join(tables())}")
    found = [
        (table, name)
        for table in chosen or tables()
        for name in (
            write_amplification.drives() if table == write_amplification.TABLE else twins_of(table)
        )
    ]
    for name in names:
        if name not in {each for _, each in found}:
            known = ", ".join(sorted({each for _, each in found}))
            raise UsageError(f"no published table contains {name!r}; give one of {known}")
    return [pair for pair in found if not names or pair[1] in names]


def compare(table: str, name: str) -> Comparison:
    """Measures the twin of a drive that is in a table. Takes seconds."""
    if table == write_amplification.TABLE:
        drive, _ = write_amplification.source_of(name)
        return Comparison(name, drive, table, tuple(write_amplification.compare(name)))
    fitted = is_fitted_to(name, table)
    figures = tuple(
        Figure(
            value.label,
            float(value.measured),
            float(value.twin),
            "fitted" if fitted else "predicted",
        )
        for value in compare_twin(table, name)
    )
    model: str = tomllib.loads(profiles.load(name))["drive"]["model"]
    return Comparison(name, model, table, figures)


def compare_all(pairs: Sequence[tuple[str, str]], processes: int) -> Iterator[Comparison]:
    """Measures several twins at once, and yields each comparison as it is complete."""
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        # The processes inherit the signal mask: this process handles Ctrl-C, and ends them.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            futures = [pool.submit(compare, *pair) for pair in pairs]
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
        sizes = [error for _, error in errors]
        count = len({drive for drive, _ in errors})
        result.append(Summary(role, count, len(errors), sum(sizes) / len(sizes), max(sizes)))
    return result
