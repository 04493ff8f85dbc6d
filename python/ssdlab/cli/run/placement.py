"""`ssdlab run placement`."""

from __future__ import annotations

from typing import Annotated

import typer

from ssdlab.cli import options
from ssdlab.cli.run.steady import shares
from ssdlab.runner.defaults import PLACEMENT_HOST_US
from ssdlab.target import NO_CONSENT, RESULTS

app = typer.Typer(add_completion=False)


@app.command(
    name="placement",
    epilog="Example: ssdlab run placement twin:placement-study",
)
def run(
    targets: options.Targets,
    *,
    placements: Annotated[
        str, typer.Option(help="Some of striped,hinted,inferred,packed (all of them).")
    ] = "",
    spare: Annotated[
        str,
        typer.Option(help="Drives that collect, with these shares of spare."),
    ] = "7%,28%",
    drive_writes: Annotated[
        float | None,
        typer.Option(help="Overwrite a drive that collects so many times first (3; --quick 1)."),
    ] = None,
    host_us: Annotated[
        float, typer.Option(help="The host's own time between reads of 1 MiB, microseconds.")
    ] = PLACEMENT_HOST_US,
    plots: Annotated[
        bool, typer.Option("--plots/--no-plots", help="The laws of stripe and gaps, too.")
    ] = True,
    quick: options.Quick = False,
    capacity: options.Capacity = None,
    out: options.Out = RESULTS,
    seed: options.Seed = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
    yes: options.Yes = False,
) -> int:
    """Which rule for where a drive writes keeps files readable, and what does it cost?

    Gives twins that differ in `ftl.placement` alone the same writes (files that grow or are
    overwritten piece by piece), new and collecting, and reads the files. Twins only: what a write
    is cannot be said to a real drive from here.
    """
    from ssdlab.cli.run_experiment import conduct
    from ssdlab.experiments.questions import Placement

    question = Placement(
        placements=tuple(word for word in placements.split(",") if word.strip()),
        spare=shares(spare),
        drive_writes=drive_writes,
        host_us=host_us,
        plots=plots,
        quick=quick,
    )
    wishes = options.OutputOptions(out, json, quiet, yes)
    return conduct(question, options.parse_targets(targets, capacity), NO_CONSENT, wishes, seed)
