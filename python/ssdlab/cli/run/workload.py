"""`ssdlab run workload`, also to be had as `ssdlab run --fio FILE`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ssdlab.cli import options
from ssdlab.target import NO_CONSENT, RESULTS

app = typer.Typer(add_completion=False)


@app.command(
    name="workload",
    epilog="Example: ssdlab run workload twin:toshiba-xg5 --fio job.fio",
)
def run(
    targets: options.Targets,
    *,
    fio: Annotated[Path, typer.Option(metavar="FILE", help="A fio job file.")],
    capacity: options.Capacity = None,
    destroy_data: options.DestroyData = NO_CONSENT,
    out: options.Out = RESULTS,
    seed: options.Seed = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
    yes: options.Yes = False,
) -> int:
    """What does this drive do under the jobs of a fio job file?

    Runs them one after the other on the target, not on the file that they name; what is read is
    written first. An option that is not known is refused by its name.
    """
    from ssdlab.cli.run_experiment import conduct
    from ssdlab.experiments.questions import Workload

    question = Workload(fio=fio)
    wishes = options.OutputOptions(out, json, quiet, yes)
    parsed = options.parse_targets(targets, capacity)
    return conduct(question, parsed, destroy_data, wishes, seed)
