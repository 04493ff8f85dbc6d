"""Power cuts of a served twin that merges writes, compared with a model of its bytes."""

from __future__ import annotations

import random
from contextlib import closing, suppress

from rig import Serve, Served, wait_for

from ssdlab.errors import TargetError
from ssdlab.witness.nbd import NbdTarget

UNIT = 4096
UNITS = 64
SECTOR = 512
CUTS = 20


def _connected(served: Served) -> NbdTarget:
    """A client; the server refuses connections until a power cut is complete."""
    targets: list[NbdTarget] = []

    def connects() -> bool:
        with suppress(TargetError):
            targets.append(NbdTarget(served.uri, "fdatasync"))
        return bool(targets)

    wait_for(connects, served.messages)
    return targets[0]


def _written(
    target: NbdTarget, states: list[list[bytes]], stream: random.Random
) -> list[list[bytes]]:
    """Writes in order from a random offset; returns the states of each unit since the last flush.

    A request is shorter or longer than a unit.
    """
    offset = stream.randrange(UNITS // 2 * UNIT // SECTOR) * SECTOR
    for _ in range(stream.randrange(1, 40)):
        data = stream.randbytes(SECTOR * stream.choice((1, 2, 3, 4, 12)))
        end = offset + len(data)
        if end > UNITS * UNIT:
            break
        target.write(offset, memoryview(data))
        for number in range(offset // UNIT, -(-end // UNIT)):
            first = number * UNIT
            start, stop = max(offset, first), min(end, first + UNIT)
            before = states[number][-1]
            part = data[start - offset : stop - offset]
            states[number].append(before[: start - first] + part + before[stop - first :])
        offset = end
        if stream.random() < 0.03:
            target.flush()
            states = [each[-1:] for each in states]
    return states


def test_a_power_cut_loses_all_or_none_of_the_writes_that_were_merged_to_a_unit(
    serve: Serve,
) -> None:
    """A program takes 1000 s, so the buffer still holds the last writes when the power fails."""
    served = serve(program="1000 s", more={"buffer": "merges_writes = true"})
    stream, rolled_back = random.Random(1), 0
    states = [[bytes(UNIT)] for _ in range(UNITS)]
    for _ in range(CUTS):
        with closing(_connected(served)) as target:
            states = _written(target, states, stream)
        with served.control as control:
            control.power_cut(on=True)
        with closing(_connected(served)) as target:
            content = bytes(target.read(0, UNITS * UNIT))
        for number, each in enumerate(states):
            found = content[number * UNIT : (number + 1) * UNIT]
            assert found in (each[0], each[-1]), f"unit {number} kept a part of what was merged"
            rolled_back += found == each[0] and len(each) > 2
            each[:] = [found]
    assert rolled_back > CUTS, "merged writes were lost"
