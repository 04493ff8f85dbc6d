"""`ssdlab run split`."""

from __future__ import annotations

import typer

from ssdlab.cli import options
from ssdlab.target import NO_CONSENT, RESULTS

app = typer.Typer(add_completion=False)


@app.command(
    name="split",
    epilog="Example: ssdlab run split twin:toshiba-xg5 /mnt/data --quick",
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
    """What does it cost to read the same bytes by many small commands?

    Writes a region [256MiB] in order and reads 8 MiB windows of it by 1, 2, 4 ... 2048 commands,
    one and 32 at a time: the price of splitting alone, without conflicts inside the drive.
    """
    from ssdlab.cli.run_experiment import conduct
    from ssdlab.experiments.questions import Split

    question = Split(size=size, quick=quick)
    wishes = options.OutputOptions(out, json, quiet, yes)
    parsed = options.parse_targets(targets, capacity)
    return conduct(question, parsed, destroy_data, wishes, seed)
