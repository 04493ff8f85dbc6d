"""Command-line options that several commands share, and their parsers."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from ssdlab.errors import UsageError
from ssdlab.target import (
    RESULTS,
    SEED_MAX,
    Consent,
    Target,
    parse_consent,
    parse_profile,
    parse_target,
)
from ssdlab.units import parse_size

LABEL: Final[ContextVar[str]] = ContextVar("label", default="")
"""Label of the runs of this command (`ssdlab run --label`)."""


@dataclass(frozen=True)
class OutputOptions:
    """Where runs are stored, and how they are printed. `yes` confirms without asking."""

    out: Path = RESULTS
    json: bool = False
    quiet: bool = False
    yes: bool = False
    html: Path | None = None


def _seed(text: str | int) -> int:
    digits = str(text)
    if not (digits.isascii() and digits.isdecimal()) or int(digits[:20]) > SEED_MAX:
        raise UsageError(f"--seed is {digits!r}; it must be a whole number from 0 to {SEED_MAX}")
    return int(digits)


def parse_targets(texts: Sequence[str], capacity: str | None) -> list[Target]:
    """Parses targets; `capacity` scales twins.

    Raises:
        TargetError: a target does not exist.
        UsageError: `capacity` is given for a target that is not a twin.
    """
    return [parse_target(text, size_of(capacity)) for text in texts]


def size_of(text: str | None) -> int | None:
    """An optional size in bytes."""
    return None if text is None else parse_size(text)


def require_folder_of(html: Path | None) -> None:
    """Refuses a page in a missing directory, before the work that it is about.

    Raises:
        UsageError: the directory does not exist.
    """
    if html is not None and not html.absolute().parent.is_dir():
        raise UsageError(f"--html is {html}; give a file in an existing directory")


def complete_twin(incomplete: str) -> list[str]:
    """The names of twins that begin so; with `twin:` if that was typed."""
    from ssdlab import profiles

    typed = incomplete.removesuffix(parse_profile(incomplete))
    known = [*profiles.names(), *profiles.own_names()]
    return [typed + name for name in known if (typed + name).startswith(incomplete)]


Targets = Annotated[
    list[str],
    typer.Argument(
        metavar="TARGET",
        help="twin:NAME, twin:FILE.toml, a directory (a test file is made in it and removed), "
        "or a block device (its data is lost).",
        autocompletion=complete_twin,
    ),
]
Quick = Annotated[bool, typer.Option("--quick", help="Smaller and shorter; less exact.")]
Capacity = Annotated[
    str | None, typer.Option(help="Scale a twin to this capacity, with the same ratios.")
]
DestroyData = Annotated[
    Consent,
    typer.Option(
        "--destroy-data",
        parser=parse_consent,
        metavar="[=/dev/NAME]",
        show_default=False,
        help="Allow a block device to be overwritten. If it holds data, it must be named here.",
    ),
]
Out = Annotated[Path, typer.Option(help="Results folder: each run creates a folder in it.")]
Seed = Annotated[int, typer.Option(parser=_seed, metavar="N", help="Seed of all random numbers.")]
Html = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Also write one HTML file about the runs.")
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Do not print progress.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask before writing many bytes.")]
