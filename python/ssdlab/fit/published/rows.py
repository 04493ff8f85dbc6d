"""The published tables, and what their drives' twins give for each figure: the experiments' own.

Each twin does the experiment in full, as `ssdlab run EXPERIMENT twin:NAME` does; ageing on a file
of 512 MiB and provisioning on a sixteenth of the drive.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
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
from ssdlab.fit.ageing import SCALED, twin_seconds
from ssdlab.fit.published.figure import Figure
from ssdlab.fit.published.provisioning import lasting
from ssdlab.fit.results import shipped
from ssdlab.runner.open_target import TargetOptions, open_for_run
from ssdlab.runner.session import RunSession
from ssdlab.target import Twin

MIB: Final = 1 << 20
MB: Final = 10**6
PHRASES: Final = {
    "aging": "ageing table",
    "fsync": "fsync table",
    "suite": "suite table",
    "stripe": "stride probe",
    "fragments": "study's fragments",
    "provisioning": "provisioning table",
}
"""By table: what the source of a number says that was fitted to it."""
DEEP: Final = 32
"""Commands in flight where the study had 1023: a twin's fragments differ no more beyond it."""


def twins_of(table: str) -> list[str]:
    """Names of the profiles whose drives a table has, in its order."""
    if table == "aging":
        return list(shipped())
    return [drive["twin"] for drive in _drives(table)]


def figures(table: str, twin: str) -> list[Figure]:
    """A drive's figures of a table beside its twin's.

    Raises:
        KeyError: the table does not have it.
    """
    if table == "aging":
        return _ageing(twin)
    drive = next((each for each in _drives(table) if each["twin"] == twin), None)
    if drive is None:
        raise KeyError(f"{table} has no {twin}")
    return _OF_TABLE[table](drive)


def _drives(table: str) -> list[dict[str, Any]]:
    text = (profiles.tables() / f"{table}.toml").read_text(encoding="utf-8")
    drives: list[dict[str, Any]] = tomllib.loads(text)["drive"]
    return drives


def _ageing(twin: str) -> list[Figure]:
    row = shipped()[twin]
    seconds = twin_seconds(profiles.load(twin), row, size=4 * SCALED)
    written = ("fresh", *(f"+{amount:g} MiB" for amount in row.written_mib))
    return [
        Figure(what, measured, float(found))
        for what, measured, found in zip(written, row.seconds, seconds, strict=True)
    ]


def _measured(twin: str, plan: Any, measure: Callable[[RunSession, Any], None]) -> Evidence:
    with open_for_run(TargetOptions(Twin(twin), plan.size)) as opened:
        session = RunSession(opened)
        session.run_plan(measure, plan)
    return Evidence(session.recording.tables(), plan.parameters(), virtual=True)


def _fsync(drive: Mapping[str, Any]) -> list[Figure]:
    evidence = _measured(drive["twin"], fsync.Plan(), fsync.measure)
    alone = {
        row["mode"]: row
        for row in fsync_analysis.conclude(evidence).measures
        if row["in_flight"] == 1
    }
    return [
        Figure(f"{op}, {kept}", drive[op][kept], alone[f"direct {kept}"][f"{op}_mib_per_s"])
        for kept in ("none", "fsync")
        for op in ("read", "write")
    ]


def _suite(drive: Mapping[str, Any]) -> list[Figure]:
    evidence = _measured(drive["twin"], suite.Plan(), suite.measure)
    means = {
        (row["op"], row["test"]): row["mean"] for row in suite_analysis.conclude(evidence).measures
    }
    return [
        Figure(f"{test}, {op}", measured, means[op, test])
        for op in ("read", "write")
        for test, measured in drive[op].items()
    ]


def _stripe(drive: Mapping[str, Any]) -> list[Figure]:
    evidence = _measured(drive["twin"], stripe.Plan(), stripe.measure)
    rates = {
        row["alignment_kib"]: row["read_mib_per_s"] * MIB / MB
        for row in stripe_analysis.conclude(evidence).measures
    }
    return [
        Figure(f"{alignment} KiB", measured, rates[alignment])
        for alignment, measured in zip(drive["alignment_kib"], drive["mb_per_s"], strict=True)
    ]


def _fragments(drive: Mapping[str, Any]) -> list[Figure]:
    evidence = _measured(drive["twin"], fragments.Plan(repeats=5), fragments.measure)
    measures = fragments_analysis.conclude(evidence).measures
    found = []
    for depth, name in ((1, "alone_ms"), (DEEP, "deep_ms")):
        times = [
            (row["degree"], row["read_ms"])
            for row in measures
            if (row["gap"], row["queue_depth"]) == ("worst", depth)
        ]
        found += [
            Figure(f"{pieces} pieces, {depth} in flight", measured, ms)
            for measured, (pieces, ms) in zip(drive[name], times, strict=True)
        ]
    return found


def _provisioning(drive: Mapping[str, Any]) -> list[Figure]:
    text = profiles.load(drive["twin"])
    return [
        Figure(
            f"{state['visible_gb']} GB visible, {state['past']}",
            state["requests_per_s"],
            lasting(text, state["visible_gb"], state["past"]).per_s,
        )
        for state in drive["state"]
    ]


_OF_TABLE: Final[dict[str, Callable[[Mapping[str, Any]], list[Figure]]]] = {
    "fsync": _fsync,
    "suite": _suite,
    "stripe": _stripe,
    "fragments": _fragments,
    "provisioning": _provisioning,
}
