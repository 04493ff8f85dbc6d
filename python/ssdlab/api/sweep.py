"""`Sweep`: many twins from one spec, their rows and what these come to."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from ssdlab import records
from ssdlab.api.reportable import Reportable
from ssdlab.errors import Interrupted, UsageError
from ssdlab.report.group import GroupReport
from ssdlab.runner.progress import Listener, Report, silent
from ssdlab.runner.run import RunObserver
from ssdlab.sweep.analysis.summary import Summary, summary
from ssdlab.sweep.cluster import perform_on
from ssdlab.sweep.dataset import About, Dataset, made, numeric_of, open_dataset
from ssdlab.sweep.design import Order, orders
from ssdlab.sweep.here import Ended, perform_here
from ssdlab.sweep.report import SweepPage
from ssdlab.sweep.spec import Spec, of, read
from ssdlab.sweep.work import memory_of, workers_for
from ssdlab.units import format_size

SWEEPS: Final = Path("ssdlab-sweeps")


@dataclass(frozen=True)
class Where:
    """Where runs are done: so many processes here [one a core], or a Dask cluster's address."""

    workers: int | None = None
    dask: str | None = None


@dataclass(frozen=True)
class Sweep(Reportable):
    """A sweep's dataset and what it comes to.

    A notebook shows it as `ssdlab sweep --html` does.
    """

    dataset: Dataset

    @property
    def folder(self) -> Path:
        """Where it is kept."""
        return self.dataset.folder

    @property
    def summary(self) -> Summary:
        """Points, which of them none beats, which parameter decides what, which runs failed."""
        about = self.dataset.about
        of_what = (about.name, about.profile)
        return summary(of_what, about.numeric, len(about.keys), self.dataset.rows())

    @property
    def verdict(self) -> str:
        """One sentence."""
        return self.summary.verdict

    def table(self) -> pa.Table:
        """A row a run: key, point, repeat, seed, status, what varied, what was found."""
        return pa.Table.from_pylist(self.dataset.rows(), schema=self.dataset.schema)

    def as_json(self) -> dict[str, Any]:
        """What `ssdlab sweep --json` prints: counts, failures, what decides, every point."""
        found = self.summary
        return {
            "ssdlab": self.dataset.about.ssdlab,
            "sweep": found.name,
            "profile": found.profile,
            "dataset": str(self.dataset.folder / "runs"),
            "runs": found.wanted,
            "done": found.done,
            "failed": [
                {
                    **{key: row[key] for key in ("key", "point", "repeat", "seed", "reason")},
                    "values": {key: row[key] for key in found.keys},
                }
                for row in found.failed
            ],
            "sensitivity": [
                {
                    **{
                        name: getattr(each, name)
                        for name in ("number", "key", "share", "low", "high")
                    },
                    "levels": [{"value": value, "mean": mean} for value, mean in each.levels],
                }
                for each in found.effects
            ],
            "points": [asdict(point) for point in found.points],
            "verdict": found.verdict,
        }

    def _report_content(self) -> tuple[list[records.Run], GroupReport | None]:
        return [], SweepPage(self.summary)


def open_sweep(folder: Path | str) -> Sweep:
    """The sweep that a folder holds.

    Raises:
        UsageError: it holds none.
    """
    return Sweep(open_dataset(Path(folder)))


def run_sweep(
    spec: Path | str | Mapping[str, Any],
    *,
    workers: int | None = None,
    dask: str | None = None,
    out: Path | str | None = None,
    listener: Listener = silent,
) -> Sweep:
    """Runs what a spec wants and is not done yet: a TOML file, or the same as a mapping.

    `workers` processes at a time [one a core, as far as memory goes], or on the Dask cluster at
    `dask`. The dataset is kept in `out` [ssdlab-sweeps/NAME]. Runs that failed are in its table,
    with their reason. Processes are spawned: a script calls this under `if __name__ ==
    "__main__"`.

    Raises:
        UsageError: a spec that may not be, or a folder that cannot be used.
        Interrupted: Ctrl-C; what was done is kept, and the same call goes on.
    """
    wanted, text = of(spec) if isinstance(spec, Mapping) else read(Path(spec))
    where, folder = Where(workers, dask), None if out is None else Path(out)
    sweep, stopped = conduct((wanted, text), where, folder, RunObserver(listener))
    if stopped:
        raise Interrupted(f"interrupted; what was done is in {sweep.folder}: the same call goes on")
    return sweep


def conduct(
    given: tuple[Spec, str], where: Where, folder: Path | None, audience: RunObserver
) -> tuple[Sweep, bool]:
    """Runs a spec (with its text) in a folder; the sweep, and whether Ctrl-C ended it.

    Raises:
        UsageError: as `run_sweep`.
    """
    spec, text = given
    if where.workers is not None and where.workers < 1:
        raise UsageError(f"--workers is {where.workers}; it may be 1 or more")
    found = orders(spec)
    with made(folder or SWEEPS / spec.name, _about(spec, text, found)) as dataset:
        stopped = _perform(dataset, found, where, audience)
    return Sweep(dataset), stopped


def _about(spec: Spec, text: str, found: list[Order]) -> About:
    return About(
        version("ssdlab"),
        spec.name,
        spec.design,
        spec.profile,
        text,
        numeric_of(found),
        [order.key for order in found],
        spec.repeats,
    )


def _perform(dataset: Dataset, found: list[Order], where: Where, audience: RunObserver) -> bool:
    """Performs what is not done yet; whether Ctrl-C ended it."""
    done = dataset.done()
    left = [order for order in found if order.key not in done]
    if not left:
        return False
    with audience.watching(f"sweep {dataset.about.name}") as listener:
        ends = _ends(left, where, audience)
        try:
            with contextlib.closing(ends):
                _keep(dataset, ends, listener, (len(done), len(found)))
        except KeyboardInterrupt:
            return True
    return False


def _ends(left: list[Order], where: Where, audience: RunObserver) -> Generator[Ended, None, None]:
    if where.dask is not None:
        return perform_on(where.dask, left)
    workers = workers_for(left, where.workers)
    memory = format_size(max(memory_of(order) for order in left))
    audience.tell(f"{len(left)} runs, {workers} at a time, up to {memory} of memory each")
    return perform_here(left, workers)


def _keep(
    dataset: Dataset, ends: Iterable[Ended], listener: Listener, counts: tuple[int, int]
) -> None:
    """Keeps each run as it ends, and tells how long the others will take."""
    (before, every), begun = counts, time.monotonic()
    listener(Report(f"{before} of {every} runs", 0.0, before / every, None))
    for now, ended in enumerate(ends, 1):
        dataset.put(ended)
        done = before + now
        left = (time.monotonic() - begun) / now * (every - done)
        listener(Report(f"{done} of {every} runs", 1.0, done / every, left))
