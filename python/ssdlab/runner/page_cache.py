"""The page cache and a target: dropping what it holds of it, and measuring what it holds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from ssdlab.runner.open_target import OpenTarget
from ssdlab.storage_stack.cache import resident_bytes


def drop_cached(opened: OpenTarget) -> None:
    """Writes back what the page cache holds of the target, and drops it."""
    with _descriptor(opened) as fd:
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def cached_share(opened: OpenTarget, size_bytes: int) -> float | None:
    """The share of the first `size_bytes` in the page cache; None if the kernel does not tell."""
    with _descriptor(opened) as fd:
        resident = resident_bytes(fd, 0, size_bytes)
    return None if resident is None else resident / size_bytes


@contextmanager
def _descriptor(opened: OpenTarget) -> Iterator[int]:
    assert opened.path is not None, "a twin has no page cache"
    fd = os.open(opened.path, os.O_RDWR | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)
