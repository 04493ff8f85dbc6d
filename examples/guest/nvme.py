"""Boots a guest kernel whose NVMe driver connects to a twin, and runs `init-nvme` in it.

Usage: python examples/guest/nvme.py PORT NAME [--cut CONTROL [--cuts 1]] [--size SIZE]
       [--fs ext4|xfs] [--kernel 6.12] [--secret FILE]

PORT and NAME are those of the `nvme connect` line that `ssdlab serve --nvme-tcp` prints. CONTROL is
the twin's control socket: the script cuts the power while programs write, and stops the file system
just before, as on a machine that loses its power at the same time. SIZE is what fio writes and
verifies. FILE holds the secret of a drive that requires one (kernel 6.12): without it or with
another one, the guest must not connect. Kernels and tools are in build/guest, see README.md. Exit
status 0 if the guest reports success.
"""

from __future__ import annotations

import argparse
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from guest import (
    NETWORK,
    archive,
    machine,
    modules,
    packages,
    programs,
    run,
    tool,
    tool_with_libraries,
)

MODULES = ("virtio_pci", "virtio_net", "nvme-tcp", "xfs")
# Beside those of every guest: `xfs_io` stops file systems of both kinds.
STOPS = ("xfs_io",)
XFS = ("mkfs.xfs", "xfs_repair")


def main() -> int:
    """One boot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("name")
    parser.add_argument("--cut", type=Path)
    parser.add_argument("--cuts", type=int, default=1)
    parser.add_argument("--size", default="8m")
    parser.add_argument("--fs", choices=("ext4", "xfs"), default="ext4")
    parser.add_argument("--kernel", default="6.1")
    parser.add_argument("--secret", type=Path)
    arguments = parser.parse_args()
    words = f"port={arguments.port} name={arguments.name} size={arguments.size} fs={arguments.fs}"
    more = XFS if arguments.fs == "xfs" else ()
    if arguments.cut is not None:
        words += f" cuts={arguments.cuts}"
        more += STOPS
    linux = packages(f"linux-{arguments.kernel}")
    with tempfile.TemporaryDirectory() as folder:
        initramfs = Path(folder) / "initramfs"
        files = dict([*content(linux, Path(folder)), *programs(more)])
        if arguments.secret is not None:
            files["secret"] = arguments.secret
        initramfs.write_bytes(archive(files))
        return boot([*machine(linux, initramfs, words), *NETWORK], arguments.cut)


def content(linux: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """Files of the guest: the path in the guest, the file on the host."""
    yield "init", Path(__file__).with_name("init-nvme")
    yield "bin/busybox", tool("busybox")
    yield from modules(linux, MODULES, folder)
    yield from tool_with_libraries("nvme")
    yield from programs()


def boot(command: list[str], control: Path | None) -> int:
    """Runs the guest to its end; cuts the power where it asks for that."""

    def heard(line: bytes) -> None:
        if b"GUEST: cut the power" in line and control is not None:
            cut_power(control)

    return 0 if run(command, heard) else 1


def cut_power(control: Path) -> None:
    """Cuts it, and turns it on again."""
    with socket.socket(socket.AF_UNIX) as stream:
        stream.connect(str(control))
        stream.sendall(b'{"do": "power-cut", "on": true}\n')
        print("HOST:", stream.recv(1 << 16).decode(), end="", flush=True)


if __name__ == "__main__":
    sys.exit(main())
