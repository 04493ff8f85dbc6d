"""All that the doctor says of one target: what is shown, and what `--json` prints."""

from __future__ import annotations

from typing import Any

import msgspec

from ssdlab.doctor.checks import Verdict
from ssdlab.records import Finding
from ssdlab.snapshot import Snapshot
from ssdlab.warning import MeasurementWarning


class Report(msgspec.Struct, frozen=True):
    """The JSON of `ssdlab doctor`: design, section 5.

    `measures` has a row a layer; `findings` the verdicts by name; `verdicts` all that is said of
    them, the worst first; `warnings` what could not be read; `stack` what was read.
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
