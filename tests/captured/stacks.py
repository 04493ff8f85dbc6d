"""Storage stacks of typical machines: each function builds /sys and /proc."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from machine import CapturedMachine
from reports import Run, ata, nvme, programs

from ssdlab.storage_stack.layers import Roots, Tables
from ssdlab.storage_stack.snapshot import Probes, Sizes
from ssdlab.storage_stack.trim.tables import parse_tables
from ssdlab.storage_stack.zfs import read_pools

VIRTUAL: Final = "devices/virtual/block"
NONE: Final = {"queue/discard_max_bytes": "0", "queue/discard_granularity": "0"}
GIB: Final = 1 << 30
_HALF_FULL: Final = Sizes(4096, 400 * GIB, 210 * GIB)


def sectors(size_bytes: int) -> dict[str, str]:
    """The sysfs attribute `size` of a device."""
    return {"size": str(size_bytes // 512)}


def nvme_path(number: int) -> str:
    """The directory of an NVMe drive in /sys."""
    return f"devices/pci0000:00/0000:0{number + 1}:00.0/nvme/nvme{number}"


def sata_path(port: int) -> str:
    """The directory of the drive at a SATA port in /sys."""
    return f"devices/pci0000:00/0000:00:17.0/ata{port}/host{port}/target{port}:0:0/block"


SATA: Final = {
    "device/model": "Samsung SSD 860 EVO 500GB",
    "device/vendor": "ATA",
    "queue/fua": "0",
    "queue/scheduler": "none [mq-deadline]",
    **sectors(500_107_862_016),
}
NVME: Final = {
    "device/model": "Samsung SSD 970 EVO Plus 500GB",
    "device/serial": "S4EVNX0M000000",
    "queue/fua": "1",
    **sectors(500_107_862_016),
}


@dataclass(frozen=True)
class Stack:
    """The target of a snapshot, and the results of programs and system calls."""

    target: str
    run: Run = field(default_factory=lambda: programs({}))
    sizes: Sizes = _HALF_FULL
    tables: Tables = field(default_factory=dict)
    as_root: bool = True
    has_smartctl: bool = True

    def probes(self) -> Probes:
        """The probes of this machine."""
        return Probes(
            as_root=self.as_root,
            kernel="6.8.0",
            sizes=self._sizes,
            run=self.run,
            installed=lambda _: self.has_smartctl,
        )

    def _sizes(self, mount_point: Path) -> Sizes | None:
        return self.sizes


def roots_of(machine: CapturedMachine, stack: Stack) -> Roots:
    """The directories, tables and pools of the machine."""
    pools = read_pools(stack.run)
    return Roots(machine.sys, machine.proc, machine.etc, machine.run, stack.tables, pools)


Builder = Callable[[CapturedMachine], Stack]


def _laptop(machine: CapturedMachine, limits: Mapping[str, str]) -> Run:
    """ext4 and swap on LVM volumes in a LUKS container on an NVMe partition."""
    disk = machine.disk("nvme0n1", "259:0", nvme_path(0), NVME)
    part = machine.partition(disk, "nvme0n1p3", "259:3", 1_050_624)
    names = {"dm/name": "cryptroot", "dm/uuid": "CRYPT-LUKS2-5e-cryptroot"}
    crypt = machine.disk("dm-0", "252:0", VIRTUAL, {**names, **limits, **sectors(499 * 10**9)})
    machine.rests_on(crypt, part)
    for at, name in ((1, "vg-root"), (2, "vg-swap")):
        files = {"dm/name": name, "dm/uuid": f"LVM-{at}", **limits, **sectors(400 * GIB)}
        machine.rests_on(machine.disk(f"dm-{at}", f"252:{at}", VIRTUAL, files), crypt)
    machine.mountinfo("22 1 252:1 / / rw,relatime - ext4 /dev/mapper/vg-root rw")
    machine.swaps("/dev/dm-2 partition 16777212 0 -2")
    machine.weekly_trim()
    machine.files("etc/lvm", {"lvm.conf": "devices {\n\tissue_discards = 0\n}"})
    machine.files("proc", {"meminfo": "MemTotal:       16252928 kB"})
    control = {"vwc": 7, "unvmcap": 0}
    report = nvme("Samsung SSD 970 EVO Plus 500GB", percentage_used=12)
    feature = {"feature: 0x06": "Volatile Write Cache", "Current": "0x00000001"}
    return programs({"nvme0n1": report}, {"nvme id-ctrl": control, "nvme get-feature": feature})


def laptop(machine: CapturedMachine) -> Stack:
    """A laptop whose LUKS container is open without discards."""
    return Stack("/", _laptop(machine, NONE), tables={"cryptroot": ("crypt",)})


def laptop_open(machine: CapturedMachine) -> Stack:
    """The same with allow_discards."""
    words = {"cryptroot": ("crypt", "allow_discards")}
    return Stack("/home", _laptop(machine, {}), tables=words)


def laptop_off(machine: CapturedMachine) -> Stack:
    """The same with LUKS1, and a volume that begins 1 KiB off a page."""
    tables = parse_tables(
        "cryptroot: 0 974608384 crypt aes-xts-plain64 0000 0 259:3 2056 1 allow_discards\n"
        "vg-root: 0 838860800 linear 252:0 386\n"
    )
    return Stack("/", _laptop(machine, {}), tables=tables)


def laptop_as_user(machine: CapturedMachine) -> Stack:
    """The same, read by an ordinary user."""
    _laptop(machine, {})
    return Stack("/home", as_root=False)


def _array(machine: CapturedMachine, level: str, count: int, files: Mapping[str, str]) -> None:
    array = machine.disk("md0", "9:0", VIRTUAL, {"md/level": level, **files})
    for at in range(count):
        disk = machine.disk(f"sd{'abc'[at]}", f"8:{16 * at}", sata_path(at + 1), SATA)
        machine.rests_on(array, machine.partition(disk, f"{disk.name}1", f"8:{16 * at + 1}"))


def raid1(machine: CapturedMachine) -> Stack:
    """A mirror with a missing member and no scheduled TRIM."""
    _array(machine, "raid1", 1, {"md/degraded": "1", "md/sync_action": "idle", "queue/fua": "0"})
    machine.mountinfo("22 1 9:0 / /srv rw - ext4 /dev/md0 rw")
    report = ata("Samsung SSD 860 EVO 500GB", cache=True, Total_LBAs_Written=10**10)
    return Stack("/srv/www", programs({"sda": report}))


def raid5(machine: CapturedMachine) -> Stack:
    """RAID 5 on three drives without devices_handle_discard_safely; it resyncs."""
    _array(machine, "raid5", 3, {"md/degraded": "0", "md/sync_action": "resync", **NONE})
    path = "sys/module/raid456/parameters"
    machine.files(path, {"devices_handle_discard_safely": "N"})
    machine.mountinfo("22 1 9:0 / /srv rw - xfs /dev/md0 rw")
    machine.weekly_trim("/dev/md0 /srv xfs defaults 0 0\n")
    return Stack("/srv", has_smartctl=False)


def _usb(machine: CapturedMachine, speed: str, files: Mapping[str, str]) -> None:
    bridge = "devices/pci0000:00/0000:00:14.0/usb2/2-1"
    texts = {"idVendor": "152d", "idProduct": "0578", "speed": speed}
    machine.files(f"sys/{bridge}", texts)
    known = {"device/model": "JMS578", "device/vendor": "JMicron", **sectors(10**12), **files}
    disk = machine.disk("sdb", "8:16", f"{bridge}/2-1:1.0/host6/target6:0:0/6:0:0:0/block", known)
    machine.partition(disk, "sdb1", "8:17")
    machine.mountinfo("40 1 8:17 / /media/backup rw - ext4 /dev/sdb1 rw")
    machine.weekly_trim("UUID=1 / ext4 defaults 0 1\n")


def usb(machine: CapturedMachine) -> Stack:
    """An enclosure on USB 2 whose bridge passes no UNMAP."""
    _usb(machine, "480", {"device/scsi_disk/6:0:0:0/provisioning_mode": "full", **NONE})
    return Stack("/media/backup")


def usb_unmap(machine: CapturedMachine) -> Stack:
    """An enclosure that passes UNMAP, mounted manually: the timer skips it."""
    _usb(machine, "10000", {"device/scsi_disk/6:0:0:0/provisioning_mode": "unmap"})
    return Stack("/media/backup")


def hba(machine: CapturedMachine) -> Stack:
    """A SATA drive behind a SAS controller that passes no TRIM; it has bad blocks."""
    where = "devices/pci0000:00/0000:02:00.0/host0/port-0:0/end_device-0:0/target0:0:0/block"
    mode = {"device/scsi_disk/0:0:0:0/provisioning_mode": "disabled", **NONE}
    mode["device/scsi_disk/0:0:0:0/cache_type"] = "write back"
    model = {"device/model": "CT1000MX500SSD1", "device/vendor": "ATA", **sectors(10**12)}
    machine.disk("sda", "8:0", where, {**SATA, **model, **mode})
    machine.mountinfo("22 1 8:0 / /data rw - xfs /dev/sda rw")
    machine.weekly_trim()
    counts: dict[str, Any] = {"Reported_Uncorrect": 3, "Current_Pending_ECC_Cnt": 1}
    counts["UDMA_CRC_Error_Count"] = 4021
    return Stack("/data", programs({"sda": ata("CT1000MX500SSD1", **counts)}))


def protected(machine: CapturedMachine) -> Stack:
    """A data-centre SATA drive with capacitors whose volatile cache is on; TRIM on deletion."""
    known = {"device/model": "Micron_5100_MTFDDAK960TCB", **sectors(960_197_124_096)}
    cache = {"device/scsi_disk/2:0:0:0/cache_type": "write back"}
    disk = machine.disk("sda", "8:0", sata_path(3), {**SATA, **known, **cache})
    machine.partition(disk, "sda1", "8:1")
    link = "sys/devices/pci0000:00/0000:00:17.0/ata3/link3/dev3.0/ata_device/dev3.0"
    machine.files(link, {"trim": "unqueued"})
    machine.files("sys/class/ata_link/link3", {"sata_spd": "3.0 Gbps"})
    machine.files("sys/class/ata_link/link3", {"hw_sata_spd_limit": "6.0 Gbps"})
    machine.mountinfo("22 1 8:1 / /var/lib/db rw - ext4 /dev/sda1 rw,discard")
    counts = {"Host_Program_Page_Count": 10**9, "Bckgnd_Program_Page_Cnt": 3 * 10**9}
    report = ata("Micron_5100_MTFDDAK960TCB", cache=True, **counts)
    return Stack("/var/lib/db", programs({"sda": report}))


def guest(machine: CapturedMachine) -> Stack:
    """A virtual machine whose host offers no discards."""
    files = {**NONE, "queue/fua": "0", "queue/rotational": "1", **sectors(100 * GIB)}
    disk = machine.disk("vda", "254:0", "devices/pci0000:00/virtio1/block", files)
    machine.partition(disk, "vda1", "254:1")
    machine.mountinfo("22 1 254:1 / / rw,nobarrier - xfs /dev/vda1 rw")
    machine.weekly_trim()
    return Stack("/", as_root=False)


def loop(machine: CapturedMachine) -> Stack:
    """A loop device that passes no discards, through the page cache, on an NVMe drive."""
    machine.disk("nvme0n1", "259:0", nvme_path(0), NVME)
    files = {"loop/backing_file": "/srv/disk.img", "loop/dio": "0", **NONE, **sectors(8 * GIB)}
    machine.disk("loop0", "7:0", VIRTUAL, files)
    machine.mountinfo(
        "22 1 259:0 / / rw - ext4 /dev/nvme0n1 rw,discard",
        "30 22 7:0 / /mnt rw - ext4 /dev/loop0 rw",
    )
    return Stack("/dev/loop0", programs({"nvme0n1": nvme("Samsung SSD 970 EVO Plus 500GB")}))


def zram(machine: CapturedMachine) -> Stack:
    """Swap on zram and swap on the drive, both in use."""
    disk = machine.disk("sda", "8:0", sata_path(1), {**SATA, "queue/scheduler": "[bfq] none"})
    machine.partition(disk, "sda1", "8:1")
    machine.partition(disk, "sda2", "8:2", 526_336)
    machine.disk("zram0", "253:0", VIRTUAL)
    machine.mountinfo("22 1 8:1 / / rw - ext4 /dev/sda1 rw")
    machine.swaps(
        "/dev/zram0 partition 4194300 1048576 100", "/dev/sda2 partition 8388604 2097152 -2"
    )
    machine.files("proc", {"meminfo": "MemTotal:        8126464 kB"})
    machine.weekly_trim()
    return Stack("/", programs({"sda": ata("Samsung SSD 860 EVO 500GB", cache=True)}))


def btrfs(machine: CapturedMachine) -> Stack:
    """A btrfs on two NVMe drives; one of them is worn, hot, and in a narrow slot."""
    disks = []
    for at, width in ((0, "4"), (1, "1")):
        function = f"sys/devices/pci0000:00/0000:0{at + 1}:00.0"
        speed = {"current_link_speed": "8.0 GT/s PCIe", "max_link_speed": "8.0 GT/s PCIe"}
        machine.files(function, {**speed, "current_link_width": width, "max_link_width": "4"})
        disks.append(machine.disk(f"nvme{at}n1", f"259:{at}", nvme_path(at), NVME))
    sensor = "sys/" + nvme_path(1) + "/nvme1n1/device/hwmon2"
    machine.files(sensor, {"temp1_input": "79850", "temp1_max": "81850"})
    machine.btrfs("uuid", *disks)
    machine.mountinfo("22 1 0:40 /@ /data rw - btrfs /dev/nvme0n1 rw,discard=async")
    worn = {"percentage_used": 104, "available_spare": 8, "critical_warning": 1}
    reports = {"nvme0n1": nvme("970 EVO Plus"), "nvme1n1": nvme("970 EVO Plus", **worn)}
    physical = {"Physical media units written": {"hi": 0, "lo": 30_000_000 * 512_000}}
    others: dict[str, dict[str, Any]] = {
        "nvme id-ctrl": {"vwc": 0},
        "nvme ocp smart-add-log": physical,
    }
    return Stack("/data", programs(reports, others))


def multipath(machine: CapturedMachine) -> Stack:
    """A SAN drive with one remaining path."""
    files = {"dm/name": "mpatha", "dm/uuid": "mpath-3600508b4000156d7", **sectors(2 * 10**12)}
    top = machine.disk("dm-0", "252:0", VIRTUAL, files)
    where = "devices/platform/host3/session1/target3:0:0/3:0:0:0/block"
    known = {"device/model": "LUN", "device/vendor": "ACME", **sectors(2 * 10**12)}
    machine.rests_on(top, machine.disk("sdc", "8:32", where, known))
    machine.mountinfo("22 1 252:0 / /san rw - xfs /dev/mapper/mpatha rw,discard")
    return Stack("/dev/mapper/mpatha", tables={"mpatha": ()})


def full(machine: CapturedMachine) -> Stack:
    """A nearly full ext4 with 1 KiB blocks, mounted without discards and barriers."""
    disk = machine.disk("sda", "8:0", sata_path(1), {**SATA, "queue/write_cache": "write through"})
    machine.partition(disk, "sda1", "8:1")
    machine.mountinfo("22 1 8:1 / / rw,nodiscard - ext4 /dev/sda1 rw,nobarrier")
    report = ata("Samsung SSD 860 EVO 500GB", cache=True, Reallocated_Sector_Ct=2)
    return Stack("/", programs({"sda": report}), Sizes(1024, 465 * GIB, 7 * GIB))


def misaligned(machine: CapturedMachine) -> Stack:
    """An old partition table: one partition begins at sector 63, the other off a flash page."""
    disk = machine.disk("sda", "8:0", sata_path(1), {**SATA, "queue/write_cache": "write through"})
    machine.partition(disk, "sda1", "8:1", 63)
    machine.partition(disk, "sda2", "8:2", 1_048_584)
    machine.mountinfo(
        "22 1 8:1 / / rw - ext4 /dev/sda1 rw,discard",
        "23 1 8:2 / /home rw - ext4 /dev/sda2 rw,discard",
    )
    return Stack("/dev/sda", programs({"sda": ata("Samsung SSD 860 EVO 500GB", cache=False)}))


def memory(machine: CapturedMachine) -> Stack:
    """A tmpfs."""
    machine.mountinfo("22 1 0:40 / /tmp rw - tmpfs tmpfs rw")
    return Stack("/tmp")


def rotating(machine: CapturedMachine) -> Stack:
    """A rotating disk."""
    files = {**SATA, **NONE, "device/model": "ST4000DM004", "queue/rotational": "1"}
    machine.disk("sda", "8:0", sata_path(1), {**files, **sectors(4 * 10**12)})
    machine.mountinfo("22 1 8:0 / /big rw - ext4 /dev/sda rw")
    report = ata("ST4000DM004", cache=True)
    del report["endurance_used"]
    return Stack("/big", programs({"sda": report}))


def no_flush(machine: CapturedMachine) -> Stack:
    """A volume with flushes switched off, on a drive with a volatile cache."""
    disk = machine.disk("sda", "8:0", sata_path(1), SATA)
    names = {"dm/name": "vg-db", "dm/uuid": "LVM-1", "queue/write_cache": "write through"}
    machine.rests_on(machine.disk("dm-0", "252:0", VIRTUAL, names), disk)
    machine.mountinfo("22 1 252:0 / /db rw - xfs /dev/mapper/vg-db rw,discard")
    return Stack("/db", programs({"sda": ata("Samsung SSD 860 EVO 500GB", cache=True)}))


STACKS: Final[dict[str, Builder]] = {
    builder.__name__: builder
    for builder in (
        *(laptop, laptop_open, laptop_off, laptop_as_user, raid1, raid5, usb, usb_unmap, hba),
        *(
            protected,
            guest,
            loop,
            zram,
            btrfs,
            multipath,
            full,
            misaligned,
            memory,
            rotating,
            no_flush,
        ),
    )
}
