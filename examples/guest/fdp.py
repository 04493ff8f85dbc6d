"""A guest whose fio keeps what dies early apart by placement handles: does a drive move less?

Usage: python examples/guest/fdp.py FOLDER [--kernel 6.12]

Serves two twins with flexible data placement and boots a guest that writes the same to both, two
jobs at a time by io_uring_cmd: to one without handles, to the other with a handle a job. Then the
drives say what they wrote, and which handles' reclaim units have filled. FOLDER holds a kernel,
busybox, nvme-cli and libnvme1 as Debian packages, and in `fio` a fio of 3.35 or later with all
that it needs; README.md beside this file says how to get them. Exit status 0 where handles kept
the jobs apart, and that cost fewer bytes.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from guest import KERNEL, PACKAGES, archive, machine, modules, run, unpack, unpacked_program
from nvme import NVME
from twins import counts, twin

MODULES = ("virtio_pci", "virtio_net", "nvme-tcp")
# Of all packages that fio asks for those that have libraries.
NEWER = ("fio_*.deb", "lib*.deb", "zlib1g_*.deb")
LIBRARIES = ("usr/lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu/ceph")
TOLD = r"GUEST: (\w+): handles ([\d ]+); (\d+) bytes of the host, (\d+) of the media"
LOADER = "usr/lib64/ld-linux-x86-64.so.2"
# Superblocks, which are the reclaim units, of 2 MiB.
PROFILE = """
[drive]
model = "Twin"
interface = "nvme"
capacity = "128 MiB"
[link]
bandwidth = "1 GiB/s"
[flash]
channels = 4
dies_per_channel = 1
planes = 1
page = "16 KiB"
pages_per_block = 32
read = ["50 us"]
program = "500 us"
erase = "3 ms"
channel_bandwidth = "800 MB/s"
[ftl]
mapping_unit = "4 KiB"
placement = "streams"
streams = 4
spare = 0.1
[buffer]
size = "4 MiB"
"""


def main() -> int:
    """One boot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kernel", default="")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ExitStack() as undo:
        folder = Path(name)
        patterns = (KERNEL.format(arguments.kernel), *PACKAGES, *NVME)
        unpack(arguments.folder, patterns, folder / "debs")
        initramfs = folder / "initramfs"
        files = [*content(folder / "debs"), *newer_fio(arguments.folder / "fio", folder)]
        initramfs.write_bytes(archive(dict(files)))
        twins = [folder / each for each in ("mixed", "apart")]
        words = " ".join(f"{each.name}={twin(PROFILE, each, (), undo)}" for each in twins)
        kernel = next(folder.glob("debs/boot/vmlinuz-*"))
        network = ("-netdev", "user,id=n0,ipv6=off", "-device", "virtio-net-pci,netdev=n0")
        said: list[bytes] = []
        is_well = run([*machine(kernel, initramfs, words), *network], said.append)
        known = [known_of(each) for each in twins]
        told = re.findall(TOLD, b"".join(said).decode(errors="replace"))
        return 0 if is_well and arrived(known, told) else 1


def content(unpacked: Path) -> Iterator[tuple[str, Path]]:
    """Files of the guest: the path there, the file here."""
    yield "init", Path(__file__).with_name("init-fdp")
    yield "bin/busybox", unpacked / "bin/busybox"
    yield from modules(unpacked, MODULES)
    yield from unpacked_program(unpacked, "usr/sbin/nvme")


def newer_fio(packages: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """A fio of another Debian in the guest, with that one's libraries and loader beside it."""
    found = [package for pattern in NEWER for package in sorted(packages.glob(pattern))]
    if not found:
        sys.exit(f"{packages} holds no fio; see examples/guest/README.md")
    prefix = folder / "newer"
    for package in found:
        subprocess.run(["dpkg-deb", "-x", str(package), str(prefix)], check=True)
    loader, fio = prefix / LOADER, prefix / "usr/bin/fio"
    places = ":".join(str(prefix / each) for each in LIBRARIES)
    told = subprocess.run(
        [str(loader), "--library-path", places, "--list", str(fio)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    missing = re.findall(r"(\S+) => not found", told)
    if missing:
        sys.exit(f"{packages} holds no {', '.join(missing)}; see examples/guest/README.md")
    yield "newer/fio", fio
    yield "newer/loader", loader
    for name, library in re.findall(r"(\S+) => (/\S+) \(0x", told):
        yield f"newer/{name}", Path(library)


def known_of(path: Path) -> dict[str, float]:
    """What a twin has counted, which is printed, too."""
    counted = counts(path)
    print(
        f"HOST: {path.name}: {counted['writes_plain']:.0f} writes without a handle,"
        f" {counted['writes_of_stream']:.0f} with one;"
        f" {counted['waf']:.2f} bytes written for each of the host's"
    )
    return counted


def arrived(known: list[dict[str, float]], told: list[tuple[str, str, str, str]]) -> bool:
    """Whether the handles that jobs named, and no others, took all that they wrote, and moved less.

    `told` is what the guest asked of the drives: name, handles in use, bytes of host and media.
    """
    mixed, apart = known
    handles = {name: used.split() for name, used, _, _ in told}
    asked = [int(media) / int(host) for _, _, host, media in told]
    return (
        handles == {"mixed": ["0"], "apart": ["1", "2"]}
        and mixed["writes_of_stream"] == 0 == apart["writes_plain"]
        and mixed["writes_plain"] == apart["writes_of_stream"] > 0
        and all(abs(one - each["waf"]) < 1e-3 for one, each in zip(asked, known, strict=True))
        and apart["waf"] < mixed["waf"] / 2
    )


if __name__ == "__main__":
    sys.exit(main())
