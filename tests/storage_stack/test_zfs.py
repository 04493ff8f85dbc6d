"""What zpool, zdb and zfs 2.1.11 printed in a guest, for a mirror of two twins with a log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ssdlab.snapshot import Pool
from ssdlab.storage_stack.zfs import read_pools, read_properties

OUTPUTS = Path(__file__).parents[1] / "captured" / "zfs_outputs"


def _run(status: str, words: Sequence[str]) -> str | None:
    names = {
        "zpool status -t -LP": f"{status}.txt",
        "zpool get -Hpo name,property,value autotrim": "autotrim.txt",
        "zdb -C tank": "zdb.txt",
    }
    is_properties = tuple(words[:2]) == ("zfs", "get")
    name = "properties.txt" if is_properties else names.get(" ".join(words))
    return None if name is None else (OUTPUTS / name).read_text()


def _pool(status: str) -> Pool:
    (pool,) = read_pools(lambda words: _run(status, words)).values()
    return pool


def test_members_roles_and_ashift_of_a_new_pool() -> None:
    pool = _pool("status_new")
    assert [(m.node, m.role, m.vdev, m.state, m.trim) for m in pool.members] == [
        ("/dev/nvme0n1p1", "data", "mirror-0", "ONLINE", "untrimmed"),
        ("/dev/nvme1n1p1", "data", "mirror-0", "ONLINE", "untrimmed"),
        ("/dev/nvme2n1p1", "log", "", "ONLINE", "untrimmed"),
    ]
    assert (pool.name, pool.autotrim, pool.ashift) == ("tank", False, 9)


def test_the_time_of_the_last_trim() -> None:
    trims = [member.trim for member in _pool("status_trimmed").members]
    assert all(trim.startswith("100% trimmed, completed at ") for trim in trims)


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_member_that_is_offline(at: int) -> None:
    member = _pool("status_offline").members[at]
    assert member.state == ("OFFLINE" if at == 1 else "ONLINE")


def test_the_properties_of_a_dataset() -> None:
    found = read_properties("tank", lambda words: _run("status_new", words))
    assert (found["sync"], found["primarycache"], found["recordsize"]) == (
        "standard",
        "all",
        "131072",
    )
