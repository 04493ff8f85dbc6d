"""Ageing rows: how long a file takes to read after random overwrites, on a drive and on a twin.

The twin runs the experiment `aging` on a smaller file, with the amounts in proportion, so that a
1 MiB read meets as many relocated units. A file of 128 MiB gives the times of 1 GiB within 2 %.
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
SCALED_FILE: Final = 128 * aging.MIB
"""File size during the search, in bytes."""
FINAL_FILE: Final = 4 * SCALED_FILE
"""File size when a finished twin is compared with its row, in bytes: less noise."""
CAPACITY_RATIO: Final = 8
"""Twin capacity / file size: room for all overwrites without garbage collection."""
REST_S: Final = 10.0
ROUNDING_S: Final = 0.1 / 12**0.5
"""Standard deviation of a time that is rounded to 0.1 s."""
RELATIVE_SIGMA: Final = 0.04
"""Relative standard deviation assumed for the scatter of repeats and the error of the model."""


@dataclass(frozen=True)
class AgeingRow:
    """One drive's read times as its file ages: sizes in MiB, times in s.

    `written_mib` are the amounts overwritten, each in addition to those before it. `seconds` has
    one element more: the fresh file's time comes first. `where` is the file or folder that the row
    was read from; `drive` is the drive's name, or empty if unknown (then `model` names the source).
    """

    model: str
    file_mib: float
    written_mib: tuple[float, ...]
    seconds: tuple[float, ...]
    where: str = field(default="", compare=False)
    drive: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        assert len(self.seconds) == len(self.written_mib) + 1, "a time for each amount, and fresh"
        assert min(self.seconds) > 0, "a read takes time"

    def without(self, amounts: tuple[float, ...]) -> AgeingRow:
        """The row up to the first of these amounts: later times depend on all earlier writes."""
        every = enumerate(self.written_mib)
        end = next((n for n, mib in every if mib in amounts), len(self.written_mib))
        return replace(self, written_mib=self.written_mib[:end], seconds=self.seconds[: end + 1])

    @property
    def sigma(self) -> Floats:
        """Standard deviation of the logarithm of each time."""
        return np.hypot(ROUNDING_S / np.array(self.seconds), RELATIVE_SIGMA)


def twin_seconds(profile: str, row: AgeingRow, *, size: int = SCALED_FILE, seed: int = 0) -> Floats:
    """The read times of a profile's twin in s, scaled from a file of `size` bytes to the row's.

    Raises:
        TargetError: the profile is invalid, or its twin cannot be scaled down this far.
    """
    scale = size / (row.file_mib * aging.MIB)
    block = aging.WRITE_BLOCK
    amounts = tuple(
        max(1, int(mib * aging.MIB * scale) // block) * block for mib in row.written_mib
    )
    plan = aging.Plan(size, amounts, (REST_S,), 0.0, seed)
    drive = open_twin(row.model, profile, CAPACITY_RATIO * size, seed=seed)
    session = RunSession(OpenTarget(drive, {}))
    aging.measure(session, plan)
    stages = measures(session.recording.tables()["steps"], 1)
    return np.array([stage["read_s"] for stage in stages], dtype=np.float64) / scale


def relative_errors(row: AgeingRow, seconds: Floats) -> Floats:
    """Relative errors of a twin's times: positive where the twin is slower than the drive."""
    return seconds / np.array(row.seconds, dtype=np.float64) - 1.0
