"""A served twin that merges writes keeps and loses whole units, as a model of bytes says."""

from __future__ import annotations

import contextlib
import random

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
        with contextlib.suppress(TargetError):
            targets.append(NbdTarget(served.uri, "fdatasync"))
        return bool(targets)

    wait_for(connects, served.messages)
    return targets[0]


def _write(target: NbdTarget, states: list[list[bytes]], offset: int, data: bytes) -> None:
    """Writes, and adds the new state of each unit."""
    target.write(offset, memoryview(data))
    for number in range(offset // UNIT, -(-(offset + len(data)) // UNIT)):
        start = max(offset, number * UNIT)
        stop = min(offset + len(data), (number + 1) * UNIT)
        state = bytearray(states[number][-1])
        state[start - number * UNIT : stop - number * UNIT] = data[start - offset : stop - offset]
        states[number].append(bytes(state))


def test_each_unit_is_as_before_one_of_its_writes_since_the_last_flush_after_a_power_cut(
    serve: Serve,
) -> None:
    """Programs take so long that the buffer has data at each cut."""
    served = serve(program="1000 s", more={"buffer": "merges_writes = true"})
    stream, rolled_back = random.Random(1), 0
    states = [[bytes(UNIT)] for _ in range(UNITS)]
    target = _connected(served)
    for _ in range(CUTS):
        offset = stream.randrange(UNITS * UNIT // SECTOR) * SECTOR
        for _ in range(stream.randrange(1, 40)):
            size = stream.choice((512, 1024, 1536, 2048, 6144))
            if offset + size > UNITS * UNIT or stream.random() < 0.1:
                offset = stream.randrange((UNITS - 2) * UNIT // SECTOR) * SECTOR
            _write(target, states, offset, stream.randbytes(size))
            offset += size
            if stream.random() < 0.03:
                target.flush()
                states = [each[-1:] for each in states]
        target.close()
        with served.control as control:
            control.power_cut(on=True)
        target = _connected(served)
        content = bytes(target.read(0, UNITS * UNIT))
        for number, each in enumerate(states):
            found = content[number * UNIT : (number + 1) * UNIT]
            assert found in each, f"unit {number} has a content that it never had"
            rolled_back += found != each[-1]
            each[:] = [found]
    target.close()
    assert rolled_back > CUTS
