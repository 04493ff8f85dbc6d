"""Which files are meant: those named, and in directories those large enough to be measured."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ssdlab.errors import TargetError

LEAST_BYTES: Final = 1 << 20


def files_meant(paths: Iterable[Path]) -> tuple[list[Path], int]:
    """Files in the order given, each once, and how many smaller ones were left out.

    A directory stands for its plain files of 1 MiB or more, on its own file system alone; no
    symbolic link is followed in it. What is named itself is meant, whatever it is.

    Raises:
        TargetError: a path that is not there.
    """
    found: dict[tuple[int, int], Path] = {}
    small = 0
    for path in paths:
        try:
            status = path.stat()
        except OSError as error:
            raise TargetError(
                f"{path}: {error.strerror}; give files, or directories that hold them"
            ) from error
        if not stat.S_ISDIR(status.st_mode):
            found.setdefault((status.st_dev, status.st_ino), path)
            continue
        for each, seen in _plain_files(path, status.st_dev):
            if seen.st_size < LEAST_BYTES:
                small += 1
            else:
                found.setdefault((seen.st_dev, seen.st_ino), each)
    return list(found.values()), small


def _plain_files(directory: Path, device: int) -> list[tuple[Path, os.stat_result]]:
    found = []
    for folder, subfolders, names in os.walk(directory):
        here = Path(folder)
        subfolders[:] = sorted(name for name in subfolders if _is_on(here / name, device))
        for name in sorted(names):
            try:
                status = (here / name).lstat()
            except OSError:  # it went meanwhile
                continue
            if stat.S_ISREG(status.st_mode) and status.st_dev == device:
                found.append((here / name, status))
    return found


def _is_on(path: Path, device: int) -> bool:
    try:
        return path.lstat().st_dev == device
    except OSError:
        return False
