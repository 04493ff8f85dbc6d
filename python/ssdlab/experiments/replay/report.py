"""The report of a replayed trace: a workload report with texts and labels for a trace."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ssdlab import view
from ssdlab.experiments.workload import report as workload
from ssdlab.records import Run
from ssdlab.view import Method
from ssdlab.wording import format_number


def _method(run: Run) -> Method:
    text, parameters = view.parameter_texts(run), run.manifest.parameters
    speed = parameters.get("speed")
    pace = (
        "as fast as the queue depth allows"
        if speed is None
        else f"at {format_number(speed)} times its recorded speed"
    )
    region = (
        "The region was first written sequentially and flushed."
        if parameters.get("filled")
        else "The region was not written first: reads of unwritten data need no flash access."
    )
    done = (
        f"The {text('requests')} requests of the trace {text('trace')} ({text('format')}) were "
        f"replayed {pace}, with at most {text('queue_depth')} outstanding, in the first "
        f"{text('size_mib')} of the target. {region} Addresses beyond it wrapped around to its "
        "start, and requests were extended to whole sectors."
    )
    meaning = (
        "Latency is the time from submitting a request, or from its due time if the trace is "
        "replayed at a speed, to its completion. A percentile is reported only if more than ten "
        "requests were slower."
    )
    pitfalls = (
        "The trace was recorded on one drive; on a faster drive its host might have been faster.",
        "Writes before the start of the trace are not part of it.",
        "Replayed as fast as possible, requests keep their order but not their times.",
    )
    return Method(done, meaning, pitfalls)


VIEW: Final = replace(
    workload.VIEW,
    title="Trace replay",
    method=_method,
    finding_labels={
        **workload.VIEW.finding_labels,
        "pace_kept": "Kept up with the trace",
        "lag_us_mean": "Mean lag",
        "lag_us_max": "Largest lag",
    },
    parameter_labels={
        "size_mib": "Region",
        "span_s": "Length of the trace",
        "filled": "Written first",
    },
)
