"""`ssdlab run`: an experiment on one target or several."""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console

from ssdlab.analysis import aging as analysis
from ssdlab.cli.bar import shown
from ssdlab.cli.output import write_out
from ssdlab.errors import Interrupted, SsdlabError, UsageError
from ssdlab.experiment import aging, provenance
from ssdlab.experiment.site import Site, Wish, check, open_site
from ssdlab.records import (
    Manifest,
    Result,
    Run,
    encode_json,
    make_folder,
    read_run,
    run_name,
    utc_now,
    write_run,
)
from ssdlab.report import render
from ssdlab.units import parse_duration, parse_size

app = typer.Typer(
    help="Run an experiment on a real drive, a directory or a twin.",
    epilog="Example: ssdlab run aging twin:toshiba-xg5",
    no_args_is_help=True,
)

RESULTS = Path("ssdlab-runs")
SEED_MAX = 2**53 - 1  # what every reader of JSON keeps exactly


@app.callback()
def _experiments() -> None:
    """Run an experiment on a real drive, a directory or a twin."""


@dataclass(frozen=True)
class Wishes:
    """The options that every experiment has."""

    out: Path
    seed: int
    json: bool
    quiet: bool


def _seed(text: str | int) -> int:
    digits = str(text)
    if not (digits.isascii() and digits.isdecimal()) or int(digits[:20]) > SEED_MAX:
        raise UsageError(f"--seed is {digits!r}; it may be a whole number from 0 to {SEED_MAX}")
    return int(digits)


@app.command(
    name="aging",
    epilog="Example: ssdlab run aging twin:toshiba-xg5 /mnt/data --size 1GiB --quick",
)
def run_aging(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="TARGET",
            help="twin:NAME, twin:FILE.toml, a directory (a test file is made in it and removed), "
            "or a block device (its data is lost).",
        ),
    ],
    *,
    size: Annotated[
        str | None,
        typer.Option(
            help="Size of the test file [4096MiB, 512MiB with --quick]; the amounts "
            "written over it scale with it."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A smaller file and a tenth of the rests.")
    ] = False,
    rest: Annotated[
        str, typer.Option(help="A long rest at the end and one more read: does it heal?")
    ] = "0",
    capacity: Annotated[
        str | None, typer.Option(help="Scale a twin to this capacity; ratios stay.")
    ] = None,
    destroy_data: Annotated[
        bool, typer.Option("--destroy-data", help="Allow a block device to be overwritten.")
    ] = False,
    out: Annotated[
        Path, typer.Option(help="Results folder: each run makes a folder in it.")
    ] = RESULTS,
    seed: Annotated[
        int, typer.Option(parser=_seed, metavar="N", help="Decides all that is random.")
    ] = 0,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> int:
    """Does random writing slow this drive's sequential reads, and does rest heal it?

    Fills a file in order, reads it, writes over it at random by growing amounts and reads it
    again after each. Of a directory 5 % or 1 GiB stays free; the file is removed in any case.
    """
    plan = aging.plan(
        None if size is None else parse_size(size),
        quick=quick,
        long_rest_s=parse_duration(rest),
        seed=seed,
    )
    scaled = None if capacity is None else parse_size(capacity)
    wishes = Wishes(out, seed, json, quiet)
    sites = [Wish(target, plan.size, seed, scaled, destroy_data) for target in targets]
    for wish in sites:
        check(wish)
    runs: list[Run] = []
    for wish in sites:
        runs.append(_run_one(wish, plan, wishes))
        if runs[-1].manifest.outcome == "interrupted":
            break
    if json:
        _print_json(runs, several=len(targets) > 1)
    return Interrupted.exit_status if runs[-1].manifest.outcome == "interrupted" else 0


def _run_one(wish: Wish, plan: aging.Plan, wishes: Wishes) -> Run:
    console = Console(stderr=True)
    started, clock = utc_now(), time.monotonic()
    with open_site(wish) as site:
        folder = make_folder(wishes.out, run_name("aging", wish.target, started))
        with shown(console, f"aging {wish.target}", quiet=wishes.quiet) as listener:
            measurement = aging.Measurement(site, plan, listener)
            outcome, error = _measure(measurement)
    manifest = Manifest(
        run=folder.name,
        ssdlab=version("ssdlab"),
        experiment="aging",
        target=wish.target,
        virtual=site.is_virtual,
        seed=plan.seed,
        started=started.isoformat(timespec="seconds"),
        parameters=plan.parameters(),
        versions=provenance.versions(),
        host=provenance.host(),
        device=site.identity,
        profile=site.profile,
        outcome=outcome,
    )
    result = _result(measurement, manifest, site, time.monotonic() - clock, folder)
    write_run(folder, manifest, measurement.recording, result)
    if error is not None:
        raise error
    run = read_run(folder)
    if not wishes.json:
        render(run, Console())
    return run


def _measure(measurement: aging.Measurement) -> tuple[str, SsdlabError | None]:
    """Runs it; returns how it ended, and the error that must be raised once all is stored."""
    try:
        measurement.run()
    except (Interrupted, KeyboardInterrupt):
        return "interrupted", None
    except SsdlabError as error:
        return "failed", error
    return "complete", None


def _result(
    measurement: aging.Measurement, manifest: Manifest, site: Site, duration_s: float, folder: Path
) -> Result:
    steps = measurement.recording.tables()["steps"]
    repeats = len(measurement.plan.rests_s)
    rows, found = analysis.measures(steps, repeats), analysis.findings(steps, repeats)
    return Result(
        ssdlab=manifest.ssdlab,
        experiment=manifest.experiment,
        target=manifest.target,
        virtual=manifest.virtual,
        seed=manifest.seed,
        duration_s=duration_s,
        parameters=manifest.parameters,
        measures=rows,
        findings=found,
        verdict=analysis.verdict(
            found,
            analysis.whole(rows, repeats),
            outcome=manifest.outcome,
            doubts=[caveat.code for caveat in site.caveats],
        ),
        warnings=site.caveats,
        folder=str(folder),
    )


def _print_json(runs: list[Run], *, several: bool) -> None:
    if not several:
        write_out(encode_json(runs[0].result))
        return
    results: dict[str, Any] = {
        "ssdlab": runs[0].result.ssdlab,
        "runs": [msgspec.to_builtins(run.result) for run in runs],
    }
    write_out(encode_json(results))
