"""Other ways to a site's drive: through the page cache, by other calls, with other content."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from ssdlab.device import Drive, RealOptions, open_engine
from ssdlab.experiment.frame.site import Site
from ssdlab.stack.cache import resident_bytes

Engine = Literal["io_uring", "sync"]


def reopened(site: Site, options: RealOptions, engine: Engine = "io_uring") -> Drive:
    """The test file or block device of a real site once more, beside the drive that it has.

    A block device is not claimed a second time: the site's own drive holds it.

    Raises:
        TargetError: it cannot be opened like that.
    """
    assert not options.exclusive, "the site's drive holds the target"
    return open_engine(path_of(site), options, engine)


def path_of(site: Site) -> Path:
    """The test file or block device of a real site."""
    assert not site.is_virtual, "a twin has no file"
    return Path(site.identity["path"]) if site.test_file is None else site.test_file.path


def forget_cached(site: Site) -> None:
    """Has the kernel drop what it keeps of the target in memory, once that is written out."""
    with _descriptor(site) as fd:
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def cached_share(site: Site, size_bytes: int) -> float | None:
    """The share of the first `size_bytes` that is in memory, or None where nobody says."""
    with _descriptor(site) as fd:
        resident = resident_bytes(fd, 0, size_bytes)
    return None if resident is None else resident / size_bytes


@contextmanager
def _descriptor(site: Site) -> Iterator[int]:
    fd = os.open(path_of(site), os.O_RDWR | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)
