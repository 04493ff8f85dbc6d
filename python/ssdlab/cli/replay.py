"""`ssdlab replay`: a trace on a target; without a target, statistics of the trace."""

from __future__ import annotations

from typing import Annotated, cast

import typer

from ssdlab.cli.options import OutputOptions
from ssdlab.cli.output import write_out
from ssdlab.cli.run import ConsentCommand
from ssdlab.cli.run.commands import experiment_command
from ssdlab.experiments import Replay
from ssdlab.runner.parameters import Parameters

_Targets = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TARGET",
        help="twin:NAME, twin:FILE.toml, a directory, or a block device (its data is lost). "
        "Without a target, statistics of the trace are printed.",
    ),
]


def _print_statistics(parameters: Parameters, output: OutputOptions) -> int:
    import msgspec
    from rich.console import Console

    from ssdlab.records import encode_json
    from ssdlab.report.trace import show

    replay = cast("Replay", parameters)
    if output.json:
        values = msgspec.to_builtins(replay.statistics)
        write_out(encode_json({"trace": str(replay.trace), **values}))
    else:
        show(str(replay.trace).rpartition("/")[2], replay.statistics, Console())
    return 0


app = experiment_command(
    Replay,
    command_class=ConsentCommand,
    targets=_Targets,
    without_targets=_print_statistics,
)
