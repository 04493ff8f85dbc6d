"""replay: a trace, asked of the target again, at its own pace, a multiple, or as fast as it goes.

The trace was looked at from end to end before (`device/traces.py`): how far its volumes reach is
known, and every entry is one. The region is written in order first, so that reads find data; what a
trace's host had written before it began is not known.
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
"""Bytes of a directory that are used at most where no size is given."""
FILL_BLOCK: Final = MIB


@dataclass(frozen=True)
class Plan:
    """What a run does. Sizes in bytes; `span_s` is the trace's own length."""

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
        """The longest request of the trace, or of the fill."""
        return max(FILL_BLOCK, -(-self.longest // 4096 + 1) * 4096)

    @property
    def write_bytes(self) -> int:
        """The fill, and what the trace writes."""
        return self.written + (self.size if self.fills else 0)

    def parameters(self) -> dict[str, Any]:
        """For the manifest and the result."""
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
        """Work to do by kind, for the forecast."""
        fill = {"fill": float(self.size)} if self.fills else {}
        if self.replay.speed is None:
            return {**fill, "overwrite": float(self.moved)}
        return {**fill, "timed": self.span_s / self.replay.speed}


def plan(parameters: Replay, target: Target, seed: int) -> Plan:
    """The plan for these parameters.

    Volumes lie side by side in the order of their numbers, each from a whole MiB on, unless
    `together`. Addresses beyond the target's size wrap around.

    Raises:
        UsageError: the trace cannot be read, or reads of a new test file that is not written first.
    """
    found, capacity = parameters.statistics, target.capacity_bytes
    if not parameters.fills and found.reads and isinstance(target, Directory):
        raise UsageError(
            f"--as-it-is: the test file in {target} is new, and the trace reads; leave it out"
        )
    starts, end = _side_by_side(found.volumes)
    if parameters.together:
        starts, end = [], max((size for _, size in found.volumes), default=0)
    whole = max(-(-end // MIB), 1) * MIB
    room = DIRECTORY if capacity is None else capacity // MIB * MIB
    replay = msgspec.structs.replace(
        parameters.trace_input(),
        format=found.format,
        volumes=tuple(starts),
        requests=found.requests,
    )
    return Plan(
        replay=replay,
        size=parameters.size_bytes(min(whole, room)),
        depth=parameters.depth,
        longest=found.longest_bytes,
        written=found.write_bytes,
        moved=found.bytes,
        span_s=found.span_ns / 1e9,
        footprint=found.footprint_bytes,
        fills=parameters.fills,
        seed=seed,
    )


def _side_by_side(volumes: tuple[tuple[int, int], ...]) -> tuple[list[tuple[int, int]], int]:
    """On which byte each volume begins, and where the last one ends."""
    starts, end = [], 0
    for number, size in volumes:
        starts.append((number, end))
        end += -(-size // MIB) * MIB
    return starts, end


def measure(session: RunSession, plan: Plan) -> None:
    """Writes the region, then asks what the trace asks.

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
    words = f"replaying {format_size(plan.moved)} of {name}"
    outcome = session.run(Step("job", words, kind, case="trace", keeps_part=True), job)
    if plan.replay.speed is not None:
        session.observe("lag_us_mean", outcome.lag_ns_sum / max(outcome.requests, 1) / 1e3)
        session.observe("lag_us_max", outcome.lag_ns_max / 1e3)
        session.observe("late", float(outcome.late), "requests more than a millisecond late")
    session.target.check_uncached()
