"""Fixtures for all tests: real file systems and loop devices, made for a test, always undone."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import btrfs_tools
import loop_devices
import pytest
from hypothesis import HealthCheck, settings

from ssdlab.storage_stack.filesystem import mount_warnings
from ssdlab.storage_stack.mounts import mount_of
from ssdlab.storage_stack.space import room_for

pytest_plugins = ["report_runs", "small_plans"]

# A runner in the background may ignore Ctrl-C; tests send it to themselves and to programs.
signal.signal(signal.SIGINT, signal.default_int_handler)

# `losetup` of all tests is one that waits for others.
if "SSDLAB_TEST_LOSETUP" not in os.environ and (losetup := shutil.which("losetup")):
    commands = Path(__file__).parent / "fixtures" / "commands"
    os.environ["SSDLAB_TEST_LOSETUP"] = losetup
    os.environ["PATH"] = f"{commands}:{os.environ['PATH']}"

# No test is timed: a shared machine may pause any of them.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# The smallest image that each mkfs accepts; images are sparse, so size costs nothing.
_SMALLEST_MIB = {"xfs": 300, "btrfs": 128}
_MKFS_FLAGS = {"ext4": "-q -F", "ext3": "-q -F", "ext2": "-q -F", "xfs": "-q -f", "btrfs": "-q -f"}
_SMALL_TEST = 64 << 20
_WITHOUT_DEVICE = ("tmpfs", "ramfs")
PATIENCE_S = 60
# A long group that begins last runs alone.
_LONGEST = (
    "docs/test_blocks.py",
    "studio/test_page.py",
    "docs/test_browser.py",
    "cache/test_measure.py",
    "fit/test_geometry.py",
    "steady/test_measure.py",
    "recorded/test_recorded.py",
    "stripe/test_measure.py",
    "cli/test_twin_fit.py",
    "heal/test_changed.py",
    "cli/sweep/test_sweep.py",
    "bench/test_score.py",
    "witness/test_cuts.py",
    "serve/test_watch_page.py",
)


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in this hook too
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts tests that share expensive fixtures in one group, and the long ones first.

    With `pytest -n`, a group runs in one process. The pages of the documentation share nothing and
    take longest.
    """
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        shared = [name for name in ("full_size", "site") if name in fixtures]
        group = shared[0] if shared else str(item.path)
        if item.path.name == "test_blocks.py":
            group = item.nodeid
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: _place(str(item.path)))


def _place(path: str) -> int:
    return next((at for at, name in enumerate(_LONGEST) if path.endswith(name)), len(_LONGEST))


@pytest.fixture
def loop_device(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """`loop_device(size_mib, direct_io=False)` -> /dev/loopN over a sparse file in tmp_path.

    Needs root and losetup, else skips. The device and its file go with the test.
    """
    with ExitStack() as undo:

        def attach(size_mib: int, *, direct_io: bool = False) -> Path:
            _need_root("losetup")
            image = tmp_path / f"image-{len(list(tmp_path.glob('image-*')))}"
            with image.open("xb") as file:
                file.truncate(size_mib << 20)
            undo.callback(image.unlink)
            device, why = loop_devices.attach(
                image, "--direct-io=" + ("on" if direct_io else "off")
            )
            if device is None:
                pytest.skip(f"no loop device can be had here: {why}")
            undo.callback(_run_or_fail, "losetup", "--detach", str(device))
            return device

        yield attach


@pytest.fixture
def make_filesystem(
    tmp_path: Path, loop_device: Callable[..., Path]
) -> Iterator[Callable[..., Path]]:
    """`make_filesystem(kind, size_mib, mkfs_options="", mount_options="")` -> its mount point.

    With `direct_io=True` its loop device has direct I/O, as measurements need.

    Kinds: ext2 ext3 ext4 xfs btrfs on a loop device (at least as large as mkfs demands), and
    tmpfs, ramfs. Needs root, mkfs and the kernel's support, else skips with the reason. It is
    unmounted and removed with the test; leave nothing open in it.
    """
    with ExitStack() as undo:

        def make(
            kind: str,
            size_mib: int,
            mkfs_options: str = "",
            mount_options: str = "",
            *,
            direct_io: bool = False,
        ) -> Path:
            _need_root("mount", *([] if kind in _WITHOUT_DEVICE else [f"mkfs.{kind}"]))
            source = kind
            options = [mount_options] if mount_options else []
            if kind == "tmpfs":
                options.append(f"size={size_mib}M")
            elif kind != "ramfs":
                size_mib = max(size_mib, _SMALLEST_MIB.get(kind, 0))
                source = str(loop_device(size_mib, direct_io=direct_io))
                flags = shlex.split(_MKFS_FLAGS.get(kind, ""))
                command = (f"mkfs.{kind}", *flags, *shlex.split(mkfs_options), source)
                made = btrfs_tools.run(*command)
                assert made.returncode == 0, f"{shlex.join(command)}: {made.stderr.strip()}"
            point = tmp_path / f"{kind}-{len(list(tmp_path.glob(f'{kind}-*')))}"
            point.mkdir()
            _mount(kind, source, point, ",".join(options))
            undo.callback(_unmount, point)
            return point

        yield make


@pytest.fixture
def drive_directory(tmp_path: Path) -> Path:
    """An empty directory on a file system that stands on a drive, with room for a small test.

    Skips where the test's own directory lies in memory, on the network, or on a full drive.
    """
    for doubt in mount_warnings(mount_of(tmp_path)):
        if doubt.fatal or doubt.code == "data-journal":
            pytest.skip(f"needs a directory on a drive (--basetemp): {doubt.sentence}")
    if room_for(tmp_path, _SMALL_TEST) < _SMALL_TEST:
        pytest.skip(f"{tmp_path} has no room: 5 % must stay free, 1 to 8 GiB")
    directory = tmp_path / "on-drive"
    directory.mkdir()
    return directory


def _need_root(*tools: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: it makes loop devices and mounts")
    for tool in tools:
        if shutil.which(tool) is None:
            pytest.skip(f"needs {tool}, which is not installed")


def _mount(kind: str, source: str, point: Path, options: str) -> None:
    chosen = ("-o", options) if options else ()
    result = _run("mount", "-t", kind, *chosen, source, str(point))
    if "unknown filesystem type" in result.stderr or "permission denied" in result.stderr:
        pytest.skip(f"{kind} cannot be mounted here: {result.stderr.strip()}")
    assert result.returncode == 0, f"mount of {kind}: {result.stderr.strip()}"


def _unmount(point: Path) -> None:
    """Unmounts; a loop device that was just detached lets go of its file a little later."""
    end = time.monotonic() + PATIENCE_S
    while (result := _run("umount", str(point))).returncode:
        if time.monotonic() > end:
            _run_or_fail("umount", "--lazy", str(point))
            pytest.fail(f"something was left open: {result.stderr.strip()}")
        time.sleep(0.1)


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def _run_or_fail(*command: str) -> None:
    result = _run(*command)
    assert result.returncode == 0, f"{shlex.join(command)}: {result.stderr.strip()}"
