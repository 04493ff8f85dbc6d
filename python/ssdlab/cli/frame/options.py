"""The options that every experiment has, and what they may be."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ssdlab.errors import UsageError
from ssdlab.target import RESULTS, SEED_MAX
from ssdlab.units import parse_size

if TYPE_CHECKING:
    from ssdlab.api.conduct import Opening

KEEP: Final = ""
"""Of `DestroyData`: no block device may be overwritten."""
ANY_EMPTY: Final = "an empty one"
"""Of `DestroyData` without a name: a block device on which nothing is found."""
LABEL: Final[ContextVar[str]] = ContextVar("label", default="")
"""What the runs of this command are called (`ssdlab run --label`)."""


@dataclass(frozen=True)
class Wishes:
    """How runs are stored and shown; `yes` answers what would be asked."""

    out: Path = RESULTS
    json: bool = False
    quiet: bool = False
    yes: bool = False


def _seed(text: str | int) -> int:
    digits = str(text)
    if not (digits.isascii() and digits.isdecimal()) or int(digits[:20]) > SEED_MAX:
        raise UsageError(f"--seed is {digits!r}; it may be a whole number from 0 to {SEED_MAX}")
    return int(digits)


def _consent(given: str | bool) -> str:
    """As `DestroyData` means it; a command's default comes here too."""
    return "" if given is False else str(given)


def consent(destroy_data: str) -> bool | str:
    """What `DestroyData` allows, in the words of `Opening`."""
    return destroy_data == ANY_EMPTY or (destroy_data if destroy_data != KEEP else False)


def opening(capacity: str | None, destroy_data: str = KEEP) -> Opening:
    """How targets are opened, by these options."""
    from ssdlab.api.conduct import Opening

    return Opening(size_of(capacity), consent(destroy_data))


def size_of(text: str | None) -> int | None:
    """Bytes of an option that may be absent."""
    return None if text is None else parse_size(text)


Targets = Annotated[
    list[str],
    typer.Argument(
        metavar="TARGET",
        help="twin:NAME, twin:FILE.toml, a directory (a test file is made in it and removed), "
        "or a block device (its data is lost).",
    ),
]
Size = Annotated[str | None, typer.Option(help="Size of the test file or region.")]
Quick = Annotated[bool, typer.Option("--quick", help="Smaller and shorter; less exact.")]
Capacity = Annotated[str | None, typer.Option(help="Scale a twin to this capacity; ratios stay.")]
DestroyData = Annotated[
    str,
    typer.Option(
        "--destroy-data",
        parser=_consent,
        metavar="[=/dev/NAME]",
        show_default=False,
        help="Allow a block device to be overwritten; one that holds something only if it is "
        "named here.",
    ),
]
Out = Annotated[Path, typer.Option(help="Results folder: each run makes a folder in it.")]
Seed = Annotated[int, typer.Option(parser=_seed, metavar="N", help="Decides all that is random.")]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask before many bytes are written.")]
