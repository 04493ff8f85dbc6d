"""Warnings about file systems and attributes, in captured trees and on real file systems."""

from __future__ import annotations

import mmap
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ssdlab.storage_stack.cache import resident_bytes
from ssdlab.storage_stack.file_info import Attribute, attribute_warnings, attributes_of
from ssdlab.storage_stack.filesystem import mount_warnings
from ssdlab.storage_stack.mounts import mount_of, read_mounts


@pytest.mark.parametrize(
    ("line", "codes"),
    [
        ("rw - ext4 /dev/sda rw", []),
        ("rw - xfs /dev/sda rw,inode64", []),
        ("rw - tmpfs tmpfs rw", ["memory"]),
        ("rw - proc proc rw", ["pseudo"]),
        ("rw - nfs4 host:/x rw", ["network"]),
        ("rw - 9p share rw", ["network"]),
        ("rw - fuse.sshfs me@host: rw", ["network"]),
        ("ro - ext4 /dev/sda rw", ["read-only"]),
        ("rw - ext4 /dev/sda rw,errors=remount-ro", []),
        ("ro - squashfs /dev/loop1 ro", ["read-only"]),
        ("ro - btrfs /dev/sda rw", ["read-only", "copy-on-write"]),
        ("rw - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w", ["stacked"]),
        ("rw - fuse.mergerfs pool rw", ["stacked"]),
        ("rw - ext4 /dev/sda rw,data=journal", ["data-journal"]),
        ("rw - ext4 /dev/sda rw,data=writeback,nobarrier", ["no-barrier"]),
        ("rw - f2fs /dev/sda rw", ["log-structured"]),
        ("rw - f2fs /dev/sda rw,compress_extension=*", ["log-structured", "compressed"]),
        ("rw - btrfs /dev/sda rw,compress-force=zstd:3", ["copy-on-write", "compressed"]),
        ("rw - btrfs /dev/sda rw,nodatasum,nodatacow", []),
        ("rw - zfs pool/set rw", ["copy-on-write", "compressed"]),
        ("rw,sync - vfat /dev/sda rw", ["synchronous"]),
        ("rw - xfs /dev/pmem0 rw,dax=always", ["dax"]),
        ("rw - xfs /dev/pmem0 rw,dax=never", []),
        ("rw - reiser5 /dev/sda rw", ["unknown-filesystem"]),
    ],
)
def test_each_kind_of_file_system_has_its_warnings(
    captured: Any, line: str, codes: list[str]
) -> None:
    captured.mountinfo(f"22 1 8:0 / /mnt {line}")
    warnings = mount_warnings(read_mounts(captured.proc)[0], captured.proc, captured.sys)
    assert [warning.code for warning in warnings] == codes


def test_only_mounts_without_a_drive_or_write_access_are_fatal(captured: Any) -> None:
    kinds = {"tmpfs": True, "nfs": True, "squashfs": True, "btrfs": False, "overlay": False}
    for kind, fatal in kinds.items():
        captured.mountinfo(f"22 1 0:30 / /mnt rw - {kind} x rw")
        warnings = mount_warnings(read_mounts(captured.proc)[0], captured.proc, captured.sys)
        assert [warning.fatal for warning in warnings] == [fatal], kind


def _direct_write(path: Path) -> int | None:
    """Writes 1 MiB with O_DIRECT; returns the bytes of it in the page cache."""
    fd = os.open(path, os.O_CREAT | os.O_RDWR | os.O_DIRECT)
    try:
        with mmap.mmap(-1, 1 << 20) as block:
            assert os.pwrite(fd, block, 0) == 1 << 20
        return resident_bytes(fd)
    finally:
        os.close(fd)


@pytest.mark.parametrize(
    ("kind", "mount_options", "codes", "cached"),
    [
        ("ext4", "", [], 0),
        ("ext4", "data=journal", ["data-journal"], 1 << 20),
        ("xfs", "", [], 0),
        ("btrfs", "compress=zstd", ["copy-on-write", "compressed"], None),
        ("tmpfs", "", ["memory"], 1 << 20),
        ("ramfs", "", ["memory"], None),
    ],
)
def test_warnings_about_a_real_file_system_agree_with_its_direct_io(
    make_filesystem: Callable[..., Path],
    kind: str,
    mount_options: str,
    codes: list[str],
    cached: int | None,
) -> None:
    top = make_filesystem(kind, 64, mount_options=mount_options)
    assert [warning.code for warning in mount_warnings(mount_of(top))] == codes
    if cached is not None:
        try:
            assert _direct_write(top / "file") == cached
        except OSError as error:  # tmpfs before Linux 6.6 has no O_DIRECT
            pytest.skip(f"{kind} refuses O_DIRECT here: {error}")


def test_data_journal_as_a_superblock_default_is_detected(
    make_filesystem: Callable[..., Path],
) -> None:
    top = make_filesystem("ext4", 64)
    device = mount_of(top).source
    subprocess.run(["umount", top], check=True)
    subprocess.run(["tune2fs", "-o", "journal_data", device], check=True, capture_output=True)
    subprocess.run(["mount", device, top], check=True)
    mount = mount_of(top)
    assert mount.option("data") is None, "this kernel shows the option in mountinfo"
    assert [warning.code for warning in mount_warnings(mount)] == ["data-journal"]
    assert _direct_write(top / "file") == 1 << 20


@pytest.mark.parametrize(
    ("kind", "flag", "attribute", "code", "fatal"),
    [
        ("btrfs", "c", Attribute.COMPRESSED, "compressed", False),
        ("ext4", "j", Attribute.JOURNAL_DATA, "data-journal", False),
        ("ext4", "a", Attribute.APPEND_ONLY, "append-only", True),
    ],
)
def test_an_attribute_of_a_directory_is_doubted_though_its_mount_is_plain(
    make_filesystem: Callable[..., Path],
    kind: str,
    flag: str,
    attribute: Attribute,
    code: str,
    fatal: bool,
) -> None:
    directory = make_filesystem(kind, 64) / "directory"
    directory.mkdir()
    assert attribute_warnings(directory) == []
    changed = subprocess.run(
        ["chattr", f"+{flag}", directory], check=False, capture_output=True, text=True
    )
    if changed.returncode:
        pytest.skip(f"this root may not set the attribute: {changed.stderr.strip()}")
    assert attribute in (attributes_of(directory) or Attribute(0))
    assert [(warning.code, warning.fatal) for warning in attribute_warnings(directory)] == [
        (code, fatal)
    ]


def test_a_new_file_inherits_the_attributes_that_its_directory_was_asked_about(
    make_filesystem: Callable[..., Path],
) -> None:
    top = make_filesystem("btrfs", 128)
    subprocess.run(["chattr", "+c", top], check=True)
    (top / "file").touch()
    assert [warning.code for warning in attribute_warnings(top / "file")] == ["compressed"]


def test_a_file_system_without_attributes_has_none(make_filesystem: Callable[..., Path]) -> None:
    assert attribute_warnings(make_filesystem("ramfs", 1)) == []
