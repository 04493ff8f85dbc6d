"""Command-line options that several commands share, and their parsers."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from ssdlab.cli.exports import NO_EXPORTS, Exports
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
    exports: Exports = NO_EXPORTS


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


def only_folder(folder: Path | None, out: Path | None) -> Path | None:
    """The folder given as argument or by --out; None if neither was.

    Raises:
        UsageError: both were given.
    """
    if folder is not None and out is not None:
        raise UsageError(f"{folder} and --out {out} both name the results folder; give one")
    return out if folder is None else folder


def complete_run(incomplete: str) -> list[str]:
    """The run folders, and folders of runs, that begin so; without a "/", also in `RESULTS`."""
    parent = incomplete.rpartition("/")[0]
    places = [Path(parent or "/") if "/" in incomplete else Path()]
    if str(RESULTS).startswith(incomplete):
        places.append(RESULTS)
    found = [path for place in places for path in _subfolders(place) if _has_runs(path)]
    return [text for text in map(str, found) if text.startswith(incomplete)]


def _subfolders(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError:
        return []


def _has_runs(folder: Path) -> bool:
    """Whether it is a run folder, or holds one."""
    return any(next(folder.glob(name), None) for name in ("manifest.json", "*/manifest.json"))


def complete_change(context: typer.Context, incomplete: str) -> list[str]:
    """The keys of the profile that is being changed, or else of all shipped ones, with "="."""
    from ssdlab import profiles
    from ssdlab.profiles.toml_edit import list_values

    given = context.params.get("profile")
    names = [parse_profile(given)] if given else profiles.names()
    try:
        keys = {entry["key"] for name in names for entry in list_values(profiles.load(name))}
    except UsageError:
        return []
    return [f"{key}=" for key in sorted(keys) if key.startswith(incomplete)]


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
OutAsFolder = Annotated[
    Path | None,
    typer.Option("--out", metavar="FOLDER", help="The results folder, as given to ssdlab run."),
]
Seed = Annotated[int, typer.Option(parser=_seed, metavar="N", help="Seed of all random numbers.")]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Do not print progress.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask before writing many bytes.")]
