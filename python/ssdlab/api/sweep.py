"""`Sweep`: runs many twins from one spec, and returns their rows and a summary."""

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
from ssdlab.api.run import Reportable
from ssdlab.errors import Interrupted, UsageError
from ssdlab.report.group import GroupReport
from ssdlab.runner.progress import Listener, Report, silent
from ssdlab.runner.run import RunObserver
from ssdlab.sweep.analysis import Summary, summarise
from ssdlab.sweep.dataset import (
    Dataset,
    SweepManifest,
    numeric_keys,
    open_dataset,
    open_for_writing,
)
from ssdlab.sweep.execute import (
    Outcome,
    execute_locally,
    execute_on_cluster,
    memory_of,
    workers_for,
)
from ssdlab.sweep.report import SweepPage
from ssdlab.sweep.spec import Spec, SweepRun, plan_runs, read_spec, spec_of
from ssdlab.units import format_size

SWEEPS: Final = Path("ssdlab-sweeps")


@dataclass(frozen=True)
class Where:
    """Where runs are executed: in local processes [one for each core], or on a Dask cluster."""

    workers: int | None = None
    dask: str | None = None


@dataclass(frozen=True)
class Sweep(Reportable):
    """A sweep's dataset and its summary.

    A notebook shows the report that `ssdlab sweep --html` writes.
    """

    dataset: Dataset

    @property
    def folder(self) -> Path:
        """The dataset's folder."""
        return self.dataset.folder

    @property
    def summary(self) -> Summary:
        """The points, the Pareto-optimal points, the main effects and the failed runs."""
        manifest, rows = self.dataset.manifest, self.dataset.rows()
        numeric, wanted = manifest.numeric, len(manifest.keys)
        return summarise(manifest.name, manifest.profile, numeric, wanted, rows)

    @property
    def verdict(self) -> str:
        """The summary in a sentence or two."""
        return self.summary.verdict

    def table(self) -> pa.Table:
        """One row for each run: key, point, repeat, seed, status, varied parameters, results."""
        return pa.Table.from_pylist(self.dataset.rows(), schema=self.dataset.schema)

    def as_json(self) -> dict[str, Any]:
        """The object that `ssdlab sweep --json` prints: counts, failures, effects, all points."""
        summary = self.summary
        return {
            "ssdlab": self.dataset.manifest.ssdlab,
            "sweep": summary.name,
            "profile": summary.profile,
            "dataset": str(self.dataset.folder / "runs"),
            "runs": summary.wanted,
            "done": summary.done,
            "failed": [
                {
                    **{key: row[key] for key in ("key", "point", "repeat", "seed", "reason")},
                    "values": {key: row[key] for key in summary.keys},
                }
                for row in summary.failed
            ],
            "sensitivity": [
                {
                    **{
                        name: getattr(effect, name)
                        for name in ("number", "key", "share", "low", "high")
                    },
                    "levels": [{"value": value, "mean": mean} for value, mean in effect.levels],
                }
                for effect in summary.effects
            ],
            "points": [asdict(point) for point in summary.points],
            "verdict": summary.verdict,
        }

    def _report_content(self) -> tuple[list[records.Run], GroupReport | None]:
        return [], SweepPage(self.summary)


def open_sweep(folder: Path | str) -> Sweep:
    """The sweep in a folder.

    Raises:
        UsageError: the folder does not contain a sweep.
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
    """Executes the unfinished runs of a spec (a TOML file, or a mapping with the same keys).

    Runs `workers` processes at a time [one for each core, fewer if memory is short], or on the Dask
    cluster at `dask`. The dataset is stored in `out` [ssdlab-sweeps/NAME]. Its table also has the
    failed runs, with the reason. Processes are spawned, so a script must call this under
    `if __name__ == "__main__"`.

    Raises:
        UsageError: an invalid spec, or a folder that cannot be used.
        Interrupted: Ctrl-C; finished runs are stored, and the same call resumes the sweep.
    """
    parsed, text = spec_of(spec) if isinstance(spec, Mapping) else read_spec(Path(spec))
    folder = None if out is None else Path(out)
    sweep, interrupted = execute_spec(
        parsed, text, Where(workers, dask), folder, RunObserver(listener)
    )
    if interrupted:
        raise Interrupted(
            f"interrupted; the finished runs are in {sweep.folder}, and the same call resumes"
        )
    return sweep


def execute_spec(
    spec: Spec, text: str, where: Where, folder: Path | None, observer: RunObserver
) -> tuple[Sweep, bool]:
    """Executes a spec (`text` is its source); returns the sweep, and whether Ctrl-C ended it.

    Raises:
        UsageError: as `run_sweep`.
    """
    if where.workers is not None and where.workers < 1:
        raise UsageError(f"--workers is {where.workers}; it must be 1 or more")
    runs = plan_runs(spec)
    manifest = SweepManifest(
        version("ssdlab"),
        spec.name,
        spec.design,
        spec.profile,
        text,
        numeric_keys(runs),
        [run.key for run in runs],
        spec.repeats,
    )
    with open_for_writing(folder or SWEEPS / spec.name, manifest) as dataset:
        interrupted = _execute(dataset, runs, where, observer)
    return Sweep(dataset), interrupted


def _execute(dataset: Dataset, runs: list[SweepRun], where: Where, observer: RunObserver) -> bool:
    """Executes the unfinished runs; returns whether Ctrl-C interrupted them."""
    done = dataset.done()
    remaining = [run for run in runs if run.key not in done]
    if not remaining:
        return False
    with observer.progress(f"sweep {dataset.manifest.name}") as listener:
        outcomes = _outcomes(remaining, where, observer)
        try:
            with contextlib.closing(outcomes):
                _store(dataset, outcomes, listener, len(done), len(runs))
        except KeyboardInterrupt:
            return True
    return False


def _outcomes(
    runs: list[SweepRun], where: Where, observer: RunObserver
) -> Generator[Outcome, None, None]:
    if where.dask is not None:
        return execute_on_cluster(where.dask, runs)
    workers = workers_for(runs, where.workers)
    memory = format_size(max(memory_of(run) for run in runs))
    observer.message(f"{len(runs)} runs, {workers} at a time, up to {memory} of memory each")
    return execute_locally(runs, workers)


def _store(
    dataset: Dataset, outcomes: Iterable[Outcome], listener: Listener, before: int, total: int
) -> None:
    """Stores each outcome as it arrives, and reports progress with the time left.

    `before` of the `total` runs were already done.
    """
    start = time.monotonic()
    listener(Report(f"{before} of {total} runs", 0.0, before / total, None))
    for count, outcome in enumerate(outcomes, 1):
        dataset.store(outcome)
        done = before + count
        left = (time.monotonic() - start) / count * (total - done)
        listener(Report(f"{done} of {total} runs", 1.0, done / total, left))
