"""ZFS: alignment of its blocks, synchronous writes, the log drive, and what the ARC hides."""

from __future__ import annotations

from collections.abc import Iterator

from ssdlab.doctor.checks.drives import is_protected
from ssdlab.doctor.checks.verdict import Verdict, device_label
from ssdlab.snapshot import Device, Mounted, Pool, Snapshot


def judge(snapshot: Snapshot) -> Iterator[Verdict]:
    """Codes: zfs-ashift, zfs-sync-off, zfs-log-unprotected, zfs-arc, zfs-pool-degraded."""
    for mount in snapshot.mounts:
        if mount.pool is not None:
            yield from _degraded(mount, mount.pool)
            yield from _ashift(snapshot, mount, mount.pool)
            yield from _sync(mount, mount.pool)
            yield from _log(snapshot, mount.pool)
            yield from _arc(mount)


def _degraded(mount: Mounted, pool: Pool) -> Iterator[Verdict]:
    missing = [m for m in pool.members if m.state not in {"ONLINE", "AVAIL", "INUSE", ""}]
    if missing:
        names = ", ".join(f"{member.node} is {member.state}" for member in missing)
        yield Verdict(
            code="zfs-pool-degraded",
            severity="bad",
            where=f"{pool.name} (pool of {mount.mount_point})",
            says="A member of the pool is not working.",
            evidence=f"zpool status: {names}",
            costs="the next failure may lose the whole pool",
            remedy=f"zpool status -x {pool.name}; zpool replace {pool.name} OLD NEW",
            value=len(missing),
        )


def _ashift(snapshot: Snapshot, mount: Mounted, pool: Pool) -> Iterator[Verdict]:
    sectors = [d.physical_sector_bytes or 0 for d in snapshot.drives]
    largest = max(sectors, default=0)
    if pool.ashift is None or not largest:
        return
    block = 1 << pool.ashift
    if block < largest:
        yield Verdict(
            code="zfs-ashift",
            severity="bad",
            where=f"{pool.name} (pool of {mount.mount_point})",
            says=f"The pool writes blocks of {block} bytes on drives with sectors of {largest}.",
            evidence=f"zdb -C: ashift {pool.ashift}; queue/physical_block_size {largest}",
            costs="for each smaller block the drive reads, modifies and rewrites a sector",
            remedy=f"ashift is fixed when a vdev is added: make a new pool with -o ashift="
            f"{largest.bit_length() - 1}, and send the datasets to it",
            proof=f"ssdlab run split {mount.mount_point}",
            value=block,
            unit="bytes",
        )


def _sync(mount: Mounted, pool: Pool) -> Iterator[Verdict]:
    if mount.properties.get("sync") == "disabled":
        yield Verdict(
            code="zfs-sync-off",
            severity="bad",
            where=f"{mount.source} (dataset)",
            says="fsync does nothing on this dataset.",
            evidence="zfs get sync: disabled",
            costs="a crash or power cut loses up to some seconds of data that fsync had confirmed",
            remedy=f"sudo zfs set sync=standard {mount.source}; for speed, add a log drive with "
            f"power-loss protection: sudo zpool add {pool.name} log DEVICE",
            proof=f"ssdlab run fsync {mount.mount_point}",
            value="disabled",
        )


def _log(snapshot: Snapshot, pool: Pool) -> Iterator[Verdict]:
    for member in pool.members:
        if member.role != "log":
            continue
        drive = _drive_below(snapshot, member.node)
        if drive is None or is_protected(drive.model):
            continue
        if drive.health is not None and drive.health.capacitor_tested:
            continue
        yield Verdict(
            code="zfs-log-unprotected",
            severity="note",
            where=device_label(drive),
            says="The pool's log drive is not known to have power-loss protection.",
            evidence=f"zpool status lists {member.node} as log; its model is {drive.model}",
            costs="each fsync waits for this drive to flush its cache to the flash",
            proof="ssdlab run fsync DIRECTORY-ON-THE-POOL",
            value=drive.model,
        )


def _drive_below(snapshot: Snapshot, node: str) -> Device | None:
    device = next((d for d in snapshot.devices if d.node == node), None)
    while device is not None and not device.is_drive and device.below:
        device = snapshot.device(device.below[0])
    return device


def _arc(mount: Mounted) -> Iterator[Verdict]:
    if mount.properties.get("primarycache") != "all":
        return
    compression = mount.properties.get("compression", "off")
    packs = "" if compression == "off" else f"; compression={compression} shrinks what is written"
    yield Verdict(
        code="zfs-arc",
        severity="note",
        where=f"{mount.source} (dataset)",
        says="The ARC answers reads of data that was read or written before.",
        evidence=f"zfs get primarycache: all{packs}",
        costs="a measurement shows memory instead of the drives; O_DIRECT does not bypass the ARC "
        "before OpenZFS 2.3",
        remedy=f"for measurements only: zfs create -o primarycache=metadata -o compression=off "
        f"{mount.source.split('/', maxsplit=1)[0]}/measure",
        value="all",
    )
