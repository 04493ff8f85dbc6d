"""`ssdlab run aging`."""

from __future__ import annotations

from typing import Annotated

import typer

from ssdlab.cli import options
from ssdlab.target import NO_CONSENT, RESULTS

app = typer.Typer(add_completion=False)


@app.command(
    name="aging",
    epilog="Example: ssdlab run aging twin:toshiba-xg5 /mnt/data --size 1GiB --quick",
)
def run(
    targets: options.Targets,
    *,
    size: Annotated[
        str | None,
        typer.Option(
            help="Size of the test file [4096MiB, 512MiB with --quick]; the amounts "
            "written over it scale with it."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A smaller file and a tenth of the rests.")
    ] = False,
    rest: Annotated[
        str, typer.Option(help="A long rest at the end and one more read: does it heal?")
    ] = "0",
    capacity: options.Capacity = None,
    destroy_data: options.DestroyData = NO_CONSENT,
    out: options.Out = RESULTS,
    seed: options.Seed = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
    yes: options.Yes = False,
) -> int:
    """Does random writing slow this drive's sequential reads, and does rest heal it?

    Fills a file in order, reads it, writes over it at random by growing amounts and reads it
    again after each. Of a directory 5 % or 1 GiB stays free; the file is removed in any case.
    """
    from ssdlab.cli.run_experiment import conduct
    from ssdlab.experiments.questions import Aging

    question = Aging(size=size, quick=quick, rest=rest)
    wishes = options.OutputOptions(out, json, quiet, yes)
    parsed = options.parse_targets(targets, capacity)
    return conduct(question, parsed, destroy_data, wishes, seed)
