"""What the programs of RAID controllers say of a volume: its drives, level and write cache.

storcli and perccli print JSON, in two forms: versions 1 and 7 name keys by the volume ("VD0
Properties"), versions 2 and 8 have a list "Virtual Drives". ssacli (hpssacli, hpacucli) and arcconf
print text. The forms were taken from outputs that users published; docs/storage-stacks.md lists
them. No RAID controller was available.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ssdlab.storage_stack.health.smart import Runner, get, parse_json_object

_STORCLI: Final = ("storcli64", "storcli2", "storcli", "perccli64", "perccli2", "perccli")
_SSACLI: Final = ("ssacli", "hpssacli", "hpacucli")
_PROGRAMS: Final[dict[str, tuple[str, ...]]] = {
    "megaraid_sas": _STORCLI,
    "megaraid_mbox": _STORCLI,
    "mpi3mr": _STORCLI,
    "mpt2sas": _STORCLI,
    "mpt3sas": _STORCLI,
    "hpsa": _SSACLI,
    "cciss": _SSACLI,
    "smartpqi": (*_SSACLI, "arcconf"),
    "aacraid": ("arcconf",),
}
"""Programs that may know the volumes of a driver; those of Areca and 3ware are not read."""
_CACHES: Final = (("WB", "write back"), ("WT", "write through"))


@dataclass(frozen=True, slots=True)
class ListedDrive:
    """A drive as the program lists it; "" and None stand for what it does not say.

    `number` is the N of smartctl's megaraid,N; `address` are the last two numbers of its
    aacraid,HOST,CHANNEL,ID; `is_ssd` is None if unknown.
    """

    number: str = ""
    address: str = ""
    place: str = ""
    model: str = ""
    serial: str = ""
    firmware: str = ""
    is_ssd: bool | None = None

    def is_serial(self, other: str | None) -> bool:
        """Whether `other` is its serial number; SAS drives may report a longer one."""
        own, found = self.serial, (other or "").strip()
        return bool(own and found) and (own.startswith(found) or found.startswith(own))


@dataclass(frozen=True, slots=True)
class Description:
    """What `program` says of a volume."""

    program: str
    drives: tuple[ListedDrive, ...]
    level: str | None = None
    cache: str | None = None


def describe(driver: str, node: str, target: int, run: Runner) -> Description | None:
    """The volume that the system calls `node`; None if no program that is installed knows it.

    `target` is its SCSI target: older versions of arcconf do not name the node.
    """
    for program in _PROGRAMS.get(driver, ()):
        if program in _STORCLI:
            found = _by_storcli(program, node, run)
        elif program in _SSACLI:
            found = _by_ssacli(program, node, run)
        else:
            found = _by_arcconf(node, target if driver == "aacraid" else None, run)
        if found is not None:
            return found
    return None


def _by_storcli(program: str, node: str, run: Runner) -> Description | None:
    printed = parse_json_object(run((program, "/call/vall", "show", "all", "J")))
    for controller in get(printed, "Controllers") or ():
        for row, drives, properties in _storcli_volumes(get(controller, "Response Data") or {}):
            if get(properties, "OS Drive Name") != node:
                continue
            cache = str(get(row, "CurrentCache") or get(row, "Cache") or "")
            return Description(
                program=program,
                drives=tuple(_storcli_drive(drive) for drive in drives),
                level=get(row, "TYPE"),
                cache=next((words for sign, words in _CACHES if sign in cache), None),
            )
    return None


def _storcli_volumes(data: dict[str, Any]) -> Iterator[tuple[Any, Sequence[Any], Any]]:
    """The summary, drives and properties of each volume, in either form."""
    for volume in get(data, "Virtual Drives") or ():
        yield get(volume, "VD Info"), get(volume, "PDs") or (), get(volume, "VD Properties")
    for key, properties in data.items():
        if (match := re.fullmatch(r"VD(\d+) Properties", key)) is not None:
            number = match[1]
            rows = next((v for k, v in data.items() if re.fullmatch(rf"/c\d+/v{number}", k)), None)
            row = rows[0] if isinstance(rows, list) and rows else None
            yield row, data.get(f"PDs for VD {number}") or (), properties


def _storcli_drive(row: Any) -> ListedDrive:
    number = get(row, "DID")
    return ListedDrive(
        number=str(get(row, "PID") if number is None else number),
        place=str(get(row, "EID:Slt") or ""),
        model=str(get(row, "Model") or "").strip(),
        is_ssd={"SSD": True, "HDD": False}.get(str(get(row, "Med"))),
    )


def _by_ssacli(program: str, node: str, run: Runner) -> Description | None:
    text = run((program, "ctrl", "all", "show", "config", "detail")) or ""
    for array in re.split(r"^ {3}(?=\S)", text, flags=re.MULTILINE):
        if not re.match(r"array:? ", array, re.IGNORECASE):
            continue
        parts = [
            (part.split("\n", 1)[0].strip(), _fields(part))
            for part in re.split(r"^ {6}(?=\S)", array, flags=re.MULTILINE)
        ]
        for head, volume in parts:
            if head.startswith("Logical Drive:") and volume.get("Disk Name") == node:
                level = volume.get("Fault Tolerance")
                cached = {"Enabled": "write back", "Disabled": "write through"}
                return Description(
                    program=program,
                    drives=tuple(_ssacli_drives(parts)),
                    level=f"RAID {level}" if level else None,
                    cache=cached.get(volume.get("Caching", "")),
                )
    return None


def _ssacli_drives(parts: list[tuple[str, dict[str, str]]]) -> Iterator[ListedDrive]:
    for head, drive in parts:
        is_data = drive.get("Drive Type", "Data Drive") == "Data Drive"
        if head.startswith("physicaldrive ") and is_data:
            interface = drive.get("Interface Type", "")
            yield ListedDrive(
                place=head.split()[1],
                model=" ".join(drive.get("Model", "").split()),
                serial=drive.get("Serial Number", ""),
                firmware=drive.get("Firmware Revision", ""),
                is_ssd=interface.startswith(("Solid State", "PCIe", "NVMe")) if interface else None,
            )


_SEGMENT: Final = re.compile(
    r"^ +(?:(?:Group \d+, )?Segment|Device) \d+ +: \w+ \(.*?\) *(\S+)[ \t]*$", re.MULTILINE
)
_REPORTED: Final = re.compile(r"\d+,\d+")
_LOGICAL: Final = re.compile(r"^logical device number ", re.MULTILINE | re.IGNORECASE)
_PHYSICAL: Final = re.compile(r"^physical device information[ \t]*$", re.MULTILINE | re.IGNORECASE)


def _by_arcconf(node: str, target: int | None, run: Runner) -> Description | None:
    first = run(("arcconf", "GETCONFIG", "1", "AL")) or ""
    counted = re.search(r"Controllers found: (\d+)", first)
    count = int(counted[1]) if counted else 0
    for number in range(1, count + 1):
        text = first if number == 1 else run(("arcconf", "GETCONFIG", str(number), "AL")) or ""
        body, *physical = _PHYSICAL.split(text, 1)
        for part in _LOGICAL.split(body)[1:]:
            fields = _fields(part)
            is_target = part.split("\n", 1)[0].strip() == str(target)
            by_target = count == 1 and "Disk Name" not in fields and is_target
            if fields.get("Disk Name", "").split(" ")[0] == node or by_target:
                return _arcconf_volume(part, fields, "".join(physical))
    return None


def _arcconf_volume(part: str, fields: dict[str, str], physical: str) -> Description:
    serials = _SEGMENT.findall(part)
    blocks = re.split(r"^\s+Device #", physical, flags=re.MULTILINE)[1:]
    listed = [_arcconf_drive(_fields(block)) for block in blocks if "is a Hard drive" in block]
    status = fields.get("Write-cache status") or fields.get("Caching") or ""
    cached = {"On": "back", "Enabled": "back", "Off": "through", "Disabled": "through"}.get(status)
    return Description(
        program="arcconf",
        drives=tuple(drive for drive in listed if any(drive.is_serial(s) for s in serials)),
        level=f"RAID {fields['RAID level']}" if fields.get("RAID level") else None,
        cache=f"write {cached}" if cached else None,
    )


def _arcconf_drive(fields: dict[str, str]) -> ListedDrive:
    reported = _REPORTED.match(fields.get("Reported Channel,Device(T:L)", ""))
    return ListedDrive(
        address="" if reported is None else reported[0],
        place=fields.get("Reported Location", ""),
        model=fields.get("Model", ""),
        serial=fields.get("Serial number", ""),
        firmware=fields.get("Firmware", ""),
        is_ssd={"Yes": True, "No": False}.get(fields.get("SSD", "")),
    )


_FIELD: Final = re.compile(r"^[ \t]*(\S.*?)[ \t]*:[ \t]+(\S.*?)[ \t]*$", re.MULTILINE)


def _fields(text: str) -> dict[str, str]:
    """The lines "NAME : VALUE" of a text, the first of each name."""
    found: dict[str, str] = {}
    for match in _FIELD.finditer(text):
        found.setdefault(match[1], match[2])
    return found
