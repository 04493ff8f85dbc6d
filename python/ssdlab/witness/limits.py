"""Sizes and choices of the witness. Imports nothing heavy, so the command line can use it."""

from __future__ import annotations

import re
from typing import Final, Literal

SECTOR: Final = 512
"""Bytes of a stamped sector."""
SECTORS_MAX: Final = 2048
"""Sectors of the largest request: 1 MiB."""
THREADS_MAX: Final = 256
SUFFIX: Final = ".witness"
"""Suffix of a journal file; its stem is the run."""
RUN_NAME: Final = re.compile(r"[0-9a-f]{32}")
NBD_SCHEMES: Final = ("nbd://", "nbd+unix://")

Sync = Literal["fsync", "fdatasync", "dsync", "fua", "none"]
SYNCS: Final[tuple[Sync, ...]] = ("fsync", "fdatasync", "dsync", "fua", "none")
"""How writes become durable: fsync or fdatasync after a batch, O_DSYNC, RWF_DSYNC, or never."""
SYNC_PER_WRITE: Final = frozenset({"dsync", "fua"})
"""With these, each write is durable when it returns."""
