"""Ageing rows: what a drive's file took to read after random writes, and what a twin's takes.

The twin does the experiment `aging` itself, on a smaller file of a twin as much smaller: amounts
scale with the file, and a read of 1 MiB meets as many strays. A file of 128 MiB gives what one of
1 GiB gives within 2 % (it has 128 reads to average over).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from ssdlab.device import open_twin
from ssdlab.experiments.aging import measure as aging
from ssdlab.experiments.aging.analysis import measures
from ssdlab.runner.open_target import OpenTarget
from ssdlab.runner.session import RunSession

Floats = npt.NDArray[np.float64]
SCALED: Final = 128 * aging.MIB
"""The file of a scaled experiment, in bytes."""
CHECKED: Final = 4 * SCALED
"""The file on which a finished twin is held against its row: less noise than in the search."""
ROOM: Final = 8
"""A twin is so many times its file: room for all that is written over it without collection."""
REST_S: Final = 10.0
ROUNDING_S: Final = 0.1 / 12**0.5
"""Standard deviation of a time that is given in tenths of a second."""
SCATTER: Final = 0.04
"""What repeats and the model's own simplicity add, as a share of a time."""


@dataclass(frozen=True)
class Ageing:
    """A drive's ageing row: sizes in MiB, times in s.

    `written_mib` are amounts, each on top of those before it; `seconds` has one time more: first
    that of the fresh file. `where` is the file or folder it was read from, `drive` the drive's
    name, empty where nothing names it (`model` then says what it was read from).
    """

    model: str
    file_mib: float
    written_mib: tuple[float, ...]
    seconds: tuple[float, ...]
    where: str = field(default="", compare=False)
    drive: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        """Refuses a row that is no row: a bug of whoever made it."""
        assert len(self.seconds) == len(self.written_mib) + 1, "a time for each amount, and fresh"
        assert min(self.seconds) > 0, "a read takes time"

    def without(self, amounts: tuple[float, ...]) -> Ageing:
        """The row up to the first of these amounts: the state of a drive depends on all before."""
        kept = next((n for n, each in enumerate(self.written_mib) if each in amounts), None)
        return replace(
            self, written_mib=self.written_mib[:kept], seconds=self.seconds[: _one(kept)]
        )

    @property
    def sigma(self) -> Floats:
        """Standard deviation of the logarithm of each time."""
        return np.hypot(ROUNDING_S / np.array(self.seconds), SCATTER)


def _one(kept: int | None) -> int | None:
    return None if kept is None else kept + 1


def twin_seconds(profile: str, row: Ageing, *, size: int = SCALED, seed: int = 0) -> Floats:
    """What the twin of a profile's text takes for each time of a row, in s of the row's file.

    Raises:
        TargetError: the profile is wrong, or its twin cannot be so small.
    """
    scale = size / (row.file_mib * aging.MIB)
    block = aging.WRITE_BLOCK
    amounts = tuple(
        max(1, int(mib * aging.MIB * scale) // block) * block for mib in row.written_mib
    )
    plan = aging.Plan(size, amounts, (REST_S,), 0.0, seed)
    session = RunSession(OpenTarget(open_twin(row.model, profile, ROOM * size, seed=seed), {}))
    aging.measure(session, plan)
    rows = measures(session.recording.tables()["steps"], 1)
    return np.array([each["read_s"] for each in rows], dtype=np.float64) / scale


def errors(row: Ageing, seconds: Floats) -> Floats:
    """Relative errors of a twin's times: above zero where it is slower than the drive."""
    return seconds / np.array(row.seconds, dtype=np.float64) - 1.0
