"""Kills and power cuts at random points of `ssdlab heal`, with a check of all files.

Usage: python bench/heal_cuts.py [--kind ext4] [--way file|device|frozen] [--kills 100] [--cuts 100]
       [--writes] [--size 12] [--seed 1]

Needs root, nbdfuse and losetup. A served and attached twin has a file system with one file to heal
and others; `device` heals the whole unmounted device, `frozen` the mounted one. With `--writes` a
program writes to the file during the heal; its durable writes must be there. A kill is SIGKILL to
the healing process after a random part of its writes. A cut takes the twin's power in the middle of
a random one of its next writes (`tests/serve/cuts.py`). With `tables`, ext4 without extents, a heal
copies files; the remains of a killed copy must be gone after the next heal. After each kill or cut
the file system is mounted (it recovers), every byte is compared, and the file system is checked.
Prints one line at the end: kills, cuts, bytes that differ, missing files, unexpected files, failed
checks. Exit status 1 if there are any.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from ssdlab.device import ServeOptions, serve

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "attached"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "serve"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "fixtures"))

from cuts import cut_once, examine, kill_once, make
from heal_rig import MKFS, Rig, Tally
from rig import TWIN

CAPACITY = "400 MiB"


def main() -> None:
    """Makes all kills and cuts, in a random order."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", default="ext4", choices=sorted(MKFS))
    parser.add_argument("--way", default="file", choices=("file", "device", "frozen"))
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--cuts", type=int, default=100)
    parser.add_argument("--writes", action="store_true", help="a program writes during the heal")
    parser.add_argument("--size", type=int, default=12, help="size of the file in MiB")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng, tally = random.Random(arguments.seed), Tally()
    title = f"{arguments.kind}, {arguments.way}{', written to' if arguments.writes else ''}"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        size = (arguments.size << 20) + 12_345
        socket = folder / "twin"
        rig = Rig(arguments.kind, arguments.way, folder, socket, rng, size, arguments.writes)
        profile = TWIN.format(capacity=CAPACITY, program="500 us", protected="false", honest="true")
        server = serve(
            profile, ServeOptions("twin", "unix", str(socket), control=f"{socket}.control")
        )
        try:
            _make_all(arguments, rig, tally)
        finally:
            server.stop()
    print(f"{title}: {tally}", flush=True)
    sys.exit(1 if tally.bad else 0)


def _make_all(arguments: argparse.Namespace, rig: Rig, tally: Tally) -> None:
    """Makes each kill or cut, and checks the files after it."""
    units, most = make(rig)
    examine(rig, tally)
    print(f"a heal takes {most} writes of {units} units", flush=True)
    turns = ["kill"] * arguments.kills + ["cut"] * arguments.cuts
    rig.rng.shuffle(turns)
    for number, turn in enumerate(turns):
        if turn == "kill":
            kill_once(rig, rig.rng.uniform(0, units), tally)
        else:
            cut_once(rig, rig.rng.randrange(1, most), tally)
        examine(rig, tally)
        if number % 10 == 9:
            print(tally, flush=True)


if __name__ == "__main__":
    main()
