"""Checks and opens the target of an experiment, and removes its test file at the end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from ssdlab.device import (
    Drive,
    Engine,
    RealOptions,
    encode,
    open_engine,
    open_null,
    open_real,
    open_twin,
)
from ssdlab.errors import TargetError
from ssdlab.runner import written
from ssdlab.runner.consent import check_content, require_consent
from ssdlab.runner.testfile import TestFile, files_in_use, remove_leftovers
from ssdlab.storage_stack.blockdev import BlockDevice, device_at, size_of
from ssdlab.storage_stack.device_warnings import device_warnings
from ssdlab.storage_stack.file_info import attribute_warnings
from ssdlab.storage_stack.filesystem import mount_warnings
from ssdlab.storage_stack.health.hardware import Temperature, link_bytes_per_s, temperature
from ssdlab.storage_stack.in_use import in_use
from ssdlab.storage_stack.layers import (
    devices_of_mount,
    drives_of_mount,
    drives_under,
    layers_under,
)
from ssdlab.storage_stack.mounts import Mount, mount_of
from ssdlab.storage_stack.space import KEPT_RULE, room_for, space_on
from ssdlab.target import (
    NO_CONSENT,
    Consent,
    Directory,
    Target,
    Twin,
    anywhere,
    parse_target,
    path_target,
)
from ssdlab.units import format_size
from ssdlab.warning import MeasurementWarning

NO_DIRECT_IO: Final = frozenset({"data-journal", "dax"})
"""Warnings that mean that reads come from memory: such a target is refused."""
SIZE_LEAST: Final = 16 << 20
"""The smallest `--size` that an error message suggests, in bytes; experiments need more."""


@dataclass(frozen=True)
class TargetOptions:
    """A target and the options to open it.

    The first `size_bytes` may be overwritten; a block device needs `consent`. `request_bytes_max`
    is the largest request of any job. For errors, `size_from` is the option that gave the size, and
    `smaller` another option that needs less room, if there is one.
    """

    target: Target
    size_bytes: int
    seed: int = 0
    consent: Consent = NO_CONSENT
    request_bytes_max: int = 1 << 20
    size_from: str = "--size"
    smaller: str = ""

    def to_manifest(self) -> dict[str, Any]:
        """These options as the manifest's entry `wish`; its paths are absolute."""
        twin = self.target if isinstance(self.target, Twin) else None
        return {
            "target": str(anywhere(self.target)),
            "size_bytes": self.size_bytes,
            "seed": self.seed,
            "capacity_bytes": None if twin is None else twin.scaled_to_bytes,
            "destroy_data": self.consent.given,
            "destroy_named": self.consent.device,
            "request_bytes_max": self.request_bytes_max,
            "size_from": self.size_from,
        }

    @classmethod
    def from_manifest(cls, stored: Mapping[str, Any], consent: Consent) -> TargetOptions:
        """The options of a stored run. Consent is never taken from a manifest.

        Raises:
            TargetError: the target no longer exists.
        """
        return cls(
            parse_target(stored["target"], stored.get("capacity_bytes")),
            stored["size_bytes"],
            stored["seed"],
            consent,
            stored.get("request_bytes_max", 1 << 20),
            stored.get("size_from", "--size"),
        )


@dataclass
class OpenTarget:
    """An open drive, its description and the warnings about it.

    `destroys` describes the block device whose data is lost; "" for other targets.
    """

    drive: Drive
    identity: dict[str, Any]
    warnings: list[MeasurementWarning] = field(default_factory=list)
    profile: str | None = None
    test_file: TestFile | None = None
    drives: tuple[BlockDevice, ...] = ()
    destroys: str = ""
    _reopened: list[tuple[Drive, str]] = field(default_factory=list)

    @property
    def path(self) -> Path | None:
        """The test file or the block device; None for a twin."""
        if self.test_file is not None:
            return self.test_file.path
        is_device = self.identity["kind"] == "block device"
        return Path(self.identity["path"]) if is_device else None

    def reopened(self, options: RealOptions, engine: Engine = "io_uring") -> Drive:
        """The same storage opened again with other options; steps record how it was opened.

        A twin has only one access mode, so its drive is returned.

        Raises:
            TargetError: it cannot be opened in this way.
        """
        if self.path is None:
            return self.drive
        # A block device is already open exclusively, by `self.drive`.
        options = msgspec.structs.replace(options, exclusive=False)
        drive = open_engine(self.path, options, engine)
        self._reopened.append((drive, f'{{"engine":"{engine}",{encode(options)[1:]}'))
        return drive

    def access_mode(self, drive: Drive) -> str | None:
        """The column `opened` of `records.STEPS`: engine and options of `reopened`, as JSON."""
        return next((mode for other, mode in self._reopened if other is drive), None)

    def is_own_drive(self, drive: Drive) -> bool:
        """Whether a drive is this target (also if reopened), not a file that an experiment made."""
        return drive is self.drive or any(other is drive for other, _ in self._reopened)

    @property
    def link_bytes_per_s(self) -> float | None:
        """The sum of the link speeds of all drives below; None if one is unknown."""
        speeds = [link_bytes_per_s(drive) for drive in self.drives]
        known = [speed for speed in speeds if speed is not None]
        return sum(known) if known and len(known) == len(speeds) else None

    def temperatures(self) -> dict[str, Temperature]:
        """Temperatures by drive name; a twin has a sensor if its profile has a `[thermal]`."""
        readings = {drive.name: temperature(drive) for drive in self.drives}
        if own := self.drive.temperature():
            readings[self.identity["name"]] = Temperature(round(own[0], 1), own[1])
        return {name: reading for name, reading in readings.items() if reading is not None}

    @property
    def is_virtual(self) -> bool:
        """Whether it is a twin, with a virtual clock."""
        return bool(self.drive.is_virtual)

    def warn(self, code: str, sentence: str) -> None:
        """Adds a warning, unless it was added before."""
        warning = MeasurementWarning(code, sentence)
        if warning not in self.warnings:
            self.warnings.append(warning)

    def release(self) -> None:
        """Closes and removes the test file to free its blocks; `drive` becomes a null drive."""
        assert self.test_file is not None, "only a directory has a test file"
        self.drive = open_null()
        self.test_file.remove()
        self.test_file = None

    def check_written(self) -> int | None:
        """Checks that the whole test file is on the drive; returns its number of fragments.

        None if there is no test file or the file system cannot report its extents.

        Raises:
            TargetError: a part of it is not on the drive.
        """
        if self.test_file is None:
            return None
        return written.check_written(self.test_file.fd, self.warn)

    def check_uncached(self) -> None:
        """Checks that direct reads of the test file did not go through the page cache.

        Raises:
            TargetError: they went through the page cache.
        """
        if self.test_file is not None:
            written.check_uncached(self.test_file.fd, self.warn)


@contextlib.contextmanager
def open_for_run(options: TargetOptions) -> Iterator[OpenTarget]:
    """Opens a target for an experiment that overwrites `size_bytes` of it.

    A twin starts empty. In a directory a test file is created, and removed at the end. A block
    device loses its data and needs consent.

    Raises:
        TargetError: the target is missing, in use, too small, needs consent, or reads of it would
            not reach a drive.
    """
    check(options)
    target = options.target
    if isinstance(target, Twin):
        yield _open_twin(target, options.seed)
    elif isinstance(target, Directory):
        with _open_directory(target.path, options) as open_target:
            yield open_target
    else:
        yield _open_block_device(target.path, options)


def check(options: TargetOptions) -> None:
    """Checks what can be checked without opening the target.

    A command with several targets checks all of them before it measures the first one.

    Raises:
        TargetError: a twin is too small, a path is missing, or a block device needs consent.
    """
    target = options.target
    if isinstance(target, Twin):
        _require_capacity(target, options)
        return
    path_target(target.name)  # the path may have been removed since it was parsed
    if not isinstance(target, Directory):
        _refuse_used(target.path)  # before any word about consent
        require_consent(target.name, options.consent)


def _open_twin(twin: Twin, seed: int) -> OpenTarget:
    return OpenTarget(
        drive=open_twin(twin.profile, twin.text, twin.scaled_to_bytes, seed=seed),
        identity={"kind": "twin", "name": twin.profile, **twin.description},
        profile=twin.text,
    )


def _smaller(options: TargetOptions) -> str:
    return f"{options.smaller}, " if options.smaller else ""


def _require_capacity(twin: Twin, options: TargetOptions) -> None:
    if options.size_bytes > twin.capacity_bytes:
        raise TargetError(
            f"{twin} holds {format_size(twin.capacity_bytes)}, less than the "
            f"{format_size(options.size_bytes)} that this needs; give {_smaller(options)}a smaller "
            f"{options.size_from} or a larger --capacity"
        )


def _refuse_used(path: Path) -> None:
    if reasons := in_use(path):
        raise TargetError(
            f"{path} is in use and stays untouched: {'; '.join(reasons)}; give a directory on it, "
            "another block device, or stop what uses it"
        )


def _open_block_device(path: Path, options: TargetOptions) -> OpenTarget:
    size = size_of(path)
    if options.size_bytes > size:
        raise TargetError(
            f"{path} holds {format_size(size)}, less than the {format_size(options.size_bytes)} "
            f"that this needs; give {_smaller(options)}a smaller {options.size_from}"
        )
    device = device_at(path)
    if device.read_only:
        raise TargetError(f"{path} is read-only; give a block device that can be written")
    warnings = _layer_warnings([device])
    _refuse_fatal(path, warnings)
    drive = open_real(path, request_bytes_max=options.request_bytes_max, seed=options.seed)
    try:
        destroys = check_content(path, device, options.consent)
    except TargetError:
        del drive  # otherwise the traceback keeps the device open
        raise
    drives = drives_under(device) or (device,)
    return OpenTarget(
        drive=drive,
        identity={"kind": "block device", "path": str(path), "drives": _drive_rows(drives)},
        warnings=_not_fatal(warnings),
        drives=drives,
        destroys=destroys,
    )


def _layer_warnings(devices: Iterable[BlockDevice]) -> list[MeasurementWarning]:
    """The warnings about devices and all layers under them, without duplicates."""
    layers = [layer for device in devices for layer in layers_under(device)]
    warnings = [warning for layer in layers for warning in device_warnings(layer.device)]
    return list(dict.fromkeys(warnings))


@contextlib.contextmanager
def _open_directory(directory: Path, options: TargetOptions) -> Iterator[OpenTarget]:
    if not directory.stat().st_mode & 0o222:  # root could write there despite the mode
        raise TargetError(
            f"{directory} is read-only (mode {directory.stat().st_mode & 0o777:o}); give a "
            "directory on the drive that may be written"
        )
    mount = mount_of(directory)
    drives = drives_of_mount(mount)
    warnings = [*mount_warnings(mount), *_layer_warnings(devices_of_mount(mount))]
    # Only fatal attributes of the directory matter: if append-only, its files cannot be removed.
    _refuse_fatal(directory, [*warnings, *attribute_warnings(directory)])
    leftovers, others = remove_leftovers(directory), files_in_use(directory)
    _require_room(directory, options)
    with TestFile(directory, options.size_bytes) as test_file:
        warnings += attribute_warnings(test_file.path)
        _refuse_fatal(directory, warnings)
        largest = options.request_bytes_max
        target = OpenTarget(  # the only reference to the drive, so that `release` closes it
            drive=open_real(test_file.path, request_bytes_max=largest, seed=options.seed),
            identity=_directory_identity(directory, mount, drives),
            warnings=_not_fatal(warnings),
            test_file=test_file,
            drives=drives,
        )
        if others:
            target.warn(
                "another-run",
                "Another ssdlab is measuring in this directory, and both share the drive: repeat "
                "when it has ended.",
            )
        for path in leftovers:
            target.warn(
                "leftover",
                f"{path.name}, left by a run that was killed, was removed: no action is needed.",
            )
        yield target


def _refuse_fatal(path: Path, warnings: Iterable[MeasurementWarning]) -> None:
    for warning in warnings:
        if warning.fatal or warning.code in NO_DIRECT_IO:
            raise TargetError(
                f"{path}: {warning.sentence.rstrip('.')}; give a directory on the drive to be "
                "measured"
            )


def _require_room(directory: Path, options: TargetOptions) -> None:
    size_bytes = options.size_bytes
    usable = room_for(directory, size_bytes)
    if usable >= size_bytes:
        return
    space = space_on(directory)
    at_most = f"a {options.size_from} of at most {usable >> 20} MiB, or "
    smaller = at_most if usable >= SIZE_LEAST else ""
    raise TargetError(
        f"{directory} has {format_size(space.free_bytes)} free and "
        f"{format_size(space.kept_bytes)} must stay free ({KEPT_RULE}), so a "
        f"test of {format_size(size_bytes)} has no room; give {_smaller(options)}{smaller}another "
        "directory"
    )


def _directory_identity(
    directory: Path, mount: Mount, drives: tuple[BlockDevice, ...]
) -> dict[str, Any]:
    return {
        "kind": "directory",
        "path": str(directory.resolve()),
        "mount_point": str(mount.mount_point),
        "fs_type": mount.fs_type,
        "source": mount.source,
        "options": ",".join(dict.fromkeys(mount.options)),  # of the mount and the file system
        "drives": _drive_rows(drives),
    }


def _drive_rows(drives: tuple[BlockDevice, ...]) -> list[dict[str, Any]]:
    """The manifest's entries for drives: known attributes only, with units in their keys."""
    attributes = ("name", "vendor", "model", "serial", "firmware", "transport")
    settings = ("rotational", "scheduler", "write_cache")
    names = {name: name for name in (*attributes, *settings)}
    sizes = ("size", "logical_sector", "physical_sector", "discard_max")
    names.update({name: f"{name}_bytes" for name in sizes})
    rows = [{new: getattr(drive, old) for old, new in names.items()} for drive in drives]
    for row, drive in zip(rows, drives, strict=True):
        speed = link_bytes_per_s(drive)
        row["link_mib_per_s"] = None if speed is None else round(speed / (1 << 20), 1)
    return [{key: value for key, value in row.items() if value is not None} for row in rows]


def _not_fatal(warnings: Iterable[MeasurementWarning]) -> list[MeasurementWarning]:
    """The warnings without the field `fatal`: the target was opened, so none of them is fatal."""
    return [MeasurementWarning(warning.code, warning.sentence) for warning in warnings]
