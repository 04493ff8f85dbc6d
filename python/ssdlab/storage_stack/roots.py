"""`Roots`: the directories and device-mapper tables that describe a machine, live or captured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ssdlab.storage_stack.blockdev import SYS
from ssdlab.storage_stack.mounts import PROC

Tables = Mapping[str, tuple[str, ...]]
"""By device-mapper name: the words of its table that `trim.tables` keeps."""


@dataclass(frozen=True, slots=True)
class Roots:
    """This machine's directories, or those of a captured tree.

    `tables` come from `trim.tables.read_tables`, which only root can read.
    """

    sys: Path = SYS
    proc: Path = PROC
    etc: Path = Path("/etc")
    run: Path = Path("/run")
    tables: Tables = field(default_factory=dict)

    @property
    def is_live(self) -> bool:
        """Whether this machine is read, and not a captured tree."""
        return self.proc == PROC


LIVE = Roots()
