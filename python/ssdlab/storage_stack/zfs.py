"""ZFS pools: members, TRIM and the properties that a measurement depends on.

Read by `zpool status -t -LP`, `zpool get`, `zdb -C` and `zfs get`, whose text is the same on Linux
and FreeBSD; `zpool status -j` (OpenZFS 2.3) is not needed. Sources: zpool-status(8), zpoolprops(7),
zpool-trim(8), zfsprops(7), zdb(8).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from ssdlab.snapshot import Pool, PoolMember
from ssdlab.storage_stack.health.smart import Runner

_ROLES: Final = {
    "logs": "log",
    "cache": "cache",
    "spares": "spare",
    "special": "special",
    "dedup": "dedup",
}
_GROUP: Final = re.compile(r"(mirror|raidz\d?|draid\S*|spare|replacing)-\d+\S*")
_TRIM: Final = re.compile(r"\((untrimmed|trim unsupported|\d+% trimmed, [^)]*|trimming[^)]*)\)")
_ASHIFT: Final = re.compile(r"^\s+ashift: (\d+)$", re.MULTILINE)
_PROPERTIES: Final = "sync,compression,primarycache,logbias,recordsize,atime"


def read_pools(run: Runner) -> Mapping[str, Pool]:
    """All imported pools by name; empty without the program zpool or without pools."""
    status = run(("zpool", "status", "-t", "-LP"))
    if not status:
        return {}
    trims = _by_pool(run(("zpool", "get", "-Hpo", "name,property,value", "autotrim")))
    pools = {}
    for name, members in parse_status(status).items():
        ashifts = _ASHIFT.findall(run(("zdb", "-C", name)) or "")
        pools[name] = Pool(
            name=name,
            members=members,
            autotrim={"on": True, "off": False}.get(trims.get(name, "")),
            ashift=min(map(int, ashifts), default=None),
        )
    return pools


def read_properties(dataset: str, run: Runner) -> dict[str, str]:
    """The properties of a dataset that decide what a measurement shows."""
    text = run(("zfs", "get", "-Hpo", "property,value", _PROPERTIES, dataset)) or ""
    rows = (line.split("\t") for line in text.splitlines())
    return {row[0]: row[1] for row in rows if len(row) == 2}


def parse_status(text: str) -> dict[str, tuple[PoolMember, ...]]:
    """The members of each pool in the output of `zpool status -t -LP`."""
    pools: dict[str, tuple[PoolMember, ...]] = {}
    for part in re.split(r"^\s*pool: ", text, flags=re.MULTILINE)[1:]:
        name = part.split("\n", 1)[0].strip()
        pools[name] = tuple(_members(name, part))
    return pools


@dataclass
class _Place:
    """Where the lines of a pool's configuration are: in which role, under which vdev."""

    role: str = "data"
    groups: dict[int, str] = field(default_factory=dict)


def _members(pool: str, part: str) -> Iterator[PoolMember]:
    _, _, config = part.partition("config:")
    place = _Place()
    for line in config.splitlines():
        words = line.split()
        if not words or words[0] in {"NAME", pool}:
            continue
        if words[0] == "errors:":
            return
        depth = len(line) - len(line.lstrip())
        if words[0] in _ROLES and len(words) == 1:
            place = _Place(_ROLES[words[0]])
        elif _GROUP.fullmatch(words[0]):
            place.groups[depth] = words[0]
        elif words[0].startswith("/"):
            above = [group for d, group in sorted(place.groups.items()) if d < depth]
            trim = _TRIM.search(line)
            state = words[1] if len(words) > 1 else ""
            yield PoolMember(
                node=words[0],
                role=place.role,
                vdev=above[-1] if above else "",
                state=state,
                trim="" if trim is None else trim[1],
            )


def _by_pool(text: str | None) -> dict[str, str]:
    rows = (line.split("\t") for line in (text or "").splitlines())
    return {row[0]: row[2] for row in rows if len(row) == 3}
