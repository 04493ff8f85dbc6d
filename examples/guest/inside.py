"""ssdlab inside a guest whose NVMe driver attaches twins: does it find what they know?

Usage: python examples/guest/inside.py FOLDER [--kernel 6.12] [--case layers|power|stripe ...]

Serves three twins (volatile, lying about flushes, protected), for the case `stripe` one more at its
own pace, and a witness; boots a guest whose second drive is an image of this Python with ssdlab,
and runs `init-inside` there.
FOLDER holds a kernel, busybox, nvme-cli, mdadm, cryptsetup and what they need as Debian packages;
README.md beside this file says how to get them. Exit status 0 where all that ssdlab said in the
guest is what the twins know.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import image
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

TOOLS = (
    *("nvme-cli_*.deb", "libnvme1_*.deb", "mdadm_*.deb", "cryptsetup-bin_*.deb"),
    *("libcryptsetup12_*.deb", "libdevmapper1.02.1_*.deb", "dmsetup_*.deb", "libpopt0_*.deb"),
)
FROM_TOOLS = ("usr/sbin/nvme", "sbin/mdadm", "sbin/cryptsetup", "sbin/dmsetup")
FIRST = ("virtio_pci", "virtio_blk", "virtio_net", "nvme-tcp")
LAYERS = ("raid1", "raid456", "dm-crypt", "xts", "ecb")
SSDLAB = (sys.executable, "-c", "import sys, ssdlab.cli; sys.exit(ssdlab.cli.main())")
CASES = ("layers", "power", "stripe")
# Words of `ssdlab serve`, and keys of the profile.
Manner = tuple[tuple[str, ...], dict[str, str]]
# Whether the drive is protected, and whether it does what a flush asks for: a twin each.
TWINS = (("false", "true"), ("false", "false"), ("true", "true"))
# A program takes long, by the twin's own clock: until it ends, a power cut can take its data.
PROFILE = """
[drive]
model = "Twin"
interface = "nvme"
capacity = "256 MiB"
[link]
bandwidth = "1 GiB/s"
[flash]
channels = 4
dies_per_channel = 1
planes = 1
page = "16 KiB"
pages_per_block = 64
read = ["2 ms"]
program = "{program}"
erase = "20 ms"
channel_bandwidth = "800 MB/s"
[ftl]
mapping_unit = "4 KiB"
chunk = "32 KiB"
spare = 0.1
[buffer]
size = "4 MiB"
power_loss_protection = {protected}
honours_flush = {honest}
"""
# At its own pace: its units are slower than what an emulated guest does a second.
PACED: Manner = (
    ("--pace", "real"),
    {"protected": "false", "honest": "true", "program": "1 ms"},
)
CUT_AFTER = "20-40"
LISTENS_S = 600


def main() -> int:
    """One boot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kernel", default="")
    parser.add_argument("--case", action="append", choices=CASES)
    arguments = parser.parse_args()
    cases = arguments.case or ["layers"]
    patterns = (KERNEL.format(arguments.kernel), *PACKAGES, *TOOLS)
    with tempfile.TemporaryDirectory() as name, ExitStack() as undo:
        folder = Path(name)
        unpack(arguments.folder, patterns, folder / "debs")
        manners: list[Manner] = [
            ((), {"protected": protected, "honest": honest, "program": "2 s"})
            for protected, honest in TWINS
        ]
        manners += [PACED] if "stripe" in cases else []
        twins = [twin(folder / f"{at}", *manner, undo) for at, manner in enumerate(manners)]
        port = witness(folder, undo)
        told = " ".join([*(f"twin={each}" for each in twins), *(f"case={each}" for each in cases)])
        return 0 if run(prepared(folder, f"witness={port} {told}")) else 1


def twin(path: Path, manner: tuple[str, ...], keys: dict[str, str], undo: ExitStack) -> str:
    """Serves a twin until the end; returns "PORT,NAME" of its `nvme connect` line."""
    profile = path.with_suffix(".toml")
    profile.write_text(PROFILE.format(**keys))
    words = ("serve", str(profile), "--nvme-tcp", "127.0.0.1:0", *manner)
    control = ("--control", str(path.with_suffix(".control")))
    line = served([*words, *control], r"-s (\d+) -n (\S+)\n", path.with_suffix(".told"), undo)
    return f"{line[1]},{line[2]}"


def witness(folder: Path, undo: ExitStack) -> str:
    """A witness, which cuts the power of all twins in the midst of writing; returns its port."""
    cut = folder / "cut"
    cut.write_text(
        "".join(
            f"{shlex.join(SSDLAB)} control {folder}/{number}.control power-cut on=true\n"
            for number in range(len(TWINS))
        )
    )
    words = ["witness", "serve", "--listen", "127.0.0.1:0", "--out", str(folder)]
    cuts = ["--cut-after", CUT_AFTER, "--cut-command", f"sh {cut}"]
    return served([*words, *cuts], r"witness on \S+:(\d+)", folder / "witness.told", undo)[1]


def served(words: list[str], says: str, told: Path, undo: ExitStack) -> re.Match[str]:
    """Starts ssdlab until the end; returns what it says once it listens."""
    with told.open("w") as stderr:
        process = subprocess.Popen([*SSDLAB, *words], stdout=subprocess.DEVNULL, stderr=stderr)
    undo.callback(process.wait)
    undo.callback(process.terminate)
    end = time.monotonic() + LISTENS_S
    while not (line := re.search(says, told.read_text())):
        if process.poll() is not None or time.monotonic() > end:
            sys.exit(f"ssdlab {words[0]} does not listen: {told.read_text()}")
        time.sleep(0.1)
    return line


def prepared(folder: Path, words: str) -> list[str]:
    """The guest as a command, with its root as a drive that it cannot write to."""
    debs = folder / "debs"
    initramfs, root = folder / "initramfs", folder / "root"
    first = dict(
        [
            ("init", Path(__file__).with_name("init-image")),
            ("bin/busybox", debs / "bin/busybox"),
            *modules(debs, (*FIRST, *LAYERS)),
        ]
    )
    initramfs.write_bytes(archive(first))
    image.make(content(folder), folder / "tree", root)
    command = machine(next(debs.glob("boot/vmlinuz-*")), initramfs, f"clearcpuid=cx16 {words}")
    # NumPy asks for cmpxchg16b; the kernel alone must not use it, see `guest.machine`. With AVX2 as
    # QEMU 7.2 has it NumPy sorts wrongly.
    command[command.index("-cpu") + 1] = "max,-avx2"
    return [
        *command,
        *("-netdev", "user,id=n0,ipv6=off", "-device", "virtio-net-pci,netdev=n0"),
        *("-drive", f"if=none,id=root,format=raw,readonly=on,file={root}"),
        *("-device", "virtio-blk-pci,drive=root"),
    ]


def content(folder: Path) -> Iterator[tuple[str, Path]]:
    """Files of the guest's root beside Python: the path there, the file here."""
    debs = folder / "debs"
    yield "init-inside", Path(__file__).with_name("init-inside")
    yield "bin/busybox", debs / "bin/busybox"
    yield "secret", folder / "secret"
    for name in FROM_TOOLS:
        yield from unpacked_program(debs, name)
    yield from programs()
    yield from image.commands(folder)


if __name__ == "__main__":
    sys.exit(main())
