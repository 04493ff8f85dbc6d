"""Signatures on a block device: file systems, partition tables, RAID, LVM, LUKS, swap.

Uses `wipefs --no-act`, which opens the device read-only and lists everything that libblkid detects.
It is part of util-linux, like mount, and knows more formats than a table of our own would. Without
wipefs the content is unknown, and the device must be treated as if it had some.
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

_SBIN: Final = "/usr/sbin:/sbin"
"""Directories where wipefs may be, which an ordinary user's PATH may lack."""
_COLUMNS: Final = "DEVICE,OFFSET,TYPE,USAGE,LABEL"
_TIMEOUT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature on the device file `node`: libblkid's name for it, and its label."""

    node: Path
    kind: str
    label: str | None = None

    def __str__(self) -> str:
        """A text such as "ext4 'data' on /dev/sda1"."""
        label = f" {self.label!r}" if self.label else ""
        return f"{self.kind}{label} on {self.node}"


class _Row(msgspec.Struct):
    type: str
    label: str | None = None


class _Listing(msgspec.Struct):
    signatures: list[_Row] = []


def signatures(device: BlockDevice, sys: Path = SYS) -> list[Signature]:
    """All signatures on a device and its partitions.

    Raises:
        TargetError: wipefs is not installed, or cannot read the device.
    """
    nodes = [device.node, *(part.node for part in partitions_of(device, sys))]
    return [signature for node in nodes for signature in _wipefs(node)]


def _wipefs(node: Path) -> list[Signature]:
    tool = shutil.which("wipefs", path=f"{os.environ.get('PATH', '')}:{_SBIN}")
    if tool is None:
        raise TargetError("wipefs (util-linux), which checks for file systems, is not installed")
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
        text = getattr(error, "stderr", None) or str(error).encode()
        reason = text.decode("utf-8", "replace").strip()
        raise TargetError(f"{node} cannot be checked for file systems ({reason})") from error
    # Copies count once: a GPT has two headers, a file system may have several superblocks.
    return list(dict.fromkeys(Signature(node, row.type, row.label) for row in rows))
