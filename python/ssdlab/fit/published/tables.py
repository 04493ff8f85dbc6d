"""The published tables, and the values that the drives' twins give for them.

Each twin runs the experiment in full, as `ssdlab run EXPERIMENT twin:NAME` does; `aging` on a file
of 512 MiB, and the provisioning test on a sixteenth of the drive.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ssdlab import profiles
from ssdlab.analysis.evidence import Evidence
from ssdlab.experiments.fragments import analysis as fragments_analysis
from ssdlab.experiments.fragments import measure as fragments
from ssdlab.experiments.fsync import analysis as fsync_analysis
from ssdlab.experiments.fsync import measure as fsync
from ssdlab.experiments.stripe import analysis as stripe_analysis
from ssdlab.experiments.stripe import measure as stripe
from ssdlab.experiments.suite import analysis as suite_analysis
from ssdlab.experiments.suite import measure as suite
from ssdlab.fit.ageing import FINAL_FILE, twin_seconds
from ssdlab.fit.published.provisioning import steady_rate
from ssdlab.fit.results import published_rows
from ssdlab.runner.open_target import TargetOptions, open_for_run
from ssdlab.runner.session import RunSession
from ssdlab.target import Twin

MIB: Final = 1 << 20
MB: Final = 10**6
SOURCE_PHRASES: Final = {
    "aging": "ageing table",
    "fsync": "fsync table",
    "suite": "suite table",
    "stripe": "stride probe",
    "fragments": "study's fragments",
    "provisioning": "provisioning table",
}
"""By table: the words in a profile's `source` of a number that was fitted to it."""
DEEP_QUEUE: Final = 32
"""Queue depth instead of the study's 1023: above it, a twin's fragments make no more difference."""


@dataclass(frozen=True)
class PublishedValue:
    """A value as published, and as measured on the drive's twin, both in the table's unit."""

    label: str
    measured: float
    twin: float

    @property
    def error(self) -> float:
        """Relative error: positive where the twin's value is larger."""
        return self.twin / self.measured - 1.0


def twins_of(table: str) -> list[str]:
    """Names of the profiles whose drives are in a table, in its order."""
    if table == "aging":
        return list(published_rows())
    return [drive["twin"] for drive in _drives(table)]


def compare_twin(table: str, twin: str) -> list[PublishedValue]:
    """Measures a twin, and returns the published values of its drive with the twin's.

    Raises:
        KeyError: the table does not have this drive.
    """
    if table == "aging":
        return _aging(twin)
    drive = next((row for row in _drives(table) if row["twin"] == twin), None)
    if drive is None:
        raise KeyError(f"{table} has no {twin}")
    return _COMPARE[table](drive)


def _drives(table: str) -> list[dict[str, Any]]:
    text = (profiles.tables() / f"{table}.toml").read_text(encoding="utf-8")
    drives: list[dict[str, Any]] = tomllib.loads(text)["drive"]
    return drives


def _aging(twin: str) -> list[PublishedValue]:
    row = published_rows()[twin]
    times = twin_seconds(profiles.load(twin), row, size=FINAL_FILE)
    labels = ("fresh", *(f"+{amount:g} MiB" for amount in row.written_mib))
    return [
        PublishedValue(label, measured, float(seconds))
        for label, measured, seconds in zip(labels, row.seconds, times, strict=True)
    ]


def _measure(twin: str, plan: Any, measure: Callable[[RunSession, Any], None]) -> Evidence:
    with open_for_run(TargetOptions(Twin(twin), plan.size)) as opened:
        session = RunSession(opened)
        session.run_plan(measure, plan)
    return Evidence(session.recording.tables(), plan.parameters(), virtual=True)


def _fsync(drive: Mapping[str, Any]) -> list[PublishedValue]:
    evidence = _measure(drive["twin"], fsync.Plan(), fsync.measure)
    rows = {
        row["mode"]: row
        for row in fsync_analysis.conclude(evidence).measures
        if row["in_flight"] == 1
    }
    return [
        PublishedValue(f"{op}, {sync}", drive[op][sync], rows[f"direct {sync}"][f"{op}_mib_per_s"])
        for sync in ("none", "fsync")
        for op in ("read", "write")
    ]


def _suite(drive: Mapping[str, Any]) -> list[PublishedValue]:
    evidence = _measure(drive["twin"], suite.Plan(), suite.measure)
    means = {
        (row["op"], row["test"]): row["mean"] for row in suite_analysis.conclude(evidence).measures
    }
    return [
        PublishedValue(f"{test}, {op}", measured, means[op, test])
        for op in ("read", "write")
        for test, measured in drive[op].items()
    ]


def _stripe(drive: Mapping[str, Any]) -> list[PublishedValue]:
    evidence = _measure(drive["twin"], stripe.Plan(), stripe.measure)
    rates = {
        row["alignment_kib"]: row["read_mib_per_s"] * MIB / MB
        for row in stripe_analysis.conclude(evidence).measures
    }
    return [
        PublishedValue(f"{alignment} KiB", measured, rates[alignment])
        for alignment, measured in zip(drive["alignment_kib"], drive["mb_per_s"], strict=True)
    ]


def _fragments(drive: Mapping[str, Any]) -> list[PublishedValue]:
    evidence = _measure(drive["twin"], fragments.Plan(repeats=5), fragments.measure)
    measures = fragments_analysis.conclude(evidence).measures
    values = []
    for depth, name in ((1, "alone_ms"), (DEEP_QUEUE, "deep_ms")):
        times = [
            (row["degree"], row["read_ms"])
            for row in measures
            if (row["gap"], row["queue_depth"]) == ("worst", depth)
        ]
        values += [
            PublishedValue(f"{pieces} pieces, {depth} in flight", measured, ms)
            for measured, (pieces, ms) in zip(drive[name], times, strict=True)
        ]
    return values


def _provisioning(drive: Mapping[str, Any]) -> list[PublishedValue]:
    text = profiles.load(drive["twin"])
    return [
        PublishedValue(
            f"{state['visible_gb']} GB visible, {state['past']}",
            state["requests_per_s"],
            steady_rate(text, state["visible_gb"], state["past"]).per_s,
        )
        for state in drive["state"]
    ]


_COMPARE: Final[dict[str, Callable[[Mapping[str, Any]], list[PublishedValue]]]] = {
    "fsync": _fsync,
    "suite": _suite,
    "stripe": _stripe,
    "fragments": _fragments,
    "provisioning": _provisioning,
}
