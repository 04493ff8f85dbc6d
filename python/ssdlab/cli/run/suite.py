"""`ssdlab run suite`."""

from __future__ import annotations

import typer

from ssdlab.cli import options
from ssdlab.target import NO_CONSENT, RESULTS

app = typer.Typer(add_completion=False)


@app.command(
    name="suite",
    epilog="Example: ssdlab run suite twin:intel-s3510-480 /mnt/data --quick",
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
    """The table people know: in order, 4 KiB, 4 KiB x 64, access time, with its spread.

    Reads and writes a file [1GiB] three times over; the same with zeros (does the controller
    compress?), with O_DSYNC, and through the page cache emptied of it.
    """
    from ssdlab.cli.run_experiment import conduct
    from ssdlab.experiments.questions import Suite

    question = Suite(size=size, quick=quick)
    wishes = options.OutputOptions(out, json, quiet, yes)
    parsed = options.parse_targets(targets, capacity)
    return conduct(question, parsed, destroy_data, wishes, seed)
