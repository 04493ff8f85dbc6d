"""The command group `ssdlab run`."""

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


def with_consent_value(args: list[str]) -> list[str]:
    """Gives a bare `--destroy-data` a value, so that it does not take the target as its value."""
    end = args.index("--") if "--" in args else len(args)
    options = [without_value(DESTROY) if arg == DESTROY else arg for arg in args[:end]]
    return [*options, *args[end:]]


class _Members(Mapping[str, Member]):
    """The registered experiments and `resume`. Read at each access: tests register experiments."""

    def __getitem__(self, name: str) -> Member:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[str, Member]:
        known = [other.parameters for other in EXPERIMENTS.values() if other.parameters is not None]
        members = {parameters.experiment(): _member(parameters) for parameters in known}
        del members["replay"]  # a command of its own: `ssdlab replay`
        members["resume"] = Member(
            "ssdlab.cli.run.commands", "Resume a run that was interrupted or killed."
        )
        return members


def _member(parameters: type[Parameters]) -> Member:
    def load() -> typer.Typer:
        from ssdlab.cli.run.commands import experiment_command

        return experiment_command(parameters)

    return Member(load, (parameters.__doc__ or "").partition("\n")[0])


class _Group(LazyGroup):
    """The commands by name, in the order of the help.

    `ssdlab run --fio FILE` is short for `ssdlab run workload --fio FILE`. `--destroy-data` takes an
    optional value, only after "=": a word after it is a target.
    """

    members = _Members()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Expands the short forms."""
        args = with_consent_value(args)
        if args and args[0].partition("=")[0] == "--fio":
            args = ["workload", *args]
        return super().parse_args(ctx, args)


class ConsentCommand(TyperCommand):
    """A command with `--destroy-data` that is not in this group."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Expands a bare `--destroy-data`."""
        return super().parse_args(ctx, with_consent_value(args))


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
        str, typer.Option(help="Label of the runs; give it before the experiment's name.")
    ] = "",
) -> None:
    """Run an experiment on a real drive, a directory or a twin."""
    LABEL.set(label)
