"""Device-mapper tables: discard options and data offsets, which sysfs does not show.

Source: Documentation/admin-guide/device-mapper/dm-crypt.rst, linear.rst, thin-provisioning.rst.
`dmsetup table` prints keys as zeros, and this module keeps only known words. It adds `starts=N`:
the data of a LUKS container or of a segment of a logical volume begins at byte N of the device
below.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from typing import Final

from ssdlab.storage_stack.blockdev import SECTOR
from ssdlab.storage_stack.layers import Tables

_KNOWN_WORDS: Final = frozenset(
    {"crypt", "thin-pool", "thin", "linear", "striped", "raid", "integrity", "vdo", "cache"}
    | {"writecache", "zoned"}
    | {"allow_discards", "no_discard_passdown", "ignore_discard"}
    | {"snapshot", "snapshot-origin", "era", "raid4", "raid5_ls", "raid5_la", "raid5_rs"}
    | {"raid5_ra", "raid6_zr", "raid6_nr", "raid6_nc"}
)
_STARTS: Final = "starts="
_LINE: Final = re.compile(r"(?P<name>.+?): \d+ \d+ (?P<words>\S.*)")


def read_tables() -> Tables:
    """The tables of all device-mapper devices; empty if not root or without dmsetup."""
    program = shutil.which("dmsetup")
    if program is None or os.geteuid() != 0:
        return {}
    done = subprocess.run([program, "table"], capture_output=True, text=True, check=False)
    return parse_tables(done.stdout) if done.returncode == 0 else {}


def parse_tables(text: str) -> Tables:
    """The known words in the output of `dmsetup table`, by device name."""
    tables: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match:
            words = match["words"].split()
            kept = tuple(word for word in words if word in _KNOWN_WORDS)
            start = _data_start(words)
            kept += () if start is None else (f"{_STARTS}{start}",)
            tables[match["name"]] = (*tables.get(match["name"], ()), *kept)
    return tables


def data_starts(words: Iterable[str]) -> tuple[int, ...]:
    """Byte offsets of a device's segments on the device below, from the words of its table."""
    return tuple(int(word.removeprefix(_STARTS)) for word in words if word.startswith(_STARTS))


def _data_start(words: list[str]) -> int | None:
    """The byte offset in `crypt CIPHER KEY IV_OFFSET DEVICE OFFSET` or `linear DEVICE OFFSET`."""
    at = {"crypt": 5, "linear": 2}.get(words[0])
    if at is None or len(words) <= at or not words[at].isdecimal():
        return None
    return int(words[at]) * SECTOR
