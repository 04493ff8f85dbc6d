"""Boots a guest kernel on a served twin, runs `init` in it and prints its output.

Usage: python examples/guest/guest.py SOCKET [--kernel 6.12]

SOCKET is the socket of `ssdlab serve`. The kernel and busybox are in build/guest, see README.md.
QEMU emulates the CPU: neither /dev/kvm nor root is needed. Exit status 0 if the guest reports
success.
"""

from __future__ import annotations

import argparse
import lzma
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

# Unpacked Debian packages: the folders linux-6.1, linux-6.12, tools and fio.
PACKAGES = Path(__file__).resolve().parents[2] / "build/guest"
# The host's programs, with the libraries that they need.
PROGRAMS = ("fio", "mkfs.ext4", "e2fsck")
MODULES = ("virtio_pci", "virtio_blk")
# 10.0.2.2 is the host. Without event_idx=off the emulated card lost a notification in two of three
# runs of `inside.py --kernel 6.1 --case layers`: the guest then reaches nothing any more.
NETWORK = (
    *("-netdev", "user,id=n0,ipv6=off"),
    *("-device", "virtio-net-pci,netdev=n0,event_idx=off"),
)
LIBRARIES = ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu")
PATIENCE_S = 3600


def main() -> int:
    """One boot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("socket", type=Path)
    parser.add_argument("--kernel", default="6.1")
    arguments = parser.parse_args()
    linux = packages(f"linux-{arguments.kernel}")
    with tempfile.TemporaryDirectory() as name:
        initramfs = Path(name) / "initramfs"
        initramfs.write_bytes(archive(dict(content(linux, Path(name)))))
        return 0 if boot(machine(linux, initramfs), arguments.socket) else 1


def packages(name: str) -> Path:
    """A folder of unpacked packages; exits if it is missing."""
    folder = PACKAGES / name
    if not folder.is_dir():
        sys.exit(f"{folder} is missing: run `make test-guest` or `tools/setup.sh guest`")
    return folder


def content(linux: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """Files of the guest: the path in the guest, the file on the host."""
    yield "init", Path(__file__).with_name("init")
    yield "bin/busybox", tool("busybox")
    yield from modules(linux, MODULES, folder)
    yield from programs()


def modules(
    linux: Path, names: tuple[str, ...], folder: Path, more: tuple[Path, ...] = ()
) -> Iterator[tuple[str, Path]]:
    """Modules of a kernel and their dependencies, and `modules/order`, the order to load them in.

    `more` are folders with modules that the kernel's packages lack.

    Decompresses them into `folder`. A module that the kernel has built in has no file.
    """
    files = {
        file.name.partition(".")[0].replace("-", "_"): file
        for place in (linux, *more)
        for file in place.glob("**/lib/modules/**/*.ko*")
    }
    plain = folder / "modules"
    plain.mkdir()
    order: list[str] = []
    for name in names:
        load(name.replace("-", "_"), files, plain, order)
    (plain / "order").write_text("".join(f"{name}\n" for name in order))
    yield from ((f"modules/{file.name}", file) for file in sorted(plain.iterdir()))


def load(name: str, files: dict[str, Path], plain: Path, order: list[str]) -> None:
    """Puts one module into `order` after those that it needs, and without compression there."""
    if name in order or name not in files:
        return
    content = files[name].read_bytes()
    if files[name].suffix == ".xz":
        content = lzma.decompress(content)
    needed = re.search(rb"\0depends=([^\0]*)\0", content)
    for other in needed[1].decode().split(",") if needed else ():
        load(other.replace("-", "_"), files, plain, order)
    (plain / f"{name}.ko").write_bytes(content)
    order.append(name)


def programs(names: tuple[str, ...] = PROGRAMS) -> Iterator[tuple[str, Path]]:
    """The host's programs, and the libraries that they need."""
    for name in names:
        program = shutil.which(name, path="/usr/bin:/usr/sbin:/bin:/sbin")
        if program is None:
            sys.exit(f"needs {name}, which is not installed")
        yield f"usr/bin/{name}", Path(program)
        told = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        for library in re.findall(r"(/\S+) \(0x", told):
            yield library.lstrip("/"), Path(library)


def tool(name: str, of: str = "tools") -> Path:
    """A program of the folder `tools`, or another."""
    folder = packages(of)
    places = ":".join(str(folder / place) for place in ("usr/sbin", "sbin", "usr/bin", "bin"))
    program = shutil.which(name, path=places)
    if program is None:
        sys.exit(f"{folder} has no {name}: remove the folder, then run `make test-guest`")
    return Path(program)


def tool_with_libraries(name: str, of: str = "tools") -> Iterator[tuple[str, Path]]:
    """A program of the folder `tools`, with libraries from there or else from the host."""
    program, folder = tool(name, of), packages(of)
    there = {"LD_LIBRARY_PATH": ":".join(str(folder / each) for each in LIBRARIES)}
    told = subprocess.run(
        ["ldd", str(program)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **there},
    ).stdout
    missing = re.findall(r"(\S+) => not found", told)
    if missing:
        sys.exit(f"{program} needs {', '.join(missing)}")
    yield f"usr/sbin/{name}", program
    for library in re.findall(r"(/\S+) \(0x", told):
        yield library.removeprefix(str(folder)).lstrip("/"), Path(library)


def archive(files: dict[str, Path]) -> bytes:
    """An initramfs: cpio's newc format, see the kernel's initramfs buffer format."""
    folders = {str(parent) for name in files for parent in Path(name).parents} - {"."}
    entries = [entry(name, stat.S_IFDIR | 0o755, b"") for name in sorted(folders)]
    entries += [
        entry(name, stat.S_IFREG | 0o755, file.read_bytes()) for name, file in files.items()
    ]
    return b"".join([*entries, entry("TRAILER!!!", 0, b"")])


def entry(name: str, mode: int, data: bytes) -> bytes:
    """One file of it."""
    path = name.encode() + b"\0"
    # ino mode uid gid nlink mtime filesize devmajor devminor rdevmajor rdevminor namesize check
    fields = (0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path), 0)
    head = b"070701" + b"".join(b"%08x" % field for field in fields) + path
    return padded(head) + padded(data)


def padded(piece: bytes) -> bytes:
    """To a multiple of four bytes."""
    return piece + b"\0" * (-len(piece) % 4)


def machine(linux: Path, initramfs: Path, words: str = "") -> list[str]:
    """A guest without a drive; `words` are for its kernel and its init."""
    kernel = next(linux.glob("boot/vmlinuz-*"))
    return [
        # Over QEMU 7.2's cmpxchg16b kernels from 6.12 on were seen to fall.
        *("qemu-system-x86_64", "-M", "q35", "-accel", "tcg", "-cpu", "max,-cx16", "-m", "768"),
        *("-nodefaults", "-display", "none", "-no-reboot", "-serial", "stdio"),
        *("-kernel", str(kernel), "-initrd", str(initramfs)),
        # On a busy host the kernel's check of the timer interrupt fails, and it panics.
        *("-append", f"console=ttyS0 panic=-1 loglevel=4 no_timer_check {words}"),
    ]


def boot(command: list[str], socket: Path) -> bool:
    """Runs the guest with the drive on a socket; whether all went well."""
    drive = "if=none,id=d0,format=raw,cache=none,discard=unmap,file.driver=nbd"
    return run(
        [
            *command,
            *("-drive", f"{drive},file.server.type=unix,file.server.path={socket}"),
            *("-device", "virtio-blk-pci,drive=d0"),
        ]
    )


def run(command: list[str], heard: Callable[[bytes], None] = lambda _: None) -> bool:
    """Runs a guest to its end and prints what it says, line by line; whether it said "ok".

    `heard` gets each line. One that hangs is ended.
    """
    guest = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert guest.stdout is not None
    watch = threading.Timer(PATIENCE_S, guest.kill)
    watch.start()
    is_well = False
    for line in guest.stdout:
        print(line.decode(errors="replace"), end="", flush=True)
        heard(line)
        is_well |= b"GUEST: ok" in line
    watch.cancel()
    if guest.wait() < 0:
        print(f"GUEST: killed; one that takes longer than {PATIENCE_S} s is")
    return guest.returncode == 0 and is_well


if __name__ == "__main__":
    sys.exit(main())
