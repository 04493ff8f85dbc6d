"""`ssdlab run stripe`."""

from __future__ import annotations

import typer

from ssdlab.cli import options
from ssdlab.target import NO_CONSENT, RESULTS

app = typer.Typer(add_completion=False)


@app.command(
    name="stripe",
    epilog="Example: ssdlab run stripe twin:samsung-980-pro --capacity 8GiB",
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
    """Over how many units, and in what pieces, does a drive spread consecutive addresses?

    Writes a region [1GiB] in order and reads 4 KiB at random multiples of an alignment, 32 at a
    time: from the alignments at which reads get in each other's way follow chunk and stripe, or
    that there is no regular one.
    """
    from ssdlab.cli.run_experiment import conduct
    from ssdlab.experiments.questions import Stripe

    question = Stripe(size=size, quick=quick)
    wishes = options.OutputOptions(out, json, quiet, yes)
    parsed = options.parse_targets(targets, capacity)
    return conduct(question, parsed, destroy_data, wishes, seed)
