"""Runs ssdlab in a guest whose NVMe driver attaches twins, and compares its reports with the twins.

Usage: python examples/guest/inside.py [--kernel 6.12] [--case CASE ...]

Serves a witness and three twins (volatile, lying about flushes, protected), and more twins at their
own pace for the cases `stripe`, `spare` and `fsync`. The guest's root is an image of this Python
with ssdlab; `init-inside` runs there. The kernel, nvme-cli, mdadm and cryptsetup are in
build/guest, see README.md. Exit status 0 if all that ssdlab reports in the guest agrees with the
twins.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import image
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
from twins import SSDLAB, counts, served, twin

TOOLS = ("nvme", "mdadm", "mdmon", "cryptsetup", "dmsetup", "smartctl")
FIRST = ("virtio_pci", "virtio_blk", "virtio_net", "nvme-tcp")
ZFS_TOOLS = ("zpool", "zfs", "zdb")
LAYERS = ("raid1", "raid10", "raid456", "dm-crypt", "xts", "ecb")
# Words of `ssdlab serve`, and keys of the profile.
Manner = tuple[tuple[str, ...], dict[str, str]]
# Served for all cases: whether the drive is protected, and whether it does what a flush asks for.
# A program takes long, by the twin's own clock: until it ends, a power cut can take its data.
TWINS = {
    "volatile": {"program": "2 s"},
    "lying": {"program": "2 s", "honest": "false"},
    "protected": {"program": "2 s", "protected": "true"},
}
# More for some cases, at their own pace: they are slower than what an emulated guest does a second.
PACED = ("--pace", "real")
UNPACED = ("firmware", "resync")
# All of it is written a dozen times: of little flash superblocks have to be small, too.
SMALL = {
    "capacity": "64 MiB",
    "pages": "8",
    "buffer": "512 KiB",
    "spare": "0.2",
    "program": "20 ms",
}
# A program has to last when the flush comes, which an emulated guest sends a while after the write.
SLOW = {"program": "20 ms", "buffer": "512 KiB"}
CASES: dict[str, dict[str, dict[str, str]]] = {
    "layers": {},
    "power": {},
    "firmware": {"fourth": {}},
    "zfs": {},
    "resync": {name: {**SMALL, "spare": "0.1"} for name in ("raid_first", "raid_second")},
    "stripe": {"stripe": {}},
    "spare": {"spare": SMALL},
    "fsync": {
        "fsync_volatile": SLOW,
        "fsync_lying": {**SLOW, "honest": "false"},
        "fsync_protected": {**SLOW, "protected": "true"},
    },
}
USUAL = {
    "capacity": "256 MiB",
    "pages": "64",
    "program": "1 ms",
    "spare": "0.1",
    "buffer": "4 MiB",
    "protected": "false",
    "honest": "true",
}
PROFILE = """
[drive]
model = "Twin"
interface = "nvme"
capacity = "{capacity}"
[link]
bandwidth = "1 GiB/s"
[flash]
channels = 4
dies_per_channel = 1
planes = 1
page = "16 KiB"
pages_per_block = {pages}
read = ["2 ms"]
program = "{program}"
erase = "20 ms"
channel_bandwidth = "800 MB/s"
[ftl]
mapping_unit = "4 KiB"
chunk = "32 KiB"
spare = {spare}
[buffer]
size = "{buffer}"
power_loss_protection = {protected}
honours_flush = {honest}
"""
CUT_AFTER = "20-40"
# Hidden flash that a run finds may be off by so many hundredths of all flash: three superblocks are
# always in use, which makes two of them, and the machine is emulated.
SPARE_OFF = 2.5


def main() -> int:
    """One boot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernel", default="6.1")
    parser.add_argument("--case", action="append", choices=tuple(CASES))
    arguments = parser.parse_args()
    cases = arguments.case or ["layers"]
    linux = packages(f"linux-{arguments.kernel}")
    with tempfile.TemporaryDirectory() as name, ExitStack() as undo:
        folder = Path(name)
        twins: dict[str, Manner] = {each: ((), keys) for each, keys in TWINS.items()}
        for case in cases:
            manner = () if case in UNPACED else PACED
            twins |= {each: (manner, keys) for each, keys in CASES[case].items()}
        words = [f"case={case}" for case in cases]
        for each, (manner, keys) in twins.items():
            profile = PROFILE.format(**{**USUAL, **keys})
            words.append(f"twin={each},{twin(profile, folder / each, manner, undo)}")
        words.append(f"witness={witness(folder, undo)}")
        said: list[bytes] = []
        command = prepared(linux, folder, " ".join(words), with_zfs="zfs" in cases)
        is_well = run(command, said.append)
        told = b"".join(said).decode(errors="replace")
        return 0 if is_well and ("spare" not in cases or is_spare(told, folder / "spare")) else 1


def is_spare(told: str, path: Path) -> bool:
    """Whether the guest found the spare of the twin, and its count of what it wrote."""
    found = re.search(r"GUEST: spare: ([\d.]+) % hidden; .* ([\d.]+) bytes of flash", told)
    if found is None:
        return False
    hidden, amplified = map(float, found.groups())
    spare = 100 * float(SMALL["spare"])
    counted = counts(path)["waf"]
    print(f"HOST: spare: {spare:.1f} % hidden; each byte cost {counted:.3f} bytes of flash")
    return abs(hidden - spare) < SPARE_OFF and abs(amplified - counted) < 1e-2 * counted


def witness(folder: Path, undo: ExitStack) -> str:
    """A witness, which cuts the power of all twins in the midst of writing; returns its port."""
    cut = folder / "cut"
    cut.write_text(
        "".join(
            f"{shlex.join(SSDLAB)} control {folder}/{name}.control power-cut on=true\n"
            for name in TWINS
        )
    )
    words = ["witness", "serve", "--listen", "127.0.0.1:0", "--out", str(folder)]
    cuts = ["--cut-after", CUT_AFTER, "--cut-command", f"sh {cut}"]
    return served([*words, *cuts], r"witness on \S+:(\d+)", folder / "witness.told", undo)[1]


def prepared(linux: Path, folder: Path, words: str, *, with_zfs: bool) -> list[str]:
    """The command that runs the guest; its root is a read-only drive."""
    initramfs, root = folder / "initramfs", folder / "root"
    names, more = (*FIRST, *LAYERS), ()
    if with_zfs:
        names, more = (*names, "zfs"), (packages("zfs"),)
    first = dict(
        [
            ("init", Path(__file__).with_name("init-image")),
            ("bin/busybox", tool("busybox")),
            *modules(linux, names, folder, more),
        ]
    )
    initramfs.write_bytes(archive(first))
    image.make(content(folder, with_zfs=with_zfs), folder / "tree", root)
    command = machine(linux, initramfs, f"clearcpuid=cx16 {words}")
    # NumPy asks for cmpxchg16b; the kernel alone must not use it, see `guest.machine`. With AVX2 as
    # QEMU 7.2 has it NumPy sorts wrongly.
    command[command.index("-cpu") + 1] = "max,-avx2"
    return [
        *command,
        *NETWORK,
        *("-drive", f"if=none,id=root,format=raw,readonly=on,file={root}"),
        *("-device", "virtio-blk-pci,drive=root"),
    ]


def content(folder: Path, *, with_zfs: bool) -> Iterator[tuple[str, Path]]:
    """Files of the guest's root besides Python: the path in the guest, the file on the host."""
    yield "init-inside", Path(__file__).with_name("init-inside")
    yield "bin/busybox", tool("busybox")
    yield "secret", folder / "secret"
    for name in TOOLS:
        yield from tool_with_libraries(name)
    for name in ZFS_TOOLS if with_zfs else ():
        yield from tool_with_libraries(name, "zfs")
    yield from programs()
    yield from image.commands(folder)


if __name__ == "__main__":
    sys.exit(main())
