"""`FitInput`: a drive's results, and which of them `--hold-out` keeps from the fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ssdlab.analysis.cells import Cell
from ssdlab.errors import UsageError
from ssdlab.fit.ageing import AgeingRow
from ssdlab.fit.measurement import Measurement
from ssdlab.fit.results import Results

AGING: Final = "aging:"


@dataclass(frozen=True)
class FitInput:
    """All results of a drive, and which of them are fitted to.

    `kept_row` is the part of the ageing row that is fitted to. `held_out` lists `EXPERIMENT` or
    `EXPERIMENT:WORD`, where WORD is a part of a cell's label.
    """

    others: tuple[Measurement, ...] = ()
    row: AgeingRow | None = None
    kept_row: AgeingRow | None = None
    held_out: tuple[str, ...] = ()

    @property
    def experiments(self) -> list[str]:
        """The experiments with results, each once."""
        names = [] if self.row is None else ["aging"]
        return list(dict.fromkeys([*names, *(results.experiment for results in self.others)]))

    @property
    def label(self) -> str:
        """The results in a few words, for a profile's `source`."""
        if self.row is not None and not self.others:
            return f"the ageing row of {self.row.model}"
        models = [results.model for results in self.others if results.model]
        models += [] if self.row is None else [self.row.model]
        return ", ".join(self.experiments) + (f" of {models[0]}" if models else "")

    def is_held_out(self, experiment: str, cell: Cell) -> bool:
        """Whether a cell is kept from the fit."""
        for text in self.held_out:
            name, _, word = text.partition(":")
            if name == experiment and word in cell.label:
                return True
        return False


def hold_out(results: Results, options: Sequence[str]) -> FitInput:
    """The results with the `--hold-out` options applied.

    Raises:
        UsageError: an option matches no result.
    """
    row, held_out = results.ageing, []
    kept = row
    for text in options:
        if row is not None and text.startswith(AGING):
            kept = row.without(_parse_amounts(text, row))
        else:
            held_out.append(text)
    fit_input = FitInput(results.others, row, kept, tuple(held_out))
    for text in held_out:
        _require_match(text, fit_input)
    return fit_input


def _require_match(text: str, fit_input: FitInput) -> None:
    name = text.partition(":")[0]
    matching = [results for results in fit_input.others if results.experiment == name]
    cells = [cell for results in matching for cell in results.cells]
    if any(fit_input.is_held_out(name, cell) for cell in cells):
        return
    rows = f"; the rows of {name} are {'; '.join(cell.label for cell in cells)}" if cells else ""
    allowed = [] if fit_input.row is None else ["aging:AMOUNTS"]
    allowed += dict.fromkeys(results.experiment for results in fit_input.others if results.cells)
    if not allowed:
        raise UsageError(f"--hold-out is {text}, but these results have no rows; leave it out")
    raise UsageError(
        f"--hold-out is {text}; it must be {', '.join(allowed)}, or EXPERIMENT:WORD with a word of "
        f"its rows{rows}"
    )


def _parse_amounts(text: str, row: AgeingRow) -> tuple[float, ...]:
    """The amounts in MiB of `aging:A,B`."""
    known = ",".join(f"{mib:g}" for mib in row.written_mib[1:])
    message = f"--hold-out is {text}; it must be aging: and some of {known}, as in {AGING}{known}"
    try:
        amounts = tuple(float(amount) for amount in text.removeprefix(AGING).split(","))
    except ValueError as error:
        raise UsageError(message) from error
    if not set(amounts) <= set(row.written_mib[1:]):
        raise UsageError(message)
    return amounts
