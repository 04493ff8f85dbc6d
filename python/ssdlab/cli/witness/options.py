"""The options that the witness's commands share, and how their targets are opened."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from ssdlab.errors import TargetError, UsageError
from ssdlab.storage_stack.blockdev import is_block_device
from ssdlab.units import parse_size
from ssdlab.witness.client import Witness
from ssdlab.witness.nbd import SCHEMES, NbdTarget
from ssdlab.witness.protocol import parse_address, read_secret
from ssdlab.witness.stamps import SECTOR
from ssdlab.witness.target import PathTarget, Sync, Target

FOLDER: Final = Path("ssdlab-witness")
SECRET: Final = Path("secret")

TargetName = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        help="A file, a block device (its data is lost), or the nbd: address of a served twin.",
    ),
]
Server = Annotated[str, typer.Option(help="The witness: HOST or HOST:PORT.")]
Secret = Annotated[Path, typer.Option(help="File with the secret that `serve` has made.")]
Run = Annotated[str | None, typer.Option(help="The run; left out, the newest of this target.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]


def witness_at(server: str, secret: Path) -> Witness:
    """The witness of the options.

    Raises:
        UsageError: no address, or no secret.
    """
    return Witness(parse_address(server), read_secret(secret))


def named(target: str) -> str:
    """The target as the witness knows it: a path from the root, an address as it is."""
    return target if target.startswith(SCHEMES) else str(Path(target).resolve())


def open_target(target: str, sync: Sync, size: int | None, *, writes: bool) -> Target:
    """Opens it; `size` bounds the region.

    Raises:
        TargetError: it cannot be used, or is smaller.
    """
    opened: Target
    if target.startswith(SCHEMES):
        opened = NbdTarget(target, sync)
    else:
        path = Path(target)
        if not path.is_file() and not is_block_device(path):
            raise TargetError(f"{target} is neither a file nor a block device; give one")
        opened = PathTarget(path, sync, writes=writes)
    if size is not None:
        if size > opened.size_bytes:
            raise TargetError(f"{target} has {opened.size_bytes} bytes, fewer than --size asks for")
        opened.size_bytes = size // opened.block_bytes * opened.block_bytes
    if opened.size_bytes < SECTOR:
        raise TargetError(f"{target} holds no sector")
    return opened


def sectors(name: str, text: str) -> int:
    """Bytes of a size that is made of whole sectors.

    Raises:
        UsageError: it is not.
    """
    size = parse_size(text)
    if size <= 0 or size % SECTOR:
        raise UsageError(f"--{name} is {text}; it may be a multiple of {SECTOR} B")
    return size


def say(console: Console, line: str) -> None:
    """A line for people, as it is."""
    console.print(line, markup=False, highlight=False, soft_wrap=True)
