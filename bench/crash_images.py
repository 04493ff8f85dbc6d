"""All crash points of `ssdlab heal --device`, and of a file system on a twin.

Usage: python bench/crash_images.py heal|twin [--rounds 20] [--request 64KiB] [--every 1]

`heal` rewrites a whole ext4 of 64 MiB at rest, in requests of this size, and makes, recovers and
compares what a crash may leave behind each write, flush and removal on the device and its journal.
`twin` serves a twin with a write log and makes files durable on ext4 there, in so many rounds; each
crash image of the log is recovered by e2fsck, checked and compared. Needs root and losetup; `twin`
also nbdfuse and debugfs. Prints a line; exit status 1 if an image lost anything.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from ssdlab.device import Control, ServeOptions, serve
from ssdlab.heal.device import drive
from ssdlab.heal.options import Wish
from ssdlab.units import parse_size

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "attached"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "remedy" / "patients"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "serve"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "serve" / "crashes"))

import crash_images
import crashes
import loop_devices
from devices import Device
from rig import TWIN, end_fuse, loop_of, unmount, wait_for

SIZE = 24 << 20


def main() -> None:
    """One of the two."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("heal", "twin"))
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--request", default="64KiB")
    parser.add_argument("--every", type=int, default=1, help="check every Nth image only")
    given = parser.parse_args()
    started = time.monotonic()
    found: crashes.Tally | crash_images.Images
    with ExitStack() as undo:
        memory, disk = (
            Path(undo.enter_context(tempfile.TemporaryDirectory(dir=place)))
            for place in ("/dev/shm", "/var/tmp")  # noqa: S108 -- with names of their own
        )
        if given.what == "heal":
            found = _heal(given, memory, disk, undo)
        else:
            _logged(given.rounds, memory, disk / "log")
            found = crash_images.Checker(SIZE, memory).check(disk / "log", given.every)
    print(f"{given.what}: {found}, {time.monotonic() - started:.0f} s", flush=True)
    sys.exit(int(bool(found.bad)))


def _heal(given: argparse.Namespace, memory: Path, disk: Path, undo: ExitStack) -> crashes.Tally:
    image = memory / "image"
    with image.open("xb") as file:
        file.truncate(64 << 20)
    node, why = loop_devices.attach(image)
    if node is None:
        sys.exit(f"no loop device can be had here: {why}")
    undo.callback(subprocess.run, ["losetup", "--detach", str(node)], check=True)
    device = Device(node, image, disk / "journal", memory / "mounted", "ext4")
    undo.callback(device.unmount)
    device.fill()
    drive.REQUEST_BYTES = int(parse_size(given.request))  # type: ignore[misc]
    return crashes.check_all(device, Wish(everything=True, piece_bytes=1 << 30), given.every)


def _logged(rounds: int, memory: Path, log: Path) -> None:
    profile = TWIN.format(capacity="256 MiB", program="500 us", protected="false", honest="true")
    socket, folder, point = memory / "twin", memory / "fuse", memory / "mounted"
    folder.mkdir()
    point.mkdir()
    options = ServeOptions("twin", "unix", str(socket), control=f"{socket}.control", log=str(log))
    with ExitStack() as undo:
        undo.callback(serve(profile, options).stop)
        fuse = subprocess.Popen(
            ["nbdfuse", str(folder), f"nbd+unix:///?socket={socket}"],
            stderr=subprocess.PIPE,
            text=True,
        )
        undo.callback(end_fuse, fuse, folder)
        wait_for(lambda: os.path.ismount(folder) and (folder / "nbd").exists(), "nbdfuse")
        device = loop_of(folder / "nbd", undo)
        make = ["mkfs.ext4", "-q", "-F", "-b", "4096", device, f"{SIZE >> 10}"]
        subprocess.run(make, check=True)
        subprocess.run(["mount", device, str(point)], check=True)
        undo.callback(unmount, point)
        with Control(f"{socket}.control") as control:
            os.sync()
            control.request("mark", name=crash_images.MADE)
            work = crash_images.Workload(point, lambda name: control.request("mark", name=name))
            work.run(rounds)


if __name__ == "__main__":
    main()
