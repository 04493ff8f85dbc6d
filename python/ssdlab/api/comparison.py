"""`Comparison`: compares runs, and gives ratios, 95 % intervals and verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from ssdlab import records
from ssdlab.api.run import Reportable, Run, table_of
from ssdlab.comparison import verdict
from ssdlab.comparison.method import Side, make_side
from ssdlab.comparison.report import ComparisonReport
from ssdlab.comparison.verdict import NumberVerdict, SideVerdict
from ssdlab.errors import UsageError
from ssdlab.experiments.stored_runs import read_runs
from ssdlab.report.group import GroupReport, warnings_of

RunSource = Run | Path | str
SideSource = RunSource | Sequence[RunSource]


@dataclass(frozen=True)
class Comparison(Reportable):
    """A comparison of sides with the first side.

    A notebook shows the report that `ssdlab compare --html` writes. `found` has all details.
    """

    found: verdict.Comparison

    @property
    def verdicts(self) -> dict[str, str]:
        """Verdict by side, without the first: faster, slower, no difference shown, not judged."""
        return {other.side.name: other.verdict for other in self.found.others}

    @property
    def sentences(self) -> list[str]:
        """The verdicts as sentences, with the largest ratio."""
        return [other.sentence for other in self.found.others]

    @property
    def differences(self) -> list[str]:
        """The differences in method, target and machine."""
        return [difference.sentence for difference in self.found.differences]

    def table(self) -> pa.Table:
        """A row for each compared number: reference, other, ratio, low and high (95 %), p."""
        return table_of(self._contrasts())

    def as_json(self) -> dict[str, Any]:
        """The object that `ssdlab compare --json` prints."""
        runs = [run for side in self.found.sides for run in side.runs]
        return {
            "ssdlab": runs[0].result.ssdlab,
            "experiment": runs[0].manifest.experiment,
            "sides": [_side(side) for side in self.found.sides],
            "differences": [
                {"what": one.what, "values": list(one.values)} for one in self.found.differences
            ],
            "judged_at_once": self.found.count,
            "adjusted_by": "Holm",
            "contrasts": self._contrasts(),
            "verdicts": [
                {"side": other.side.name, "verdict": other.verdict, "sentence": other.sentence}
                for other in self.found.others
            ],
            "warnings": [
                {"code": code, "sentence": sentence} for code, sentence in warnings_of(runs)
            ],
        }

    def _contrasts(self) -> list[dict[str, Any]]:
        return [_row(other, number) for other in self.found.others for number in other.numbers]

    def _report_content(self) -> tuple[list[records.Run], GroupReport | None]:
        page = ComparisonReport(self.found)
        return page.runs, page


def compare(*sides: SideSource, settings: bool = False) -> Comparison:
    """Compare sides: each a run, its folder, a result of fio, a folder of repeats, or several.

    Each side is compared with the first, number by number. `settings` allows parameters to differ.

    Raises:
        UsageError: fewer than two sides, different experiments or methods, or no number in common.
    """
    if len(sides) < 2:
        raise UsageError(f"compare needs two sides or more, not {len(sides)}; give another run")
    made: list[Side] = []
    for source in sides:
        members = [source] if isinstance(source, Run | Path | str) else list(source)
        if not members:
            raise UsageError("a side of the comparison has no run; give one or more runs per side")
        runs = [run for member in members for run in _runs(member)]
        name = _name(members[0], runs[0].manifest)
        made.append(make_side(unique_name(name, [side.name for side in made]), runs))
    return Comparison(verdict.compare(made, settings=settings))


def unique_name(name: str, others: Sequence[str]) -> str:
    """The name, with a number appended if another side already has this name."""
    same = sum(other == name or other.startswith(f"{name} (") for other in others)
    return f"{name} ({same + 1})" if same else name


def _runs(source: RunSource) -> list[records.Run]:
    if isinstance(source, Run):
        return [source.record]
    return read_runs(Path(source))


def _name(source: RunSource, manifest: records.Manifest) -> str:
    """The name of a file or of a results folder; of a run, its label, or else its target."""
    path = source.folder if isinstance(source, Run) else Path(source)
    if path.name == Path(manifest.run).name:
        return manifest.label or manifest.target
    return path.name or str(source)


def _side(side: Side) -> dict[str, Any]:
    return {
        "name": side.name,
        "target": side.runs[0].manifest.target,
        "virtual": side.virtual,
        "runs": [str(run.folder) for run in side.runs],
    }


def _row(other: SideVerdict, judged: NumberVerdict) -> dict[str, Any]:
    contrast = asdict(judged.number.contrast)
    contrast["reference"], contrast["other"] = contrast.pop("first"), contrast.pop("second")
    return {
        "side": other.side.name,
        **contrast,
        "p": judged.number.p,
        "p_holm": judged.p_holm,
        "verdict": judged.verdict,
        "why": judged.number.why,
    }
