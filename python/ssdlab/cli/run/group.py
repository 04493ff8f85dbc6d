"""The group of `ssdlab run`'s commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand

from ssdlab.cli.lazy import LazyGroup, Member
from ssdlab.cli.options import LABEL
from ssdlab.experiments.registry import EXPERIMENTS
from ssdlab.runner.parameters import Parameters
from ssdlab.target import without_value

DESTROY: Final = "--destroy-data"


def told_consent(args: list[str]) -> list[str]:
    """Arguments in which a bare `--destroy-data` says what it means."""
    end = args.index("--") if "--" in args else len(args)
    options = [without_value(DESTROY) if each == DESTROY else each for each in args[:end]]
    return [*options, *args[end:]]


class _Members(Mapping[str, Member]):
    """The experiments that are registered now, and `resume`."""

    def __getitem__(self, name: str) -> Member:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[str, Member]:
        known = [each.parameters for each in EXPERIMENTS.values() if each.parameters is not None]
        members = {each.experiment(): _member(each) for each in known}
        del members["replay"]  # `ssdlab replay` is a verb
        members["resume"] = Member(
            "ssdlab.cli.run.resume", "Resume a run that was interrupted or killed."
        )
        return members


def _member(parameters: type[Parameters]) -> Member:
    def load() -> typer.Typer:
        from ssdlab.cli.run.experiment_command import experiment_command

        return experiment_command(parameters)

    return Member(load, (parameters.__doc__ or "").partition("\n")[0])


class _Group(LazyGroup):
    """The commands by name, in the order of the help.

    `--fio FILE` in the place of a command means `workload --fio FILE`. `--destroy-data` may have a
    value, after "=" only: what follows a bare one is a target.
    """

    members = _Members()

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
def _options(
    *,
    label: Annotated[
        str, typer.Option(help="What to call the runs, before the experiment: --label before aging")
    ] = "",
) -> None:
    """Run an experiment on a real drive, a directory or a twin."""
    LABEL.set(label)
