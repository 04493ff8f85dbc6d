"""A target (twin, directory or block device) and the consent to overwrite a device.

The command line and the Python API parse their input into these types once. Heavy imports are
inside functions, so that `--help` starts fast.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from ssdlab.errors import TargetError, UsageError

RESULTS: Final = Path("ssdlab-runs")
"""The default results folder."""
SEED_MAX: Final = 2**53 - 1
"""The largest integer that JSON readers with 64-bit floats represent exactly."""
_TWIN: Final = "twin:"
_ANY_EMPTY: Final = "any empty device"
_ALLOWED: Final = "a directory on the drive, a block device or twin:NAME"


@dataclass(frozen=True)
class Twin:
    """A simulated drive: the name of a built-in profile or a profile file, maybe scaled.

    The profile is loaded once per object, on first use.
    """

    profile: str
    scaled_to_bytes: int | None = None

    @property
    def label(self) -> str:
        """The profile's name, for file names and plots."""
        return self.profile

    @cached_property
    def text(self) -> str:
        """The profile's TOML.

        Raises:
            TargetError: the profile does not exist.
        """
        from ssdlab import profiles

        return profiles.load(self.profile)

    @cached_property
    def description(self) -> dict[str, Any]:
        """Model, geometry and sizes in bytes.

        Raises:
            TargetError: an invalid profile, or a capacity that it cannot have.
        """
        from ssdlab.device import describe_twin

        return describe_twin(self.profile, self.text, self.scaled_to_bytes)

    @property
    def capacity_bytes(self) -> int:
        """The capacity, scaled if `scaled_to_bytes` is set."""
        return int(self.description["capacity_bytes"])

    def __str__(self) -> str:
        return _TWIN + self.profile


@dataclass(frozen=True)
class Directory:
    """A directory for a test file; `name` is the path as the user wrote it."""

    name: str

    @property
    def label(self) -> str:
        """The path, for names of files and plots."""
        return self.name

    @property
    def path(self) -> Path:
        """The path of the directory."""
        return Path(self.name)

    @property
    def capacity_bytes(self) -> None:
        """None: the drive holds other files."""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class BlockDevice:
    """A block device, which is overwritten; `name` is the path as the user wrote it."""

    name: str

    @property
    def label(self) -> str:
        """The path, for names of files and plots."""
        return self.name

    @property
    def path(self) -> Path:
        """The path of the device file."""
        return Path(self.name)

    @property
    def capacity_bytes(self) -> int:
        """The size of the device in bytes.

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
    """Which block device may be overwritten: none, any without signatures, or `device`.

    `device` may have content, but it must be the target itself.
    """

    any_empty: bool = False
    device: str = ""

    @property
    def given(self) -> bool:
        """Whether any block device may be overwritten."""
        return self.any_empty or bool(self.device)

    def __str__(self) -> str:
        return _ANY_EMPTY if self.any_empty else self.device


NO_CONSENT: Final = Consent()


def parse_target(
    text: str, capacity_bytes: int | None = None, *, allowed: str = _ALLOWED
) -> Target:
    """The target that `text` names; `capacity_bytes` scales a twin.

    `allowed` is what an error message says to give.

    Raises:
        TargetError: no such profile, directory or device.
        UsageError: a capacity for a target that is not a twin.
    """
    name = full_name(text)
    if is_twin(name):
        twin = Twin(parse_profile(name), capacity_bytes)
        _ = twin.description  # refuses an invalid profile now
        return twin
    if capacity_bytes is not None:
        raise UsageError(
            f"--capacity scales a twin, but the target is {text}; leave it out, or give twin:NAME"
        )
    return path_target(text, allowed)


def full_name(text: str) -> str:
    """`twin:NAME` for the name of a twin, unless a path has that name; else `text`."""
    from ssdlab import profiles

    if os.path.exists(text):  # noqa: PTH110 -- Path.exists raises in a directory without permission
        return text
    known = [] if "/" in text else [*profiles.names(), *profiles.own_names()]
    return _TWIN + text if text in known else text


def anywhere(target: Target) -> Target:
    """The same target by an absolute path, to open it from another working directory."""
    if isinstance(target, Twin):
        is_file = target.profile.endswith(".toml")
        return replace(target, profile=str(Path(target.profile).absolute())) if is_file else target
    return replace(target, name=str(target.path.absolute()))


def parse_profile(text: str) -> str:
    """The profile name or file in `twin:NAME` or NAME."""
    return text.removeprefix(_TWIN)


def is_twin(text: str) -> bool:
    """Whether `text` names a twin."""
    return text.startswith(_TWIN)


def parse_consent(value: Consent | bool | str | Path) -> Consent:
    """The value of `--destroy-data`: True for any empty device, or the path of one."""
    if isinstance(value, Consent):
        return value
    if value is True or value == _ANY_EMPTY:
        return Consent(any_empty=True)
    return Consent(device=str(value)) if value else NO_CONSENT


def without_value(option: str) -> str:
    """The option with the value assumed when the user gives it without one."""
    return f"{option}={_ANY_EMPTY}"


def path_target(text: str, allowed: str = _ALLOWED) -> Directory | BlockDevice:
    """The directory or block device at a path; `allowed` is what an error message says to give.

    Raises:
        TargetError: it does not exist, or is something else.
    """
    from ssdlab import profiles
    from ssdlab.storage_stack.blockdev import is_block_device

    path = Path(text)
    if not text:  # Path("") is the working directory
        raise TargetError(f"the target is empty; give {allowed}")
    try:
        path.stat()
    except OSError as error:
        if "/" not in text and (near := profiles.similar(text)):
            raise TargetError(
                f"{path}: {error.strerror}; did you mean {' or '.join(map(_TWIN.__add__, near))}?"
            ) from error
        raise TargetError(f"{path}: {error.strerror}; give {allowed}") from error
    if path.is_dir():
        return Directory(text)
    if is_block_device(path):
        return BlockDevice(text)
    raise TargetError(
        f"{path} is neither a directory nor a block device; give the directory it is in "
        "(ssdlab creates a test file there and removes it), or twin:NAME"
    )
