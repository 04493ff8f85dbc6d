"""`ssdlab replay`: replays a trace on a target, or prints its statistics."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ssdlab.cli import options
from ssdlab.cli.output import write_out
from ssdlab.cli.run.group import ConsentCommand
from ssdlab.runner.defaults import TRACE_FORMATS
from ssdlab.target import NO_CONSENT, RESULTS

if TYPE_CHECKING:
    from ssdlab.device import TraceStatistics

app = typer.Typer(add_completion=False)


@app.command(
    name="replay",
    cls=ConsentCommand,
    epilog="Example: ssdlab replay trace.csv twin:toshiba-xg5 --speed 1",
)
def run(
    trace: Annotated[
        Path,
        typer.Argument(
            metavar="TRACE",
            help="A trace file, plain, gzip or zstd. For blktrace, any one of its per-CPU files.",
        ),
    ],
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TARGET]...",
            help="twin:NAME, twin:FILE.toml, a directory, or a block device (its data is lost). "
            "Without a target, prints the trace's statistics.",
        ),
    ] = None,
    *,
    speed: Annotated[
        float | None,
        typer.Option(
            help="1: the trace's arrival times; 2: twice as fast [as fast as the queue allows]."
        ),
    ] = None,
    depth: Annotated[int, typer.Option(help="Queue depth, at most.")] = 32,
    volume: Annotated[int | None, typer.Option(help="Replay this volume only.")] = None,
    together: Annotated[
        bool,
        typer.Option("--together", help="Map all volumes to the same addresses."),
    ] = False,
    format_: Annotated[
        str | None,
        typer.Option("--format", help=f"Trace format [detected]: {', '.join(TRACE_FORMATS)}."),
    ] = None,
    any_order: Annotated[
        bool,
        typer.Option("--any-order", help="Accept timestamps out of order by over 1 s."),
    ] = False,
    as_it_is: Annotated[
        bool, typer.Option("--as-it-is", help="Do not write the region before the replay.")
    ] = False,
    size: options.Size = None,
    capacity: options.Capacity = None,
    destroy_data: options.DestroyData = NO_CONSENT,
    out: options.Out = RESULTS,
    seed: options.Seed = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
    yes: options.Yes = False,
) -> int:
    """Replay a block trace on a drive, or print the trace's statistics.

    Reads MSR Cambridge, SPC (UMass), MQSim, blkparse, blktrace, fio iolog (2 and 3), Alibaba,
    Tencent and SYSTOR '17 traces; the format is detected from the first lines. Memory use does
    not grow with the trace.
    """
    from ssdlab.cli.run_experiment import conduct
    from ssdlab.experiments.questions import Replay

    question = Replay(
        trace=trace, format=format_, volume=volume, together=together, any_order=any_order,
        speed=speed, depth=depth, size=size, fills=not as_it_is,
    )  # fmt: skip
    statistics = question.look()
    if not targets:
        return _print_statistics(trace, statistics, json=json)
    parsed = options.parse_targets(targets, capacity)
    output = options.OutputOptions(out, json, quiet, yes)
    return conduct(replace(question, found=statistics), parsed, destroy_data, output, seed)


def _print_statistics(trace: Path, statistics: TraceStatistics, *, json: bool) -> int:
    import msgspec
    from rich.console import Console

    from ssdlab.records import encode_json
    from ssdlab.report.trace import print_statistics

    if json:
        write_out(encode_json({"trace": str(trace), **msgspec.to_builtins(statistics)}))
    else:
        print_statistics(trace.name, statistics, Console())
    return 0
