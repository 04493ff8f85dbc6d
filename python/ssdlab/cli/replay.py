"""`ssdlab replay`: a trace on a target, or what is in it."""

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
            help="A trace, plain or packed by gzip or zstd. Of blktrace's files any one.",
        ),
    ],
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TARGET]...",
            help="twin:NAME, twin:FILE.toml, a directory, or a block device (its data is lost). "
            "Without one the trace's statistics are printed.",
        ),
    ] = None,
    *,
    speed: Annotated[
        float | None,
        typer.Option(
            help="Keep the trace's own pace (1), or so many times it (as fast as the queue allows)."
        ),
    ] = None,
    depth: Annotated[int, typer.Option(help="Requests at a time, at most.")] = 32,
    volume: Annotated[int | None, typer.Option(help="Only this volume of several.")] = None,
    together: Annotated[
        bool,
        typer.Option("--together", help="Lay all volumes onto one another, not side by side."),
    ] = False,
    format_: Annotated[
        str | None, typer.Option("--format", help=f"Do not guess: {', '.join(TRACE_FORMATS)}.")
    ] = None,
    any_order: Annotated[
        bool, typer.Option("--any-order", help="Allow times that go back by over a second.")
    ] = False,
    as_it_is: Annotated[
        bool, typer.Option("--as-it-is", help="Do not write the region first.")
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
    """Ask a drive what a trace of another host asked of its own.

    Reads MSR Cambridge, SPC (UMass), MQSim, blkparse, blktrace, fio iolog (2 and 3), Alibaba,
    Tencent and SYSTOR '17 traces; the format is known by the first lines. Memory does not grow with
    the trace.
    """
    from ssdlab.cli.run_experiment import conduct
    from ssdlab.experiments.questions import Replay

    question = Replay(
        trace=trace, format=format_, volume=volume, together=together, any_order=any_order,
        speed=speed, depth=depth, size=size, fills=not as_it_is,
    )  # fmt: skip
    found = question.look()
    if not targets:
        return _tell(trace, found, json=json)
    parsed = options.parse_targets(targets, capacity)
    wishes = options.OutputOptions(out, json, quiet, yes)
    return conduct(replace(question, found=found), parsed, destroy_data, wishes, seed)


def _tell(trace: Path, found: TraceStatistics, *, json: bool) -> int:
    import msgspec
    from rich.console import Console

    from ssdlab.records import encode_json
    from ssdlab.report.trace import show

    if json:
        write_out(encode_json({"trace": str(trace), **msgspec.to_builtins(found)}))
    else:
        show(trace.name, found, Console())
    return 0
