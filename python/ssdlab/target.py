"""A TARGET, parsed once: a twin, a directory or a block device, and what may be destroyed on it.

The command line and the Python API parse what they are given into these types; nothing below them
looks at the text again. The heavy imports are inside the functions: help needs none of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from ssdlab.errors import TargetError, UsageError

RESULTS: Final = Path("ssdlab-runs")
"""The results folder, unless another one is given."""
SEED_MAX: Final = 2**53 - 1
"""The largest whole number that every reader of JSON keeps exactly."""
_TWIN: Final = "twin:"
_ANY_EMPTY: Final = "any empty device"


@dataclass(frozen=True)
class Twin:
    """A simulated drive: the name of a shipped profile or a profile file, scaled if given.

    The profile is read and described once for each object, when it is first needed.
    """

    profile: str
    scaled_to_bytes: int | None = None

    @property
    def label(self) -> str:
        """The profile, for names of files and plots."""
        return self.profile

    @cached_property
    def text(self) -> str:
        """The profile's TOML.

        Raises:
            TargetError: there is no such profile.
        """
        from ssdlab import profiles

        return profiles.load(self.profile)

    @cached_property
    def description(self) -> dict[str, Any]:
        """Model, geometry and sizes in bytes.

        Raises:
            TargetError: a wrong profile, or a capacity that it cannot have.
        """
        from ssdlab.device import describe_twin

        return describe_twin(self.profile, self.text, self.scaled_to_bytes)

    @property
    def capacity_bytes(self) -> int:
        """The capacity, scaled if asked."""
        return int(self.description["capacity_bytes"])

    def __str__(self) -> str:
        return _TWIN + self.profile


@dataclass(frozen=True)
class Directory:
    """A directory in which a test file is made; `name` is as it was given."""

    name: str

    @property
    def label(self) -> str:
        """The path, for names of files and plots."""
        return self.name

    @property
    def path(self) -> Path:
        """Where it is."""
        return Path(self.name)

    @property
    def capacity_bytes(self) -> None:
        """None: its drive has other content."""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class BlockDevice:
    """A block device, whose data is lost; `name` is its path as it was given."""

    name: str

    @property
    def label(self) -> str:
        """The path, for names of files and plots."""
        return self.name

    @property
    def path(self) -> Path:
        """Its device file."""
        return Path(self.name)

    @property
    def capacity_bytes(self) -> int:
        """Bytes of the device, as the kernel reports them now.

        Raises:
            TargetError: it cannot be opened.
        """
        from ssdlab.storage_stack.blockdev import size_of

        return size_of(self.path)

    def __str__(self) -> str:
        return self.name


Target = Twin | Directory | BlockDevice


@dataclass(frozen=True)
class Consent:
    """Which block device may be overwritten: none, any on which nothing is found, or `device`.

    `device` may hold something; it must be the target itself.
    """

    any_empty: bool = False
    device: str = ""

    @property
    def given(self) -> bool:
        """Whether a block device may be overwritten at all."""
        return self.any_empty or bool(self.device)

    def __str__(self) -> str:
        return _ANY_EMPTY if self.any_empty else self.device


NO_CONSENT: Final = Consent()


def parse_target(text: str, capacity_bytes: int | None = None) -> Target:
    """The target that a text names; `capacity_bytes` scales a twin.

    Raises:
        TargetError: no such profile, directory or device.
        UsageError: a capacity for what is not a twin.
    """
    profile = text.removeprefix(_TWIN)
    if profile != text:
        twin = Twin(profile, capacity_bytes)
        _ = twin.description  # a wrong profile is refused here
        return twin
    if capacity_bytes is not None:
        raise UsageError(
            f"--capacity scales a twin, but the target is {text}; leave it out, or give twin:NAME"
        )
    return _path_target(text)


def parse_profile(text: str) -> str:
    """The profile's name or file of `twin:NAME`, or of NAME alone."""
    return text.removeprefix(_TWIN)


def is_twin(text: str) -> bool:
    """Whether a text names a twin."""
    return text.startswith(_TWIN)


def parse_consent(given: Consent | bool | str | Path) -> Consent:
    """What `--destroy-data` allows: True for any empty device, or the path of one."""
    if isinstance(given, Consent):
        return given
    if given is True or given == _ANY_EMPTY:
        return Consent(any_empty=True)
    return Consent(device=str(given)) if given else NO_CONSENT


def without_value(option: str) -> str:
    """The option with the value that it has when none is given."""
    return f"{option}={_ANY_EMPTY}"


def _path_target(text: str) -> Directory | BlockDevice:
    from ssdlab.storage_stack.blockdev import is_block_device

    path = Path(text)
    if not text:  # Path("") would be the working directory
        raise TargetError(
            "the target is empty; give a directory on the drive, a block device or twin:NAME"
        )
    try:
        path.stat()
    except OSError as error:
        raise TargetError(
            f"{path}: {error.strerror}; give a directory on the drive, a block device or twin:NAME"
        ) from error
    if path.is_dir():
        return Directory(text)
    if is_block_device(path):
        return BlockDevice(text)
    raise TargetError(
        f"{path} is neither a directory nor a block device; give the directory it is in "
        "(a test file is made there and removed again), or twin:NAME"
    )
