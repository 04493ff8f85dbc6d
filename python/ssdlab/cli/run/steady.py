"""`ssdlab run steady`."""

from __future__ import annotations

from typing import Annotated

import typer

from ssdlab.cli import options
from ssdlab.errors import UsageError
from ssdlab.runner.defaults import STEADY_DEPTH
from ssdlab.target import NO_CONSENT, RESULTS

app = typer.Typer(add_completion=False)


@app.command(
    name="steady",
    epilog="Example: ssdlab run steady twin:toshiba-xg5 --capacity 4GiB --spare 7%,15%,28%",
)
def run(
    targets: options.Targets,
    *,
    region: Annotated[
        str | None,
        typer.Option(
            help="Bytes that are written to (all of a twin or block device; 4096MiB of a "
            "directory, 512MiB with --quick)."
        ),
    ] = None,
    drive_writes: Annotated[
        float | None,
        typer.Option(help="Write the region at random so many times (until it is steady)."),
    ] = None,
    spare: Annotated[
        str, typer.Option(help="Again with these shares trimmed and unused: 7%,15%,28%.")
    ] = "",
    pattern: Annotated[str, typer.Option(help="random, sequential or zipf:THETA.")] = "random",
    block_size: Annotated[str, typer.Option(help="Length of a write.")] = "4KiB",
    depth: Annotated[int, typer.Option(help="Writes at a time.")] = STEADY_DEPTH,
    quick: options.Quick = False,
    capacity: options.Capacity = None,
    destroy_data: options.DestroyData = NO_CONSENT,
    out: options.Out = RESULTS,
    seed: options.Seed = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
    yes: options.Yes = False,
) -> int:
    """At which rate do writes last, and what would more spare area make of it?

    Fills a region in order and writes over it at random in rounds of a fifth of it, until the rate
    is steady by rounds of bytes, change points and a floor, or is said not to be. Estimates the
    hidden spare and the write amplification from the curve and from the drive's own counts.
    """
    from ssdlab.cli.run_experiment import conduct
    from ssdlab.experiments.questions import Steady

    question = Steady(
        region=region,
        drive_writes=drive_writes,
        spare=shares(spare),
        pattern=pattern,
        block_size=block_size,
        depth=depth,
        quick=quick,
    )
    wishes = options.OutputOptions(out, json, quiet, yes)
    parsed = options.parse_targets(targets, capacity)
    return conduct(question, parsed, destroy_data, wishes, seed)


def shares(text: str) -> tuple[float, ...]:
    """Shares from 0 to 1 of a text such as "7%,15%,28%"."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    try:
        return tuple(float(word.removesuffix("%")) / 100 for word in words if _percent(word))
    except ValueError as error:
        raise UsageError(
            f"--spare is {text!r}; it may be percentages with commas between: 7%,15%,28%"
        ) from error


def _percent(word: str) -> bool:
    if not word.endswith("%"):
        raise ValueError(word)
    return True
