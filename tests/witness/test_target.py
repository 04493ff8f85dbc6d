"""Targets of the witness: the block size of direct I/O, and an NBD server that refuses."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from threading import Thread

import pytest

from ssdlab.errors import TargetError
from ssdlab.witness import nbd, target
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


def test_a_server_that_disconnects_is_reported_and_the_socket_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sockets: list[socket.socket] = []

    def connect(uri: str) -> socket.socket:
        sockets.append(real_connect(uri))
        return sockets[0]

    real_connect = nbd._connect
    monkeypatch.setattr(nbd, "_connect", connect)
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def refuse() -> None:
            connection, _ = server.accept()
            connection.close()

        refusal = Thread(target=refuse)
        refusal.start()
        with pytest.raises(TargetError, match="the peer closed the connection"):
            nbd.NbdTarget(f"nbd+unix:///?socket={path}", "fdatasync")
        refusal.join()
    assert sockets[0].fileno() == -1, "closed"
