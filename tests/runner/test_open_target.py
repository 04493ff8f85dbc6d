"""Opening targets: refusals with their reasons; nothing is left behind."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ssdlab.device import Job, run_job
from ssdlab.errors import TargetError, UsageError
from ssdlab.runner.open_target import OpenTarget, TargetOptions, check, open_for_run
from ssdlab.storage_stack.mounts import mount_of
from ssdlab.storage_stack.space import space_on
from ssdlab.target import NO_CONSENT, Consent, Twin, parse_target

MIB = 1 << 20
SIZE = 16 * MIB
ANY_EMPTY = Consent(any_empty=True)
LEFTOVER = "ssdlab-test-0123456789ab.tmp"
ROOMY_MIB = 1400
"""A file system of this size has room for a test file and the 1 GiB that must stay free."""


def _options(
    target: object, capacity: int | None = None, consent: Consent = NO_CONSENT
) -> TargetOptions:
    return TargetOptions(parse_target(str(target), capacity), SIZE, consent=consent)


def _refusal(target: object, size: int = SIZE, consent: Consent = NO_CONSENT) -> str:
    with (
        pytest.raises(TargetError) as raised,
        open_for_run(TargetOptions(parse_target(str(target)), size, consent=consent)),
    ):
        pytest.fail("it was opened")
    return str(raised.value)


def _codes(target: OpenTarget) -> list[str]:
    return [warning.code for warning in target.warnings]


def test_an_open_twin_has_its_geometry_and_profile() -> None:
    with open_for_run(_options("twin:toshiba-xg5", 256 * MIB)) as target:
        assert target.is_virtual
        assert target.identity["name"] == "toshiba-xg5"
        assert target.identity["capacity_bytes"] == target.drive.capacity_bytes == 256 * MIB
        assert target.identity["dies"] == 16
        assert target.profile is not None
        assert "Toshiba" in target.profile
        assert (target.warnings, target.check_written()) == ([], None)


def test_a_twin_smaller_than_the_region_is_refused() -> None:
    with pytest.raises(
        TargetError,
        match="holds 256 MiB, less than the 512 MiB that this needs; give a smaller --size",
    ):
        check(TargetOptions(Twin("toshiba-xg5", 256 * MIB), 512 * MIB))


def test_the_test_file_in_a_directory_is_removed_afterwards(drive_directory: Path) -> None:
    with open_for_run(_options(drive_directory)) as target:
        assert not target.is_virtual
        assert target.drive.capacity_bytes == SIZE
        assert target.test_file is not None
        assert list(drive_directory.iterdir()) == [target.test_file.path]
        assert target.identity["path"] == str(drive_directory.resolve())
        assert target.identity["fs_type"] == mount_of(drive_directory).fs_type
        assert target.profile is None
    assert list(drive_directory.iterdir()) == []


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_the_test_file_is_removed_after_an_exception(
    drive_directory: Path, kind: type[BaseException]
) -> None:
    with pytest.raises(kind), open_for_run(_options(drive_directory)):
        raise kind
    assert list(drive_directory.iterdir()) == []


def test_a_leftover_is_removed_with_a_warning_and_a_running_test_file_is_kept(
    drive_directory: Path,
) -> None:
    (drive_directory / LEFTOVER).write_bytes(b"x")
    (drive_directory / "mine").write_bytes(b"x")
    with (
        open_for_run(_options(drive_directory)) as first,
        open_for_run(_options(drive_directory)) as second,
    ):
        assert "leftover" in _codes(first)
        assert "leftover" not in _codes(second)
        assert first.test_file is not None
        assert first.test_file.path.exists()
        assert len(list(drive_directory.iterdir())) == 3
    assert [path.name for path in drive_directory.iterdir()] == ["mine"]


def test_a_link_to_a_directory_is_resolved(drive_directory: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(drive_directory)
    with open_for_run(_options(link)) as target:
        assert target.identity["path"] == str(drive_directory.resolve())
        assert len(list(drive_directory.iterdir())) == 1


def test_a_repeated_warning_is_stored_once() -> None:
    with open_for_run(_options("twin:toshiba-xg5", 256 * MIB)) as target:
        target.warn("odd", "It is odd.")
        target.warn("odd", "It is odd.")
        assert _codes(target) == ["odd"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing", "No such file or directory; give a directory"),
        ("file", "neither a directory nor a block device; give the directory it is in"),
        ("pipe", "neither a directory nor a block device"),
        ("loop", "symbolic links"),
    ],
)
def test_a_path_that_is_neither_directory_nor_device_is_refused(
    tmp_path: Path, name: str, reason: str
) -> None:
    (tmp_path / "file").write_bytes(b"")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    before = sorted(tmp_path.iterdir())
    assert reason in _refusal(tmp_path / name)
    assert sorted(tmp_path.iterdir()) == before


def test_an_empty_target_is_refused_instead_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "the target is empty" in _refusal("")


def test_a_capacity_is_refused_for_a_directory(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"--capacity scales a twin, but the target is .*twin:NAME"
    ):
        _options(tmp_path, capacity=MIB)


@pytest.mark.parametrize("kind", ["tmpfs", "ramfs"])
def test_a_file_system_in_memory_is_refused(
    make_filesystem: Callable[..., Path], kind: str
) -> None:
    top = make_filesystem(kind, 64)
    assert "which is in memory" in _refusal(top)
    assert list(top.iterdir()) == []


def test_a_file_system_that_makes_direct_io_buffered_is_refused_before_writing(
    make_filesystem: Callable[..., Path],
) -> None:
    top = make_filesystem("ext4", ROOMY_MIB, "", "data=journal")
    assert "silently turns direct I/O into page-cache I/O" in _refusal(top)
    assert [path.name for path in top.iterdir()] == ["lost+found"]


def test_a_directory_with_data_journalling_is_refused(
    make_filesystem: Callable[..., Path],
) -> None:
    directory = make_filesystem("ext4", ROOMY_MIB) / "journalled"
    directory.mkdir()
    if subprocess.run(["chattr", "+j", directory], check=False, capture_output=True).returncode:
        pytest.skip("chattr +j is not permitted here (needs CAP_SYS_RESOURCE)")
    assert "chattr +j" in _refusal(directory)
    assert list(directory.iterdir()) == []


def test_an_append_only_directory_is_refused_before_a_file_is_created(
    make_filesystem: Callable[..., Path],
) -> None:
    directory = make_filesystem("ext4", ROOMY_MIB) / "append-only"
    directory.mkdir()
    subprocess.run(["chattr", "+a", directory], check=True)
    message = _refusal(directory)
    left = list(directory.iterdir())
    subprocess.run(["chattr", "-a", directory], check=True)
    assert "chattr +a" in message
    assert left == []


def test_a_read_only_directory_is_refused_to_root_too(drive_directory: Path) -> None:
    drive_directory.chmod(0o555)
    refusal = _refusal(drive_directory)
    drive_directory.chmod(0o755)
    assert "read-only (mode 555)" in refusal
    assert list(drive_directory.iterdir()) == []


def test_a_read_only_mount_is_refused(make_filesystem: Callable[..., Path]) -> None:
    top = make_filesystem("ext4", ROOMY_MIB)
    subprocess.run(["mount", "-o", "remount,ro", top], check=True)
    assert "read-only" in _refusal(top)


@pytest.fixture
def ordinary_user(drive_directory: Path) -> Iterator[Callable[[], None]]:
    """`ordinary_user()` drops root privileges until the end of the test."""
    if os.geteuid() != 0:
        pytest.skip("needs root: it becomes another user")
    parents = [path for path in drive_directory.parents if path.stat().st_uid == 0]
    modes = {path: path.stat().st_mode for path in parents}
    for path, mode in modes.items():
        path.chmod(mode | 0o011)
    yield lambda: os.seteuid(65534)
    os.seteuid(0)
    for path, mode in modes.items():
        path.chmod(mode)


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        (0o755, "no test file can be created there (Permission denied)"),
        (0o333, "opened for reading"),
    ],
)
def test_a_directory_without_write_or_read_permission_is_refused(
    drive_directory: Path, ordinary_user: Callable[[], None], mode: int, reason: str
) -> None:
    drive_directory.chmod(mode)
    ordinary_user()
    assert reason in _refusal(drive_directory)


def test_the_reserved_free_space_is_kept(make_filesystem: Callable[..., Path]) -> None:
    small, roomy = make_filesystem("ext4", 256), make_filesystem("ext4", ROOMY_MIB)
    message = _refusal(small)
    assert (
        "1 GiB must stay free (5 % of the file system, at least 1 GiB and at most 8 GiB)" in message
    )
    assert "--size" not in message.split(";")[1]
    message = _refusal(roomy, 2 << 30)
    most = int(message.split("give a --size of at most ")[1].split(" MiB, or another")[0])
    with open_for_run(TargetOptions(parse_target(str(roomy)), most * MIB)):
        assert len(list(roomy.glob("ssdlab*"))) == 1
    assert not list(roomy.glob("ssdlab*"))


def test_a_full_file_system_is_refused(make_filesystem: Callable[..., Path]) -> None:
    top = make_filesystem("ext4", 64)
    with (top / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
        for _ in range(64):
            filler.write(bytes(MIB))
    assert space_on(top).free_bytes < MIB
    assert "must stay free" in _refusal(top)


def test_a_mount_on_a_cached_loop_device_gets_a_warning(
    make_filesystem: Callable[..., Path],
) -> None:
    with open_for_run(_options(make_filesystem("ext4", ROOMY_MIB))) as target:
        assert "page-cache-below" in _codes(target)


def test_a_block_device_is_overwritten_only_with_consent(
    loop_device: Callable[..., Path],
) -> None:
    device = loop_device(32)
    assert "--destroy-data" in _refusal(device)
    assert not any(device.read_bytes())
    with open_for_run(_options(device, consent=ANY_EMPTY)) as target:
        assert target.identity["path"] == str(device)
        assert target.drive.capacity_bytes == 32 * MIB
        assert "page-cache-below" in _codes(target)
        job = Job(op="write", length_bytes=MIB, block_bytes=MIB, amount_bytes=MIB)
        run_job(target.drive, job).raise_if_failed("writing")
    assert any(device.read_bytes()[:MIB])


def test_a_block_device_that_is_too_small_is_refused(loop_device: Callable[..., Path]) -> None:
    assert "holds 8 MiB, less than the 16 MiB" in _refusal(loop_device(8), consent=ANY_EMPTY)


def test_a_mounted_device_is_refused_and_keeps_its_files(
    make_filesystem: Callable[..., Path],
) -> None:
    top = make_filesystem("ext4", 64)
    (top / "file").write_text("precious")
    message = _refusal(mount_of(top).source, consent=ANY_EMPTY)
    assert f"is mounted at {top}" in message
    assert "stays untouched" in message
    assert (top / "file").read_text() == "precious"


def test_swap_in_use_is_refused(loop_device: Callable[..., Path]) -> None:
    device = loop_device(64)
    subprocess.run(["mkswap", device], check=True, capture_output=True)
    started = subprocess.run(["swapon", device], check=False, capture_output=True, text=True)
    if started.returncode:
        pytest.skip(f"no swap can be started here: {started.stderr.strip()}")
    try:
        assert "is swap space" in _refusal(device, consent=ANY_EMPTY)
    finally:
        subprocess.run(["swapoff", device], check=True)


def test_a_device_with_a_holder_is_refused(loop_device: Callable[..., Path]) -> None:
    device = loop_device(64)
    sectors, name = 64 * MIB // 512, f"ssdlab-test-{os.getpid()}"
    created = subprocess.run(
        ["dmsetup", "create", name, "--table", f"0 {sectors} linear {device} 0"],
        check=False,
        capture_output=True,
        text=True,
    )
    if created.returncode:
        pytest.skip(f"no device-mapper here: {created.stderr.strip()}")
    try:
        assert "is a part of dm-" in _refusal(device, consent=ANY_EMPTY)
    finally:
        subprocess.run(["dmsetup", "remove", "--retry", name], check=True)


def test_a_directory_removed_after_parsing_is_refused(drive_directory: Path) -> None:
    options = _options(drive_directory)
    drive_directory.rmdir()
    with pytest.raises(TargetError, match="No such file or directory"), open_for_run(options):
        pytest.fail("it was opened")
