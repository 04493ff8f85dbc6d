"""Files that must not be rewritten are refused, with the reason."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from sample_file import MakeFileSystem, MakeSample, SampleFile

from ssdlab.heal.file import heal_file
from ssdlab.heal.options import HealOptions
from ssdlab.heal.refusal import method_for, no_space, refusal
from ssdlab.storage_stack.extents import Extent, ExtentFlag
from ssdlab.storage_stack.file_info import Attribute, FileInfo, read_file_info

M = 1 << 20


@pytest.fixture
def info(drive_directory: Path) -> FileInfo:
    """A regular file on ext4, on whatever file system the tests run."""
    path = drive_directory / "file"
    path.write_bytes(b"x" * M)
    actual = read_file_info(path)
    mount = replace(actual.mount, fs_type="ext4", options=("rw",))
    extents = (Extent(0, M, M, ExtentFlag.LAST),)
    return replace(
        actual,
        mount=mount,
        extents=extents,
        attributes=Attribute.EXTENTS,
        has_journal=True,
        shares_blocks=None,
        may_write=True,
    )


@pytest.fixture
def cleaned() -> Iterator[ExitStack]:
    """Undone before the file system is unmounted."""
    with ExitStack() as undo:
        yield undo


def run(*command: str | Path) -> None:
    if shutil.which(str(command[0])) is None:
        pytest.skip(f"needs {command[0]}, which is not installed")
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{' '.join(map(str, command))}: {done.stderr.strip()}")


def refused(path: Path, *, shared: bool = False) -> str | None:
    options = HealOptions(everything=True, shared=shared)
    reason = heal_file(path, options, lambda _label, _done, _total: None).refused
    return None if reason is None else reason.code


def test_an_ordinary_file_is_not_refused(info: FileInfo) -> None:
    assert refusal(info) is None
    assert method_for(info) == "move extents"


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("tmpfs", "memory"),
        ("nfs4", "network"),
        ("fuse.sshfs", "network"),
        ("proc", "pseudo"),
        ("overlay", "stacked"),
        ("fuse.mergerfs", "stacked"),
        ("squashfs", "read-only"),
        ("zfs", "no-way"),
    ],
)
def test_file_systems_that_cannot_be_healed_are_refused(
    kind: str, code: str, info: FileInfo
) -> None:
    reason = refusal(replace(info, mount=replace(info.mount, fs_type=kind)))
    assert reason is not None
    assert reason.code == code


@pytest.mark.parametrize(
    ("attribute", "code"),
    [
        (Attribute.IMMUTABLE, "immutable"),
        (Attribute.APPEND_ONLY, "append-only"),
        (Attribute.VERITY, "verity"),
        (Attribute.ENCRYPTED, "encrypted"),
        (Attribute.COMPRESSED, "compressed"),
        (Attribute.DAX, "dax"),
        (Attribute.JOURNAL_DATA, "data-journal"),
    ],
)
def test_attributes_that_forbid_a_rewrite_are_refused(
    attribute: Attribute, code: str, info: FileInfo
) -> None:
    reason = refusal(replace(info, attributes=info.attributes | attribute))
    assert reason is not None
    assert reason.code == code


@pytest.mark.parametrize(
    ("flag", "code"),
    [
        (ExtentFlag.ENCRYPTED, "encrypted"),
        (ExtentFlag.ENCODED, "compressed"),
        (ExtentFlag.INLINE, "inline"),
        (ExtentFlag.UNWRITTEN, "nothing-there"),
        (ExtentFlag.SHARED, "shared"),
    ],
)
def test_extents_that_cannot_be_moved_are_refused(
    flag: ExtentFlag, code: str, info: FileInfo
) -> None:
    reason = refusal(replace(info, extents=(Extent(0, M, M, flag),)))
    assert reason is not None
    assert reason.code == code


def test_files_that_are_not_safe_to_rewrite_are_refused(info: FileInfo) -> None:
    without_extents = replace(info, attributes=Attribute(0), names=2)
    cases = {
        "not-a-file": replace(info, is_plain=False),
        "swap": replace(info, is_swap=True),
        "no-permission": replace(info, may_write=False),
        "no-journal": replace(info, has_journal=False),
        "no-extents": replace(info, extents=None),
        "hard-links": without_extents,
        "data-journal": replace(info, mount=replace(info.mount, options=("rw", "data=journal"))),
        "read-only": replace(info, mount=replace(info.mount, options=("ro",))),
    }
    reasons = {code: refusal(case) for code, case in cases.items()}
    assert {code: reason and reason.code for code, reason in reasons.items()} == {
        code: code for code in cases
    }


def test_moving_needs_space_for_a_chunk_sharing_for_the_ranges_copying_for_the_file(
    info: FileInfo,
) -> None:
    big = replace(info, size_bytes=1000 * M)
    space = replace(big.space, total_bytes=10_000 * M, free_bytes=150 * M)
    big = replace(big, space=space)
    assert no_space(big, 900 * M, "move extents") is None
    reason = no_space(big, 900 * M, "share and compare")
    assert reason is not None
    assert reason.code == "no-room"
    assert no_space(big, 20 * M, "share and compare") is None
    assert no_space(big, 20 * M, "copy and exchange") is not None


def test_swap_in_use_is_refused(
    make_filesystem: MakeFileSystem, make_sample: MakeSample, cleaned: ExitStack
) -> None:
    sample = make_sample(make_filesystem("ext4", 400), 4 * M)
    sample.path.chmod(0o600)
    run("mkswap", sample.path)
    run("swapon", sample.path)
    cleaned.callback(run, "swapoff", sample.path)
    assert refused(sample.path) == "swap"


@pytest.mark.parametrize(("letter", "code"), [("i", "immutable"), ("a", "append-only")])
def test_chattr_is_respected(
    letter: str,
    code: str,
    make_filesystem: MakeFileSystem,
    make_sample: MakeSample,
    cleaned: ExitStack,
) -> None:
    sample = make_sample(make_filesystem("ext4", 400), 4 * M)
    run("chattr", f"+{letter}", sample.path)
    cleaned.callback(run, "chattr", f"-{letter}", sample.path)
    assert refused(sample.path) == code


def test_a_file_that_shares_blocks_is_refused_without_the_option(
    make_filesystem: MakeFileSystem, make_sample: MakeSample
) -> None:
    sample = make_sample(make_filesystem("xfs", 400), 4 * M)
    clone = sample.path.with_name("clone")
    run("cp", "--reflink=always", sample.path, clone)
    assert refused(sample.path) == "shared"
    assert refused(sample.path, shared=True) is None
    assert clone.read_bytes() == sample.content
    clone.unlink()
    sample.check()


def test_a_file_in_a_snapshot_is_refused_without_the_option(
    make_filesystem: MakeFileSystem,
) -> None:
    point = make_filesystem("btrfs", 400)
    run("btrfs", "subvolume", "create", point / "volume")
    path, content = point / "volume" / "file", os.urandom(4 * M)
    path.write_bytes(content)
    os.sync()
    run("btrfs", "subvolume", "snapshot", "-r", point / "volume", point / "snapshot")
    assert refused(path) == "shared"
    assert refused(path, shared=True) is None
    assert path.read_bytes() == content
    assert (point / "snapshot" / "file").read_bytes() == content


def test_a_compressed_file_is_refused(make_filesystem: MakeFileSystem) -> None:
    point = make_filesystem("btrfs", 400, mount_options="compress-force=zlib")
    path = point / "file"
    path.write_bytes(b"the same again and again" * 100_000)
    assert refused(path) == "compressed"


def test_a_running_program_is_refused(make_filesystem: MakeFileSystem, cleaned: ExitStack) -> None:
    program = make_filesystem("xfs", 400) / "program"
    shutil.copy(shutil.which("sleep") or "sleep", program)
    with program.open("ab") as file:
        file.write(bytes(M))
    process = subprocess.Popen([program, "infinity"])
    cleaned.callback(process.wait)
    cleaned.callback(process.kill)
    assert refused(program) == "cannot-open"


def test_read_only_mounts_and_file_systems_in_memory_are_refused(
    make_filesystem: MakeFileSystem, make_sample: MakeSample
) -> None:
    point = make_filesystem("ext4", 400)
    sample = make_sample(point, 4 * M)
    run("mount", "-o", "remount,ro", point)
    assert refused(sample.path) == "read-only"
    run("mount", "-o", "remount,rw", point)
    in_memory: SampleFile = make_sample(make_filesystem("tmpfs", 40), 4 * M)
    assert refused(in_memory.path) == "memory"


def test_file_systems_without_a_journal_or_free_space_are_refused(
    make_filesystem: MakeFileSystem, make_sample: MakeSample
) -> None:
    sample = make_sample(make_filesystem("ext4", 100, "-O ^has_journal"), 4 * M)
    assert refused(sample.path) == "no-journal"
    full = make_sample(make_filesystem("ext4", 100), 40 * M)
    space = os.statvfs(full.path)
    filling = full.path.with_name("filling")
    with filling.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, (space.f_bavail - 2048) * space.f_frsize)
    assert refused(full.path) == "no-room"
    filling.unlink()
    full.check()
