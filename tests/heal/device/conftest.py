"""Block devices in memory, so that the journal can be on the drive of the test directory."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import loop_devices
import pytest
from sample_device import Device
from watchdog_case import WatchdogCase

from ssdlab.errors import TargetError
from ssdlab.heal.device import kernel
from ssdlab.heal.device.refusal import require_journal_elsewhere
from ssdlab.storage_stack.blockdev import device_at

MEMORY = Path("/dev/shm")


@pytest.fixture
def make_device(tmp_path: Path) -> Iterator[Callable[..., Device]]:
    """`make_device(kind, size_mib)` -> a file system with files and holes, unmounted."""
    if os.geteuid() != 0:
        pytest.skip("needs root: it makes loop devices and mounts")
    if not os.path.ismount(MEMORY):
        pytest.skip("needs /dev/shm, a file system in memory")
    with ExitStack() as undo:

        def make(kind: str, size_mib: int = 64) -> Device:
            for tool in (f"mkfs.{kind}", "losetup"):
                if shutil.which(tool) is None:
                    pytest.skip(f"needs {tool}, which is not installed")
            folder = Path(undo.enter_context(TemporaryDirectory(dir=MEMORY)))
            image = folder / "image"
            with image.open("xb") as file:
                file.truncate(max(size_mib, 300 if kind == "xfs" else 0) << 20)
            node, why = loop_devices.attach(image)
            if node is None:
                pytest.skip(f"no loop device is available: {why}")
            undo.callback(subprocess.run, ["losetup", "--detach", str(node)], check=True)
            journal = tmp_path / f"journal-{node.name}"
            try:
                require_journal_elsewhere(journal, device_at(node))
            except TargetError as error:
                pytest.skip(f"needs a test directory on a drive: {error}")
            device = Device(node, image, journal, tmp_path / f"mounted-{node.name}", kind)
            undo.callback(device.unmount)
            device.fill()
            return device

        yield make


@pytest.fixture
def mounted(make_device: Callable[..., Device]) -> Device:
    """A mounted ext4."""
    device = make_device("ext4")
    device.mount()
    fd = os.open(device.point, os.O_RDONLY)
    try:
        kernel.free_or_metadata(fd, 0, 1 << 20)
        if not kernel.freeze(fd) or not kernel.thaw(fd):
            pytest.skip("file systems cannot be frozen here")
    except OSError as error:
        pytest.skip(f"file systems cannot be frozen here: {error}")
    finally:
        os.close(fd)
    return device


@pytest.fixture
def case(mounted: Device) -> Iterator[WatchdogCase]:
    """A `WatchdogCase`; fails if the file system stays frozen."""
    watchdog_case = WatchdogCase(mounted)
    try:
        yield watchdog_case
        (mounted.point / "written").write_bytes(b"x")  # would block forever
    finally:
        watchdog_case.close()
