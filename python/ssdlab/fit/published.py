"""Compares published tables of drives with their twins, and stores the twins' errors.

Each twin runs the full experiment, as `ssdlab run EXPERIMENT twin:NAME` does, except that `aging`
uses a 512 MiB file and the provisioning test a sixteenth of the drive. This takes minutes, so the
errors are stored in `profiles/tables/held.toml`. After a change to a profile or the model, run
`python bench/twins/held.py --write`.

The provisioning test measures random writes to a fixed area of a full drive. It first fills the
drive sequentially. For an *erased* drive it then overwrites only the area, as often as in the
published half-hour test. For an *aged* drive it writes twice the whole capacity at random, then
overwrites the area twice. The result is the rate of the next overwrite of the area. `cargo bench
-p ssdlab-workload --bench provisioning` runs it at full size.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from ssdlab import profiles
from ssdlab.analysis.evidence import Evidence
from ssdlab.device import Drive, Job, Outcome, open_mirror, open_twin, run_job
from ssdlab.experiments.fragments import analysis as fragments_analysis
from ssdlab.experiments.fragments import measure as fragments
from ssdlab.experiments.fsync import analysis as fsync_analysis
from ssdlab.experiments.fsync import measure as fsync
from ssdlab.experiments.stripe import analysis as stripe_analysis
from ssdlab.experiments.stripe import measure as stripe
from ssdlab.experiments.suite import analysis as suite_analysis
from ssdlab.experiments.suite import measure as suite
from ssdlab.fit.ageing import FINAL_FILE, AgeingRow, twin_seconds
from ssdlab.fit.results import published_rows
from ssdlab.profiles.toml_edit import list_values, set_value
from ssdlab.runner.open_target import TargetOptions, open_for_run
from ssdlab.runner.session import RunSession
from ssdlab.target import Twin

Past = Literal["erased", "aged"]
BLOCK: Final = 4096
FILL_BLOCK: Final = 1 << 20
FLASH: Final = 512 << 30
AREA: Final = 40_000_000_000
VISIBLE: Final = {512: 1_000_215_216 * 512, 400: 400_000_000_000}
"""Visible capacity in bytes, by the gigabytes that the published table states."""
SCALE: Final = 1 / 16
"""Scale of the twin: a sixteenth of the drive, 512 superblocks, 8 million mapping units."""
HALF_HOUR: Final = 490_000_000_000 / AREA
"""How often the published test overwrote the area in half an hour."""
COUNTED: Final = ("host_writes", "nand_host_writes", "nand_collection_writes")


@dataclass(frozen=True)
class SteadyRate:
    """Write requests per second in steady state, and write amplification (WAF)."""

    per_s: float
    waf: float


def steady_rate(profile: str, visible_gb: int, past: Past, scale: float = SCALE) -> SteadyRate:
    """The steady-state rate of random writes to the area.

    Raises:
        TargetError: the profile is invalid.
    """
    drive = ProvisionedDrive(profile, VISIBLE[visible_gb], scale)
    drive.fill()
    drive.give_past(past)
    return drive.write_randomly(drive.area, 1.0)


class ProvisionedDrive:
    """A new twin of the given visible capacity in bytes, or two as RAID 1.

    `last` is the outcome of the last job.
    """

    last: Outcome
    interval_us = 60_000_000

    def __init__(self, profile: str, visible: int, scale: float, *, mirrored: bool = False) -> None:
        text = set_value(profile, "drive.capacity", f"{visible // 1024} KiB")
        text = set_value(text, "ftl.spare", 1 - visible / FLASH)
        self.visible, self.area = (
            int(size * scale) // FILL_BLOCK * FILL_BLOCK for size in (visible, AREA)
        )
        opened = open_mirror if mirrored else open_twin
        self.drive: Drive = opened("published", text, self.visible)
        self.jobs = 0

    def fill(self) -> None:
        """Writes the whole drive in order."""
        self.write_in_order(self.visible)

    def give_past(self, past: Past) -> None:
        """Writes what the published test is assumed to have written before."""
        if past == "aged":
            self.write_randomly(self.visible, 2.0)
            self.write_randomly(self.area, 2.0)
        else:
            self.write_randomly(self.area, HALF_HOUR - 1.0)

    def write_in_order(self, length: int) -> float:
        """Writes the first `length` bytes in order; returns bytes per second."""
        return FILL_BLOCK * self._run("sequential", FILL_BLOCK, length, length)

    def trim_beyond_area(self) -> None:
        """Trims all but the area."""
        job = Job(
            op="trim",
            pattern="sequential",
            offset_bytes=self.area,
            length_bytes=self.visible - self.area,
            block_bytes=FILL_BLOCK,
            amount_bytes=self.visible - self.area,
            queue_depth=32,
        )
        self.last = run_job(self.drive, job)

    def write_randomly(self, length: int, times: float) -> SteadyRate:
        """Writes `times` x `length` bytes at random addresses in the first `length` bytes."""
        before = self._counts()
        amount = int(times * length) // BLOCK * BLOCK
        per_s = self._run("random", BLOCK, length, amount)
        host, own, moved = (now - then for now, then in zip(self._counts(), before, strict=True))
        return SteadyRate(per_s, (own + moved) / host)

    def _counts(self) -> list[int]:
        counters = self.drive.counters()
        assert counters is not None, "a twin counts"
        return [counters[key] for key in COUNTED]

    def _run(
        self, pattern: Literal["sequential", "random"], block: int, length: int, amount: int
    ) -> float:
        """Runs one write job; returns its requests per second."""
        self.jobs += 1
        job = Job(
            op="write",
            pattern=pattern,
            length_bytes=length,
            block_bytes=block,
            amount_bytes=amount,
            queue_depth=32,
            seed=self.jobs,
            interval_us=self.interval_us,
        )
        self.last = run_job(self.drive, job)
        return self.last.requests / self.last.seconds


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
"""For each table, the phrase that marks a number as fitted to it in a profile's `source`."""
DEEP_QUEUE: Final = 32
"""Used instead of the study's 1023: beyond it, fragmentation slows a twin no further."""


@dataclass(frozen=True)
class PublishedValue:
    """A published value and the value measured on the drive's twin, in the table's unit."""

    label: str
    measured: float
    twin: float

    @property
    def error(self) -> float:
        """Relative error: positive where the twin's value is larger."""
        return self.twin / self.measured - 1.0


def twins_of(table: str) -> list[str]:
    """Names of the profiles whose drives are in a table, in the order of the table."""
    return [row["twin"] for row in _rows(table)]


def compare_twin(table: str, twin: str) -> list[PublishedValue]:
    """Measures a shipped twin, and returns its values next to the published values of the drive.

    Raises:
        KeyError: the table does not have this drive.
    """
    rows = {row["twin"]: row for row in _rows(table)}
    if twin not in rows:
        raise KeyError(f"{table} has no {twin}")
    return compare_row(table, rows[twin])


def compare_row(table: str, row: Mapping[str, Any]) -> list[PublishedValue]:
    """Measures the twin that a row of a table names: a shipped one, or a profile's file."""
    return _COMPARE[table](row)


def _rows(table: str) -> list[dict[str, Any]]:
    if table == "aging":
        return [{"twin": name, "row": row} for name, row in published_rows().items()]
    text = (profiles.tables() / f"{table}.toml").read_text(encoding="utf-8")
    drives: list[dict[str, Any]] = tomllib.loads(text)["drive"]
    return drives


def _aging(drive: Mapping[str, Any]) -> list[PublishedValue]:
    row: AgeingRow = drive["row"]
    times = twin_seconds(profiles.load(drive["twin"]), row, size=FINAL_FILE)
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
    "aging": _aging,
    "fsync": _fsync,
    "suite": _suite,
    "stripe": _stripe,
    "fragments": _fragments,
    "provisioning": _provisioning,
}


STORED: Final = "held.toml"
"""File next to the tables with the mean and the worst error of each twin in each table."""


@dataclass(frozen=True)
class TableErrors:
    """A twin's relative errors in one table: the mean absolute error, and the worst error.

    `fitted` is true if a number of the profile was fitted to this table.
    """

    table: str
    mean_error: float
    worst_error: float
    fitted: bool


def stored_errors() -> dict[str, list[TableErrors]]:
    """The stored errors of each shipped twin, by the profile's name."""
    text = (profiles.tables() / STORED).read_text(encoding="utf-8")
    errors: dict[str, list[TableErrors]] = {name: [] for name in profiles.names()}
    for row in tomllib.loads(text)["held"]:
        name, table = row["twin"], row["table"]
        is_fitted = is_fitted_to(name, table)
        errors[name].append(TableErrors(table, row["mean_error"], row["worst_error"], is_fitted))
    return errors


def is_fitted_to(name: str, table: str) -> bool:
    """Whether any number of a profile was fitted to this table, according to its source."""
    entries = list_values(profiles.load(name))
    return any(
        entry["kind"] == "fitted" and _names_table(entry["source"], table) for entry in entries
    )


def _names_table(source: str, table: str) -> bool:
    """Whether a source names the table, or is that of a fit to results of its experiment."""
    if SOURCE_PHRASES[table] in source:
        return True
    words = re.findall(r"[\w-]+", source.removeprefix("fit of").partition(" of ")[0])
    is_row = table == "aging" and "the ageing row of" in source
    return source.startswith("fit of ") and (is_row or table in words)


def table_errors(table: str, name: str, values: list[PublishedValue]) -> TableErrors:
    """The errors of a twin's values in one table."""
    errors = [abs(value.error) for value in values]
    return TableErrors(table, sum(errors) / len(errors), max(errors), is_fitted_to(name, table))
