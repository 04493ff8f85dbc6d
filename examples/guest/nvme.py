"""A guest kernel whose NVMe driver connects to a twin: boots it, runs `init-nvme`, tells the end.

Usage: python examples/guest/nvme.py PORT NAME FOLDER [--cut CONTROL [--cuts 1]] [--size SIZE]
       [--fs ext4|xfs] [--kernel 6.12] [--secret FILE]

PORT and NAME are those of the `nvme connect` line that `ssdlab serve --nvme-tcp` prints. FOLDER
holds a kernel, busybox, nvme-cli and libnvme1 as Debian packages; README.md beside this file says
how to get them. CONTROL is the twin's control socket: its power is cut meanwhile, so many times,
while programs write, and the file system stopped the moment before, as a machine's is that loses
its power, too. SIZE is what fio writes and compares. Of several kernels --kernel names one by how
its version begins. FILE holds the secret of a drive that wants one (from 6.12 on): without it, and
with another, the guest must not come in. Exit status 0 where the guest says that all went well.
"""

from __future__ import annotations

import argparse
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from guest import (
    KERNEL,
    PACKAGES,
    archive,
    machine,
    modules,
    programs,
    run,
    unpack,
    unpacked_program,
)

MODULES = ("virtio_pci", "virtio_net", "nvme-tcp", "xfs")
NVME = ("nvme-cli_*.deb", "libnvme1_*.deb")
# Beside those of every guest: `xfs_io` stops file systems of both kinds.
STOPS = ("xfs_io",)
XFS = ("mkfs.xfs", "xfs_repair")


def main() -> int:
    """One boot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("name")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cut", type=Path)
    parser.add_argument("--cuts", type=int, default=1)
    parser.add_argument("--size", default="8m")
    parser.add_argument("--fs", choices=("ext4", "xfs"), default="ext4")
    parser.add_argument("--kernel", default="")
    parser.add_argument("--secret", type=Path)
    arguments = parser.parse_args()
    words = f"port={arguments.port} name={arguments.name} size={arguments.size} fs={arguments.fs}"
    more = XFS if arguments.fs == "xfs" else ()
    if arguments.cut is not None:
        words += f" cuts={arguments.cuts}"
        more += STOPS
    with tempfile.TemporaryDirectory() as folder:
        unpacked = Path(folder)
        unpack(arguments.folder, (KERNEL.format(arguments.kernel), *PACKAGES, *NVME), unpacked)
        initramfs = unpacked / "initramfs"
        files = dict([*content(unpacked), *programs(more)])
        if arguments.secret is not None:
            files["secret"] = arguments.secret
        initramfs.write_bytes(archive(files))
        kernel = next(unpacked.glob("boot/vmlinuz-*"))
        network = ("-netdev", "user,id=n0,ipv6=off", "-device", "virtio-net-pci,netdev=n0")
        return boot([*machine(kernel, initramfs, words), *network], arguments.cut)


def content(unpacked: Path) -> Iterator[tuple[str, Path]]:
    """Files of the guest: the path there, the file here."""
    yield "init", Path(__file__).with_name("init-nvme")
    yield "bin/busybox", unpacked / "bin/busybox"
    yield from modules(unpacked, MODULES)
    yield from unpacked_program(unpacked, "usr/sbin/nvme")
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
