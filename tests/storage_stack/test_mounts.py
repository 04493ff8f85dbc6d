"""The mount of a path, also where prefixes and device numbers are ambiguous."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ssdlab.errors import TargetError
from ssdlab.storage_stack.filesystem import mount_warnings
from ssdlab.storage_stack.mounts import longest_prefix, mount_of, read_mounts

LINES = (
    "22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,data=journal",
    "23 22 0:21 / /mnt/data rw master:2 shared:9 - btrfs /dev/sdb rw,compress=zstd:3,subvol=/",
    r"24 22 254:2 / /mnt/my\040disk ro,nosuid - xfs /dev/sda2 rw,attr2",
    "25 22 0:30 / /srv rw - tmpfs  rw,size=4k",
    "26 22 254:3 / /srv rw - ext4 /dev/sda3 rw",
)


def test_a_line_of_mountinfo_becomes_a_mount(captured: Any) -> None:
    captured.mountinfo(*LINES)
    root, data, disk, covered, _ = read_mounts(captured.proc)
    assert (root.major, root.minor, root.fs_type, root.source) == (254, 1, "ext4", "/dev/sda1")
    assert root.option("data") == "journal"
    assert root.option("relatime") == ""
    assert root.option("noatime") is None
    assert data.option("compress") == "zstd:3"
    assert disk.mount_point == Path("/mnt/my disk")
    assert disk.has("ro")
    assert (covered.source, covered.has("size")) == ("", True)


@pytest.mark.parametrize(
    ("path", "mount_id"),
    [("/etc/fstab", 22), ("/mnt/data/x", 23), ("/mnt/database", 22), ("/srv/x", 26)],
)
def test_the_longest_mount_point_wins_and_the_later_of_two(
    captured: Any, path: str, mount_id: int
) -> None:
    captured.mountinfo(*LINES)
    found = longest_prefix(Path(path), read_mounts(captured.proc), None)
    assert found is not None
    assert found.mount_id == mount_id


def test_a_device_number_decides_between_mounts_on_top_of_each_other(captured: Any) -> None:
    captured.mountinfo(*LINES)
    found = longest_prefix(Path("/srv/x"), read_mounts(captured.proc), os.makedev(0, 30))
    assert found is not None
    assert found.mount_id == 25


def test_a_btrfs_subvolume_is_found_although_its_device_number_is_in_no_mount(
    make_filesystem: Callable[..., Path],
) -> None:
    top = make_filesystem("btrfs", 128)
    subprocess.run(["btrfs", "-q", "subvolume", "create", top / "sub"], check=True)
    mount = mount_of(top / "sub" / "not" / "yet" / "there")
    device = (top / "sub").stat().st_dev
    assert device != os.makedev(mount.major, mount.minor)
    assert (mount.mount_point, mount.fs_type) == (top, "btrfs")


def test_a_mount_covered_by_a_later_one_is_not_confused_with_it(
    make_filesystem: Callable[..., Path],
) -> None:
    outer, inner = make_filesystem("btrfs", 128), make_filesystem("tmpfs", 1)
    (inner / "sub").mkdir()
    subprocess.run(["btrfs", "-q", "subvolume", "create", outer / "sub"], check=True)
    subprocess.run(["mount", "-t", "ramfs", "ramfs", inner / "sub"], check=True)
    subprocess.run(["mount", "--bind", outer, inner], check=True)
    try:
        found = mount_of(inner / "sub")  # outer's subvolume; the prefix alone says ramfs
    finally:
        subprocess.run(["umount", inner], check=True)
        subprocess.run(["umount", inner / "sub"], check=True)
    assert (found.fs_type, found.mount_point) == ("btrfs", inner)


def test_a_bind_mount_and_a_link_into_it_have_the_same_mount(
    make_filesystem: Callable[..., Path], tmp_path: Path
) -> None:
    top = make_filesystem("ext4", 16)
    bound = top / "bound"
    bound.mkdir()
    (tmp_path / "link").symlink_to(bound / "file")
    subprocess.run(["mount", "--bind", top, bound], check=True)
    try:
        (bound / "file").touch()
        by_path, by_link = mount_of(bound / "file"), mount_of(tmp_path / "link")
    finally:
        subprocess.run(["umount", bound], check=True)
    assert by_path == by_link
    assert by_path.mount_point == bound
    assert mount_of(top).mount_id != by_path.mount_id


@pytest.mark.parametrize("lines", [["23 22 0:21 / /proc rw - proc proc rw"], None])
def test_a_path_whose_mount_is_not_listed_keeps_its_device_and_has_a_warning(
    captured: Any, tmp_path: Path, lines: list[str] | None
) -> None:
    if lines is None:
        (captured.proc / "self" / "mountinfo").unlink()
    else:
        captured.mountinfo(*lines)  # as in a chroot
    mount = mount_of(tmp_path / "not" / "yet" / "there", captured.proc)
    number = tmp_path.stat().st_dev
    assert (mount.major, mount.minor) == (os.major(number), os.minor(number))
    assert tmp_path.is_relative_to(mount.mount_point)
    (warning,) = mount_warnings(mount, captured.proc, captured.sys)
    assert (warning.code, warning.fatal) == ("unseen-mount", False)


def test_without_mountinfo_reading_the_mounts_is_an_error(captured: Any) -> None:
    (captured.proc / "self" / "mountinfo").unlink()
    with pytest.raises(TargetError, match="mount /proc"):
        read_mounts(captured.proc)


def test_a_loop_of_links_is_refused_by_name(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(TargetError, match="loop"):
        mount_of(loop / "file")
