"""`ssdlab twin fit`: fits a twin's profile to a drive's results."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console

from ssdlab.cli import bar, options
from ssdlab.cli.output import write_out
from ssdlab.errors import UsageError
from ssdlab.runner.progress import Listener, Report
from ssdlab.target import parse_profile
from ssdlab.units import parse_duration

if TYPE_CHECKING:
    from ssdlab.fit.fitted import Fitted
    from ssdlab.fit.parameters import Estimate
    from ssdlab.fit.starts import Attempt
    from ssdlab.view import Table

app = typer.Typer(add_completion=False)
MISSED: Final = 0.1
"""A fitted value that is off by more than this share is reported."""
CONTRADICTED: Final = (
    "in the long run the twin writes at another rate than the drive in steady, by more than 30 %, "
    "although it explains the other results: page, dies, spare or the time of a program may be "
    "wrong, even if called determined; try a --start profile of a more similar drive"
)
MISSED_NAMED: Final = 3
_ABSENT: Final = {"slc.size": "none", "flash.independent_plane_reads": "false"}
"""What a number means that the start profile does not have."""


@app.command(
    name="fit",
    epilog="Example: ssdlab twin fit ssdlab-runs --start toshiba-xg5 --out mine.toml",
)
def fit(
    results: Annotated[
        list[Path],
        typer.Argument(
            metavar="RESULTS",
            help="Runs of one drive (aging, stripe, split, steady, fsync, suite, cache), a folder "
            "with such runs, TOML or CSV tables of them, or a TOML table of iocost's numbers.",
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
    """Fit a twin to a drive's results; warn of numbers that the results do not determine.

    Fits, within physical limits, the numbers that the results depend on: chunk and dies from
    stripe, spare from steady, buffer and SLC cache from cache, flush time from fsync; channels,
    multi-plane page, link, overheads, tR and tPROG from all. Numbers that the results do not
    determine stay near the start profile, and the fit names those that it took from there. If the
    twin's mean error is above 5 % and more than the results scatter, or the rates of steady
    contradict it, up to three other profiles are tried as a start, too.
    """
    from ssdlab.fit.fitted import finished_profile
    from ssdlab.fit.results import hold_out as apply_hold_out
    from ssdlab.fit.results import read_results
    from ssdlab.fit.starts import attempts

    fit_input = apply_hold_out(read_results(results, model), hold_out or [])
    label = fit_input.label
    source = f"fit of {label}, {datetime.now(UTC):%Y-%m-%d}".replace('"', "")
    start = parse_profile(start)
    with bar.progress_bar(Console(stderr=True), f"fitting to {label}", quiet=quiet) as listener:
        best, *others = attempts(start, fit_input, source, _report_to(listener))
    fitted = best.fitted
    name = fit_input.drive_name or f"a drive fitted from {best.start}"
    profile = finished_profile(fitted, name, source, best.text, best.start)
    try:
        out.write_text(profile, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{out} cannot be written ({error.strerror}); give another --out"
        ) from error
    if json:
        _print_json(best, out)
    else:
        _print_fit(fitted, out)
        if others:
            errors = ", ".join(_error_of(each) for each in (best, *others))
            console = Console()
            console.print(
                f"The fit from {start} did not explain the results, so others were tried. Mean "
                f"errors by start profile: {errors}. The first is the one used.",
                markup=False,
            )


def _error_of(attempt: Attempt) -> str:
    but = " (but the rates of steady contradict it)" if attempt.fitted.contradicted else ""
    return f"{attempt.start} {attempt.error:.1%}{but}"


def _report_to(listener: Listener) -> Callable[[int, int], None]:
    """A callback that reports the combinations done, and the time left, to a listener.

    A fit may have several searches, each of which counts from the first combination again.
    """
    start, last, now = time.monotonic(), 0, 0.0

    def report(done: int, total: int) -> None:
        nonlocal start, last, now
        if done < last:
            start = now  # when the search before ended
        last, now = done, time.monotonic()
        left = (now - start) / done * (total - done)
        share = done / total
        listener(Report(f"{done} of {total} combinations", share, share, left))

    return report


def _print_json(best: Attempt, out: Path) -> None:
    from ssdlab.fit.checks import HELD_OUT
    from ssdlab.records import encode_json
    from ssdlab.wording import unit_of

    fitted = best.fitted
    rows = [
        {
            "experiment": check.experiment,
            "case": check.cell.label,
            "name": check.cell.name,
            "unit": check.cell.unit or unit_of(check.cell.name),
            "measured": check.cell.value,
            "twin": check.twin,
            "error": check.error,
            "held_out": check.note == HELD_OUT,
            "note": check.note,
        }
        for check in fitted.checks
    ]
    columns = ("key", "start", "value", "low", "high", "determined", "assumes")
    document = {
        "profile": str(out),
        "start": best.start,
        "measures": rows,
        "parameters": [
            {name: getattr(parameter, name) for name in columns} for parameter in fitted.parameters
        ],
        "assumed": fitted.assumed,
        "mean_error": float(abs(fitted.errors).mean()) if fitted.checks else None,
        "warnings": _warnings(fitted),
    }
    write_out(encode_json(document))


def _print_fit(fitted: Fitted, out: Path) -> None:
    from ssdlab.report.table import print_table

    console = Console()
    if fitted.checks:
        print_table(_errors_table(fitted), console)
    print_table(_parameters_table(fitted), console)
    console.print(_assumptions(fitted), markup=False)
    for warning in _warnings(fitted):
        console.print(f"warning: {warning}", style="yellow", markup=False)
    console.print(f"{out}: the fitted profile; try ssdlab run aging twin:{out}", markup=False)


def _errors_table(fitted: Fitted) -> Table:
    from ssdlab.view import Column, Table
    from ssdlab.wording import label, number, unit_of

    texts = (Column(title, numeric=False) for title in ("experiment", "case", "number"))
    numbers = (Column(title) for title in ("measured", "twin", "error"))
    rows = []
    for check in fitted.checks:
        cell = check.cell
        case = f"{cell.label} MiB" if check.experiment == "aging" else cell.label
        name = ", ".join(filter(None, (label(cell.name), cell.unit or unit_of(cell.name))))
        values = (number(cell.value), number(check.twin), f"{check.error:+.1%}")
        rows.append((check.experiment, case, name, *values, check.note))
    return Table((*texts, *numbers, Column("note", numeric=False, minor=True)), tuple(rows))


def _parameters_table(fitted: Fitted) -> Table:
    from ssdlab.view import Column, Table

    columns = (
        Column("key", numeric=False),
        Column("start", minor=True),
        Column("fitted"),
        Column("95 % interval"),
    )
    rows = []
    for parameter in fitted.parameters:
        values = (_format(parameter.start), _format(parameter.value))
        rows.append((parameter.key, *values, _interval(parameter)))
    return Table(columns, tuple(rows))


def _interval(parameter: Estimate) -> str:
    """The interval of a value; of several values that scale together, relative to the fitted."""
    low, value, high = parameter.low, parameter.value, parameter.high
    if low == value == high:
        return "none but this"
    if isinstance(value, list):
        first, least, most = (parse_duration(each[0]) for each in (value, low, high))
        return f"{least / first - 1:+.1%} to {most / first - 1:+.1%}"
    return f"{_format(low)} to {_format(high)}"


def _assumptions(fitted: Fitted) -> str:
    kept = ", ".join(_assumed(key, value) for key, value in fitted.assumed.items())
    return f"Taken from the start profile, because no result determines them: {kept}."


def _assumed(key: str, value: Any) -> str:
    if value is not None:
        return f"{key} {value}"
    return f"{key} {_ABSENT.get(key, 'as modelled')}"


def _warnings(fitted: Fitted) -> list[str]:
    """Values that the twin misses, and a sentence for each number that is not determined."""
    missed = _missed(fitted)
    found = [missed] if missed else []
    if fitted.contradicted:
        found.append(CONTRADICTED)
    unknown = [_warning(fitted, each) for each in fitted.parameters if not each.determined]
    return [*found, *unknown]


def _missed(fitted: Fitted) -> str:
    """The fitted values that the twin misses by more than `MISSED`, worst first; "" if none."""
    from ssdlab.fit.checks import HELD_OUT

    used = [check for check in fitted.checks if check.note != HELD_OUT]
    missed = sorted(
        (check for check in used if abs(check.error) > MISSED), key=lambda each: -abs(each.error)
    )
    if not missed:
        return ""
    worst = ", ".join(
        f"{each.experiment} {each.cell.label} {each.error:+.1%}" for each in missed[:MISSED_NAMED]
    )
    more = f" and {len(missed) - MISSED_NAMED} more" if len(missed) > MISSED_NAMED else ""
    return (
        f"{len(missed)} of {len(used)} values of the twin are off by more than {MISSED:.0%} "
        f"({worst}{more}): the numbers that they depend on may lie outside their "
        "intervals; repeat these results, or try a --start profile of a more similar drive"
    )


def _warning(fitted: Fitted, each: Estimate) -> str:
    from ssdlab.fit.parameters import PAGE, experiments_for

    if each.assumes:
        taken = " and ".join(_assumed(key, fitted.assumed[key]) for key in each.assumes)
        needed = experiments_for(PAGE if "flash.page" in each.assumes else each.assumes[0])
        return (
            f"{each.key} is right only with {taken}, taken from the start profile, which these "
            f"results do not test; add results of {' or '.join(needed)}"
        )
    given = {check.experiment for check in fitted.checks}
    more = [name for name in experiments_for(each.key) if name not in given]
    return (
        f"{each.key} is not determined by these results: any value from {_format(each.low)} to "
        f"{_format(each.high)} fits them as well; "
        + (
            f"add results of {' or '.join(more)}"
            if more
            else "no other experiment determines it better"
        )
    )


def _format(value: Any) -> str:
    if value is None:
        return "none"
    if not isinstance(value, list):
        return str(value)
    numbers, units = zip(*(each.split(" ") for each in value), strict=True)
    if len(set(units)) > 1:
        return ", ".join(value)
    return f"{', '.join(numbers)} {units[0]}"
