"""Real files and block devices, by io_uring and direct I/O."""

from __future__ import annotations

from pathlib import Path

from ssdlab._native import Drive


def open_real(
    path: Path,
    *,
    queue_depth: int = 32,
    request_bytes_max: int = 1 << 20,
    seed: int = 0,
    writable: bool = True,
) -> Drive:
    """Opens an existing file or block device past the page cache.

    A block device is opened exclusively. What is written is random data of the seed's stream.

    Raises:
        TargetError: it cannot be measured; never a silent fall-back to buffered I/O.
    """
    return Drive.real(
        path,
        queue_depth=queue_depth,
        request_bytes_max=request_bytes_max,
        seed=seed,
        writable=writable,
    )
