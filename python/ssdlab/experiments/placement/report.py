"""How runs of the placement experiment are shown: their table, figures and words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ssdlab.charts import Axis, Chart, Line
from ssdlab.records import Run
from ssdlab.view import Column, Method, Picture, Table, View, draw_figure
from ssdlab.wording import NOTHING, format_number, plain, quantity

_FRESH: Final = "fresh"
_UNIT: Final = "MiB/s"


def _rows(run: Run) -> list[dict[str, Any]]:
    """Those of workloads, without the laws."""
    return [row for row in run.result.measures if "state" in row]


def _table(run: Run) -> Table:
    """A row a drive and workload, a column a placement: speed, and the part of a whole file's."""
    placements = _placements(run)
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for row in _rows(run):
        for workload, words in _cells(row):
            cells.setdefault((row["state"], workload), {})[row["placement"]] = words
    columns = (
        Column("Drive", numeric=False),
        Column("Workload", numeric=False),
        *(Column(placement, _UNIT) for placement in placements),
    )
    rows = (
        (plain(state), plain(workload), *(found.get(each, NOTHING) for each in placements))
        for (state, workload), found in cells.items()
    )
    return Table(columns, tuple(rows))


def _cells(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What a row of the measures says, each with what it is called."""
    if "erase_spread" not in row:
        share = f" ({100 * row['of_contiguous']:.0f}%)" if "of_contiguous" in row else ""
        yield row["workload"], f"{row['read_mib_per_s']:.0f}{share}"
        if "of_contiguous_aged" in row:
            aged = f"{row['read_mib_per_s_aged']:.0f} ({100 * row['of_contiguous_aged']:.0f}%)"
            yield f"{row['workload']}; aged", aged
        return
    yield "flash writes per host write", _cell(row.get("waf"), 3)
    yield "erases, most / least", f"{row['erases_most']:.0f} / {row['erases_least']:.0f}"
    for op in ("read", "write"):
        yield f"p99.9 of {op}s, us", _cell(row.get(f"{op}_latency_us_p999"), 0)


def _cell(value: float | None, digits: int) -> str:
    return NOTHING if value is None else f"{value:.{digits}f}"


def _placements(run: Run) -> list[str]:
    return list(dict.fromkeys(row["placement"] for row in _rows(run)))


def _by_size(run: Run, prefix: str = "") -> list[Line]:
    """What each placement reads of a file that grew by so many KiB at a time, gaps at random."""
    found: dict[str, list[tuple[float, float]]] = {}
    for row in _rows(run):
        words = row["workload"].removeprefix("append random").removeprefix(", ")
        is_one = row["workload"].startswith("append random") and row["state"] == _FRESH
        if is_one and row.get("of_contiguous") is not None:
            size = 32.0 if not words else float(words.removesuffix(" KiB"))
            point = (size, 100 * row["of_contiguous"])
            found.setdefault(row["placement"], []).append(point)
    return [Line(prefix + placement, points) for placement, points in found.items()]


def _law(run: Run, workload: str, across: str, up: str) -> list[tuple[float, float]]:
    return [
        (row[across], row[up])
        for row in run.result.measures
        if row["workload"] == workload and across in row
    ]


def _halving(probed: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """What is half as fast at each doubling, from where the probe begins to fall to its lowest."""
    if not probed:
        return []
    fastest = probed[0][1]
    start = max(place for place, speed in probed if speed > 0.9 * fastest)
    end = min(probed, key=lambda point: point[1])[0]
    return [(place, fastest * start / place) for place, _ in probed if start <= place <= end]


def _pictures(run: Run, at: int) -> list[Picture]:
    kinds = ("equal gaps", "random gaps")
    laws = [Line(kind, _law(run, f"pieces, {kind}", "degree", "read_ms")) for kind in kinds]
    probed = _law(run, "stripe probe", "alignment_kib", "read_mib_per_s")
    probe = [Line("striped", probed), Line("halved each time", _halving(probed))]
    speed = Axis("4 KiB reads, MiB/s", log=True)
    time = Axis("time for 8 MiB, ms", log=True)
    return [
        *draw_figure(
            "A file that grew by small and large pieces",
            "Gaps of 32 to 1024 KiB between the pieces, on a fresh drive. Below a page only what "
            "is packed stays level. Of lines that lie on each other the last one is seen.",
            _grown(f"placement-{at}", _by_size(run)).svg,
        ),
        *draw_figure(
            "The law of the stripe",
            "Reads of 4 KiB, 32 at a time, at multiples of so many KiB: from twice the chunk on "
            "each doubling leaves half of the dies, until there is one.",
            Chart(f"placement-stripe-{at}", _doublings("multiples of, KiB"), speed, probe).svg,
        ),
        *draw_figure(
            "Gaps that are equal, and gaps at random",
            "The same file of 8 MiB in more and more pieces, 8 MiB apart. Equal gaps are a "
            "multiple of the stripe: as soon as a piece is shorter than that, the same dies have "
            "all of them. Random gaps hit all dies.",
            Chart(f"placement-gaps-{at}", _doublings("pieces"), time, laws).svg,
        ),
    ]


def _doublings(label: str) -> Axis:
    return Axis(label, log=True, base=2)


def _grown(name: str, lines: Sequence[Line]) -> Chart:
    return Chart(name, _doublings("grown by, KiB"), Axis("read, % of contiguous"), lines)


def _overview(runs: Sequence[Run], first: int) -> list[Picture]:
    lines = [line for at, run in enumerate(runs, first) for line in _by_size(run, f"{at}: ")]
    return draw_figure(
        "Files that grew by pieces",
        "Gaps at random, fresh drives; a line a placement and run.",
        _grown(f"placements-{first}", lines).svg,
    )


def _method(run: Run) -> Method:
    asked = run.manifest.parameters
    done = (
        f"Twins that differ in where they write ({quantity('', asked.get('placements', []))}) got "
        "the same writes, a flush after each: a file of 8 MiB that grew or was overwritten piece "
        "by piece, other files between. It was then read by 1 MiB at a time, with "
        f"{format_number(float(asked.get('host_us') or 0.0))} us of the host's own between. Drives: "
        f"{quantity('', asked.get('states', []))}; those with a spare were filled and overwritten "
        f"at random {format_number(float(asked.get('drive_writes') or 0.0))} times first."
    )
    meaning = (
        "Of contiguous is the speed over that of a file written in order to the same drive; aged "
        "again is the same after half a drive more of random writes, when collection has moved "
        "parts of the file. WAF is flash writes per host write."
    )
    pitfalls = (
        "Only hinted and packed are told what writes are; the others get them in silence.",
        "Equal gaps are the worst case by construction; files in use have random ones.",
        "The host's constant was fitted on one published host.",
    )
    return Method(done, meaning, pitfalls)


VIEW: Final = View(
    title="Where a drive writes, and how files read",
    table=_table,
    method=_method,
    pictures=_pictures,
    overview=_overview,
    finding_labels={
        "best_placement": "Best placement",
        "best_without_hints": "Best without hints",
    },
    parameter_labels={
        "placements": "Placements",
        "states": "Drives",
        "drive_writes": "Overwritten first",
        "host_us": "Host, us a MiB",
    },
)
