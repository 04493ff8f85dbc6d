"""Ageing rows: how long a file takes to read after random overwrites, on a drive and on a twin.

The twin runs the experiment `aging` on a smaller file and overwrites proportionally less, so that
a 1 MiB read meets as many relocated units. Scaled times of a 128 MiB file match those of a 1 GiB
file within 2 %.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from ssdlab.device import open_twin
from ssdlab.experiments.aging import measure as aging
from ssdlab.experiments.aging.analysis import measures
from ssdlab.profiles.toml_edit import get_value
from ssdlab.runner.open_target import OpenTarget
from ssdlab.runner.session import RunSession

Floats = npt.NDArray[np.float64]
SCALED_FILE: Final = 128 * aging.MIB
"""File size during the search, in bytes."""
FINAL_FILE: Final = 4 * SCALED_FILE
"""File size in bytes for the final comparison with the drive: a larger file gives less noise."""
CAPACITY_RATIO: Final = 8
"""Twin capacity / file size: large enough to overwrite the file without garbage collection."""
REST_S: Final = 10.0
"""Idle time before a read. It is scaled like the file if an SLC cache folds data in it."""
SETTLE_S: Final = 1.0
"""Time that the slowest shipped twin takes to program a full 64 MiB buffer."""
ROUNDING_S: Final = 0.1 / 12**0.5
"""Standard deviation of the error from rounding a time to 0.1 s."""
RELATIVE_SIGMA: Final = 0.04
"""Assumed relative standard deviation of a time, from run-to-run scatter and model error."""


@dataclass(frozen=True)
class AgeingRow:
    """One drive's read times as its file ages: sizes in MiB, times in s.

    `written_mib` are the amounts overwritten, each in addition to those before it. `seconds` has
    one more element, because it starts with the fresh file's time. `where` is the file or folder
    that the row was read from. `drive` is the drive's name; if it is unknown, `drive` is empty and
    `model` names the source. `capacity_bytes` is the drive's, if the source has it.
    """

    model: str
    file_mib: float
    written_mib: tuple[float, ...]
    seconds: tuple[float, ...]
    where: str = field(default="", compare=False)
    drive: str = field(default="", compare=False)
    capacity_bytes: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        assert len(self.seconds) == len(self.written_mib) + 1, "a time for each amount, and fresh"
        assert min(self.seconds) > 0, "a read takes time"

    def without(self, amounts: tuple[float, ...]) -> AgeingRow:
        """The row cut before the first of these amounts, because later times depend on it."""
        every = enumerate(self.written_mib)
        end = next((n for n, mib in every if mib in amounts), len(self.written_mib))
        return replace(self, written_mib=self.written_mib[:end], seconds=self.seconds[: end + 1])

    @property
    def sigma(self) -> Floats:
        """Standard deviation of the logarithm of each time."""
        return np.hypot(ROUNDING_S / np.array(self.seconds), RELATIVE_SIGMA)


def twin_seconds(profile: str, row: AgeingRow, *, size: int = SCALED_FILE, seed: int = 0) -> Floats:
    """The twin's read times in s, measured on `size` bytes and scaled to the row's file size.

    Raises:
        TargetError: the profile is invalid, or its twin cannot be scaled down this far.
    """
    scale = size / (row.file_mib * aging.MIB)
    block = aging.WRITE_BLOCK
    amounts = tuple(
        max(1, int(mib * aging.MIB * scale) // block) * block for mib in row.written_mib
    )
    plan = aging.Plan(size, amounts, (_rest_s(profile, scale),), 0.0, seed)
    drive = open_twin(row.model, profile, CAPACITY_RATIO * size, seed=seed)
    session = RunSession(OpenTarget(drive, {}))
    aging.measure(session, plan)
    stages = measures(session.recording.tables()["steps"], 1)
    return np.array([stage["read_s"] for stage in stages], dtype=np.float64) / scale


def _rest_s(profile: str, scale: float) -> float:
    """Idle time before a read; the buffer, which is not scaled, must be empty after it."""
    if get_value(profile, "slc.size") is None:
        return REST_S
    empties = get_value(profile, "buffer.honours_flush") is not False and not get_value(
        profile, "buffer.power_loss_protection"
    )
    return REST_S * scale + (0.0 if empties else SETTLE_S)


def relative_errors(row: AgeingRow, seconds: Floats) -> Floats:
    """Relative errors of a twin's times: positive where the twin is slower than the drive."""
    return seconds / np.array(row.seconds, dtype=np.float64) - 1.0
