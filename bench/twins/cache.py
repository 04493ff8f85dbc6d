"""What `cache` finds on twins of known caches: sizes, and the rest that gives them back.

Usage: PYTHONPATH=python:tools python bench/twins/cache.py
Prints a row a twin: buffer and SLC cache of its profile and as found; how long it folds after the
first writing, by its own counters, and the rest found with its bounds.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from known_twins import KnownTwin
from ssdlab.analysis.evidence import Evidence
from ssdlab.device import Job, open_twin, run_job
from ssdlab.experiments.cache.analysis import conclude
from ssdlab.experiments.cache.measure import BLOCK, DEPTH, Plan, measure
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
    ("no fall: the link is slow", _twin("4 MiB", "", "50 MiB/s", capacitors=False)),
)


def folds_for(twin: KnownTwin) -> float:
    """Seconds of rest in which the twin folds what the first writing left in its cache."""
    whole, short, enough = _folded(twin, 100.0), 0.0, 20.0
    while enough - short > 0.02:
        middle = (short + enough) / 2
        short, enough = (short, middle) if _folded(twin, middle) == whole else (middle, enough)
    return enough


def _folded(twin: KnownTwin, rest_s: float) -> int:
    """Units folded in a rest; what it did is done when the next request comes."""
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


def found(twin: KnownTwin) -> dict[str, Finding]:
    """A whole run on a twin."""
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
    for name, twin in TWINS:
        findings = found(twin)
        cells = [_told(findings[each]) for each in ("buffer_mib", "slc_mib", "refill_s")]
        folds = f"{folds_for(twin):.2f}" if twin.slc else "-"
        print(f"| {name} | {cells[0]} | {cells[1]} | {folds} | {cells[2]} |", flush=True)


def _told(finding: Finding) -> str:
    if not isinstance(finding.value, float):
        return "-"
    return f"{finding.value:.4g} ({finding.low or 0:.4g}-{finding.high or 0:.4g})"


if __name__ == "__main__":
    main()
