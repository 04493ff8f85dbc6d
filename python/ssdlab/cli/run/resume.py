"""`ssdlab run resume`: resumes a run that was interrupted or killed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ssdlab.cli import options
from ssdlab.target import NO_CONSENT

app = typer.Typer(add_completion=False)


@app.command(
    name="resume",
    epilog="Example: ssdlab run resume ssdlab-runs/20261121-101500-aging-data-3f2a",
)
def run(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    *,
    destroy_data: options.DestroyData = NO_CONSENT,
    json: options.Json = False,
    quiet: options.Quiet = False,
    yes: options.Yes = False,
) -> int:
    """Resume a run that was interrupted or killed.

    Finished steps are kept. A block device is used in the state that the run left. In a directory
    the test file is created again, so writes are repeated and only finished reads are kept. A twin
    starts from the beginning: the same seed gives the same results.
    """
    from ssdlab.cli.run_experiment import resume_run

    return resume_run(folder, destroy_data, options.OutputOptions(folder.parent, json, quiet, yes))
