"""`Target`: the twin, directory or block device to measure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ssdlab import target as targets
from ssdlab.api.run import Run, completed
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
    """A twin, a directory or a block device, with the user's consent to destroy its data.

    Each run opens the target again, so every run on a twin starts with a new drive.
    """

    parsed: targets.Target
    consent: Consent = NO_CONSENT

    @property
    def name(self) -> str:
        """The target's name as on the command line: `twin:NAME`, or a path."""
        return str(self.parsed)

    @property
    def is_twin(self) -> bool:
        """Whether the target is a twin, which is measured in virtual time."""
        return isinstance(self.parsed, targets.Twin)

    @property
    def capacity_bytes(self) -> int | None:
        """Capacity of a (scaled) twin or a block device in bytes; None for a directory."""
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
        """Run an experiment, such as `ssdlab.Aging(quick=True)`, and save the run below `out`.

        On a twin, the same `seed` gives the same run. `listener` is called with a `Report` of the
        progress a few times a second. In a directory, a test file is created and removed. A run
        that uses much of a day's rated endurance warns, but does not ask for confirmation.

        Raises:
            UsageError: this is not an experiment, or a parameter is out of range.
            TargetError: the target cannot be used: too small, in use, or no consent.
            DeviceFailure: the drive failed; the results so far are saved.
            Interrupted: Ctrl-C; the results so far are saved.
        """
        request = make_request(
            experiment_of(parameters), parameters, self.parsed, self.consent, seed
        )
        return completed(perform(request, SaveOptions(Path(out), label), RunObserver(listener)))


def open_target(
    target: Path | str, *, capacity: Size | None = None, destroy_data: bool | str | Path = False
) -> Target:
    """Open a target: `twin:NAME`, a profile's FILE.toml, a directory or a block device.

    `capacity` scales a twin: bytes, or text such as "8GiB". A run destroys the data on a block
    device. `destroy_data=True` allows this only if the device looks empty; the device's own path,
    `destroy_data="/dev/sdX"`, allows it on a device with data. Nothing is written before a run.

    Raises:
        TargetError: no such target, or it cannot be used.
        UsageError: an invalid capacity, or a capacity for something other than a twin.
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
