"""Boots a guest whose fio separates short-lived data by placement handles.

Usage: python examples/guest/fdp.py [--kernel 6.12]

Serves two twins with flexible data placement and boots a guest that writes the same to both, two
jobs at a time by io_uring_cmd: to one without handles, to the other with a handle per job. Then it
compares what the drives wrote to their flash, and which handles' reclaim units received data. The
kernel, nvme-cli and a fio of 3.35 or later are in build/guest, see README.md. Exit status 0 if the
handles separated the jobs and reduced the writes to flash.
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

from guest import NETWORK, archive, machine, modules, packages, run, tool, tool_with_libraries
from twins import counts, twin

MODULES = ("virtio_pci", "virtio_net", "nvme-tcp")
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
    parser.add_argument("--kernel", default="6.1")
    arguments = parser.parse_args()
    linux = packages(f"linux-{arguments.kernel}")
    with tempfile.TemporaryDirectory() as name, ExitStack() as undo:
        folder = Path(name)
        initramfs = folder / "initramfs"
        initramfs.write_bytes(archive(dict([*content(linux, folder), *newer_fio()])))
        twins = [folder / each for each in ("mixed", "apart")]
        words = " ".join(f"{each.name}={twin(PROFILE, each, (), undo)}" for each in twins)
        said: list[bytes] = []
        is_well = run([*machine(linux, initramfs, words), *NETWORK], said.append)
        known = [known_of(each) for each in twins]
        told = re.findall(TOLD, b"".join(said).decode(errors="replace"))
        return 0 if is_well and arrived(known, told) else 1


def content(linux: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """Files of the guest: the path in the guest, the file on the host."""
    yield "init", Path(__file__).with_name("init-fdp")
    yield "bin/busybox", tool("busybox")
    yield from modules(linux, MODULES, folder)
    yield from tool_with_libraries("nvme")


def newer_fio() -> Iterator[tuple[str, Path]]:
    """fio of Debian 13, with the libraries and the loader of that release."""
    prefix = packages("fio")
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
        sys.exit(f"{fio} needs {', '.join(missing)}")
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
