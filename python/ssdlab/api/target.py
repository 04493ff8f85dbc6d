"""`Target`: what is measured, a twin or a real drive."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ssdlab.api.conduct import (
    Audience,
    Consent,
    Keeping,
    Opening,
    consent_of,
    perform,
    task_of,
)
from ssdlab.api.run import Run, ended
from ssdlab.experiment.frame.progress import Listener, silent
from ssdlab.experiment.frame.site import TWIN, Wish, capacity_of, check
from ssdlab.experiment.questions import Question, Size, bytes_of
from ssdlab.target import RESULTS

_PROFILE: Final = ".toml"
_AS_IT_IS: Final = Opening()


@dataclass(frozen=True)
class Target:
    """A twin, a directory or a block device, by its name on the command line.

    It holds nothing open: each run opens the target anew, and a twin begins its life anew.
    """

    name: str
    opening: Opening = _AS_IT_IS

    @property
    def is_twin(self) -> bool:
        """Whether its clock is virtual."""
        return self.name.startswith(TWIN)

    @property
    def capacity_bytes(self) -> int | None:
        """Bytes of a twin, as scaled, or of a block device; None for a directory."""
        return capacity_of(self.name, self.opening.capacity_bytes)

    def run(
        self,
        question: Question,
        *,
        seed: int = 0,
        out: Path | str = RESULTS,
        label: str = "",
        listener: Listener = silent,
    ) -> Run:
        """Asks it a question, such as `ssdlab.Aging(quick=True)`, and keeps the run below `out`.

        `seed` decides all that is random: a twin gives the same run again. `listener` is called
        with a `Report` of the progress a few times a second. Of a real drive a test file is made
        and removed. What costs much of a day's endurance is not asked about but warned of.

        Raises:
            UsageError: what is no question, or a parameter that may not be.
            TargetError: a target that cannot be used so: too small, in use, no consent.
            DeviceFailure: the drive failed; what was measured until then is kept.
            Interrupted: Ctrl-C; what was measured until then is kept.
        """
        task = task_of(question, self.name, self.opening, seed)
        return ended(perform(task, Keeping(Path(out), label), Audience(listener)))


def open_target(
    target: Path | str, *, capacity: Size | None = None, destroy_data: Consent = False
) -> Target:
    """What is to be measured: `twin:NAME`, a profile's FILE.toml, a directory, or a block device.

    `capacity` scales a twin: bytes, or a text such as "8GiB". A block device loses its data:
    `destroy_data=True` allows that for one on which nothing is found, and the device's own path,
    `destroy_data="/dev/sdX"`, for one that holds something. Nothing is written before a run.

    Raises:
        TargetError: no such target, or one that may not be opened so.
        UsageError: a capacity that is none, or of what is no twin.
    """
    name = str(target)
    if name.endswith(_PROFILE) and not name.startswith(TWIN) and not Path(name).is_dir():
        name = TWIN + name
    opening = Opening(bytes_of(capacity), destroy_data)
    check(Wish(name, 0, capacity_bytes=opening.capacity_bytes, **consent_of(destroy_data)))
    return Target(name, opening)
