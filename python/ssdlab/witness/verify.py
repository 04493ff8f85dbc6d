"""Reads all sectors of a run's region and judges them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ssdlab.errors import DeviceFailure
from ssdlab.witness.judge import Judge, Judgement
from ssdlab.witness.ledger import Ledger, first_generation
from ssdlab.witness.limits import SECTOR, SECTORS_MAX
from ssdlab.witness.stamps import STAMP, Sectors, decode, unreadable
from ssdlab.witness.target import Target


def verify(
    target: Target,
    run: bytes,
    ledger: Ledger,
    round_number: int,
    on_progress: Callable[[float], None] = lambda _share: None,
) -> Judgement:
    """The judgement of the region after a round; `on_progress` gets the share read (0 to 1)."""
    judge = Judge(ledger, first_generation(round_number))
    sectors = target.size_bytes // SECTOR
    for first, window in read_windows(target, run):
        judge.check(first, window)
        on_progress((first + len(window.states)) / sectors)
    return judge.judgement()


def read_windows(target: Target, run: bytes) -> Iterator[tuple[int, Sectors]]:
    """All sectors of the target: first sector and content of each window of 1 MiB."""
    sectors = target.size_bytes // SECTOR
    for first in range(0, sectors, SECTORS_MAX):
        count = min(SECTORS_MAX, sectors - first)
        try:
            yield first, decode(run, first, target.read(first * SECTOR, count * SECTOR))
        except DeviceFailure:
            yield first, _read_by_block(target, run, first, count)


def _read_by_block(target: Target, run: bytes, first: int, count: int) -> Sectors:
    """Reads block by block where the read of a whole window failed."""
    step = target.block_bytes // SECTOR
    blocks = []
    for at in range(first, first + count, step):
        try:
            blocks.append(decode(run, at, bytes(target.read(at * SECTOR, step * SECTOR))))
        except DeviceFailure:
            blocks.append(unreadable(step))
    states = np.concatenate([block.states for block in blocks])
    return Sectors(states, np.concatenate([block.stamps for block in blocks]).astype(STAMP))
