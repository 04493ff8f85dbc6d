"""replay: sends the requests of a trace to the target, at the trace's pace or as fast as possible.

The whole trace is read before the run (`device/traces.py`) to check it and to learn the size of
its volumes. The region is written in order first, so that reads find data: a trace lacks the
writes that preceded it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from ssdlab import device
from ssdlab.device import Job
from ssdlab.errors import UsageError
from ssdlab.experiments.replay.parameters import Replay
from ssdlab.runner.session import RunSession, Step
from ssdlab.target import Directory, Target
from ssdlab.units import format_size

MIB: Final = 1 << 20
DIRECTORY: Final = 1 << 30
"""The largest default size in a directory."""
FILL_BLOCK: Final = MIB


@dataclass(frozen=True)
class Plan:
    """The plan of a run; sizes in bytes.

    Of the trace: `longest` is the largest request, `written` the bytes of writes, `moved` those of
    reads and writes, `span_s` the recorded duration.
    """

    replay: device.Replay
    size: int
    depth: int
    longest: int
    written: int
    moved: int
    span_s: float
    footprint: int
    fills: bool = True
    seed: int = 0

    @property
    def request_bytes_max(self) -> int:
        """The largest request of the trace or the fill in bytes, rounded up."""
        return max(FILL_BLOCK, -(-self.longest // 4096 + 1) * 4096)

    @property
    def write_bytes(self) -> int:
        """Bytes of the fill and the trace's writes."""
        return self.written + (self.size if self.fills else 0)

    def parameters(self) -> dict[str, Any]:
        """The parameters for the manifest and the result."""
        return {
            "trace": self.replay.path,
            "format": self.replay.format,
            "requests": self.replay.requests,
            "volumes": len(self.replay.volumes),
            "speed": self.replay.speed,
            "queue_depth": self.depth,
            "size_mib": self.size / MIB,
            "footprint_mib": self.footprint / MIB,
            "span_s": self.span_s,
            "filled": self.fills,
        }

    def work(self) -> dict[str, float]:
        """Bytes or seconds of each kind of work."""
        fill = {"fill": float(self.size)} if self.fills else {}
        if self.replay.speed is None:
            return {**fill, "overwrite": float(self.moved)}
        return {**fill, "timed": self.span_s / self.replay.speed}


def plan(parameters: Replay, target: Target, seed: int) -> Plan:
    """The plan for these parameters.

    Volumes are placed one after the other in the order of their numbers, each at a multiple of
    1 MiB; with `together` all start at 0. Addresses beyond the target's size wrap around.

    Raises:
        UsageError: the trace cannot be read, or reads of a new test file that is not written first.
    """
    trace, capacity = parameters.statistics, target.capacity_bytes
    if not parameters.fills and trace.reads and isinstance(target, Directory):
        raise UsageError(
            f"--as-it-is: the test file in {target} is new, and the trace reads; leave it out"
        )
    starts, end = _consecutive(trace.volumes)
    if parameters.together:
        starts, end = [], max((size for _, size in trace.volumes), default=0)
    whole = max(-(-end // MIB), 1) * MIB
    room = DIRECTORY if capacity is None else capacity // MIB * MIB
    replay = msgspec.structs.replace(
        parameters.trace_input(),
        format=trace.format,
        volumes=tuple(starts),
        requests=trace.requests,
    )
    return Plan(
        replay=replay,
        size=parameters.size_bytes(min(whole, room)),
        depth=parameters.depth,
        longest=trace.longest_bytes,
        written=trace.write_bytes,
        moved=trace.bytes,
        span_s=trace.span_ns / 1e9,
        footprint=trace.footprint_bytes,
        fills=parameters.fills,
        seed=seed,
    )


def _consecutive(volumes: tuple[tuple[int, int], ...]) -> tuple[list[tuple[int, int]], int]:
    """The number and first byte of each volume, and the end of the last one."""
    starts, end = [], 0
    for number, size in volumes:
        starts.append((number, end))
        end += -(-size // MIB) * MIB
    return starts, end


def measure(session: RunSession, plan: Plan) -> None:
    """Writes the region, then replays the trace.

    Raises:
        Interrupted, DeviceFailure, TargetError: as `RunSession.run_plan`.
    """
    if plan.fills:
        session.fill(plan.size)
    job = Job(
        op="write" if plan.written else "read",
        length_bytes=plan.size,
        amount_bytes=plan.moved,
        queue_depth=plan.depth,
        replay=plan.replay,
    )
    name = Path(plan.replay.path).name
    kind = "overwrite" if plan.replay.speed is None else "timed"
    label = f"replaying {format_size(plan.moved)} of {name}"
    outcome = session.run(Step("job", label, kind, case="trace", keeps_part=True), job)
    if plan.replay.speed is not None:
        session.observe("lag_us_mean", outcome.lag_ns_sum / max(outcome.requests, 1) / 1e3)
        session.observe("lag_us_max", outcome.lag_ns_max / 1e3)
        session.observe("late", float(outcome.late), "requests more than a millisecond late")
    session.target.check_uncached()
