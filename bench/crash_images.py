"""All crash points of `ssdlab heal --device`, and of a file system on a twin.

Usage: python bench/crash_images.py heal|twin [--rounds 20] [--request 64KiB] [--every 1]

`heal` rewrites an unmounted ext4 of 64 MiB in requests of the given size. It creates, recovers and
compares the state after a crash at each write, flush and removal on the device and its journal.
`twin` serves a twin with a write log and makes files durable on an ext4 there, in the given number
of rounds. Each crash image of the log is recovered by e2fsck, checked and compared. Needs root and
losetup; `twin` also needs nbdfuse and debugfs. Prints one line; exit status 1 if data was lost.
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
from ssdlab.heal.options import HealOptions
from ssdlab.units import parse_size

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "attached"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "heal" / "support"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "serve"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "fixtures"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "serve" / "crashes"))

import crash_images
import crashes
import loop_devices
from rig import TWIN, end_fuse, loop_of, unmount, wait_for
from sample_device import Device

SIZE = 24 << 20


def main() -> None:
    """Runs one of the two tests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("heal", "twin"))
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--request", default="64KiB")
    parser.add_argument("--every", type=int, default=1, help="check every Nth image only")
    options = parser.parse_args()
    started = time.monotonic()
    result: crashes.Tally | crash_images.Images
    with ExitStack() as undo:
        memory, disk = (
            Path(undo.enter_context(tempfile.TemporaryDirectory(dir=place)))
            for place in ("/dev/shm", "/var/tmp")  # noqa: S108 -- with names of their own
        )
        if options.what == "heal":
            result = _heal(options, memory, disk, undo)
        else:
            _record_log(options.rounds, memory, disk / "log")
            result = crash_images.Checker(SIZE, memory).check(disk / "log", options.every)
    print(f"{options.what}: {result}, {time.monotonic() - started:.0f} s", flush=True)
    sys.exit(int(bool(result.bad)))


def _heal(options: argparse.Namespace, memory: Path, disk: Path, undo: ExitStack) -> crashes.Tally:
    image = memory / "image"
    with image.open("xb") as file:
        file.truncate(64 << 20)
    node, why = loop_devices.attach(image)
    if node is None:
        sys.exit(f"no loop device is available: {why}")
    undo.callback(subprocess.run, ["losetup", "--detach", str(node)], check=True)
    device = Device(node, image, disk / "journal", memory / "mounted", "ext4")
    undo.callback(device.unmount)
    device.fill()
    drive.REQUEST_BYTES = int(parse_size(options.request))  # type: ignore[misc]
    return crashes.check_all(
        device, HealOptions(everything=True, piece_bytes=1 << 30), options.every
    )


def _record_log(rounds: int, memory: Path, log: Path) -> None:
    profile = TWIN.format(capacity="256 MiB", program="500 us", protected="false", honest="true")
    socket, folder, point = memory / "twin", memory / "fuse", memory / "mounted"
    folder.mkdir()
    point.mkdir()
    serve_options = ServeOptions(
        "twin", "unix", str(socket), control=f"{socket}.control", log=str(log)
    )
    with ExitStack() as undo:
        undo.callback(serve(profile, serve_options).stop)
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
            workload = crash_images.Workload(point, lambda name: control.request("mark", name=name))
            workload.run(rounds)


if __name__ == "__main__":
    main()
