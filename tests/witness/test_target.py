"""Targets of the witness: the block size of direct I/O."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ssdlab.witness import target
from ssdlab.witness.target import PathTarget


@pytest.mark.parametrize("sector", [512, 4096])
def test_direct_io_on_an_unwritten_file_uses_whole_sectors_of_its_drive(
    sector: int, drive_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = drive_directory / "file"
    with file.open("wb") as content:
        os.posix_fallocate(content.fileno(), 0, 1 << 20)
    monkeypatch.setattr(target, "_sector_of_devices", lambda _path: sector)
    opened = PathTarget(file, "fdatasync")
    if not opened.is_direct:
        pytest.skip("no direct I/O here")
    assert opened.block_bytes >= sector
    opened.write(opened.block_bytes, memoryview(bytes(opened.block_bytes)))
    opened.close()


def test_the_sector_of_a_file_is_that_of_its_device_or_512_bytes(tmp_path: Path) -> None:
    assert target._sector_of_devices(tmp_path) in {512, 4096}
