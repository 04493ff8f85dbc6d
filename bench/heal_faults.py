"""Each system call of `ssdlab heal` fails once, in turn, with EIO, ENOSPC, EINTR and in part.

Usage: python bench/heal_faults.py [--what file tables xfs device recovery keeper mounted]
       [--every 1]

Needs root and losetup, xfs also mkfs.xfs. `file` is ext4 (extents are moved), `tables` ext4 without
extents (the file is copied), `xfs` shares blocks; `device` is a device at rest, `recovery` what
mends it after a crash; `keeper` is one window of a mounted device in the watchdog, its hand and its
guard, `mounted` the program that asks them. After each fault the file, a bystander or all files of
the device are compared byte for byte, the journal is recovered, and a device is checked by e2fsck.
Prints a line for each: faults injected, how many the user was told of, how many lost something or
gave a traceback. Exit status 1 if any.
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
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "remedy" / "patients"))

import faults
import loop_devices
from devices import Device
from patients import Healing

from ssdlab.heal.methods import copy

FILES = {
    "file": ("mkfs.ext4", "-q", "-F", "-b", "4096"),
    "tables": ("mkfs.ext4", "-q", "-F", "-b", "4096", "-O", "^extent,^64bit"),
    "xfs": ("mkfs.xfs", "-q", "-f", "-m", "reflink=1"),
}
DEVICES = {
    "device": faults.of_device,
    "recovery": faults.of_recovery,
    "keeper": faults.of_keeper,
    "mounted": faults.of_mounted,
}
IMAGE_BYTES = {"xfs": 300 << 20}


def main() -> None:
    """All of them, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--what", nargs="+", choices=[*FILES, *DEVICES], default=[*FILES, *DEVICES])
    parser.add_argument("--every", type=int, default=1, help="inject every Nth fault only")
    given = parser.parse_args()
    copy.GRACE_S = 0.0  # nobody else opens the file
    is_bad = False
    for what in given.what:
        started = time.monotonic()
        with ExitStack() as undo:
            found = _enumerated(what, given.every, undo)
        print(
            f"{what}: {found.injected} faults, {found.told} told, {len(found.bad)} bad, "
            f"{time.monotonic() - started:.0f} s",
            flush=True,
        )
        for each in found.bad:
            print(f"  {each}")
        is_bad = is_bad or bool(found.bad)
    sys.exit(int(is_bad))


def _enumerated(what: str, every: int, undo: ExitStack) -> faults.Findings:
    # The image lies in memory, so that the journal may lie on the drive below /var/tmp.
    memory, disk = (
        Path(undo.enter_context(tempfile.TemporaryDirectory(dir=place)))
        for place in ("/dev/shm", "/var/tmp")  # noqa: S108 -- with names of their own
    )
    image, point = memory / "image", memory / "mounted"
    with image.open("xb") as file:
        file.truncate(IMAGE_BYTES.get(what, 64 << 20))
    node, why = loop_devices.attach(image)
    if node is None:
        sys.exit(f"no loop device can be had here: {why}")
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
    return faults.of_file(_healing(point / "here"), every)


def _healing(here: Path) -> Healing:
    here.mkdir()
    chance = random.Random(1)
    healing = Healing(
        here / "patient", chance.randbytes((2 << 20) + 5), here / "other", chance.randbytes(99_999)
    )
    healing.path.write_bytes(healing.content)
    healing.bystander.write_bytes(healing.other)
    return healing


if __name__ == "__main__":
    main()
