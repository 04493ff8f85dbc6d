"""Signatures on block devices, each kind by itself."""

from __future__ import annotations

import binascii
import os
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fuse_mounts import run_beside_fuse

from ssdlab.errors import TargetError
from ssdlab.storage_stack import signatures as module
from ssdlab.storage_stack.blockdev import device_at, partitions_of
from ssdlab.storage_stack.in_use import in_use
from ssdlab.storage_stack.signatures import Signature, signatures

MIB = 1 << 20
MADE = {
    "ext2": ("mkfs.ext2", "-q", "-F"),
    "ext3": ("mkfs.ext3", "-q", "-F"),
    "ext4": ("mkfs.ext4", "-q", "-F"),
    "xfs": ("mkfs.xfs", "-q", "-f"),
    "btrfs": ("mkfs.btrfs", "-q", "-f"),
    "swap": ("mkswap",),
    "minix": ("mkfs.minix",),
    "bfs": ("mkfs.bfs",),
    "vfat": ("mkfs.vfat",),
    "exfat": ("mkfs.exfat",),
    "ntfs": ("mkfs.ntfs", "-q", "-F"),
    "crypto_LUKS": ("cryptsetup", "luksFormat", "-q", "--key-file=/etc/hostname"),
    "LVM2_member": ("pvcreate", "-qq", "-y"),
}
"""By libblkid's name: the command that creates one."""


def _table(entries: bytes) -> bytes:
    return b"\0" * 446 + entries.ljust(64, b"\0") + b"\x55\xaa"


def mbr(start: int = 2048, count: int = 65536) -> bytes:
    """An MBR with one Linux partition; `start` and `count` in sectors."""
    return _table(struct.pack("<B3sB3sII", 0, b"\0\2\0", 0x83, b"\xfe\xff\xff", start, count))


def gpt(sectors: int) -> dict[int, bytes]:
    """By offset: a protective MBR and an empty GPT, without the backup GPT at the end."""
    entries = bytes(128 * 128)
    guard = _table(struct.pack("<B3sB3sII", 0, b"\0\2\0", 0xEE, b"\xff\xff\xff", 1, sectors - 1))
    fields = (b"EFI PART", 0x10000, 92, 0, 0, 1, sectors - 1, 34, sectors - 34, b"\7" * 16, 2)
    tail = (128, 128, binascii.crc32(entries))
    header = struct.pack("<8sIIIIQQQQ16sQIII", *fields, *tail)
    header = header[:16] + struct.pack("<I", binascii.crc32(header)) + header[20:]
    return {0: guard, 512: header, 1024: entries}


def _raid_1_2() -> bytes:
    """A Linux RAID superblock, version 1.2, for offset 4 KiB."""
    fields = struct.pack("<IIII", 0xA92B4EFC, 1, 0, 0) + b"\1" * 16 + b"box:0".ljust(32, b"\0")
    return (fields + bytes(64) + struct.pack("<QQQ", 2048, 0, 8)).ljust(1024, b"\0")


WRITTEN: dict[str, dict[int, bytes]] = {
    "dos": {0: mbr()},
    "gpt": gpt(64 * MIB // 512),
    "crypto_LUKS": {0: b"LUKS\xba\xbe\0\1".ljust(592, b"\0")},
    "linux_raid_member": {4096: _raid_1_2()},
}
"""By libblkid's name: bytes by offset, for formats that need no tool."""


def _write(device: Path, parts: dict[int, bytes]) -> None:
    fd = os.open(device, os.O_WRONLY)
    try:
        for offset, text in parts.items():
            os.pwrite(fd, text, offset)
        os.fsync(fd)
    finally:
        os.close(fd)


@pytest.mark.parametrize("kind", MADE)
def test_a_format_made_by_its_tool_is_found(loop_device: Callable[..., Path], kind: str) -> None:
    tool, *options = MADE[kind]
    if shutil.which(tool) is None:
        pytest.skip(f"needs {tool}, which is not installed")
    device = loop_device(300)
    done = run_beside_fuse([tool, *options, str(device)])
    assert done.returncode == 0, done.stderr
    assert kind in [signature.kind for signature in signatures(device_at(device))]


@pytest.mark.parametrize("kind", WRITTEN)
def test_a_partition_table_and_a_member_of_luks_or_raid_are_found(
    loop_device: Callable[..., Path], kind: str
) -> None:
    device = loop_device(64)
    assert signatures(device_at(device)) == []
    _write(device, WRITTEN[kind])
    assert kind in [signature.kind for signature in signatures(device_at(device))]


def test_two_signatures_on_one_device_are_both_found_with_their_labels(
    loop_device: Callable[..., Path],
) -> None:
    device = loop_device(64)
    subprocess.run(["mkfs.ext4", "-q", "-L", "data", device], check=True)
    _write(device, WRITTEN["dos"])
    found = signatures(device_at(device))
    assert set(found) == {Signature(device, "ext4", "data"), Signature(device, "dos")}
    assert str(found[0]) == f"ext4 'data' on {device}"


def test_random_bytes_have_no_signature(loop_device: Callable[..., Path]) -> None:
    device = loop_device(16)
    _write(device, {0: os.urandom(16 * MIB)})
    assert signatures(device_at(device)) == []


@pytest.fixture
def partitioned(loop_device: Callable[..., Path]) -> Iterator[tuple[Path, Path]]:
    """A loop device with a partition of 32 MiB, and that partition."""
    device = loop_device(64)
    _write(device, {0: mbr()})
    # Not `losetup --partscan`: a kernel may not read this kind of table.
    made = subprocess.run(["partx", "--add", device], check=False, capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"no partitions can be made here: {made.stderr.strip()}")
    try:
        [partition] = partitions_of(device_at(device))
        yield device, partition.node
    finally:
        subprocess.run(["partx", "--delete", device], check=True)


def test_the_signatures_of_a_partition_are_also_those_of_its_disk(
    partitioned: tuple[Path, Path],
) -> None:
    device, partition = partitioned
    subprocess.run(["mkfs.ext4", "-q", partition], check=True)
    kinds = {(each.node, each.kind) for each in signatures(device_at(device))}
    assert kinds == {(device, "dos"), (partition, "ext4")}
    assert [signature.kind for signature in signatures(device_at(partition))] == ["ext4"]


def test_a_mounted_partition_protects_its_whole_disk(
    partitioned: tuple[Path, Path], tmp_path: Path
) -> None:
    device, partition = partitioned
    subprocess.run(["mkfs.ext4", "-q", partition], check=True)
    top = tmp_path / "top"
    top.mkdir()
    subprocess.run(["mount", partition, top], check=True)
    try:
        reasons = {target: in_use(target) for target in partitioned}
    finally:
        subprocess.run(["umount", top], check=True)
    for found in reasons.values():
        assert found[0] == f"{partition} is mounted at {top} (ext4): umount it first"
    assert in_use(device) == []


def test_without_wipefs_the_signatures_are_an_error(
    loop_device: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    device = device_at(loop_device(16))
    monkeypatch.setattr(module, "_SBIN", "")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(TargetError, match=r"wipefs \(util-linux\).* is not installed"):
        signatures(device)


def test_a_device_that_cannot_be_read_is_an_error_in_one_line(
    captured: object, tmp_path: Path
) -> None:
    with pytest.raises(TargetError, match="cannot be checked for file systems") as error:
        module._wipefs(tmp_path / "none")
    assert "\n" not in str(error.value)
