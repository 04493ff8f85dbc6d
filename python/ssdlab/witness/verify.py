"""The verifier: reads all sectors of a run's region and judges them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ssdlab.errors import DeviceFailure
from ssdlab.witness.judge import Judge, Judgement
from ssdlab.witness.ledger import Ledger, first_generation
from ssdlab.witness.stamps import SECTOR, SECTORS_MAX, STAMP, Sectors, decode, unreadable
from ssdlab.witness.target import Target


def verify(
    target: Target,
    run: bytes,
    ledger: Ledger,
    round_number: int,
    tell: Callable[[float], None] = lambda _share: None,
) -> Judgement:
    """The judgement of the region after a round; `tell` hears the share that is read."""
    judge = Judge(ledger, first_generation(round_number))
    sectors = target.size_bytes // SECTOR
    for first, found in read_all(target, run):
        judge.look(first, found)
        tell((first + len(found.states)) / sectors)
    return judge.conclude()


def read_all(target: Target, run: bytes) -> Iterator[tuple[int, Sectors]]:
    """All sectors of the target, in windows."""
    whole = target.size_bytes // SECTOR
    for first in range(0, whole, SECTORS_MAX):
        count = min(SECTORS_MAX, whole - first)
        try:
            yield first, decode(run, first, target.read(first * SECTOR, count * SECTOR))
        except DeviceFailure:
            yield first, _piece_by_piece(target, run, first, count)


def _piece_by_piece(target: Target, run: bytes, first: int, count: int) -> Sectors:
    """What can be read of a window in which something cannot."""
    step = target.block_bytes // SECTOR
    states, stamps = [], []
    for at in range(first, first + count, step):
        try:
            found = decode(run, at, bytes(target.read(at * SECTOR, step * SECTOR)))
        except DeviceFailure:
            found = unreadable(step)
        states.append(found.states)
        stamps.append(found.stamps)
    return Sectors(np.concatenate(states), np.concatenate(stamps).astype(STAMP))
