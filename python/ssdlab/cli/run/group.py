"""The group of `ssdlab run`'s commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final

import typer
from typer.core import TyperCommand

from ssdlab.cli.lazy import LazyGroup, Member
from ssdlab.cli.options import LABEL
from ssdlab.target import without_value

DESTROY: Final = "--destroy-data"


def told_consent(args: list[str]) -> list[str]:
    """Arguments in which a bare `--destroy-data` says what it means."""
    end = args.index("--") if "--" in args else len(args)
    options = [without_value(DESTROY) if each == DESTROY else each for each in args[:end]]
    return [*options, *args[end:]]


_SUMMARIES: Final = {
    "aging": "Does random writing slow this drive's sequential reads, and does rest heal it?",
    "cache": "How much do buffer and SLC cache take, and how long a rest gives it back?",
    "fragments": "What does a file in pieces cost to read, and is it the host or the drive?",
    "fsync": "What does it cost to have each write kept, and does the drive heed a flush?",
    "steady": "At which rate do writes last, and what would more spare area make of it?",
    "placement": "Which rule for where a drive writes keeps files readable, and what does it cost?",
    "resume": "Go on with a run that was interrupted or killed, in its folder.",
    "split": "What does it cost to read the same bytes by many small commands?",
    "stripe": "Over how many units, and in what pieces, does a drive spread consecutive addresses?",
    "suite": "The table people know: in order, 4 KiB, 4 KiB x 64, access time, with its spread.",
    "trim": "Does a discard (TRIM) reach the flash, and which layer stops it?",
    "workload": "What does this drive do under the jobs of a fio job file?",
}


class _Group(LazyGroup):
    """The commands by name, in the order of the help.

    `--fio FILE` in the place of a command means `workload --fio FILE`. `--destroy-data` may have a
    value, after "=" only: what follows a bare one is a target.
    """

    members: ClassVar[Mapping[str, Member]] = {
        name: Member(f"ssdlab.cli.run.{name}", summary) for name, summary in _SUMMARIES.items()
    }

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Puts there what is meant."""
        args = told_consent(args)
        if args and args[0].partition("=")[0] == "--fio":
            args = ["workload", *args]
        return super().parse_args(ctx, args)


class ConsentCommand(TyperCommand):
    """A command outside the group that may destroy data, too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Puts there what is meant."""
        return super().parse_args(ctx, told_consent(args))


app = typer.Typer(
    cls=_Group,
    help="Run an experiment on a real drive, a directory or a twin.",
    epilog="Example: ssdlab run aging twin:toshiba-xg5",
    no_args_is_help=True,
    add_completion=False,
)


@app.callback()
def _experiments(
    *,
    label: Annotated[
        str, typer.Option(help="What to call the runs, before the experiment: --label before aging")
    ] = "",
) -> None:
    """Run an experiment on a real drive, a directory or a twin."""
    LABEL.set(label)
