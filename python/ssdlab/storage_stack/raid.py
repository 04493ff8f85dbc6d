"""Arrays below Linux: firmware RAID that md assembles, and the volumes of RAID controllers.

Sources: md(4) (metadata_version "external:..."), mdadm(8); the drivers' channels for volumes
(megaraid_sas: MEGASAS_MAX_PD_CHANNELS, mpt3sas: RAID_CHANNEL, aacraid: CONTAINER_CHANNEL) and the
attribute raid_level of hpsa and smartpqi; smartctl(8), option -d; the JSON of storcli and perccli.
No RAID controller was at hand: this was tested on recorded outputs only.
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

_DRIVERS: Final = frozenset(
    {"megaraid_sas", "megaraid_mbox", "mpt2sas", "mpt3sas", "hpsa", "cciss", "smartpqi", "aacraid"}
    | {"arcmsr", "3w-sas", "3w-9xxx"}
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
_NUMBERED: Final = frozenset({"hpsa", "cciss", "smartpqi"})
"""Drivers whose drives smartctl does not list: they are tried as cciss,0 and upwards."""
_NUMBERED_MAX: Final = 128
_ADDRESS: Final = re.compile(r"(\d+):(\d+):\d+:\d+")
_TOOLS: Final = ("storcli64", "storcli2", "storcli", "perccli64", "perccli2", "perccli")
_SMART_TYPES: Final = ("megaraid", "cciss", "aacraid", "areca", "3ware", "sssraid")


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume of a RAID controller: its driver, and the level if the driver reports it."""

    driver: str
    host: int
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
    host, channel = int(addresses[-1][1]), int(addresses[-1][2])
    driver = read_text(sys / "class" / "scsi_host" / f"host{host}" / "proc_name") or ""
    if driver not in _DRIVERS:
        return None
    level = read_text(directory / "device" / "raid_level")
    if driver in _WITH_LEVEL:
        return Volume(driver, host, level) if level and level != "N/A" else None
    if channel not in _VOLUME_CHANNELS.get(driver, (channel,)):
        return None
    return Volume(driver, host, level)


@dataclass(frozen=True, slots=True)
class Description:
    """What the controller's program says of a volume: `ids` of its drives, level, write cache."""

    ids: frozenset[str]
    level: str | None
    cache: str | None


@dataclass(frozen=True, slots=True)
class Members:
    """The drives of a volume; without a `description`, those of its whole controller."""

    drives: tuple[Device, ...]
    description: Description | None


def read_members(device: Device, volume: Volume, run: Runner) -> Members | None:
    """The drives of a volume with their health; None if smartctl finds none."""
    description = _describe(device.node, run)
    numbered = volume.driver in _NUMBERED
    found = _numbered(device, run) if numbered else _listed(device, volume, run)
    drives = tuple(
        drive
        for drive in found
        if description is None or (drive.smart_type or "").partition(",")[2] in description.ids
    )
    return Members(drives, description) if drives else None


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
        if not report.get("model_name") and not report.get("scsi_model_name"):
            return
        yield _member(device.node, kind, device, report)


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


def _describe(node: str, run: Runner) -> Description | None:
    """The volume that the system calls `node`; None without storcli and perccli."""
    for tool in _TOOLS:
        printed = parse_json_object(run((tool, "/call/vall", "show", "all", "J")))
        for controller in get(printed, "Controllers") or ():
            found = _in_controller(get(controller, "Response Data") or {}, node)
            if found is not None:
                return found
    return None


def _in_controller(data: dict[str, Any], node: str) -> Description | None:
    for key, properties in data.items():
        match = re.fullmatch(r"VD(\d+) Properties", key)
        if match is None or get(properties, "OS Drive Name") != node:
            continue
        number = match[1]
        rows = next((v for k, v in data.items() if re.fullmatch(rf"/c\d+/v{number}", k)), None)
        row = rows[0] if isinstance(rows, list) and rows else {}
        drives = data.get(f"PDs for VD {number}") or ()
        cache = str(get(row, "Cache") or "")
        caches = (("WB", "write back"), ("WT", "write through"))
        return Description(
            ids=frozenset(str(get(drive, "DID")) for drive in drives),
            level=get(row, "TYPE"),
            cache=next((words for sign, words in caches if sign in cache), None),
        )
    return None
