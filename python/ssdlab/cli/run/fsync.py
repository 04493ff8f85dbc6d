"""`ssdlab run fsync`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from ssdlab.cli import options
from ssdlab.target import NO_CONSENT, RESULTS

app = typer.Typer(add_completion=False)


class DataSheet(StrEnum):
    """What a data sheet says of the write cache."""

    protected = "protected"
    volatile = "volatile"
    unknown = "unknown"


@app.command(
    name="fsync",
    epilog="Example: ssdlab run fsync twin:toshiba-xg5 /mnt/data --quick",
)
def run(
    targets: options.Targets,
    *,
    size: options.Size = None,
    data_sheet: Annotated[
        DataSheet,
        typer.Option(
            help="What the drive's data sheet says of its write cache when the power fails: no "
            "timing tells protection from a lie."
        ),
    ] = DataSheet.unknown,
    quick: options.Quick = False,
    capacity: options.Capacity = None,
    destroy_data: options.DestroyData = NO_CONSENT,
    out: options.Out = RESULTS,
    seed: options.Seed = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
    yes: options.Yes = False,
) -> int:
    """What does it cost to have each write kept, and does the drive heed a flush?

    Reads and writes 16 KiB at random (60 to 40) over a file [1GiB], one and 16 at a time, past the
    page cache and through it, with nothing, fsync, fdatasync or O_DSYNC after each write.
    """
    from ssdlab.cli.run_experiment import conduct
    from ssdlab.experiments.questions import Fsync

    question = Fsync(size=size, data_sheet=data_sheet.value, quick=quick)
    wishes = options.OutputOptions(out, json, quiet, yes)
    parsed = options.parse_targets(targets, capacity)
    return conduct(question, parsed, destroy_data, wishes, seed)
