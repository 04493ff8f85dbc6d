"""Options shared by the sub-commands of `ssdlab witness`, and opening the target."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console

from ssdlab.errors import TargetError, UsageError
from ssdlab.storage_stack.blockdev import is_block_device
from ssdlab.units import nearest_multiples, parse_size
from ssdlab.witness.limits import NBD_SCHEMES, SECTOR, Sync
from ssdlab.witness.nbd import NbdTarget
from ssdlab.witness.protocol import parse_address, read_secret
from ssdlab.witness.target import PathTarget, Target

if TYPE_CHECKING:
    from ssdlab.witness.client import Witness

FOLDER: Final = Path("ssdlab-witness")
SECRET: Final = Path("secret")

TargetName = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        help="A file, a block device (its data is lost), or the nbd: address of a served twin.",
    ),
]
Server = Annotated[str, typer.Option(help="Address of the witness: HOST or HOST:PORT.")]
Secret = Annotated[Path, typer.Option(help="File with the secret that `serve` made.")]
Run = Annotated[str | None, typer.Option(help="The run (default: the newest of this target).")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]


def witness_from(server: str, secret: Path) -> Witness:
    """The witness named by --server and --secret.

    Raises:
        UsageError: the address is not valid, or the secret cannot be used.
    """
    address, key = parse_address(server), read_secret(secret)
    from ssdlab.witness.client import Witness

    return Witness(address, key)


def full_name(target: str) -> str:
    """The target's name in the journal: an absolute path, or the nbd: address."""
    return target if target.startswith(NBD_SCHEMES) else str(Path(target).resolve())


def open_target(target: str, sync: Sync, size: int | None, *, writes: bool) -> Target:
    """Opens a target; `size` limits the region, in bytes.

    Raises:
        TargetError: it cannot be used, or is smaller than `size`.
    """
    opened: Target
    if target.startswith(NBD_SCHEMES):
        opened = NbdTarget(target, sync)
    else:
        path = Path(target)
        if not path.is_file() and not is_block_device(path):
            raise TargetError(f"{target} is neither a file nor a block device; give one")
        opened = PathTarget(path, sync, writes=writes)
    if size is not None:
        if size > opened.size_bytes:
            raise TargetError(f"{target} has {opened.size_bytes} bytes, less than --size {size}")
        opened.size_bytes = size // opened.block_bytes * opened.block_bytes
    if opened.size_bytes < SECTOR:
        raise TargetError(f"{target} is smaller than a sector ({SECTOR} bytes)")
    return opened


def parse_sectors(option: str, text: str) -> int:
    """A size in bytes that is a multiple of the sector.

    Raises:
        UsageError: it is not.
    """
    size = parse_size(text)
    if size <= 0 or size % SECTOR:
        nearest = nearest_multiples(size, SECTOR)
        raise UsageError(
            f"--{option} is {text}; it must be a multiple of {SECTOR} B; give {nearest}"
        )
    return size


def print_line(console: Console, line: str) -> None:
    """Prints a line without markup, colours or line breaks."""
    console.print(line, markup=False, highlight=False, soft_wrap=True)
