"""Drops a target's pages from the page cache, and measures how much of it is cached."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from ssdlab.runner.open_target import OpenTarget
from ssdlab.storage_stack.cache import resident_bytes


def drop_cached(target: OpenTarget) -> None:
    """Writes back the target's dirty pages and drops its pages from the page cache."""
    with _descriptor(target) as fd:
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def cached_share(target: OpenTarget, size_bytes: int) -> float | None:
    """The share of the first `size_bytes` in the page cache; None if the kernel hides it."""
    with _descriptor(target) as fd:
        resident = resident_bytes(fd, 0, size_bytes)
    return None if resident is None else resident / size_bytes


@contextmanager
def _descriptor(target: OpenTarget) -> Iterator[int]:
    assert target.path is not None, "a twin has no page cache"
    fd = os.open(target.path, os.O_RDWR | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)
