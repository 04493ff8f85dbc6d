"""How runs of a replayed trace are shown: as a workload's, in a trace's words."""

from __future__ import annotations

import dataclasses
from typing import Final

from ssdlab.experiments.workload import report as workload
from ssdlab.records import Run
from ssdlab.view import Method
from ssdlab.wording import format_number, plain, quantity


def _method(run: Run) -> Method:
    asked = run.manifest.parameters
    speed = asked.get("speed")
    pace = (
        "as fast as the queue allowed" if speed is None else f"{format_number(speed)} times as fast"
    )
    filled = (
        "It was written in order and flushed first."
        if asked.get("filled")
        else "It was used as it was: what had not been written costs no flash to read."
    )
    done = (
        f"The trace {plain(asked.get('trace'))} ({plain(asked.get('format'))}, "
        f"{asked.get('requests')} requests) was asked again, {pace}, at most "
        f"{asked.get('queue_depth')} at a time, of the first "
        f"{quantity('size_mib', asked.get('size_mib'))} of the target. {filled} Addresses beyond "
        "that went on from its beginning; requests were rounded out to sectors."
    )
    meaning = (
        "A latency counts from when a request was due (at a pace) or put until it was done. A "
        "percentile is told where more than ten requests lie beyond it."
    )
    pitfalls = (
        "What one host asked of its own drive: of a faster one it would have asked faster.",
        "What the trace's host had written before it began is not in it.",
        "As fast as it goes, the order is the trace's and the times are not.",
    )
    return Method(done, meaning, pitfalls)


VIEW: Final = dataclasses.replace(
    workload.VIEW,
    title="A trace, replayed",
    method=_method,
    finding_labels={
        **workload.VIEW.finding_labels,
        "pace_kept": "Pace kept",
        "lag_us_mean": "Lag, in the mean",
        "lag_us_max": "Lag, at most",
    },
    parameter_labels={
        "trace": "Trace",
        "format": "Format",
        "requests": "Requests",
        "volumes": "Volumes",
        "speed": "Speed",
        "queue_depth": "Queue depth",
        "size_mib": "Region",
        "footprint_mib": "Footprint",
        "span_s": "Length of the trace",
        "filled": "Written first",
    },
)
