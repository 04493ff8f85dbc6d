"""The report of the steady experiment: its table, figures and texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ssdlab import view
from ssdlab.analysis.evidence import Evidence
from ssdlab.charts import Axis, Chart, Line, Mark, rule
from ssdlab.experiments.steady.analysis import Part, parts_of, spare_fall
from ssdlab.records import Run
from ssdlab.stats.steady import WINDOW
from ssdlab.view import Column, Method, Picture, Table, View
from ssdlab.wording import format_number, positive

_CURVE_POINTS: Final = 160
_FIRST_ROUNDS: Final = 3
"""The table always shows this many rounds from the start of a part."""
_MIDDLE_ROUNDS: Final = 6
"""The table shows at least this many rounds from the middle of a part, if it has them."""


def _evidence(run: Run) -> Evidence:
    return Evidence(run.tables, run.result.parameters, run.manifest.outcome)


def _parts(run: Run) -> list[Part]:
    known = {"rounds_mib", "floors_mib"} <= run.result.parameters.keys()
    return parts_of(_evidence(run)) if known else []


def _region_bytes(run: Run) -> float:
    return 2**20 * (positive(run.result.parameters.get("region_mib")) or 1.0)


def _table(run: Run) -> Table:
    parts: dict[float, list[dict[str, Any]]] = {}
    for row in run.result.measures:
        parts.setdefault(row.get("spare_percent") or 0.0, []).append(row)
    rows = [row for part in parts.values() for row in _selected(part)]
    columns = [
        (Column("Round"), [format_number(row["round"]) for row in rows]),
        view.number_column(rows, "written_mib", "Written", "MiB", minor=True),
        view.number_column(rows, "iops", "Requests/s"),
        view.number_column(rows, "latency_us_p50", "Latency p50", "us"),
        view.number_column(rows, "latency_us_p99", "p99", "us"),
        view.number_column(rows, "latency_us_p999", "p99.9", "us", minor=True),
        view.number_column(rows, "latency_us_sd", "Standard deviation", "us", minor=True),
    ]
    if len({row.get("spare_percent") for row in rows}) > 1:
        unused = [format_number(row.get("spare_percent") or 0.0) for row in rows]
        columns.insert(0, (Column("Unused", "%"), unused))
    if any(row.get("waf") is not None for row in rows):
        columns.append(view.number_column(rows, "waf", "WAF"))
    return Table.of_columns(*columns)


def _selected(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first rounds, the last window and some rounds between; the JSON has all rounds."""
    step = max(1, len(rows) // _MIDDLE_ROUNDS)
    return [
        row
        for at, row in enumerate(rows, -_FIRST_ROUNDS)
        if at < 0 or at % step == 0 or at + _FIRST_ROUNDS >= len(rows) - WINDOW
    ]


def _curve(part: Part, label: str, region: float) -> Line:
    """The request rate against the bytes written in the part, in multiples of the region."""
    written = part.curve.written
    if not written:
        return Line(label, [])
    share = written / _CURVE_POINTS
    seconds = part.curve.between(0.0, written, _CURVE_POINTS)
    points = [
        ((at + 0.5) * share / region, share / duration / part.block)
        for at, duration in enumerate(seconds)
        if duration > 0
    ]
    return Line(label, points)


def _curves(run: Run, prefix: str = "") -> list[Line]:
    region = _region_bytes(run)
    labels = [f"{100 * p.share:.3g} % unused" if p.share else "all in use" for p in _parts(run)]
    return [_curve(p, prefix + text, region) for p, text in zip(_parts(run), labels, strict=True)]


def _rules(run: Run) -> list[Mark]:
    """Lines at the last drop of the first part's rate and at the start of its steady window."""
    parts = _parts(run)
    if not parts:
        return []
    first, region, rules = parts[0], _region_bytes(run), []
    drop, _ = spare_fall(_evidence(run), first)
    if drop is not None:
        rules.append(rule(drop.at / region, label="collection begins"))
    if first.steady_from is not None:
        rules.append(rule(first.steady_from * first.rule.round_bytes / region, label="steady"))
    return rules


def _rates(name: str, marks: Sequence[Line | Mark]) -> Chart:
    x = Axis("written at random, times the region")
    return Chart(name, x, Axis("requests/s", log=True), marks)


def _pictures(run: Run, number: int) -> list[Picture]:
    names = {"p999": "p99.9", "p99": "p99", "p50": "p50"}
    latencies = [Line(text, _by_round(run, f"latency_us_{key}")) for key, text in names.items()]
    latency, waf = Axis("latency, us", log=True), Axis("flash writes per host write (WAF)")
    amplification = [Line("WAF", _by_round(run, "waf"))]
    return [
        *view.draw_figure(
            "Request rate by amount written",
            "The first dashed line is where the hidden spare is used up and garbage collection "
            f"begins; the second is the start of the first window of {WINDOW} steady rounds. The "
            "rate left of the first is that of a fresh drive and does not last. Spikes are "
            "boundaries between rounds.",
            _rates(f"steady-{number}", [*_curves(run), *_rules(run)]).svg,
        ),
        *view.draw_figure(
            "Latency by round",
            "Half of the requests took at most p50; one in a hundred took longer than p99, one in "
            "a thousand longer than p99.9. Latencies may still change when the rate is steady.",
            Chart(f"steady-latency-{number}", Axis("round", whole=True), latency, latencies).svg,
        ),
        *view.draw_figure(
            "Write amplification by round",
            "As counted by the drive: 1 while it is fresh, then garbage collection adds writes.",
            Chart(f"steady-waf-{number}", Axis("round", whole=True), waf, amplification).svg,
        ),
        *_gain(run, number),
        *view.draw_throughput(run, number, "Includes the sequential fill."),
    ]


def _by_round(run: Run, key: str) -> list[tuple[float, float]]:
    """Points of a column against the round number, for the first part."""
    rows = [row for row in run.result.measures if not row.get("spare_percent")]
    return [(row["round"], row[key]) for row in rows if row.get(key) is not None]


def _gain(run: Run, number: int) -> list[Picture]:
    points = [(100 * part.share, part.iops) for part in _parts(run) if part.iops is not None]
    if len(points) < 2:
        return []
    x, y = Axis("of the region unused, %"), Axis("steady requests/s")
    return view.draw_figure(
        "Steady rate by unused space",
        "The steady rate after this share of the region was trimmed and then not written.",
        Chart(f"steady-gain-{number}", x, y, [Line("steady rate", points)]).svg,
    )


def _overview(runs: Sequence[Run], first: int) -> list[Picture]:
    return view.draw_figure(
        "Request rate from fresh to steady",
        "One line for each run and unused share; the drives are fresh at the left.",
        _rates(f"steadies-{first}", view.lines_of_runs(runs, first, _curves)).svg,
    )


def _method(run: Run) -> Method:
    text = view.parameter_texts(run)
    done = (
        f"A region of {text('region_mib')} was written sequentially and the drive left idle for "
        f"{text('settle_s')}. Then writes of {text('write_block_kib')} at queue depth "
        f"{text('write_queue_depth')}, pattern {text('pattern')}, overwrote it in rounds of a "
        "fifth of the region."
    )
    if run.manifest.parameters.get("spare_percent"):
        done += f" This was repeated with a trimmed and unused part of {text('spare_percent')}."
    meaning = (
        f"Steady state: the rates of the last {WINDOW} rounds differ by at most 20 % and their "
        "trend by at most 10 %, the rate did not change during the second half of the writes, and "
        "the window began after twice the region, spare and caches together were written. WAF is "
        "flash writes per host write. Effective spare is hidden / all flash, overprovisioning is "
        "the same flash / visible capacity."
    )
    pitfalls = [
        "Not steady is a valid result: the load may have cycles longer than the run.",
        (
            "The effective spare is the hidden flash that takes data. A profile's spare is larger: "
            "it includes what garbage collection keeps in reserve, 1 to 2 % of a small twin."
        ),
    ]
    if not run.manifest.virtual:
        pitfalls.append(
            "With a test file, all free space of the drive counts as spare. To measure the drive's "
            "own spare, the region must be the whole drive."
        )
    return Method(done, meaning, tuple(pitfalls))


_FINDINGS: Final = {
    "iops": "Steady rate",
    "iops_cv": "Coefficient of variation of the rate",
    "waf": "Write amplification",
    "waf_curve": "Write amplification from the curve alone",
    "waf_without_map": "The same without writes of the map",
    "hidden_spare": "Effective spare (hidden / all)",
    "overprovisioning": "Overprovisioning (hidden / visible)",
    "fresh_iops": "Fresh rate",
    "mapping_unit_kib": "Mapping unit",
    "map_misses": "Reads that first load a part of the map",
    "map_page_span_mib": "Region that one such load covers",
    "spare_gain": "Gain with the most spare",
}
_PARAMETERS: Final = {
    "drive_mib": "Whole drive",
    "settle_s": "Idle after the fill",
    "rounds_mib": "A round",
    "floors_mib": "Written before any window",
}
VIEW: Final = View(
    "Steady-state writes",
    _table,
    _method,
    _pictures,
    _overview,
    _FINDINGS,
    _PARAMETERS,
    key_number=view.finding_named("iops", "fresh_iops"),
)
