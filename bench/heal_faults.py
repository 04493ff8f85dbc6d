"""Makes each system call of `ssdlab heal` fail once: with EIO, ENOSPC, EINTR, and as a short call.

Usage: python bench/heal_faults.py [--what file tables xfs device recovery watchdog mounted]
       [--every 1]

Needs root and losetup; xfs also needs mkfs.xfs. `file` is an ext4 whose extents are moved, `tables`
an ext4 without extents whose file is copied, `xfs` shares blocks. `device` is an unmounted device,
`recovery` its recovery after a crash. `watchdog` is one window of a mounted device in the watchdog,
its worker and its guard, `mounted` the program that starts them. After each fault, the file and a
bystander or all files of the device are compared byte by byte, the journal is recovered, and a
device is checked by e2fsck. Prints one line for each: faults injected, faults reported to the user,
and faults that lost data or gave a traceback. Exit status 1 if there were any of the last.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "attached"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "heal" / "support"))

import faults
import loop_devices
from sample_device import Device
from sample_file import SampleFile

from ssdlab.heal.methods import copy

FILES = {
    "file": ("mkfs.ext4", "-q", "-F", "-b", "4096"),
    "tables": ("mkfs.ext4", "-q", "-F", "-b", "4096", "-O", "^extent,^64bit"),
    "xfs": ("mkfs.xfs", "-q", "-f", "-m", "reflink=1"),
}
DEVICES = {
    "device": faults.of_device,
    "recovery": faults.of_recovery,
    "watchdog": faults.of_watchdog,
    "mounted": faults.of_mounted,
}
IMAGE_BYTES = {"xfs": 300 << 20}


def main() -> None:
    """Runs the chosen tests one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--what", nargs="+", choices=[*FILES, *DEVICES], default=[*FILES, *DEVICES])
    parser.add_argument("--every", type=int, default=1, help="inject every Nth fault only")
    options = parser.parse_args()
    copy.GRACE_S = 0.0  # no other program opens the file
    failed = False
    for what in options.what:
        started = time.monotonic()
        with ExitStack() as undo:
            results = _inject_faults(what, options.every, undo)
        print(
            f"{what}: {results.injected} faults, {results.reported} reported, "
            f"{len(results.bad)} bad, "
            f"{time.monotonic() - started:.0f} s",
            flush=True,
        )
        for line in results.bad:
            print(f"  {line}")
        failed = failed or bool(results.bad)
    sys.exit(int(failed))


def _inject_faults(what: str, every: int, undo: ExitStack) -> faults.FaultResults:
    # The image is in memory, so that the journal can be on the drive below /var/tmp.
    memory, disk = (
        Path(undo.enter_context(tempfile.TemporaryDirectory(dir=place)))
        for place in ("/dev/shm", "/var/tmp")  # noqa: S108 -- with names of their own
    )
    image, point = memory / "image", memory / "mounted"
    with image.open("xb") as file:
        file.truncate(IMAGE_BYTES.get(what, 64 << 20))
    node, why = loop_devices.attach(image)
    if node is None:
        sys.exit(f"no loop device is available: {why}")
    undo.callback(subprocess.run, ["losetup", "--detach", str(node)], check=True)
    if what in DEVICES:
        device = Device(node, image, disk / "journal", point, "ext4")
        undo.callback(device.unmount)
        device.fill()
        return DEVICES[what](device, every)
    subprocess.run([*FILES[what], str(node)], check=True)
    point.mkdir()
    subprocess.run(["mount", str(node), str(point)], check=True)
    undo.callback(subprocess.run, ["umount", str(point)], check=True)
    return faults.of_file(_sample(point / "here"), every)


def _sample(folder: Path) -> SampleFile:
    folder.mkdir()
    rng = random.Random(1)
    content, other = rng.randbytes((2 << 20) + 5), rng.randbytes(99_999)
    sample = SampleFile(folder / "sample", content, folder / "other", other)
    sample.path.write_bytes(content)
    sample.bystander.write_bytes(other)
    return sample


if __name__ == "__main__":
    main()
