"""A sweep on a Dask cluster that is there already: the same runs, on its workers.

Dask is an extra (`pip install 'ssdlab[dask]'`), imported when asked for. Its scheduler gives the
runs of a lost worker to others; a run that fails is tried once more.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from importlib.metadata import version
from itertools import islice
from typing import Any, Final

from ssdlab.errors import UsageError
from ssdlab.sweep.design import Order
from ssdlab.sweep.here import ATTEMPTS, Ended
from ssdlab.sweep.work import memory_of, perform

TIMEOUT_S: Final = 10


def perform_on(address: str, orders: Sequence[Order]) -> Generator[Ended, None, None]:
    """Performs all on the cluster at an address; yields each as it ends.

    As many at a time as its workers have threads, and memory for.

    Raises:
        UsageError: Dask is not installed, no cluster there, no worker, or another ssdlab on one.
    """
    distributed = _imported()
    try:
        client = distributed.Client(address, timeout=TIMEOUT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"--dask {address}: no scheduler answers there ({type(error).__name__}); give the "
            "address that it printed, such as tcp://HOST:8786"
        ) from error
    with client:
        slots = _slots(client, address, orders)
        _check_versions(client, address)
        waiting = iter(orders)
        first = [_submitted(client, order) for order in islice(waiting, slots)]
        by_key = {order.key: order for order in orders}
        running = distributed.as_completed(first, loop=client.loop)
        for future in running:
            yield _ended(future, by_key[future.key.removeprefix("ssdlab-")])
            future.release()
            if (order := next(waiting, None)) is not None:
                running.add(_submitted(client, order))


def _imported() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise UsageError(
            "--dask takes Dask, which is not installed; pip install 'ssdlab[dask]', here and on "
            "the workers"
        ) from error
    return distributed


def _slots(client: Any, address: str, orders: Sequence[Order]) -> int:
    """How many runs at a time: by threads and by memory of the workers."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    if not workers:
        raise UsageError(f"--dask {address}: the cluster has no worker; start some, then again")
    most = max((memory_of(order) for order in orders), default=1)
    fit = [min(w["nthreads"], (w["memory_limit"] or 1 << 62) // most) for w in workers]
    if not any(fit):
        raise UsageError(
            f"--dask {address}: a run takes {most >> 20} MiB of memory, more than any worker has; "
            "give a smaller capacity or larger workers"
        )
    return int(sum(fit))


def _check_versions(client: Any, address: str) -> None:
    own = version("ssdlab")
    for worker, found in client.run(version, "ssdlab").items():
        if found != own:
            raise UsageError(
                f"--dask {address}: worker {worker} has ssdlab {found}, and here is {own}; "
                "install the same"
            )


def _submitted(client: Any, order: Order) -> Any:
    return client.submit(perform, order, key=f"ssdlab-{order.key}", retries=ATTEMPTS - 1)


def _ended(future: Any, order: Order) -> Ended:
    error = future.exception()
    if error is not None:
        return Ended(order, None, f"{type(error).__name__}: {error}", ATTEMPTS)
    return Ended(order, future.result(), "", 1)
