"""`ssdlab twin fit`: fits a twin's profile to a drive's results."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ssdlab import profiles
from ssdlab.cli import bar, options
from ssdlab.errors import UsageError
from ssdlab.runner.progress import Listener, Report

app = typer.Typer(add_completion=False)


@app.command(
    name="fit",
    epilog="Example: ssdlab twin fit ssdlab-runs --start toshiba-xg5 --out mine.toml",
)
def fit(
    results: Annotated[
        list[Path],
        typer.Argument(
            metavar="RESULTS...",
            help="Runs of one drive (aging, stripe, split, steady, fsync, suite, cache), a folder "
            "with such runs, or TOML or CSV tables of them.",
        ),
    ],
    *,
    start: Annotated[str, typer.Option(help="The profile to start from: a name, or FILE.toml.")],
    out: Annotated[Path, typer.Option(help="File for the fitted profile.")],
    model: Annotated[
        str | None, typer.Option(help="Which drive, if the results contain several.")
    ] = None,
    hold_out: Annotated[
        list[str] | None,
        typer.Option(
            help="Results to predict instead of fitting to them: amounts in MiB (aging:800,4000), "
            "an experiment (suite), or those of its rows that contain a word ('suite:random 4k')."
        ),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Fit a twin's numbers to a drive's results; warns of those that the results do not determine.

    Fits, within physical limits, the numbers that the results depend on: chunk and dies from
    stripe, spare from steady, buffer from cache, flush time from fsync; link, overheads, tR and
    tPROG from all. Numbers that the results do not determine stay near the start profile.
    """
    from ssdlab.cli.twin.fit_output import print_fit, print_json
    from ssdlab.fit.fitted import fit as fit_profile
    from ssdlab.fit.results import hold_out as apply_hold_out
    from ssdlab.fit.results import read_results

    fit_input = apply_hold_out(read_results(results, model), hold_out or [])
    label = fit_input.label
    source = f"fit of {label}, {datetime.now(UTC):%Y-%m-%d}".replace('"', "")
    with bar.progress_bar(Console(stderr=True), f"fitting to {label}", quiet=quiet) as listener:
        fitted = fit_profile(profiles.load(start), fit_input, source, _report_to(listener))
    try:
        out.write_text(fitted.profile, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{out} cannot be written ({error.strerror}); give another --out"
        ) from error
    if json:
        print_json(fitted, out)
    else:
        print_fit(fitted, out)


def _report_to(listener: Listener) -> Callable[[int, int], None]:
    """Reports the combinations done, and the time left, to a progress listener."""
    start = time.monotonic()

    def report(done: int, total: int) -> None:
        left = (time.monotonic() - start) / done * (total - done)
        share = done / total
        listener(Report(f"{done} of {total} combinations", share, share, left))

    return report
