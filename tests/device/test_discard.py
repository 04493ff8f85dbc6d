"""Direct reads and discards on real devices."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ssdlab.device import DirectReader, discard, sync_file_system, trim_free
from ssdlab.experiments.trim.blocks import device_below
from ssdlab.storage_stack.extents import read_extents
from ssdlab.storage_stack.mounts import mount_of

MIB = 1 << 20


def _read(path: Path, offset: int, length: int) -> bytes:
    with DirectReader(path) as reader:
        return b"".join(bytes(piece) for piece in reader.pieces(offset, length))


def test_a_range_is_read_completely(drive_directory: Path) -> None:
    content = os.urandom(3 * MIB)
    (drive_directory / "file").write_bytes(content)
    assert _read(drive_directory / "file", 4096, 2 * MIB + 8192) == content[4096:][: 2 * MIB + 8192]


def test_a_range_beyond_the_end_is_an_error(drive_directory: Path) -> None:
    (drive_directory / "file").write_bytes(bytes(8192))
    with pytest.raises(OSError, match="nothing can be read at byte 8192"):
        _read(drive_directory / "file", 4096, MIB)


def test_a_discard_of_a_block_device_affects_only_its_range(
    loop_device: Callable[..., Path],
) -> None:
    device, content = loop_device(16), os.urandom(MIB)
    with device.open("r+b") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    discard(device, 0, MIB // 2)
    assert _read(device, 0, MIB) == bytes(MIB // 2) + content[MIB // 2 :]


def test_a_direct_read_sees_a_discard_although_the_page_cache_has_the_old_data(
    make_filesystem: Callable[..., Path],
) -> None:
    top = make_filesystem("ext4", 64, mkfs_options="-E lazy_itable_init=0")
    content = os.urandom(MIB)
    with (top / "file").open("xb") as file:
        file.write(content)
        (extent,) = read_extents(file.fileno()) or ()
    device = device_below(mount_of(top))
    assert device is not None
    with device.node.open("rb") as cached:
        assert os.pread(cached.fileno(), MIB, extent.physical) == content
        (top / "file").unlink()
        sync_file_system(top)
        trim_free(top, extent.physical, extent.length)
        assert os.pread(cached.fileno(), MIB, extent.physical) == content
        assert _read(device.node, extent.physical, MIB) == bytes(MIB)


def test_fitrim_discards_free_space_and_keeps_files(
    make_filesystem: Callable[..., Path],
) -> None:
    top = make_filesystem("ext4", 64, mkfs_options="-E lazy_itable_init=0,nodiscard")
    content = os.urandom(4 * MIB)
    (top / "kept").write_bytes(content)
    sync_file_system(top)
    assert trim_free(top, 0, 64 * MIB) > 32 * MIB
    assert _read(top / "kept", 0, 4 * MIB) == content


def test_fitrim_fails_on_a_file_system_without_discard(
    make_filesystem: Callable[..., Path],
) -> None:
    with pytest.raises(OSError, match=r"ioctl|not supported"):
        trim_free(make_filesystem("tmpfs", 1), 0, MIB)
