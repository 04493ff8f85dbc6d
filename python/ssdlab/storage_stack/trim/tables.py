"""What only a device-mapper table tells: whether it was told to discard, and where data begins.

Source: Documentation/admin-guide/device-mapper/dm-crypt.rst, linear.rst, thin-provisioning.rst.
Keys are shown as zeros by `dmsetup table`; nothing but the words and numbers asked for leaves this
module: a word `starts=N` says that the data of a LUKS container or of a part of a logical volume
begins at byte N of the device below.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from typing import Final

from ssdlab.storage_stack.blockdev import SECTOR

Tables = Mapping[str, tuple[str, ...]]
"""By the name of a device-mapper device: the words of its table that matter here."""

_KEPT: Final = frozenset(
    {"crypt", "thin-pool", "thin", "linear", "striped", "raid", "integrity", "vdo", "cache"}
    | {"allow_discards", "no_discard_passdown", "ignore_discard"}
    | {"snapshot", "snapshot-origin", "era", "raid4", "raid5_ls", "raid5_la", "raid5_rs"}
    | {"raid5_ra", "raid6_zr", "raid6_nr", "raid6_nc"}
)
_STARTS: Final = "starts="
_LINE: Final = re.compile(r"(?P<name>.+?): \d+ \d+ (?P<words>\S.*)")


def read_tables() -> Tables:
    """The tables of all device-mapper devices; empty where they cannot be read (not root)."""
    program = shutil.which("dmsetup")
    if program is None or os.geteuid() != 0:
        return {}
    done = subprocess.run([program, "table"], capture_output=True, text=True, check=False)
    return parse_tables(done.stdout) if done.returncode == 0 else {}


def parse_tables(text: str) -> Tables:
    """The words that matter, by name, of what `dmsetup table` prints."""
    found: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match:
            told = match["words"].split()
            words = tuple(word for word in told if word in _KEPT)
            start = _data_start(told)
            words += () if start is None else (f"{_STARTS}{start}",)
            found[match["name"]] = (*found.get(match["name"], ()), *words)
    return found


def data_starts(words: Iterable[str]) -> tuple[int, ...]:
    """Where the parts of a device begin on the one below, in bytes, of the words of its table."""
    return tuple(int(word.removeprefix(_STARTS)) for word in words if word.startswith(_STARTS))


def _data_start(words: list[str]) -> int | None:
    """Of `crypt CIPHER KEY IV_OFFSET DEVICE OFFSET ...` and `linear DEVICE OFFSET`, in sectors."""
    at = {"crypt": 5, "linear": 2}.get(words[0])
    if at is None or len(words) <= at or not words[at].isdecimal():
        return None
    return int(words[at]) * SECTOR
