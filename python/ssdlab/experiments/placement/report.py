"""The report of the placement experiment: its table, figures and texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ssdlab import view
from ssdlab.charts import Axis, Chart, Line
from ssdlab.records import Run
from ssdlab.view import Column, Method, Picture, Table, View
from ssdlab.wording import NOTHING, plain


def _rows(run: Run) -> list[dict[str, Any]]:
    """The rows of workloads, without those that check the stripe formulas."""
    return [row for row in run.result.measures if "state" in row]


def _table(run: Run) -> Table:
    """A row for each drive and workload, a column for each placement."""
    placements = list(dict.fromkeys(row["placement"] for row in _rows(run)))
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for row in _rows(run):
        for label, text in _cells(row):
            cells.setdefault((row["state"], label), {})[row["placement"]] = text
    columns = [Column("Drive", numeric=False), Column("Workload", numeric=False)]
    columns += [Column(placement, "MiB/s") for placement in placements]
    rows = (
        (plain(state), plain(label), *(texts.get(name, NOTHING) for name in placements))
        for (state, label), texts in cells.items()
    )
    return Table(tuple(columns), tuple(rows))


def _cells(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Table cells of a row: the label, and the speed with its per cent of the contiguous speed."""
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


def _by_append_size(run: Run, prefix: str = "") -> list[Line]:
    """Read speed of files that grew by appends with random gaps, on a fresh drive."""
    points: dict[str, list[tuple[float, float]]] = {}
    for row in _rows(run):
        kind, _, size = row["workload"].partition(", ")
        share = row.get("of_contiguous")
        if kind == "append random" and row["state"] == "fresh" and share is not None:
            kib = float(size.removesuffix(" KiB") or 32)
            points.setdefault(row["placement"], []).append((kib, 100 * share))
    return [Line(prefix + placement, values) for placement, values in points.items()]


def _formula(run: Run, workload: str, across: str, up: str) -> list[tuple[float, float]]:
    """The points of a measurement that checks a stripe formula."""
    return [
        (row[across], row[up])
        for row in run.result.measures
        if row["workload"] == workload and across in row
    ]


def _halving(probed: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The speed if each doubling halved it, from the start of the measured fall to the minimum."""
    if not probed:
        return []
    fastest = probed[0][1]
    start = max(alignment for alignment, speed in probed if speed > 0.9 * fastest)
    end = min(probed, key=lambda point: point[1])[0]
    return [(at, fastest * start / at) for at, _ in probed if start <= at <= end]


def _pictures(run: Run, number: int) -> list[Picture]:
    kinds = ("equal gaps", "random gaps")
    gaps = [Line(kind, _formula(run, f"pieces, {kind}", "degree", "read_ms")) for kind in kinds]
    probed = _formula(run, "stripe probe", "alignment_kib", "read_mib_per_s")
    probe = [Line("striped", probed), Line("halved each time", _halving(probed))]
    speed = Axis("4 KiB reads, MiB/s", log=True)
    time = Axis("time for 8 MiB, ms", log=True)
    return [
        *view.draw_figure(
            "Read speed of a file that grew by appends",
            "Gaps of 32 to 1024 KiB between the pieces, on a fresh drive. With pieces smaller than "
            "a page, only placements that pack them stay level. Where lines overlap, only the last "
            "one is visible.",
            _append_chart(f"placement-{number}", _by_append_size(run)).svg,
        ),
        *view.draw_figure(
            "Reads at multiples of an alignment",
            "Reads of 4 KiB at queue depth 32 and at multiples of an alignment. From twice the "
            "chunk on, each doubling leaves half as many dies, down to one.",
            Chart(f"placement-stripe-{number}", _doublings("multiples of, KiB"), speed, probe).svg,
        ),
        *view.draw_figure(
            "Equal gaps and random gaps",
            "The same file of 8 MiB in more and more pieces, 8 MiB apart. Equal gaps are a "
            "multiple of the stripe: pieces shorter than the stripe are all on the same dies. "
            "Random gaps spread the pieces over all dies.",
            Chart(f"placement-gaps-{number}", _doublings("pieces"), time, gaps).svg,
        ),
    ]


def _doublings(label: str) -> Axis:
    return Axis(label, log=True, base=2)


def _append_chart(name: str, lines: Sequence[Line]) -> Chart:
    return Chart(name, _doublings("append size, KiB"), Axis("read, % of contiguous"), lines)


def _overview(runs: Sequence[Run], first: int) -> list[Picture]:
    lines = view.lines_of_runs(runs, first, _by_append_size)
    return view.draw_figure(
        "Read speed of files that grew by appends",
        "Random gaps, fresh drives; one line for each placement and run.",
        _append_chart(f"placements-{first}", lines).svg,
    )


def _method(run: Run) -> Method:
    text = view.parameter_texts(run)
    done = (
        f"Twins that differ only in data placement ({text('placements')}) received the same "
        "writes, each followed by a flush: a file of 8 MiB that was appended to or overwritten "
        "piece by piece, interleaved with writes to other files. Then the file was read by 1 MiB "
        f"at a time, with {text('host_us')} of host time between the reads. Drives: "
        f"{text('states')}. Drives with a spare were first filled and overwritten at random "
        f"{text('drive_writes')} times."
    )
    meaning = (
        "The percentages compare with a file written sequentially to the same drive. Aged is the "
        "same after random writes of half the drive, when garbage collection has moved parts of "
        "the file. WAF is flash writes per host write."
    )
    pitfalls = (
        "Only hinted and packed receive information about the writes; the others get none.",
        "Equal gaps are the worst case by construction; files in use have random gaps.",
        "The host time was fitted to one published host.",
    )
    return Method(done, meaning, pitfalls)


_PARAMETERS: Final = {
    "states": "Drives",
    "drive_writes": "Overwritten first",
    "host_us": "Host time per MiB",
}
VIEW: Final = View(
    "Data placement and read speed", _table, _method, _pictures, _overview, {}, _PARAMETERS
)
