"""Does TRIM reach the drive, and does anything issue it? Each layer declares what it passes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ssdlab.doctor.checks.verdict import (
    Severity,
    Verdict,
    device_label,
    experiment_target,
    is_hardware,
    is_rotating,
)
from ssdlab.snapshot import Device, Mounted, Snapshot, TrimLayer
from ssdlab.storage_stack.trim.stack import NO_SYSTEMD

_COSTS: Final = (
    "the drive treats every block ever written as valid data, so garbage collection has only the "
    "hidden spare: the twin of an 840 Pro does 6900 random writes/s in 40 GB when it counts as "
    "full, and 51900 when the rest is free"
)
_PARITY: Final = frozenset({"raid4", "raid5", "raid6"})
_PARITY_UNIT: Final = 4096
"""md rounds the start of a TRIM down to a multiple of this (raid5.c, make_discard_request)."""
_PARITY_FIXED: Final = (6, 12)
"""Assumed fixed from this version: 6.1.187 has the bug, 6.12.117 does not (loop and NVMe)."""
_COMMONLY_WITHOUT_TRIM: Final = frozenset(
    {"virtio", "xen", "hyper-v", "iscsi", "nbd", "loop", "usb"}
)
"""Transports that often lack TRIM for a reason outside this machine."""


def judge(snapshot: Snapshot) -> Iterator[Verdict]:
    """Codes: trim-destroys, trim-stopped, trim-never-asked, trim-unknown, trim-passes, ..."""
    for mount in snapshot.mounts:
        yield from _destroys(snapshot, mount)
        yield from _of_stack(snapshot, mount.layers, mount)
        yield from _online(snapshot, mount)
    if not snapshot.mounts:
        yield from _of_stack(snapshot, snapshot.layers, None)
    yield from _lvm(snapshot)


def _destroys(snapshot: Snapshot, mount: Mounted) -> Iterator[Verdict]:
    """Before Linux 6.12, md with parity discards too much if file system blocks are below 4 KiB."""
    block = mount.block_bytes
    if block is None or block >= _PARITY_UNIT or _version(snapshot.kernel) >= _PARITY_FIXED:
        return
    for row in mount.layers:
        device = snapshot.device(row.device)
        if device is None or device.array_level not in _PARITY or row.passes != "yes":
            continue
        yield Verdict(
            code="trim-destroys",
            severity="bad",
            where=device_label(device),
            says="A TRIM can destroy live data next to the range that it frees.",
            evidence=f"{device.name} is {device.array_level} and accepts TRIM; the block size of "
            f"{mount.mount_point} is {block} bytes: md rounds the start of a TRIM down to 4 KiB",
            costs="up to 3.5 KiB of a live file become zeros when the trimmed range begins just "
            "after the start of a stripe; observed with Linux 6.1, fixed by 6.12",
            remedy="echo options raid456 devices_handle_discard_safely=N | "
            "sudo tee /etc/modprobe.d/raid456.conf; sudo update-initramfs -u; sudo reboot\n"
            "when you next create the file system, use 4 KiB blocks: mkfs -b 4096",
            risk="until then mount without discard, and do not run fstrim there",
            value=block,
            unit="bytes",
        )


def _version(kernel: str) -> tuple[int, ...]:
    """(6, 1) of "6.1.0-53-cloud-amd64"; (0, 0) if it does not start with two numbers."""
    match = re.match(r"(\d+)\.(\d+)", kernel)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _of_stack(
    snapshot: Snapshot, layers: tuple[TrimLayer, ...], mount: Mounted | None
) -> Iterator[Verdict]:
    named = {row.device for row in layers}
    lowest = [d for d in snapshot.devices if d.is_drive or d.controller]
    drives = [device for device in lowest if device.name in named]
    if not drives or all(is_rotating(drive) for drive in drives):
        return
    stops = [row for row in layers if _stops(row, snapshot)]
    for row in stops:
        yield _stopped(snapshot, row, mount)
    if stops:
        return
    schedule = next((r for r in layers if r.layer == "schedule" and not r.below_file), None)
    unknown = [r for r in layers if r.passes == "unknown" and not r.below_file]
    if unknown:
        yield _unknown(snapshot, unknown)
    if schedule is not None and schedule.passes == "no":
        yield _never_issued(schedule, mount, passes=not unknown)
    elif not unknown:
        yield _passes(snapshot, layers, schedule)


def _stops(row: TrimLayer, snapshot: Snapshot) -> bool:
    if row.passes != "no" or row.layer == "schedule" or row.of_below or row.below_file:
        return False
    device = snapshot.device(row.device)
    return device is None or not is_rotating(device)


def _stopped(snapshot: Snapshot, row: TrimLayer, mount: Mounted | None) -> Verdict:
    device = snapshot.device(row.device)
    where = f"{row.device} ({row.layer})" if device is None else device_label(device)
    point = None if mount is None else mount.mount_point
    severity: Severity = "bad"
    if device is None or device.transport in _COMMONLY_WITHOUT_TRIM or row.layer == "thin pool":
        severity = "warn"
    remedy, risk = _remedy(row, device)
    if device is None and mount is not None and mount.pool is not None:
        nodes = [m.node for m in mount.pool.members if m.trim == "trim unsupported"]
        remedy = "\n".join(f"ssdlab provision {node}" for node in nodes)
    if remedy and point and device is not None and not device.controller:
        remedy = f"{remedy}\nsudo fstrim -v {point}"
    costs = _COSTS
    if device is not None and device.transport == "loop":
        costs = "its image never shrinks, and the drive below keeps the deleted data"
    return Verdict(
        code="trim-stopped",
        severity=severity,
        where=where,
        says=f"TRIM does not pass the {_layer_name(row.layer)} {row.device}.",
        evidence=row.why,
        costs=costs,
        remedy=remedy,
        risk=risk,
        proof=f"ssdlab run trim {experiment_target(snapshot)}",
        value=row.layer,
    )


def _layer_name(layer: str) -> str:
    words = {"dm-crypt": "encryption", "md": "array", "USB": "USB bridge", "loop": "loop device"}
    words |= {"RAID controller": "RAID controller's volume", "dmraid": "array"}
    return words.get(layer, layer)


def _remedy(row: TrimLayer, device: Device | None) -> tuple[str, str]:
    if device is None:
        return "", ""
    if "switched off" in row.why and device.discard_max_hw_bytes:
        path = f"/sys/block/{device.name}/queue/discard_max_bytes"
        # The kernel refuses a value that is not a multiple of the granularity.
        return (
            f"echo {device.discard_max_hw_bytes >> 20 << 20} | sudo tee {path}",
            (
                "once it was 0, Linux 6.18 refuses any value (Invalid argument): then reattach the "
                "device, or restart"
            ),
        )
    if row.layer == "dm-crypt":
        return (
            f"sudo cryptsetup refresh --allow-discards --persistent {device.mapped_name}",
            (
                "anyone with the drive can see which blocks are in use; for LUKS1, add `discard` "
                "to /etc/crypttab instead and reopen it"
            ),
        )
    if row.layer == "md" and "devices_handle_discard_safely" in row.why:
        return (
            (
                "echo options raid456 devices_handle_discard_safely=Y | "
                "sudo tee /etc/modprobe.d/raid456.conf; sudo update-initramfs -u; sudo reboot"
            ),
            (
                "parity is wrong after a TRIM unless EVERY member then reads zeros: smartctl -x "
                "must print `Deterministic, Zeroed` for each; data is lost if the file system has "
                "blocks smaller than 4 KiB"
            ),
        )
    return _remedy_below(row, device)


def _remedy_below(row: TrimLayer, device: Device) -> tuple[str, str]:
    if device.transport == "usb" and device.usb_id:
        maker, product = device.usb_id.split(":")
        rule = (
            f'ACTION=="add|change", ATTRS{{idVendor}}=="{maker}", ATTRS{{idProduct}}=="{product}", '
            'SUBSYSTEM=="scsi_disk", ATTR{provisioning_mode}="unmap"'
        )
        return (
            (
                f"sudo sg_vpd -p bl {device.node}\n"
                f"echo '{rule}' | sudo tee /etc/udev/rules.d/50-usb-trim.rules"
            ),
            (
                "only if the first command shows a `Maximum unmap LBA count` above 0: a bridge "
                "that wrongly claims UNMAP hangs or loses data"
            ),
        )
    if device.transport == "virtio":
        return (
            "on the host: virsh edit, <driver discard='unmap'/>; or qemu -drive discard=unmap",
            "",
        )
    if row.layer == "thin pool":
        return "sudo lvchange --discards passdown POOL", ""
    if device.transport == "loop":
        return "put its image on ext4, xfs, btrfs or tmpfs, and attach it read-write: losetup", ""
    if device.controller:
        risk = (
            "a volume that leaves 20 to 30 % of its drives unused from the start has spare without "
            "TRIM; drives that were in use need the controller's secure erase first"
        )
    else:
        risk = "without TRIM, the only way to add spare is to leave space unwritten from the start"
    is_lowest = device.is_drive or device.controller
    return (f"ssdlab provision {device.node}", risk) if is_lowest else ("", "")


def _unknown(snapshot: Snapshot, rows: list[TrimLayer]) -> Verdict:
    reasons = "; ".join(f"{row.device} ({row.layer}): {row.why}" for row in rows)
    return Verdict(
        code="trim-unknown",
        severity="note",
        where=", ".join(row.device for row in rows),
        says="At least one layer does not declare whether it passes TRIM.",
        evidence=reasons,
        proof=f"sudo ssdlab run trim {experiment_target(snapshot)}",
        value=None,
    )


def _never_issued(schedule: TrimLayer, mount: Mounted | None, *, passes: bool) -> Verdict:
    point = schedule.device if mount is None else mount.mount_point
    remedy = f"sudo systemctl enable --now fstrim.timer\nsudo fstrim -v {point}"
    if NO_SYSTEMD in schedule.why:
        remedy = f"sudo fstrim -v {point}   # once a week, by /etc/cron.weekly/fstrim"
    if mount is not None and mount.fs_type == "ufs":
        remedy = f"umount {point}; tunefs -t enable {mount.source}; mount {point}"
    elif mount is not None and mount.pool is not None:
        pool = mount.pool.name
        remedy = f"sudo zpool trim {pool}\nsudo zpool set autotrim=on {pool}"
    return Verdict(
        code="trim-never-asked",
        severity="warn",
        where=f"{point} (schedule)",
        says="All layers pass TRIM, but nothing issues it." if passes else "Nothing issues TRIM.",
        evidence=schedule.why,
        costs=_COSTS,
        remedy=remedy,
        proof=f"ssdlab run trim {point}",
        value=False,
    )


def _passes(
    snapshot: Snapshot, layers: tuple[TrimLayer, ...], schedule: TrimLayer | None
) -> Verdict:
    issued = "" if schedule is None else f"; issued: {schedule.why}"
    names = ", ".join(row.device for row in layers if row.layer != "schedule")
    return Verdict(
        code="trim-passes",
        severity="good",
        where=names,
        says="All layers declare that they pass TRIM.",
        evidence=f"discard_max_bytes of each is above 0{issued}",
        proof=f"sudo ssdlab run trim {experiment_target(snapshot)}",
        value=True,
    )


def _online(snapshot: Snapshot, mount: Mounted) -> Iterator[Verdict]:
    """Online discard on a SATA drive without queued TRIM stalls other requests."""
    reasons = " ".join(row.why for row in mount.layers)
    if mount.discards_online not in {"discard", "discard=sync"} or "TRIM unqueued" not in reasons:
        return
    drives = ", ".join(device_label(d) for d in snapshot.drives if d.transport == "sata")
    yield Verdict(
        code="trim-online-unqueued",
        severity="warn",
        where=drives,
        says="Each deletion stalls the drive for a TRIM that it cannot queue.",
        evidence=f"{mount.mount_point} is mounted with {mount.discards_online}; ATA TRIM unqueued",
        costs="all requests wait while a TRIM runs: milliseconds per deletion",
        remedy=f"sudo mount -o remount,nodiscard {mount.mount_point}; the same in /etc/fstab\n"
        "sudo systemctl enable --now fstrim.timer",
        proof=f"ssdlab run fsync {mount.mount_point}",
        value="unqueued",
    )


def _lvm(snapshot: Snapshot) -> Iterator[Verdict]:
    volumes = [device for device in snapshot.devices if device.transport == "dm-lvm"]
    if (
        not volumes
        or snapshot.lvm_discards is not False
        or not any(map(is_hardware, snapshot.drives))
    ):
        return
    yield Verdict(
        code="lvm-keeps-freed",
        severity="note",
        where=", ".join(device_label(device) for device in volumes),
        says="LVM does not discard the space that it frees (lvremove, lvreduce, pvmove).",
        evidence="issue_discards is not 1 in /etc/lvm/lvm.conf; TRIM from file systems still "
        "passes",
        costs="a removed volume's blocks count as used on the drive until they are overwritten",
        remedy="after removing a volume: lvcreate -l 100%FREE -n rest VG; sudo blkdiscard "
        "/dev/VG/rest; lvremove VG/rest",
        risk="issue_discards=1 makes every removal final: vgcfgrestore cannot undo it",
        value=False,
    )
