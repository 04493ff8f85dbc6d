"""`ssdlab run cache`."""

from __future__ import annotations

import typer

from ssdlab.cli import options
from ssdlab.target import NO_CONSENT, RESULTS

app = typer.Typer(add_completion=False)


@app.command(
    name="cache",
    epilog="Example: ssdlab run cache twin:toshiba-xg5 /mnt/data --size 2GiB --quick",
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
    """How much do buffer and SLC cache take, and how long a rest gives it back?

    Writes a region in order (16GiB, 1GiB with --quick; a half of a twin or block device, an eighth
    with --quick) until the speed falls, again after a flush, and after rests of other lengths.
    """
    from ssdlab.cli.run_experiment import conduct
    from ssdlab.experiments.questions import Cache

    question = Cache(size=size, quick=quick)
    wishes = options.OutputOptions(out, json, quiet, yes)
    parsed = options.parse_targets(targets, capacity)
    return conduct(question, parsed, destroy_data, wishes, seed)
