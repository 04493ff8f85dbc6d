"""`Comparison`: runs held against runs, with ratios, intervals and a plain word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from ssdlab import records
from ssdlab.api.run import Run
from ssdlab.api.shown import Shown, table_of
from ssdlab.comparison import verdict
from ssdlab.comparison.side import Side, sides
from ssdlab.comparison.verdict import Compared, Judged
from ssdlab.errors import UsageError
from ssdlab.report import SideBySide
from ssdlab.report.several import Asked, warnings_of

One = Run | Path | str
Given = One | Sequence[One]


@dataclass(frozen=True)
class Comparison(Shown):
    """Sides, of which the first is what the others are compared with.

    A notebook shows it as `ssdlab compare --html` does. `found` is all that was found.
    """

    found: verdict.Comparison

    @property
    def verdicts(self) -> dict[str, str]:
        """Of each other side a word: faster, slower, ..., no difference shown, not judged."""
        return {each.side.name: each.verdict for each in self.found.others}

    @property
    def sentences(self) -> list[str]:
        """The same, with how much and in what."""
        return [each.sentence for each in self.found.others]

    @property
    def differences(self) -> list[str]:
        """What differs in the method or the machine."""
        return [each.sentence for each in self.found.differences]

    def table(self) -> pa.Table:
        """A row for each number of each side: reference, other, ratio, low and high (95 %), p."""
        return table_of(self._contrasts())

    def as_json(self) -> dict[str, Any]:
        """What `ssdlab compare --json` prints: sides, differences, contrasts, verdicts."""
        runs = [run for side in self.found.sides for run in side.runs]
        return {
            "ssdlab": runs[0].result.ssdlab,
            "experiment": runs[0].manifest.experiment,
            "sides": [_side(side) for side in self.found.sides],
            "differences": [
                {"what": each.what, "values": list(each.values)} for each in self.found.differences
            ],
            "judged_at_once": self.found.count,
            "adjusted_by": "Holm",
            "contrasts": self._contrasts(),
            "verdicts": [
                {"side": each.side.name, "verdict": each.verdict, "sentence": each.sentence}
                for each in self.found.others
            ],
            "warnings": [
                {"code": code, "sentence": sentence} for code, sentence in warnings_of(runs)
            ],
        }

    def _contrasts(self) -> list[dict[str, Any]]:
        return [_row(other, each) for other in self.found.others for each in other.judged]

    def _reported(self) -> tuple[list[records.Run], Asked | None]:
        page = SideBySide(self.found)
        return page.runs, page


def compare(*given: Given, settings: bool = False) -> Comparison:
    """Compares sides: each a run, a run's folder, a results folder of repeats, or a list of these.

    Each is held against the first, number by number. `settings` says that parameters may differ:
    they are what is compared.

    Raises:
        UsageError: fewer than two sides, runs of different experiments or methods, or nothing
            that both measured.
    """
    if len(given) < 2:
        raise UsageError(f"compare takes two sides or more, and was given {len(given)}; give more")
    found: list[tuple[str, list[records.Run]]] = []
    for each in given:
        members = [each] if isinstance(each, Run | Path | str) else list(each)
        if not members:
            raise UsageError("a side of the comparison has no run; give one or more of each")
        runs = [run for member in members for run in _runs(member)]
        found.append((unlike(_name(members[0]), [name for name, _ in found]), runs))
    return Comparison(verdict.compare(sides(found), settings=settings))


def compared(found: Sequence[Side]) -> Comparison:
    """Sides that were measured in turns, whose settings may differ.

    Raises:
        UsageError: nothing that both measured.
    """
    return Comparison(verdict.compare(found, settings=True))


def unlike(name: str, others: Sequence[str]) -> str:
    """The name, with a number where another side has it already."""
    same = sum(each == name or each.startswith(f"{name} (") for each in others)
    return f"{name} ({same + 1})" if same else name


def _runs(given: One) -> list[records.Run]:
    if isinstance(given, Run):
        return [given.record]
    return [records.read_run(folder) for folder in records.find_runs(Path(given))]


def _name(given: One) -> str:
    path = given.folder if isinstance(given, Run) else Path(given)
    return path.name or str(given)


def _side(side: Side) -> dict[str, Any]:
    return {
        "name": side.name,
        "target": side.runs[0].manifest.target,
        "virtual": side.virtual,
        "runs": [str(run.folder) for run in side.runs],
    }


def _row(other: Compared, judged: Judged) -> dict[str, Any]:
    found = asdict(judged.number.contrast)
    found["reference"], found["other"] = found.pop("first"), found.pop("second")
    return {
        "side": other.side.name,
        **found,
        "p": judged.number.p,
        "p_holm": judged.p_holm,
        "verdict": judged.verdict,
        "why": judged.number.why,
    }
