"""Runs a sweep on an existing Dask cluster.

Dask is an extra (`pip install 'ssdlab[dask]'`), imported on demand. Its scheduler reassigns the
runs of a lost worker; a run that fails is retried once.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from importlib.metadata import version
from itertools import islice
from typing import Any, Final

from ssdlab.errors import UsageError
from ssdlab.sweep.design import SweepRun
from ssdlab.sweep.local import ATTEMPTS, Outcome
from ssdlab.sweep.worker import execute, memory_of

TIMEOUT_S: Final = 10


def execute_on_cluster(address: str, runs: Sequence[SweepRun]) -> Generator[Outcome, None, None]:
    """Executes all runs on the cluster at `address`; yields each outcome as it comes.

    At most as many runs at a time as the workers have threads, and memory.

    Raises:
        UsageError: Dask is not installed, no scheduler, no worker, or a worker with another
            version of ssdlab.
    """
    distributed = _import_distributed()
    try:
        client = distributed.Client(address, timeout=TIMEOUT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"--dask {address}: no scheduler answers there ({type(error).__name__}); give the "
            "address that it printed, such as tcp://HOST:8786"
        ) from error
    with client:
        slots = _slots(client, address, runs)
        _check_versions(client, address)
        waiting = iter(runs)
        first = [_submit(client, run) for run in islice(waiting, slots)]
        by_key = {run.key: run for run in runs}
        running = distributed.as_completed(first, loop=client.loop)
        for future in running:
            yield _outcome(future, by_key[future.key.removeprefix("ssdlab-")])
            future.release()
            if (run := next(waiting, None)) is not None:
                running.add(_submit(client, run))


def _import_distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise UsageError(
            "--dask needs Dask, which is not installed; pip install 'ssdlab[dask]', here and on "
            "the workers"
        ) from error
    return distributed


def _slots(client: Any, address: str, runs: Sequence[SweepRun]) -> int:
    """The number of simultaneous runs, limited by the workers' threads and memory."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    if not workers:
        raise UsageError(f"--dask {address}: the cluster has no worker; start some and retry")
    most = max((memory_of(run) for run in runs), default=1)
    slots = [min(w["nthreads"], (w["memory_limit"] or 1 << 62) // most) for w in workers]
    if not any(slots):
        raise UsageError(
            f"--dask {address}: a run takes {most >> 20} MiB of memory, more than any worker has; "
            "give a smaller capacity or larger workers"
        )
    return int(sum(slots))


def _check_versions(client: Any, address: str) -> None:
    own = version("ssdlab")
    for worker, installed in client.run(version, "ssdlab").items():
        if installed != own:
            raise UsageError(
                f"--dask {address}: worker {worker} has ssdlab {installed}, this machine has "
                f"{own}; install the same version"
            )


def _submit(client: Any, run: SweepRun) -> Any:
    return client.submit(execute, run, key=f"ssdlab-{run.key}", retries=ATTEMPTS - 1)


def _outcome(future: Any, run: SweepRun) -> Outcome:
    error = future.exception()
    if error is not None:
        return Outcome(run, None, f"{type(error).__name__}: {error}", ATTEMPTS)
    return Outcome(run, future.result(), "", 1)
