"""What a block device holds: file systems, partition tables, members of RAID, LVM, LUKS, swap.

Asked of `wipefs` without an order to wipe, which opens the device for reading only: it tells all
that libblkid finds, each with its checks, and is part of util-linux, as mount is. A table of magic
numbers of ours would be older than every new file system. Where wipefs is missing nothing is known,
and that must count as if something were there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from ssdlab.errors import TargetError
from ssdlab.storage_stack.blockdev import SYS, BlockDevice, partitions_of

_SYSTEM: Final = "/usr/sbin:/sbin"
"""Where wipefs is; an ordinary user's PATH may lack it."""
_COLUMNS: Final = "DEVICE,OFFSET,TYPE,USAGE,LABEL"
_TIMEOUT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Signature:
    """One that was found: on which device file, what libblkid calls it, and its label if any."""

    node: Path
    kind: str
    label: str | None = None

    def __str__(self) -> str:
        """For people: "ext4 'data' on /dev/sda1"."""
        named = f" {self.label!r}" if self.label else ""
        return f"{self.kind}{named} on {self.node}"


class _Row(msgspec.Struct):
    type: str
    label: str | None = None


class _Listing(msgspec.Struct):
    signatures: list[_Row] = []


def signatures(device: BlockDevice, sys: Path = SYS) -> list[Signature]:
    """All signatures on a device and on its partitions.

    Raises:
        TargetError: they cannot be looked for: no wipefs, or the device cannot be read.
    """
    nodes = [device.node, *(part.node for part in partitions_of(device, sys))]
    return [found for node in nodes for found in _on(node)]


def _on(node: Path) -> list[Signature]:
    tool = shutil.which("wipefs", path=f"{os.environ.get('PATH', '')}:{_SYSTEM}")
    if tool is None:
        raise TargetError("wipefs (util-linux), which looks for file systems, is not installed")
    try:
        done = subprocess.run(
            [tool, "--no-act", "--json", "--output", _COLUMNS, str(node)],
            check=True,
            capture_output=True,
            timeout=_TIMEOUT_S,
            env={**os.environ, "LC_ALL": "C"},
        )
        rows = msgspec.json.decode(done.stdout or b"{}", type=_Listing).signatures
    except (OSError, subprocess.SubprocessError, msgspec.MsgspecError) as error:
        said = getattr(error, "stderr", None) or str(error).encode()
        reason = said.decode("utf-8", "replace").strip()
        raise TargetError(f"{node} cannot be looked at for file systems ({reason})") from error
    found = [Signature(node, row.type, row.label) for row in rows]
    return list(dict.fromkeys(found))  # a GPT has two, a superblock may have copies
