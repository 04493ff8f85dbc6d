"""The doctor's report on one target, as `--json` prints it."""

from __future__ import annotations

from typing import Any

import msgspec

from ssdlab.doctor.checks import Verdict
from ssdlab.records import Finding
from ssdlab.snapshot import Snapshot
from ssdlab.warning import MeasurementWarning


class Report(msgspec.Struct, frozen=True):
    """The JSON object of `ssdlab doctor`.

    `measures` has a row for each layer. `findings` are the verdicts by name, `verdicts` the same
    with all details, the worst first. `warnings` lists what could not be read; `stack` is the
    snapshot that was read.
    """

    ssdlab: str
    target: str
    duration_s: float
    measures: list[dict[str, Any]]
    findings: dict[str, Finding]
    verdict: str
    verdicts: list[Verdict]
    warnings: list[MeasurementWarning]
    stack: Snapshot
