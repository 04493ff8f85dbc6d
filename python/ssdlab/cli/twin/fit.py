"""`ssdlab twin fit`: a twin from what a drive measured."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from ssdlab import profiles
from ssdlab.cli import bar
from ssdlab.cli.output import write_out
from ssdlab.cli.twin.profiles import AsJson
from ssdlab.errors import UsageError
from ssdlab.fit.ageing import Ageing
from ssdlab.fit.fitted import HELD_OUT, Fitted, Parameter, Sheet
from ssdlab.fit.fitted import fit as run_fit
from ssdlab.fit.results import Results, read_results
from ssdlab.records import encode_json
from ssdlab.runner.progress import Listener, Report
from ssdlab.wording import label, number, unit_of

app = typer.Typer(add_completion=False)

AGING: Final = "aging:"


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
    out: Annotated[Path, typer.Option(help="Where the fitted profile goes.")],
    model: Annotated[
        str | None, typer.Option(help="Which drive, where the results have several.")
    ] = None,
    hold_out: Annotated[
        list[str] | None,
        typer.Option(
            help="Kept from the fit and foretold: amounts in MiB (aging:800,4000), an experiment "
            "(suite), or its rows with a word in them ('suite:random 4k')."
        ),
    ] = None,
    json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Find the numbers of a twin that does as a drive did; says which the results cannot tell.

    Changed is what the results can tell of, within what is physically possible: chunk and dies by
    stripe, spare by steady, buffer by cache, flush by fsync, link, overheads, tR and tPROG by all.
    What they do not determine stays near the start profile.
    """
    sheet = sheet_of(read_results(results, model), hold_out or [])
    source = f"fit of {_named(sheet)}, {datetime.now(UTC):%Y-%m-%d}".replace('"', "")
    with bar.progress_bar(
        Console(stderr=True), f"fitting to {_named(sheet)}", quiet=quiet
    ) as listener:
        fitted = run_fit(profiles.load(start), sheet, source, _progress(listener))
    _save(out, fitted.profile)
    if json:
        write_out(encode_json({"profile": str(out), **as_json(fitted)}))
        return
    console = Console()
    if fitted.checks:
        console.print(errors_table(fitted))
    console.print(parameters_table(fitted))
    for warning in warnings(fitted):
        console.print(f"warning: {warning}", style="yellow", markup=False)
    console.print(f"{out}: the fitted profile; try ssdlab run aging twin:{out}", markup=False)


def _named(sheet: Sheet) -> str:
    """What is fitted to, in words that stand in the profile."""
    if sheet.ageing is not None and not sheet.others:
        return f"the ageing row of {sheet.ageing[0].model}"
    models = [each.model for each in sheet.others if each.model]
    models += [] if sheet.ageing is None else [sheet.ageing[0].model]
    return f"{', '.join(sheet.experiments)}" + (f" of {models[0]}" if models else "")


def sheet_of(results: Results, hold_out: Sequence[str]) -> Sheet:
    """The results with what is held out of them.

    Raises:
        UsageError: something is held out that is not there, or nothing is left.
    """
    row, held = results.ageing, []
    kept = row
    for text in hold_out:
        if row is not None and text.startswith(AGING):
            kept = row.without(_amounts(text, row))
        else:
            held.append(text)
    sheet = Sheet(None if row is None or kept is None else (row, kept), results.others, tuple(held))
    for text in held:
        _check_held(text, sheet)
    return sheet


def _check_held(text: str, sheet: Sheet) -> None:
    name = text.partition(":")[0]
    cells = [cell for each in sheet.others if each.experiment == name for cell in each.cells]
    if not any(sheet.holds_out(name, cell) for cell in cells):
        rows = f"; of {name} it has {'; '.join(cell.label for cell in cells)}" if cells else ""
        words = ["aging:AMOUNTS"] if sheet.ageing is not None else []
        known = [*words, *dict.fromkeys(each.experiment for each in sheet.others if each.cells)]
        allowed = f"{', '.join(known)}, or EXPERIMENT:WORD of its rows" if known else "left out"
        raise UsageError(f"--hold-out is {text}; it may be {allowed}{rows}")


def _amounts(text: str, row: Ageing) -> tuple[float, ...]:
    """The amounts of `aging:A,B`.

    Raises:
        UsageError: other words, or an amount that the row does not have.
    """
    known = ",".join(f"{mib:g}" for mib in row.written_mib[1:])
    allowed = f"aging: and some of {known}, as in {AGING}{known}"
    try:
        amounts = tuple(float(each) for each in text.removeprefix(AGING).split(","))
    except ValueError as error:
        raise UsageError(f"--hold-out is {text}; it may be {allowed}") from error
    if not set(amounts) <= set(row.written_mib[1:]):
        raise UsageError(f"--hold-out is {text}; it may be {allowed}")
    return amounts


def _progress(listener: Listener) -> Any:
    began = time.monotonic()

    def told(done: int, total: int) -> None:
        left = (time.monotonic() - began) / done * (total - done)
        share = done / total
        listener(Report(f"{done} of {total} combinations", share, share, left))

    return told


def _save(out: Path, text: str) -> None:
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{out} cannot be written ({error.strerror}); give another --out"
        ) from error


def as_json(fitted: Fitted) -> dict[str, Any]:
    """Rows, parameters, errors and warnings, named with their units."""
    rows = [
        {
            "experiment": each.experiment,
            "case": each.cell.label,
            "name": each.cell.name,
            "unit": each.cell.unit or unit_of(each.cell.name),
            "measured": each.cell.value,
            "twin": each.twin,
            "error": each.error,
            "held_out": each.note == HELD_OUT,
            "note": each.note,
        }
        for each in fitted.checks
    ]
    parameters = [
        {
            "key": each.key,
            "start": each.start,
            "value": each.value,
            "low": each.low,
            "high": each.high,
            "determined": each.told,
        }
        for each in fitted.parameters
    ]
    mean = float(abs(fitted.errors).mean()) if fitted.checks else None
    return {
        "measures": rows,
        "parameters": parameters,
        "mean_error": mean,
        "warnings": warnings(fitted),
    }


def errors_table(fitted: Fitted) -> Table:
    """Measured against twin, a row a number."""
    table = Table(box=box.SIMPLE_HEAD)
    for title in ("experiment", "case", ""):
        table.add_column(title, overflow="fold")
    for title in ("measured", "twin", "error", ""):
        table.add_column(title, justify="right", no_wrap=True)
    for each in fitted.checks:
        unit = each.cell.unit or unit_of(each.cell.name)
        case = f"{each.cell.label} MiB" if each.experiment == "aging" else each.cell.label
        numbers = (number(each.cell.value), number(each.twin), f"{each.error:+.1%}")
        words = f"{label(each.cell.name).lower()}, {unit}"
        table.add_row(each.experiment, case, words, *numbers, each.note)
    return table


def parameters_table(fitted: Fitted) -> Table:
    """What was fitted, from where it started, and its interval."""
    table = Table(box=box.SIMPLE_HEAD)
    for title in ("key", "start", "fitted", "95 % interval"):
        table.add_column(title, overflow="fold")
    for each in fitted.parameters:
        interval = f"{_said(each.low)} to {_said(each.high)}"
        if each.low == each.high == each.value:
            interval = "none but this"
        table.add_row(each.key, _said(each.start), _said(each.value), interval)
    return table


def warnings(fitted: Fitted) -> list[str]:
    """A sentence for each number that the results do not determine."""
    return [_undetermined(each) for each in fitted.parameters if not each.told]


def _undetermined(each: Parameter) -> str:
    return (
        f"{each.key} is not determined by these results: from {_said(each.low)} to "
        f"{_said(each.high)} they are explained as well"
    )


def _said(value: Any) -> str:
    if value is None:
        return "none"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
