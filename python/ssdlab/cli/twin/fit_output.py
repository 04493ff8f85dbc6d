"""The result of `ssdlab twin fit`, as tables or one JSON object."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from ssdlab.cli.output import write_out
from ssdlab.fit.fitted import HELD_OUT, Fitted
from ssdlab.fit.parameters import experiments_for
from ssdlab.records import encode_json
from ssdlab.wording import label, number, unit_of


def print_json(fitted: Fitted, out: Path) -> None:
    """Prints the comparison, parameters, mean error and warnings of the profile stored in `out`."""
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
    columns = ("key", "start", "value", "low", "high", "determined")
    document = {
        "profile": str(out),
        "measures": rows,
        "parameters": [
            {name: getattr(parameter, name) for name in columns} for parameter in fitted.parameters
        ],
        "mean_error": float(abs(fitted.errors).mean()) if fitted.checks else None,
        "warnings": _warnings(fitted),
    }
    write_out(encode_json(document))


def print_fit(fitted: Fitted, out: Path) -> None:
    """Prints tables of errors and parameters, warnings, and where the profile is."""
    console = Console()
    if fitted.checks:
        console.print(_errors_table(fitted))
    console.print(_parameters_table(fitted))
    for warning in _warnings(fitted):
        console.print(f"warning: {warning}", style="yellow", markup=False)
    console.print(f"{out}: the fitted profile; try ssdlab run aging twin:{out}", markup=False)


def _errors_table(fitted: Fitted) -> Table:
    """Measured and twin's values, one row for each cell."""
    table = Table(box=box.SIMPLE_HEAD)
    for title in ("experiment", "case", ""):
        table.add_column(title, overflow="fold")
    for title in ("measured", "twin", "error", ""):
        table.add_column(title, justify="right", no_wrap=True)
    for check in fitted.checks:
        cell = check.cell
        case = f"{cell.label} MiB" if check.experiment == "aging" else cell.label
        name = f"{label(cell.name).lower()}, {cell.unit or unit_of(cell.name)}"
        numbers = (number(cell.value), number(check.twin), f"{check.error:+.1%}")
        table.add_row(check.experiment, case, name, *numbers, check.note)
    return table


def _parameters_table(fitted: Fitted) -> Table:
    """The fitted numbers, their start values and intervals."""
    table = Table(box=box.SIMPLE_HEAD)
    for title in ("key", "start", "fitted", "95 % interval"):
        table.add_column(title, overflow="fold")
    for parameter in fitted.parameters:
        interval = f"{_format(parameter.low)} to {_format(parameter.high)}"
        if parameter.low == parameter.high == parameter.value:
            interval = "none but this"
        table.add_row(parameter.key, _format(parameter.start), _format(parameter.value), interval)
    return table


def _warnings(fitted: Fitted) -> list[str]:
    """A sentence for each number that the results do not determine."""
    return [
        f"{each.key} is not determined by these results: any value from {_format(each.low)} to "
        f"{_format(each.high)} fits them as well; add results of "
        f"{' or '.join(experiments_for(each.key))}"
        for each in fitted.parameters
        if not each.determined
    ]


def _format(value: Any) -> str:
    if value is None:
        return "none"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
