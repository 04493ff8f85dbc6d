"""Reads finished runs: run folders of ssdlab, and results of fio."""

from __future__ import annotations

import os
from pathlib import Path

from ssdlab.records import Run, find_runs, read_run


def is_fio_result(path: Path) -> bool:
    """Whether a path is to be read as a result of fio: a file, not a folder."""
    return os.path.isfile(path)  # noqa: PTH113 -- Path.is_file raises for a name that is too long


def read_runs(path: Path) -> list[Run]:
    """The run in a folder or in a result of fio, or all runs of a results folder, oldest first.

    Raises:
        UsageError: `path` has no run, or one in another format.
    """
    if is_fio_result(path):
        from ssdlab.experiments.workload.fio_results import read_fio

        return [read_fio(path)]
    return [read_run(folder) for folder in find_runs(path)]
