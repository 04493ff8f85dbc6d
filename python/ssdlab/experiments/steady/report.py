"""How runs of the steady experiment are shown: their table, figures and words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ssdlab.analysis.evidence import Evidence
from ssdlab.charts import Axis, Chart, Line, Mark, over_time, rule
from ssdlab.experiments.steady.analysis import Part, parts_of, spare_fall
from ssdlab.experiments.steady.parameters import Steady
from ssdlab.records import Run
from ssdlab.stats.steady import WINDOW
from ssdlab.view import Column, Method, Picture, Table, View, draw_figure
from ssdlab.wording import column, format_number, positive, quantity

_SHARES: Final = 160  # points of a curve
_FIRST: Final = 3  # rounds of a part that the table has, before some between and the last ones
_SHOWN: Final = 6
_LATENCIES: Final = (("p999", "p99.9"), ("p99", "p99"), ("p50", "p50"))


def _evidence(run: Run) -> Evidence:
    return Evidence(run.tables, run.result.parameters, run.manifest.outcome)


def _parts(run: Run) -> list[Part]:
    known = {"rounds_mib", "floors_mib"} <= run.result.parameters.keys()
    return parts_of(_evidence(run)) if known else []


def _table(run: Run) -> Table:
    rows = [row for part in _by_part(run) for row in _shown(part)]
    several = len({row.get("spare_percent") for row in rows}) > 1
    numbers = {
        name: column(row.get(name) for row in rows) for name in ("written_mib", "iops", "waf")
    }
    latency = {
        name: column(row.get(f"latency_us_{name}") for row in rows)
        for name in ("p50", "p99", "p999", "sd")
    }
    columns = [
        (Column("Round"), [format_number(row["round"]) for row in rows]),
        (Column("Written", "MiB"), numbers["written_mib"]),
        (Column("Requests/s"), numbers["iops"]),
        (Column("Latency p50", "us"), latency["p50"]),
        (Column("p99", "us"), latency["p99"]),
        (Column("p99.9", "us"), latency["p999"]),
        (Column("Deviation", "us"), latency["sd"]),
        (Column("WAF"), numbers["waf"]),
    ]
    if several:
        unused = [format_number(row.get("spare_percent") or 0.0) for row in rows]
        columns.insert(0, (Column("Unused", "%"), unused))
    if all(row.get("waf") is None for row in rows):
        columns.pop()
    cells = zip(*(texts for _, texts in columns), strict=True)
    return Table(tuple(head for head, _ in columns), tuple(cells))


def _by_part(run: Run) -> list[list[dict[str, Any]]]:
    parts: dict[float, list[dict[str, Any]]] = {}
    for row in run.result.measures:
        parts.setdefault(row.get("spare_percent") or 0.0, []).append(row)
    return list(parts.values())


def _shown(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first rounds, where it falls, the last window, and some between; all are in the JSON."""
    step = max(1, len(rows) // _SHOWN)
    last = len(rows) - WINDOW
    return [
        row for at, row in enumerate(rows) if at < _FIRST or at >= last or (at - _FIRST) % step == 0
    ]


def _curve(part: Part, label: str, region: float) -> Line:
    """The rate through the part's own bytes, and each round's as a faint point at its middle."""
    written = part.curve.written
    if not written:
        return Line(label, [])
    share = written / _SHARES
    seconds = part.curve.between(0.0, written, _SHARES)
    points = [
        ((at + 0.5) * share / region, share / each / part.block)
        for at, each in enumerate(seconds)
        if each > 0
    ]
    return Line(label, points)


def _named(part: Part) -> str:
    return f"{100 * part.share:.3g} % unused" if part.share else "all in use"


def _curves(run: Run, prefix: str = "") -> list[Line]:
    region = 2**20 * (positive(run.result.parameters.get("region_mib")) or 1.0)
    return [_curve(part, prefix + _named(part), region) for part in _parts(run)]


def _rules(run: Run) -> list[Mark]:
    """Where the first part's last fall is, and where its steady window begins."""
    parts = _parts(run)
    if not parts:
        return []
    first, region = parts[0], 2**20 * (positive(run.result.parameters.get("region_mib")) or 1.0)
    rules = []
    fall, _ = spare_fall(_evidence(run), first)
    if fall is not None:
        rules.append(rule(fall.at / region, label="collection begins"))
    if first.steady_from is not None:
        rules.append(rule(first.steady_from * first.rule.round_bytes / region, label="steady"))
    return rules


def _rates(name: str, marks: Sequence[Line | Mark]) -> Chart:
    x = Axis("written at random, times the region")
    return Chart(name, x, Axis("requests/s", log=True), marks)


def _pictures(run: Run, at: int) -> list[Picture]:
    return [
        *draw_figure(
            "Requests a second while more and more is written",
            "The dashed lines are where the hidden spare is used up, so that collection begins, "
            f"and where the first window of {WINDOW} steady rounds begins. What lies left of the "
            "first is a fresh drive's rate and does not last. Spikes stand where a round ends "
            "and the next begins.",
            _rates(f"steady-{at}", [*_curves(run), *_rules(run)]).svg,
        ),
        *_latency(run, at),
        *_amplification(run, at),
        *_gain(run, at),
        *draw_figure(
            "Throughput through the run",
            "Everything the drive did, in order, with the fill and the gauges.",
            over_time(run, at).svg,
        ),
    ]


def _by_round(run: Run, name: str) -> list[tuple[float, float]]:
    """A column of the first part's rows, against the round."""
    rows = [row for row in run.result.measures if not row.get("spare_percent")]
    return [(row["round"], row[name]) for row in rows if row.get(name) is not None]


def _latency(run: Run, at: int) -> list[Picture]:
    lines = [Line(words, _by_round(run, f"latency_us_{name}")) for name, words in _LATENCIES]
    return draw_figure(
        "How long requests took, round by round",
        "Half of the requests took at most p50, one in a hundred longer than p99, one in a "
        "thousand longer than p99.9. A mean that is steady may have a tail that is not.",
        Chart(f"steady-latency-{at}", Axis("round"), Axis("latency, us", log=True), lines).svg,
    )


def _amplification(run: Run, at: int) -> list[Picture]:
    lines = [Line("WAF", _by_round(run, "waf"))]
    y = Axis("flash writes per host write (WAF)")
    return draw_figure(
        "What each byte costs the flash",
        "As the drive itself counts it: 1 while it is fresh, then what collection moves is added.",
        Chart(f"steady-waf-{at}", Axis("round"), y, lines).svg,
    )


def _gain(run: Run, at: int) -> list[Picture]:
    found = [(100 * part.share, part.iops) for part in _parts(run)]
    points = [(share, iops) for share, iops in found if iops is not None]
    if len(points) < 2:
        return []
    x, y = Axis("of the region unused, %"), Axis("lasting requests/s")
    return draw_figure(
        "What leaving a part unused brings",
        "The lasting rate where that share of the region was trimmed and then left alone.",
        Chart(f"steady-gain-{at}", x, y, [Line("lasting rate", points)]).svg,
    )


def _overview(runs: Sequence[Run], first: int) -> list[Picture]:
    lines = [line for at, run in enumerate(runs, first) for line in _curves(run, f"{at}: ")]
    return draw_figure(
        "How long the first rate lasts, and what comes of it",
        "A line a run and share of spare; on the left each is fresh.",
        _rates(f"steadies-{first}", lines).svg,
    )


def _method(run: Run) -> Method:
    asked = run.manifest.parameters
    block, depth = (
        quantity("write_block_kib", asked.get("write_block_kib")),
        quantity("", asked.get("write_queue_depth")),
    )
    done = (
        f"A region of {quantity('region_mib', asked.get('region_mib'))} was written in order and "
        f"left alone for {quantity('settle_s', asked.get('settle_s'))}. Then writes of {block}, "
        f"{depth} at a time, pattern {quantity('', asked.get('pattern'))}, went over it in rounds "
        "of a fifth of it."
    )
    if asked.get("spare_percent"):
        unused = quantity("spare_percent", asked["spare_percent"])
        done += f" The same again with a part of it trimmed and left unused: {unused}."
    meaning = (
        f"Steady: the last {WINDOW} rounds differ by 20 % at most and their line by 10 %, nothing "
        "changed in the last half of all that was written, and they began after twice the region "
        "with its spare and caches. WAF is flash writes per host write. Hidden spare is hidden / "
        "all flash, overprovisioning the same flash / visible capacity."
    )
    pitfalls = [
        "Not attained is a result: the load may have cycles longer than the run.",
        "The spare that is seen is what takes data: what collection keeps in reserve is not.",
    ]
    if not run.manifest.virtual:
        pitfalls.append(
            "A test file sees all that is free on its drive as spare: for the drive's own, the "
            "region must be the whole drive."
        )
    return Method(done, meaning, tuple(pitfalls))


VIEW: Final = View(
    title="The lasting rate of writes",
    table=_table,
    method=_method,
    pictures=_pictures,
    overview=_overview,
    finding_labels={
        "steady": "Steady",
        "steady_from_round": "Steady from round",
        "iops": "Lasting rate",
        "iops_cv": "Its deviation over its mean",
        "waf": "Write amplification",
        "waf_curve": "The same from the curve alone",
        "hidden_spare": "Hidden spare (hidden / all)",
        "overprovisioning": "Overprovisioning (hidden / visible)",
        "fresh_iops": "Fresh rate",
        "spare_gain": "Gain by the most spare",
    },
    parameter_labels={
        **Steady.labels(),
        "drive_mib": "Whole drive",
        "settle_s": "Left alone after the fill",
        "rounds_mib": "A round",
        "floors_mib": "Written before any window",
    },
)
