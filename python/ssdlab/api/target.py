"""`Target`: what is measured, a twin or a real drive."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ssdlab import target as targets
from ssdlab.api.run import Run, ended
from ssdlab.errors import UsageError
from ssdlab.experiments.registry import experiment_of
from ssdlab.runner.open_target import TargetOptions, check
from ssdlab.runner.parameters import Parameters, Size
from ssdlab.runner.progress import Listener, silent
from ssdlab.runner.run import RunObserver, SaveOptions, make_request, perform
from ssdlab.target import NO_CONSENT, RESULTS, Consent, parse_consent
from ssdlab.units import parse_size

_PROFILE: Final = ".toml"


@dataclass(frozen=True)
class Target:
    """A twin, a directory or a block device, and what may be destroyed.

    It holds nothing open: each run opens the target again, and a twin starts new.
    """

    parsed: targets.Target
    consent: Consent = NO_CONSENT

    @property
    def name(self) -> str:
        """As on the command line: `twin:NAME`, or a path."""
        return str(self.parsed)

    @property
    def is_twin(self) -> bool:
        """Whether its clock is virtual."""
        return isinstance(self.parsed, targets.Twin)

    @property
    def capacity_bytes(self) -> int | None:
        """Bytes of a twin, as scaled, or of a block device; None for a directory."""
        return self.parsed.capacity_bytes

    def run(
        self,
        parameters: Parameters,
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
        task = make_request(experiment_of(parameters), parameters, self.parsed, self.consent, seed)
        return ended(perform(task, SaveOptions(Path(out), label), RunObserver(listener)))


def open_target(
    target: Path | str, *, capacity: Size | None = None, destroy_data: bool | str | Path = False
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
    if name.endswith(_PROFILE) and not targets.is_twin(name) and not Path(name).is_dir():
        name = str(targets.Twin(name))
    parsed, consent = targets.parse_target(name, _bytes(capacity)), parse_consent(destroy_data)
    check(TargetOptions(parsed, 0, consent=consent))
    return Target(parsed, consent)


def _bytes(capacity: Size | None) -> int | None:
    if isinstance(capacity, str):
        return parse_size(capacity)
    if capacity is not None and capacity < 0:
        raise UsageError(f"the capacity is {capacity} bytes; it may be a size such as 8GiB")
    return capacity
