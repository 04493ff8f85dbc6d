"""Runs `cache` on twins with known caches: sizes, and the rest time that empties them.

Usage: PYTHONPATH=python:tools python bench/twins/cache.py
Prints one row for each twin: the buffer and SLC cache that were found, with their intervals; how
long the twin folds after the first writes, by its own counters; and the rest time that was found.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from known_twins import KnownTwin
from ssdlab.analysis.evidence import Evidence
from ssdlab.device import Job, open_twin, run_job
from ssdlab.experiments.cache.analysis import conclude
from ssdlab.experiments.cache.measure import Plan, measure
from ssdlab.experiments.cache.rests import BLOCK, DEPTH
from ssdlab.records import Finding
from ssdlab.runner.open_target import TargetOptions, open_for_run
from ssdlab.runner.session import RunSession
from ssdlab.target import parse_target

MIB: Final = 1 << 20
SIZE: Final = 1024 * MIB
STATIC, DYNAMIC = 'size = "256 MiB"', 'size = "256 MiB"\nmode = "dynamic"'
FAST, SLOW = 'program = "100 us"', 'program = "300 us"'


def _twin(buffer: str, slc: str = "", link: str = "2000 MiB/s", *, capacitors: bool) -> KnownTwin:
    return KnownTwin(
        capacity=6 << 30,
        dies=8,
        pages_per_block=48,
        program="1200 us",
        link=link,
        buffer=buffer,
        capacitors=capacitors,
        slc=slc,
    )


TWINS: Final[tuple[tuple[str, KnownTwin], ...]] = (
    ("4 MiB", _twin("4 MiB", capacitors=False)),
    ("16 MiB, capacitors", _twin("16 MiB", capacitors=True)),
    ("2 MiB, static", _twin("2 MiB", f"{STATIC}\n{SLOW}", capacitors=False)),
    ("8 MiB, static", _twin("8 MiB", f"{STATIC}\n{FAST}", capacitors=False)),
    ("32 MiB, static, capacitors", _twin("32 MiB", f"{STATIC}\n{SLOW}", capacitors=True)),
    (
        "16 MiB, static as fast as the link",
        _twin("16 MiB", f"{STATIC}\n{FAST}", "1000 MiB/s", capacitors=False),
    ),
    ("4 MiB, dynamic", _twin("4 MiB", f"{DYNAMIC}\n{SLOW}", capacitors=False)),
    ("16 MiB, dynamic", _twin("16 MiB", f"{DYNAMIC}\n{FAST}", capacitors=False)),
    ("no drop: the link is slow", _twin("4 MiB", "", "50 MiB/s", capacitors=False)),
)


def folding_s(twin: KnownTwin) -> float:
    """Seconds of rest that the twin needs to fold the data of the first writes."""
    total, low, high = _folded_units(twin, 100.0), 0.0, 20.0
    while high - low > 0.02:
        middle = (low + high) / 2
        low, high = (low, middle) if _folded_units(twin, middle) == total else (middle, high)
    return high


def _folded_units(twin: KnownTwin, rest_s: float) -> int:
    """Units folded during a rest, counted when the next request arrives."""
    drive = open_twin("known", twin.text)
    job = Job(
        op="write",
        length_bytes=SIZE,
        block_bytes=BLOCK,
        amount_bytes=SIZE,
        queue_depth=DEPTH,
    )
    run_job(drive, job)
    run_job(drive, Job(op="flush"))
    drive.rest(rest_s)
    run_job(drive, Job(op="read", length_bytes=4096, block_bytes=4096, amount_bytes=4096))
    counters = drive.counters()
    assert counters is not None, "a twin counts"
    return int(counters["folding_moves"])


def measure_twin(twin: KnownTwin) -> dict[str, Finding]:
    """The findings of a complete run on a twin."""
    plan = Plan(size=SIZE, trims=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        open_for_run(TargetOptions(parse_target(twin.target(Path(folder))), plan.size)) as opened,
    ):
        session = RunSession(opened)
        session.run_plan(measure, plan)
    return conclude(Evidence(session.recording.tables(), plan.parameters(), virtual=True)).findings


def main() -> None:
    """Prints the table."""
    print("| twin | buffer found, MiB | cache found, MiB | folds for, s | refill found, s |")
    print("|---|---|---|---|---|")
    for label, twin in TWINS:
        findings = measure_twin(twin)
        cells = [_format(findings[name]) for name in ("buffer_mib", "slc_mib", "refill_s")]
        folding = f"{folding_s(twin):.2f}" if twin.slc else "-"
        print(f"| {label} | {cells[0]} | {cells[1]} | {folding} | {cells[2]} |", flush=True)


def _format(finding: Finding) -> str:
    if not isinstance(finding.value, float):
        return "-"
    return f"{finding.value:.4g} ({finding.low or 0:.4g}-{finding.high or 0:.4g})"


if __name__ == "__main__":
    main()
