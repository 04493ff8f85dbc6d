"""`ssdlab run trim`."""

from __future__ import annotations

from ssdlab.cli.frame import options
from ssdlab.cli.frame.conduct import conduct
from ssdlab.cli.run.group import app
from ssdlab.experiment.questions import Trim


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
    destroy_data: options.DestroyData = options.KEEP,
    out: options.Out = options.RESULTS,
    seed: options.Seed = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
    yes: options.Yes = False,
) -> int:
    """Does a discard (TRIM) reach the flash, and which layer stops it?

    Says what each layer declares; then marks a file [32MiB], deletes it, discards its blocks, and
    reads them from the device itself. Without root: what is declared, and what was sent.
    """
    question = Trim(size=size, quick=quick)
    wishes = options.Wishes(out, json, quiet, yes)
    return conduct(question, targets, options.opening(capacity, destroy_data), wishes, seed)
