"""Arrays below Linux: firmware RAID that md assembles, and the volumes of RAID controllers.

Sources: md(4) (metadata_version "external:..."), mdadm(8); the drivers' channels for volumes
(megaraid_sas: MEGASAS_MAX_PD_CHANNELS, mpt3sas: RAID_CHANNEL, aacraid: CONTAINER_CHANNEL) and the
attribute raid_level of hpsa and smartpqi; smartctl(8), option -d. No RAID controller was available:
this was tested on recorded outputs only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ssdlab.snapshot import Device
from ssdlab.storage_stack.blockdev import SYS, BlockDevice, directory_of
from ssdlab.storage_stack.health.report import health_in
from ssdlab.storage_stack.health.smart import Runner, get, parse_json_object
from ssdlab.storage_stack.pseudofile import read_text
from ssdlab.storage_stack.raid_programs import Description, ListedDrive, describe

_DRIVERS: Final = frozenset(
    {"megaraid_sas", "megaraid_mbox", "mpt2sas", "mpt3sas", "hpsa", "cciss", "smartpqi", "aacraid"}
    | {"mpi3mr", "arcmsr", "3w-sas", "3w-9xxx"}
)
"""Drivers of RAID controllers: MegaRAID and PERC, LSI, Smart Array, Adaptec, Areca, 3ware."""
_VOLUME_CHANNELS: Final = {
    "megaraid_sas": (2, 3),
    "mpt2sas": (1,),
    "mpt3sas": (1,),
    "aacraid": (0,),
}
"""SCSI channels on which a driver shows volumes; drives that it passes through have others."""
_WITH_LEVEL: Final = frozenset({"hpsa", "smartpqi"})
_BY_MODEL: Final = {"mpi3mr": re.compile(r"PERC|MegaRAID|MR\d{4}")}
"""Drivers that show volumes and drives on the same channel: a volume has the controller's model."""
_NUMBERED: Final = frozenset({"hpsa", "cciss", "smartpqi"})
"""Drivers whose drives smartctl does not list: they are tried as cciss,0 and upwards."""
_NUMBERED_MAX: Final = 128
_ADDRESS: Final = re.compile(r"(\d+):(\d+):(\d+):\d+")
_SMART_TYPES: Final = ("megaraid", "cciss", "aacraid", "areca", "3ware", "sssraid")


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume of a RAID controller by its SCSI address; the level if the driver reports it."""

    driver: str
    host: int
    target: int
    level: str | None = None


def firmware_metadata(directory: Path, sys: Path = SYS) -> str | None:
    """The metadata format of an md array in `directory`: "imsm", "ddf", "1.2", ...; None: no array.

    An array of a container has "external:/md127/0" ("-" instead of "/": read-only), and its
    container "external:imsm".
    """
    version = read_text(directory / "md" / "metadata_version")
    if version is None or not version.startswith("external:"):
        return version
    kind = version.removeprefix("external:")
    if kind[:1] in {"/", "-"}:
        container = kind[1:].split("/")[0]
        inner = read_text(sys / "class" / "block" / container / "md" / "metadata_version")
        return (inner or kind).removeprefix("external:")
    return kind


def volume_of(device: BlockDevice, sys: Path = SYS) -> Volume | None:
    """What a disk is to its RAID controller; None for drives, also those that it passes through."""
    directory = directory_of(device, sys)
    addresses = [match for part in directory.parts if (match := _ADDRESS.fullmatch(part))]
    if device.is_partition or not addresses:
        return None
    host, channel, target = (int(addresses[-1][at]) for at in (1, 2, 3))
    driver = read_text(sys / "class" / "scsi_host" / f"host{host}" / "proc_name") or ""
    if driver not in _DRIVERS:
        return None
    level = read_text(directory / "device" / "raid_level")
    if driver in _WITH_LEVEL:
        return Volume(driver, host, target, level) if level and level != "N/A" else None
    if driver in _BY_MODEL and not _BY_MODEL[driver].search(device.model or ""):
        return None
    if channel not in _VOLUME_CHANNELS.get(driver, (channel,)):
        return None
    return Volume(driver, host, target, level)


@dataclass(frozen=True, slots=True)
class Members:
    """The drives of a volume; without a `description`, those of its whole controller."""

    drives: tuple[Device, ...]
    description: Description | None


def read_members(device: Device, volume: Volume, run: Runner) -> Members | None:
    """The drives of a volume with their health; None if no program finds any.

    A drive that smartctl does not reach is returned as the controller's program lists it.
    """
    description = describe(volume.driver, device.node, volume.target, run)
    found = list(_found(device, volume, description, run))
    if description is None:
        return Members(tuple(found), None) if found else None
    drives = []
    for listed in description.drives:
        mine = (drive for drive in found if _is_same(drive, listed))
        drives.append(next(mine, None) or _unreached(device, volume, listed))
    return Members(tuple(drives), description) if drives else None


def _found(
    device: Device, volume: Volume, description: Description | None, run: Runner
) -> Iterator[Device]:
    """The drives behind the volume's controller that smartctl reaches."""
    if volume.driver in _NUMBERED:
        yield from _numbered(device, run)
    elif volume.driver == "aacraid" and description is not None:
        for listed in description.drives:
            if listed.address:
                kind = f"aacraid,{volume.host},{listed.address}"
                report = _report(device.node, kind, run)
                if _names_model(report):
                    yield _member(device.node, kind, device, report)
    else:
        yield from _listed(device, volume, run)


def _is_same(drive: Device, listed: ListedDrive) -> bool:
    if listed.number:
        return (drive.smart_type or "").partition(",")[2] == listed.number
    return listed.is_serial(drive.serial)


def _unreached(device: Device, volume: Volume, listed: ListedDrive) -> Device:
    """A drive of which only the controller's program knows."""
    place = listed.place or listed.number or listed.serial
    return Device(
        name=f"{device.name}:{place}",
        node=device.node,
        layer="drive",
        transport=volume.driver,
        depth=device.depth + 1,
        is_drive=True,
        model=listed.model or None,
        serial=listed.serial or None,
        firmware=listed.firmware or None,
        rotational=None if listed.is_ssd is None else not listed.is_ssd,
    )


def _listed(device: Device, volume: Volume, run: Runner) -> Iterator[Device]:
    """The drives behind the volume's controller that smartctl lists."""
    scan = parse_json_object(run(("smartctl", "--json", "--scan-open"))) or {}
    for entry in scan.get("devices") or ():
        node, kind = get(entry, "name"), get(entry, "type")
        if not isinstance(node, str) or not isinstance(kind, str):
            continue
        family = kind.removeprefix("sat+").partition(",")[0]
        is_other_host = node.startswith("/dev/bus/") and node != f"/dev/bus/{volume.host}"
        if family in _SMART_TYPES and not is_other_host:
            yield _member(node, kind, device, _report(node, kind, run))


def _numbered(device: Device, run: Runner) -> Iterator[Device]:
    """The drives of a Smart Array, from number 0 to the first that does not exist."""
    for number in range(_NUMBERED_MAX):
        kind = f"cciss,{number}"
        report = _report(device.node, kind, run)
        if not _names_model(report):
            return
        yield _member(device.node, kind, device, report)


def _names_model(report: dict[str, Any]) -> bool:
    return bool(report.get("model_name") or report.get("scsi_model_name"))


def _report(node: str, kind: str, run: Runner) -> dict[str, Any]:
    return parse_json_object(run(("smartctl", "--json", "-x", "-d", kind, node))) or {}


def _member(node: str, kind: str, volume: Device, report: dict[str, Any]) -> Device:
    health = health_in(report, node, _no_program)  # nvme-cli cannot reach it
    rate = report.get("rotation_rate")
    protocol = get(report, "device", "protocol")
    return Device(
        name=f"{node.removeprefix('/dev/')}:{kind}",
        node=node,
        layer="drive",
        transport={"ATA": "sata", "SCSI": "sas", "NVMe": "nvme"}.get(str(protocol), "unknown"),
        depth=volume.depth + 1,
        is_drive=True,
        size_bytes=get(report, "user_capacity", "bytes"),
        model=report.get("model_name") or report.get("scsi_model_name"),
        serial=report.get("serial_number"),
        firmware=report.get("firmware_version"),
        rotational=None if rate is None else rate > 0,
        logical_sector_bytes=report.get("logical_block_size"),
        physical_sector_bytes=report.get("physical_block_size"),
        smart_type=kind,
        health=health,
    )


def _no_program(_: Sequence[str]) -> str | None:
    return None
