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
from patients import Healing, Make, Patient

from ssdlab.heal.file import heal_file
from ssdlab.heal.options import Wish
from ssdlab.heal.refusal import no_room, refusal, way_of
from ssdlab.storage_stack.attributes import Attribute
from ssdlab.storage_stack.extents import Extent, ExtentFlag
from ssdlab.storage_stack.file_info import FileInfo, read_file_info

M = 1 << 20


@pytest.fixture
def seen(drive_directory: Path) -> FileInfo:
    """A plain file on ext4, whatever the tests run on."""
    path = drive_directory / "file"
    path.write_bytes(b"x" * M)
    found = read_file_info(path)
    mount = replace(found.mount, fs_type="ext4", options=("rw",))
    extents = (Extent(0, M, M, ExtentFlag.LAST),)
    return replace(
        found,
        mount=mount,
        extents=extents,
        attributes=Attribute.EXTENTS,
        has_journal=True,
        shares_blocks=None,
        may_write=True,
    )


@pytest.fixture
def cleaned() -> Iterator[ExitStack]:
    """What must be undone before a file system is unmounted."""
    with ExitStack() as undo:
        yield undo


def run(*command: str | Path) -> None:
    if shutil.which(str(command[0])) is None:
        pytest.skip(f"needs {command[0]}, which is not installed")
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{' '.join(map(str, command))}: {done.stderr.strip()}")


def refused(path: Path, *, shared: bool = False) -> str | None:
    wish = Wish(everything=True, shared=shared)
    found = heal_file(path, wish, lambda _label, _done, _total: None).refused
    return None if found is None else found.code


def test_a_plain_file_of_ones_own_is_not_refused(seen: FileInfo) -> None:
    assert refusal(seen) is None
    assert way_of(seen) == "move extents"


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
def test_a_file_system_that_is_no_drive_of_this_machine_is_refused(
    kind: str, code: str, seen: FileInfo
) -> None:
    found = refusal(replace(seen, mount=replace(seen.mount, fs_type=kind)))
    assert found is not None
    assert found.code == code


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
def test_an_attribute_that_forbids_it_is_named(
    attribute: Attribute, code: str, seen: FileInfo
) -> None:
    found = refusal(replace(seen, attributes=seen.attributes | attribute))
    assert found is not None
    assert found.code == code


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
def test_extents_that_cannot_be_moved_are_named(
    flag: ExtentFlag, code: str, seen: FileInfo
) -> None:
    found = refusal(replace(seen, extents=(Extent(0, M, M, flag),)))
    assert found is not None
    assert found.code == code


def test_what_is_not_ours_or_not_safe_is_refused(seen: FileInfo) -> None:
    by_tables = replace(seen, attributes=Attribute(0), names=2)
    cases = {
        "not-a-file": replace(seen, is_plain=False),
        "swap": replace(seen, is_swap=True),
        "no-permission": replace(seen, may_write=False),
        "no-journal": replace(seen, has_journal=False),
        "no-extents": replace(seen, extents=None),
        "hard-links": by_tables,
        "data-journal": replace(seen, mount=replace(seen.mount, options=("rw", "data=journal"))),
        "read-only": replace(seen, mount=replace(seen.mount, options=("ro",))),
    }
    found = {code: refusal(each) for code, each in cases.items()}
    assert {code: each and each.code for code, each in found.items()} == {
        code: code for code in cases
    }


def test_room_is_asked_for_what_is_in_hand_and_of_a_whole_copy_for_the_file(seen: FileInfo) -> None:
    big = replace(seen, size_bytes=1000 * M)
    space = replace(big.space, total_bytes=10_000 * M, free_bytes=150 * M)
    big = replace(big, space=space)
    assert no_room(big, 900 * M, "move extents") is None
    found = no_room(big, 900 * M, "share and compare")
    assert found is not None
    assert found.code == "no-room"
    assert no_room(big, 20 * M, "share and compare") is None
    assert no_room(big, 20 * M, "copy and exchange") is not None


def test_swap_in_use_is_refused(
    make_filesystem: Make, patient: Patient, cleaned: ExitStack
) -> None:
    healing = patient(make_filesystem("ext4", 400), 4 * M)
    healing.path.chmod(0o600)
    run("mkswap", healing.path)
    run("swapon", healing.path)
    cleaned.callback(run, "swapoff", healing.path)
    assert refused(healing.path) == "swap"


@pytest.mark.parametrize(("letter", "code"), [("i", "immutable"), ("a", "append-only")])
def test_chattr_is_respected(
    letter: str, code: str, make_filesystem: Make, patient: Patient, cleaned: ExitStack
) -> None:
    healing = patient(make_filesystem("ext4", 400), 4 * M)
    run("chattr", f"+{letter}", healing.path)
    cleaned.callback(run, "chattr", f"-{letter}", healing.path)
    assert refused(healing.path) == code


def test_a_copy_that_shares_blocks_is_left_alone_unless_asked(
    make_filesystem: Make, patient: Patient
) -> None:
    healing = patient(make_filesystem("xfs", 400), 4 * M)
    clone = healing.path.with_name("clone")
    run("cp", "--reflink=always", healing.path, clone)
    assert refused(healing.path) == "shared"
    assert refused(healing.path, shared=True) is None
    assert clone.read_bytes() == healing.content
    clone.unlink()
    healing.check()


def test_a_snapshot_is_left_alone_unless_asked(make_filesystem: Make) -> None:
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


def test_what_the_file_system_compressed_is_refused(make_filesystem: Make) -> None:
    point = make_filesystem("btrfs", 400, mount_options="compress-force=zlib")
    path = point / "file"
    path.write_bytes(b"the same again and again" * 100_000)
    assert refused(path) == "compressed"


def test_a_program_that_runs_is_refused(make_filesystem: Make, cleaned: ExitStack) -> None:
    program = make_filesystem("xfs", 400) / "program"
    shutil.copy(shutil.which("sleep") or "sleep", program)
    with program.open("ab") as file:
        file.write(bytes(M))
    process = subprocess.Popen([program, "infinity"])
    cleaned.callback(process.wait)
    cleaned.callback(process.kill)
    assert refused(program) == "cannot-open"


def test_a_read_only_mount_and_memory_are_refused(make_filesystem: Make, patient: Patient) -> None:
    point = make_filesystem("ext4", 400)
    healing = patient(point, 4 * M)
    run("mount", "-o", "remount,ro", point)
    assert refused(healing.path) == "read-only"
    run("mount", "-o", "remount,rw", point)
    in_memory: Healing = patient(make_filesystem("tmpfs", 40), 4 * M)
    assert refused(in_memory.path) == "memory"


def test_a_file_system_without_a_journal_or_without_room_is_refused(
    make_filesystem: Make, patient: Patient
) -> None:
    healing = patient(make_filesystem("ext4", 100, "-O ^has_journal"), 4 * M)
    assert refused(healing.path) == "no-journal"
    full = patient(make_filesystem("ext4", 100), 40 * M)
    space = os.statvfs(full.path)
    filling = full.path.with_name("filling")
    with filling.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, (space.f_bavail - 2048) * space.f_frsize)
    assert refused(full.path) == "no-room"
    filling.unlink()
    full.check()
