"""The storage stack of a Windows machine, from the JSON of the collector script.

Sources: the classes MSFT_Disk, MSFT_PhysicalDisk, MSFT_Volume, MSFT_Partition,
MSFT_StorageReliabilityCounter and MSFT_VirtualDisk; IOCTL_STORAGE_QUERY_PROPERTY
(DEVICE_TRIM_DESCRIPTOR, STORAGE_WRITE_CACHE_PROPERTY); fsutil behavior. The script was not tried on
Windows: this was tested on recordings that were written by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from ssdlab.errors import UsageError
from ssdlab.snapshot import Device, Health, Mounted, Snapshot, Swap, TrimLayer, Unread
from ssdlab.storage_stack.health.report import health_in
from ssdlab.storage_stack.health.smart import get, parse_json_object
from ssdlab.storage_stack.trim.devices import Passes

KEY: Final = "ssdlab-collector"
_MIB: Final = 1 << 20
_TRANSPORTS: Final = {
    "NVMe": "nvme",
    "SATA": "sata",
    "ATA": "sata",
    "SAS": "sas",
    "SCSI": "scsi",
    "USB": "usb",
    "iSCSI": "iscsi",
    "SD": "mmc",
    "MMC": "mmc",
    "Virtual": "hyper-v",
    "File Backed Virtual": "loop",
    "Spaces": "spaces",
}
"""Transports by MSFT_Disk's BusType. RAID is a controller's volume, or a drive behind it."""
_WRITE_CACHE: Final = {1: False, 2: True}
"""STORAGE_WRITE_CACHE_PROPERTY, WriteCacheEnabled."""
_TABLES: Final = (
    "volumes",
    "partitions",
    "disks",
    "physical_disks",
    "storage_spaces",
    "page_files",
    "registry",
)
_AGAIN: Final = (
    "record again with the script that `ssdlab doctor --collector windows` prints, and do not "
    "edit it"
)
_LDM_DATA: Final = "{af9b60a0-1431-4f62-bc68-3311714a69ad}"
_LDM_DATA_MBR: Final = 0x42
"""Partition types of the Logical Disk Manager, whose disks Windows calls dynamic."""
_BITLOCKER: Final = {1: "on", 3: "encrypting", 4: "decrypting", 5: "suspended", 6: "locked"}
"""System.Volume.BitLockerProtection of an encrypted volume; 2 is off."""
_NOTIFY: Final = re.compile(r"(?:(\w+) )?DisableDeleteNotify\s*=\s*(\d)")


def is_windows(record: Any) -> bool:
    """Whether a JSON document is the output of the Windows script."""
    return isinstance(record, dict) and KEY in record and record.get("system") == "windows"


def read_windows(record: dict[str, Any]) -> Snapshot:
    """The snapshot of the target's stack.

    Raises:
        UsageError: another version, or a file that lacks the target's volume.
    """
    if record.get(KEY) != 1:
        raise UsageError(f"this is not a recording that this version of ssdlab can read; {_AGAIN}")
    _check(record)
    letter = str(record.get("letter") or "")
    volume = _row(record, "volumes", "DriveLetter", letter)
    partition = _row(record, "partitions", "DriveLetter", letter)
    dynamic = sorted({row.get("DiskNumber") or 0 for row in _dynamic_partitions(record)})
    if volume is None or (partition is None and not dynamic):
        raise UsageError(
            f"the recording has no volume with the letter {letter!r} on a disk of that machine; "
            "give the script a local path"
        )
    if partition is None:
        devices = list(_dynamic_devices(record, letter, dynamic))
    else:
        devices = list(_devices(record, partition))
    memory = record.get("memory_kib")
    as_root = bool(record.get("administrator"))
    return Snapshot(
        target=str(record.get("target")),
        as_root=as_root,
        kernel=f"Windows {record.get('version')}",
        memory_bytes=memory << 10 if isinstance(memory, int) else None,
        mounts=(_mounted(record, volume, devices),),
        devices=tuple(devices),
        swaps=tuple(_swaps(record, devices)),
        unread=tuple(_unread(devices, as_root=as_root)),
    )


class _Row(msgspec.Struct, rename="pascal"):
    """What is used of the rows of all tables other than as text."""

    number: int | None = None
    disk_number: int | None = None
    partition_number: int | None = None
    offset: int | None = None
    mbr_type: int | None = None
    size: int | None = None
    size_remaining: int | None = None
    allocation_unit_size: int | None = None
    logical_sector_size: int | None = None
    physical_sector_size: int | None = None
    bytes_offset_for_sector_alignment: int | None = None
    trim_enabled: int | None = None
    write_cache_enabled: int | None = None
    is_read_only: bool | None = None
    counters: dict[str, int | None] | None = None
    smartctl: str | None = msgspec.field(name="smartctl", default=None)
    members: list[str] | None = None
    allocated_base_size: int | None = None
    current_usage: int | None = None


def _check(record: dict[str, Any]) -> None:
    """Checks the types of what is used.

    Raises:
        UsageError: something has another type.
    """
    for table in _TABLES:
        try:
            msgspec.convert(_rows(record, table), list[_Row])
        except msgspec.ValidationError as error:
            raise UsageError(f"{table} of the recording: {error}; {_AGAIN}") from error
    if not isinstance(record.get("fsutil") or [], list):
        raise UsageError(f"fsutil of the recording is not a list; {_AGAIN}")


def _rows(record: dict[str, Any], table: str) -> list[dict[str, Any]]:
    rows = record.get(table)
    # ConvertTo-Json of Windows PowerShell wraps some arrays: {"value": [...], "Count": 1}.
    rows = rows.get("value", [rows]) if isinstance(rows, dict) else rows or []
    if not isinstance(rows, list):
        raise UsageError(f"{table} of the recording is not a list; {_AGAIN}")
    return [row for row in rows if isinstance(row, dict)]


def _row(record: dict[str, Any], table: str, key: str, value: Any) -> dict[str, Any] | None:
    return next((row for row in _rows(record, table) if str(row.get(key)) == str(value)), None)


def _devices(record: dict[str, Any], partition: dict[str, Any]) -> Iterator[Device]:
    """The volume's partition, its disk, and the members of a storage space."""
    number = partition.get("DiskNumber")
    disk = _row(record, "disks", "Number", number)
    name = f"PhysicalDrive{number}"
    yield Device(
        name=f"{name}-{partition.get('PartitionNumber')}",
        node=f"{partition.get('DriveLetter')}:",
        layer="partition",
        transport="partition",
        is_partition=True,
        below=(name,),
        size_bytes=partition.get("Size"),
        start_bytes=partition.get("Offset"),
    )
    if disk is None:
        return
    space = _row(record, "storage_spaces", "UniqueId", disk.get("UniqueId"))
    members = [] if space is None else _members(record, space)
    yield _disk(record, disk, tuple(member.name for member in members))
    yield from members


def _dynamic_partitions(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The partitions of dynamic disks that hold volumes: they have no drive letters."""
    return [
        row
        for row in _rows(record, "partitions")
        if str(row.get("GptType")).lower() == _LDM_DATA or row.get("MbrType") == _LDM_DATA_MBR
    ]


def _dynamic_devices(record: dict[str, Any], letter: str, numbers: list[int]) -> Iterator[Device]:
    """A volume on dynamic disks, which may use any of them, and all dynamic disks."""
    disks = [_row(record, "disks", "Number", number) for number in numbers]
    found = [_disk(record, disk, ()) for disk in disks if disk is not None]
    yield Device(
        name=f"{letter}:",
        node=f"{letter}:",
        layer="dynamic volume",
        transport="unknown",
        below=tuple(device.name for device in found),
    )
    yield from found


def _disk(record: dict[str, Any], disk: dict[str, Any], below: tuple[str, ...]) -> Device:
    name, bus = f"PhysicalDrive{disk.get('Number')}", str(disk.get("BusType"))
    physical = None if below else _row(record, "physical_disks", "DeviceId", disk.get("Number"))
    kinds = {"RAID": "RAID controller", "Spaces": "storage space", "USB": "USB"}
    health = _health(physical, disk.get("WriteCacheEnabled"))
    return Device(
        name=name,
        node=rf"\\.\{name}",
        layer=kinds.get(bus, "drive"),
        transport=_TRANSPORTS.get(bus, "unknown"),
        depth=1,
        is_drive=not below,
        below=below,
        size_bytes=disk.get("Size"),
        model=_text(disk.get("FriendlyName") or disk.get("Model")),
        serial=_text(disk.get("SerialNumber")),
        firmware=_text(disk.get("FirmwareVersion")),
        rotational={"SSD": False, "SCM": False, "HDD": True}.get(str(get(physical, "MediaType"))),
        read_only=disk.get("IsReadOnly"),
        logical_sector_bytes=disk.get("LogicalSectorSize"),
        physical_sector_bytes=disk.get("PhysicalSectorSize"),
        off_by_bytes=disk.get("BytesOffsetForSectorAlignment"),
        health=health,
    )


def _members(record: dict[str, Any], space: dict[str, Any]) -> list[Device]:
    """The drives of a storage space."""
    ids = space.get("Members") or ()
    rows = [row for row in _rows(record, "physical_disks") if row.get("UniqueId") in ids]
    found = (_disk(record, {**row, "Number": row.get("DeviceId")}, ()) for row in rows)
    return [msgspec.structs.replace(device, depth=2) for device in found]


def _text(value: Any) -> str | None:
    return str(value).strip() or None if value is not None else None


def _health(physical: dict[str, Any] | None, cache: Any) -> Health | None:
    if physical is None:
        return None
    report = parse_json_object(physical.get("smartctl"))
    found = None if report is None else health_in(report, "", lambda _: None)
    if found is not None:
        return found
    counters = physical.get("Counters") or {}
    known = any(value is not None for value in counters.values())
    if not known and cache not in _WRITE_CACHE:
        return None
    return Health(
        source="Get-StorageReliabilityCounter",
        passed={"Healthy": True, "Unhealthy": False}.get(str(physical.get("HealthStatus"))),
        worn=counters.get("Wear"),
        media_errors=counters.get("ReadErrorsUncorrected"),
        temperature_c=counters.get("Temperature"),
        power_on_hours=counters.get("PowerOnHours"),
        cache_on=_WRITE_CACHE.get(cache),
    )


def _mounted(record: dict[str, Any], volume: dict[str, Any], devices: list[Device]) -> Mounted:
    letter, kind = f"{volume.get('DriveLetter')}:\\", str(volume.get("FileSystem") or "unknown")
    passes, why = _notifies(record, kind)
    task = record.get("optimize_task")
    weekly = {"Disabled": "; the task ScheduledDefrag is disabled"}.get(str(task), "")
    if task is not None and not weekly:
        weekly = "; the task ScheduledDefrag re-trims"
    issues: Passes = "yes" if passes == "yes" or "re-trims" in weekly else passes
    return Mounted(
        mount_point=letter,
        fs_type=kind.lower(),
        source=letter,
        devices=tuple(device.name for device in devices if not device.depth),
        block_bytes=volume.get("AllocationUnitSize"),
        total_bytes=volume.get("Size"),
        free_bytes=volume.get("SizeRemaining"),
        layers=(
            TrimLayer("schedule", letter, issues, f"{why}{weekly}"),
            TrimLayer("file system", letter, "yes" if kind in {"NTFS", "ReFS"} else passes, why),
            *_bitlocker(record, letter),
            *(_trim(record, device) for device in devices),
        ),
    )


def _notifies(record: dict[str, Any], kind: str) -> tuple[Passes, str]:
    """Whether deleting files sends TRIM: fsutil, or the registry value that it prints."""
    for line in record.get("fsutil") or ():
        match = _NOTIFY.search(str(line))
        if match is not None and match[1] in {None, kind}:
            return "no" if match[2] == "1" else "yes", f"fsutil: {match[0]}"
    rows = _rows(record, "registry")
    name = {"NTFS": "DisableDeleteNotification", "ReFS": "RefsDisableDeleteNotification"}.get(kind)
    if rows and name is not None:
        value = rows[0].get(name)
        is_off = value is not None and value != 0
        said = "not set" if value is None else value
        return "no" if is_off else "yes", f"the registry's {name} is {said}"
    return "unknown", f"ssdlab does not know whether {kind} sends TRIM"


def _bitlocker(record: dict[str, Any], letter: str) -> Iterator[TrimLayer]:
    state = _BITLOCKER.get(record.get("bitlocker") or 0)
    if state is not None:
        yield TrimLayer("BitLocker", letter, "yes", f"it is {state}, and passes TRIM")


def _trim(record: dict[str, Any], device: Device) -> TrimLayer:
    if device.is_partition:
        return TrimLayer(device.layer, device.name, "yes", "passes what its disk accepts")
    if device.layer == "dynamic volume":
        why = "ssdlab does not follow dynamic volumes"
        return TrimLayer(device.layer, device.name, "unknown", why)
    disk = _row(record, "disks", "Number", device.name.removeprefix("PhysicalDrive"))
    enabled = None if disk is None else disk.get("TrimEnabled")
    if enabled is None:
        why = "Windows does not report StorageDeviceTrimProperty for it"
        return TrimLayer(device.layer, device.name, "unknown", why)
    passes: Passes = "yes" if enabled else "no"
    why = f"StorageDeviceTrimProperty: TrimEnabled is {int(bool(enabled))}"
    return TrimLayer(device.layer, device.name, passes, why)


def _swaps(record: dict[str, Any], devices: list[Device]) -> Iterator[Swap]:
    letter = str(record.get("letter"))
    drives = tuple(device.name for device in devices if device.is_drive)
    for row in _rows(record, "page_files"):
        name = str(row.get("Name"))
        size, used = row.get("AllocatedBaseSize") or 0, row.get("CurrentUsage") or 0
        here = drives if name.startswith(f"{letter}:") else ()
        yield Swap(name, size * _MIB, used * _MIB, here)


def _unread(devices: list[Device], *, as_root: bool) -> Iterator[Unread]:
    for device in devices:
        if device.is_drive and (device.health is None or device.health.worn is None):
            why = "the drive reports no wear to Windows" if as_root else "it needs an administrator"
            yield Unread(f"health of {device.name}", why, f"smartctl -x /dev/pd{device.name[13:]}")
