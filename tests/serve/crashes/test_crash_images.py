"""Crash images of a file system on a twin. bench/crash_images.py checks all of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from crash_images import MADE, Checker, Workload
from rig import Attach, Mounted, Serve, need, run, unmount

SIZE = 24 << 20


@pytest.fixture
def logged(serve: Serve, attach: Attach, mounted: Mounted, tmp_path: Path) -> Callable[[int], Path]:
    """`logged(rounds)` -> the log of a workload on ext4; skips without root or nbdfuse."""

    def make(rounds: int) -> Path:
        need("mkfs.ext4", "e2fsck", "debugfs")
        log = tmp_path / "log"
        served = serve("--log", str(log))
        attached = attach(served)
        run("mkfs.ext4", "-q", "-F", "-b", "4096", attached.device, f"{SIZE >> 10}")
        point = mounted(attached.device, "ext4")
        with served.control as control:
            os.sync()
            control.request("mark", name=MADE)
            Workload(point, lambda name: control.request("mark", name=name)).run(rounds)
        unmount(point)
        attached.detach()
        served.stop()
        return log

    return make


def test_no_crash_image_loses_acknowledged_data(
    logged: Callable[[int], Path], tmp_path: Path
) -> None:
    images = Checker(SIZE, tmp_path).check(logged(4), every=6)
    assert images.bad == []
    assert images.checked > 12
    assert images.marks_checked > 20


def test_a_drive_that_loses_flushed_data_is_detected(
    logged: Callable[[int], Path], tmp_path: Path
) -> None:
    """Checks the checker: it drops the first write of each flush."""
    checker = Checker(SIZE, tmp_path)
    keep = checker._keep
    checker._keep = lambda epoch: keep(epoch[1:])  # type: ignore[method-assign]
    assert checker.check(logged(3), every=6).bad
