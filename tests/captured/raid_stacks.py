"""Storage stacks with firmware RAID and RAID controllers, as in `stacks`.

The outputs of smartctl and perccli hold only the fields that ssdlab reads; those in `raid_outputs`
were published by users, and are reduced to their facts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from machine import CapturedMachine
from reports import Run, ata, programs
from stacks import NONE, SATA, VIRTUAL, Builder, Stack, sata_path, sectors

OUTPUTS: Final = Path(__file__).with_name("raid_outputs")


def _firmware(machine: CapturedMachine, level: str, files: Mapping[str, str]) -> None:
    container = machine.disk("md127", "9:127", VIRTUAL, {"md/metadata_version": "external:imsm"})
    known = {"md/level": level, "md/metadata_version": "external:/md127/0", "queue/fua": "0"}
    known |= {"md/degraded": "0", "md/sync_action": "idle", **files}
    array = machine.disk("md126", "9:126", VIRTUAL, known)
    for at in range(2):
        disk = machine.disk(f"sd{'ab'[at]}", f"8:{16 * at}", sata_path(at + 1), SATA)
        machine.rests_on(array, disk)
        machine.rests_on(container, disk)
    machine.mountinfo("22 1 9:126 / /srv rw - ext4 /dev/md126 rw,discard")


def firmware_raid1(machine: CapturedMachine) -> Stack:
    """Intel RST RAID 1 as mdadm assembles it, with TRIM."""
    _firmware(machine, "raid1", {})
    report = ata("Samsung SSD 860 EVO 500GB", cache=False)
    return Stack("/srv", programs({"sda": report, "sdb": report}))


def firmware_raid5(machine: CapturedMachine) -> Stack:
    """Intel RST RAID 5, which passes no TRIM."""
    _firmware(machine, "raid5", NONE)
    machine.files("sys/module/raid456/parameters", {"devices_handle_discard_safely": "N"})
    report = ata("Samsung SSD 860 EVO 500GB", cache=False)
    return Stack("/srv", programs({"sda": report, "sdb": report}))


def _controller(machine: CapturedMachine, driver: str, files: Mapping[str, str]) -> None:
    where = "devices/pci0000:00/0000:02:00.0/host0/target0:2:0/0:2:0:0/block"
    known = {"device/model": "PERC H740P Mini", "device/vendor": "DELL", **NONE}
    machine.disk("sda", "8:0", where, {**known, **sectors(479 * 10**9), **files})
    machine.files("sys/class/scsi_host/host0", {"proc_name": driver})
    machine.mountinfo("22 1 8:0 / /db rw - xfs /dev/sda rw")
    machine.weekly_trim()


def _megaraid_programs(command: Sequence[str]) -> str | None:
    """PERC with a mirror of DID 0 and 1, and a third drive that is in no volume."""
    words = " ".join(command)
    if words == "smartctl --json --scan-open":
        members = [{"name": "/dev/bus/0", "type": f"megaraid,{number}"} for number in range(3)]
        return json.dumps({"devices": [{"name": "/dev/sda", "type": "scsi"}, *members]})
    if words == "perccli64 /call/vall show all J":
        return json.dumps(PERCCLI)
    if words.startswith("smartctl --json -x -d megaraid,"):
        report = ata("SAMSUNG MZ7LH480HAHQ-00005", cache=True, Reallocated_Sector_Ct=0)
        if command[-2] == "megaraid,1":
            report = ata("Samsung SSD 860 EVO 500GB", cache=True, Reallocated_Sector_Ct=0)
        report |= {"rotation_rate": 0, "device": {"protocol": "ATA"}}
        report |= {"user_capacity": {"bytes": 480_103_981_056}, "serial_number": "S45PNA0M0000"}
        return json.dumps(report)
    return None


PERCCLI: Final[dict[str, Any]] = {
    "Controllers": [
        {
            "Command Status": {"Controller": 0, "Status": "Success"},
            "Response Data": {
                "/c0/v0": [
                    {"DG/VD": "0/0", "TYPE": "RAID1", "State": "Optl", "Cache": "RWBD", "Name": ""}
                ],
                "PDs for VD 0": [
                    {"EID:Slt": "64:0", "DID": 0, "State": "Onln", "Intf": "SATA", "Med": "SSD"},
                    {"EID:Slt": "64:1", "DID": 1, "State": "Onln", "Intf": "SATA", "Med": "SSD"},
                ],
                "VD0 Properties": {"Strip Size": "64 KB", "OS Drive Name": "/dev/sda"},
            },
        }
    ]
}
"""The fields of `perccli64 /call/vall show all J` that ssdlab reads."""


def perc(machine: CapturedMachine) -> Stack:
    """A volume of a PERC on two SATA SSDs, one of them without power-loss protection."""
    _controller(machine, "megaraid_sas", {})
    return Stack("/db", _megaraid_programs)


def perc_without_tool(machine: CapturedMachine) -> Stack:
    """The same without perccli: the drives of the controller are known, not those of the volume."""
    _controller(machine, "megaraid_sas", {})

    def run(command: Sequence[str]) -> str | None:
        return None if command[0].startswith("perccli") else _megaraid_programs(command)

    return Stack("/db", run)


def perc_as_user(machine: CapturedMachine) -> Stack:
    """The same, read by an ordinary user."""
    _controller(machine, "megaraid_sas", {})
    return Stack("/db", as_root=False)


def perc_two_volumes(machine: CapturedMachine) -> Stack:
    """LVM on two volumes of one controller, without perccli: each drive is examined once."""
    _controller(machine, "megaraid_sas", {})
    where = "devices/pci0000:00/0000:02:00.0/host0/target0:2:1/0:2:1:0/block"
    known = {"device/model": "PERC H740P Mini", "device/vendor": "DELL", **NONE}
    machine.disk("sdb", "8:16", where, {**known, **sectors(479 * 10**9)})
    names = {"dm/name": "vg-db", "dm/uuid": "LVM-1", **NONE}
    volume = machine.disk("dm-0", "252:0", VIRTUAL, names)
    for disk in ("sda", "sdb"):
        machine.rests_on(volume, (machine.sys / "class/block" / disk).resolve())
    machine.mountinfo("22 1 252:0 / /db rw - xfs /dev/mapper/vg-db rw")

    def run(command: Sequence[str]) -> str | None:
        return None if command[0].startswith("perccli") else _megaraid_programs(command)

    return Stack("/db", run, tables={"vg-db": ("linear",)})


def smart_array(machine: CapturedMachine) -> Stack:
    """A logical drive of a Smart Array, whose drives smartctl lists as cciss,N."""
    _controller(machine, "hpsa", {"device/raid_level": "RAID 1(1+0)", "device/vendor": "HP"})

    def run(command: Sequence[str]) -> str | None:
        kinds = {"cciss,0": "0001", "cciss,1": "0002"}
        if command[:4] != ("smartctl", "--json", "-x", "-d"):
            return None
        if command[4] not in kinds:
            return json.dumps({"smartctl": {"exit_status": 2}})
        report = ata("SAMSUNG MZ7LH480HAHQ-00005", cache=False, Reallocated_Sector_Ct=0)
        report |= {"rotation_rate": 0, "serial_number": kinds[command[4]]}
        return json.dumps({**report, "device": {"protocol": "ATA"}})

    return Stack("/db", run)


def _printed(command: str, name: str, drives: Mapping[str, Mapping[str, Any]]) -> Run:
    """A published output of a controller's program, and `drives` by smartctl's -d option."""
    text = (OUTPUTS / name).read_text()

    def run(words: Sequence[str]) -> str | None:
        if " ".join(words) == command:
            return text
        if words[:4] != ("smartctl", "--json", "-x", "-d"):
            return None
        # smartctl 7.4 with -d cciss,N names the volume's node and the type "sat".
        found = drives.get(words[4], {"smartctl": {"exit_status": 2}})
        return json.dumps({"rotation_rate": 0, "device": {"protocol": "ATA"}, **found})

    return run


def smart_array_ssacli(machine: CapturedMachine) -> Stack:
    """RAID 6 of four SSDs on a P408i-a, of which smartctl reaches three; cciss,3 is not in it."""
    where = {
        "device/raid_level": "RAID 6",
        "device/vendor": "HPE",
        "device/model": "LOGICAL VOLUME",
    }
    _controller(machine, "smartpqi", where)
    report = ata("MTFDDAK960TCB", cache=True, Reallocated_Sector_Ct=0)
    drives = {f"cciss,{n}": {**report, "serial_number": f"1700000000{n + 1}"} for n in range(3)}
    drives["cciss,3"] = {**ata("ST8000DM002-1YW112", cache=True), "serial_number": "ZA100000"}
    return Stack("/db", _printed("ssacli ctrl all show config detail", "ssacli.txt", drives))


def adaptec(machine: CapturedMachine) -> Stack:
    """RAID 5 of three consumer drives on an ASR7805Q, whose arcconf does not name the node."""
    where = "devices/pci0000:00/0000:02:00.0/host4/target4:0:1/4:0:1:0/block"
    known = {"device/model": "SSDSTORAGEPOOL", "device/vendor": "ASR7805Q", **NONE}
    machine.disk("sdb", "8:16", where, {**known, **sectors(674_838 << 20)})
    machine.files("sys/class/scsi_host/host4", {"proc_name": "aacraid"})
    machine.mountinfo("22 1 8:16 / /db rw - xfs /dev/sdb rw")
    machine.weekly_trim()
    report = ata("Samsung SSD 840 Series", cache=True, Wear_Leveling_Count=12)
    drives = {
        f"aacraid,4,0,{8 + n}": {**report, "serial_number": f"S1AT0000000000{n}"} for n in range(3)
    }
    return Stack("/db", _printed("arcconf GETCONFIG 1 AL", "arcconf_aacraid.txt", drives))


def perc_12(machine: CapturedMachine) -> Stack:
    """A volume of a PERC H965i (mpi3mr), whose drives smartctl does not reach."""
    where = "devices/pci0000:00/0000:02:00.0/host0/target0:0:1/0:0:1:0/block"
    known = {"device/model": "PERC H965i Front", "device/vendor": "DELL", **NONE}
    machine.disk("sdg", "8:96", where, {**known, **sectors(234_130_688 * 4096)})
    machine.files("sys/class/scsi_host/host0", {"proc_name": "mpi3mr"})
    machine.mountinfo("22 1 8:96 / /db rw - xfs /dev/sdg rw")
    machine.weekly_trim()
    return Stack("/db", _printed("perccli2 /call/vall show all J", "storcli_8.json", {}))


def passed_through(machine: CapturedMachine) -> Stack:
    """A drive that a MegaRAID passes through (JBOD) is a drive, with TRIM."""
    where = "devices/pci0000:00/0000:02:00.0/host0/target0:0:3/0:0:3:0/block"
    machine.disk("sda", "8:0", where, SATA)
    machine.files("sys/class/scsi_host/host0", {"proc_name": "megaraid_sas"})
    machine.mountinfo("22 1 8:0 / /db rw - xfs /dev/sda rw,discard")
    report = ata("Samsung SSD 860 EVO 500GB", cache=False)
    return Stack("/db", programs({"sda": report}))


RAID_STACKS: Final[dict[str, Builder]] = {
    builder.__name__: builder
    for builder in (
        *(firmware_raid1, firmware_raid5, perc, perc_without_tool, perc_as_user),
        *(perc_two_volumes, smart_array, smart_array_ssacli, adaptec, perc_12, passed_through),
    )
}
