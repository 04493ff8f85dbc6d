"""The group of `ssdlab run`'s commands: each registers itself in it."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from ssdlab.cli.frame.options import ANY_EMPTY, LABEL

DESTROY: Final = "--destroy-data"


def told_consent(args: list[str]) -> list[str]:
    """Arguments in which a bare `--destroy-data` says what it means."""
    end = args.index("--") if "--" in args else len(args)
    options = [f"{DESTROY}={ANY_EMPTY}" if each == DESTROY else each for each in args[:end]]
    return [*options, *args[end:]]


class _Group(TyperGroup):
    """The commands, and what stands for another word.

    `--fio FILE` in the place of a command means `workload --fio FILE`. `--destroy-data` may have a
    value, after "=" only: what follows a bare one is a target.
    """

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
