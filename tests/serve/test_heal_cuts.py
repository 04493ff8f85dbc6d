"""Power cuts and kills during a heal. bench/heal_cuts.py makes many."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from cuts import cut_once, examine, kill_once, make
from heal_rig import MKFS, Rig, Tally, Way
from rig import Serve, need

Begin = Callable[[str, Way], Rig]


@pytest.fixture
def begin(serve: Serve, tmp_path: Path) -> Begin:
    """`begin(kind, way)` -> a rig with its file system; skips without root or nbdfuse."""

    def make_rig(kind: str, way: Way) -> Rig:
        need("nbdfuse", "losetup", MKFS[kind][0], root=True)
        served = serve(capacity="400 MiB")
        return Rig(kind, way, tmp_path, served.socket, random.Random(4), 6 << 20, way == "frozen")

    return make_rig


@pytest.mark.parametrize(
    ("kind", "way"), [("ext4", "file"), ("ext4", "device"), ("xfs", "device"), ("ext4", "frozen")]
)
def test_after_two_cuts_and_a_kill_all_files_are_unchanged(
    kind: str, way: Way, begin: Begin
) -> None:
    rig, tally = begin(kind, way), Tally()
    units, _ = make(rig)
    examine(rig, tally)
    for after in (2, 5):  # only the heal writes to an unmounted device
        cut_once(rig, after, tally, surely=way == "device")
        examine(rig, tally)
    if not tally.interrupted["cut"]:  # both heals ended before their cuts were planned
        cut_once(rig, 5, tally, surely=True)
        examine(rig, tally)
    kill_once(rig, units / 2, tally)
    examine(rig, tally)
    assert not tally.bad, tally
    assert tally.interrupted["cut"] > 0
    if way == "device":
        assert tally.restored == 2, "the journal restored the ranges overwritten with garbage"
