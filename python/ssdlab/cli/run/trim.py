"""`ssdlab run trim`."""

from __future__ import annotations

import typer

from ssdlab.cli import options
from ssdlab.target import NO_CONSENT, RESULTS

app = typer.Typer(add_completion=False)


@app.command(
    name="trim",
    epilog="Example: sudo ssdlab run trim /mnt/data",
)
def run(
    targets: options.Targets,
    *,
    size: options.Size = None,
    quick: options.Quick = False,
    capacity: options.Capacity = None,
    destroy_data: options.DestroyData = NO_CONSENT,
    out: options.Out = RESULTS,
    seed: options.Seed = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
    yes: options.Yes = False,
) -> int:
    """Does a discard (TRIM) reach the flash, and which layer stops it?

    Says what each layer declares; then marks a file [32MiB], deletes it, discards its blocks, and
    reads them from the device itself. Without root: what is declared, and what was sent.
    """
    from ssdlab.cli.run_experiment import conduct
    from ssdlab.experiments.questions import Trim

    question = Trim(size=size, quick=quick)
    wishes = options.OutputOptions(out, json, quiet, yes)
    parsed = options.parse_targets(targets, capacity)
    return conduct(question, parsed, destroy_data, wishes, seed)
