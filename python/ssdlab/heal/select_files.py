"""Which files to heal: those given by name, and in directories those large enough to measure."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ssdlab.errors import TargetError

MIN_FILE_BYTES: Final = 1 << 20


def select_files(paths: Iterable[Path]) -> tuple[list[Path], int]:
    """The files in the order given, each once, and how many were skipped because they are small.

    A directory stands for its regular files of 1 MiB or more on the same file system; symbolic
    links in it are not followed. A file that is named directly is always selected.

    Raises:
        TargetError: a path does not exist.
    """
    selected: dict[tuple[int, int], Path] = {}
    small = 0
    for path in paths:
        try:
            status = path.stat()
        except OSError as error:
            raise TargetError(
                f"{path}: {error.strerror}; give files, or directories that hold them"
            ) from error
        if not stat.S_ISDIR(status.st_mode):
            selected.setdefault((status.st_dev, status.st_ino), path)
            continue
        for file, file_status in _regular_files(path, status.st_dev):
            if file_status.st_size < MIN_FILE_BYTES:
                small += 1
            else:
                selected.setdefault((file_status.st_dev, file_status.st_ino), file)
    return list(selected.values()), small


def _regular_files(directory: Path, device: int) -> list[tuple[Path, os.stat_result]]:
    files = []
    for folder, subfolders, names in os.walk(directory):
        here = Path(folder)
        subfolders[:] = sorted(name for name in subfolders if _is_on(here / name, device))
        for name in sorted(names):
            try:
                status = (here / name).lstat()
            except OSError:  # removed since it was listed
                continue
            if stat.S_ISREG(status.st_mode) and status.st_dev == device:
                files.append((here / name, status))
    return files


def _is_on(path: Path, device: int) -> bool:
    try:
        return path.lstat().st_dev == device
    except OSError:
        return False
