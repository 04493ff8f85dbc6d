"""The state of a storage stack as plain records, to and from JSON.

`storage_stack.snapshot` fills a `Snapshot`, and `doctor` diagnoses it, maybe on another machine.
None means not known. Sizes are in bytes.
"""

from __future__ import annotations

import msgspec

from ssdlab.errors import UsageError


class Health(msgspec.Struct, frozen=True, omit_defaults=True):
    """A drive's SMART data; `source` names the programs that read it.

    `worn` is the percentage of the rated endurance used. `spare_blocks` is the remaining percentage
    of the reserve for worn blocks, not the hidden flash; below `spare_blocks_least` the drive
    warns. `cache_on`: the volatile write cache is enabled. `hot_minutes` is the time above the
    drive's warning or critical temperature.
    """

    source: str
    passed: bool | None = None
    warnings: tuple[str, ...] = ()
    worn: float | None = None
    spare_blocks: float | None = None
    spare_blocks_least: float | None = None
    media_errors: int | None = None
    pending: int | None = None
    reallocated: int | None = None
    link_errors: int | None = None
    temperature_c: float | None = None
    hot_minutes: int | None = None
    power_on_hours: int | None = None
    unsafe_shutdowns: int | None = None
    host_bytes: int | None = None
    flash_bytes: int | None = None
    cache_on: bool | None = None
    capacitor_tested: bool = False
    unallocated_bytes: int | None = None


class Device(msgspec.Struct, frozen=True, omit_defaults=True):
    """One block device. `below` are the devices directly below; a drive has none.

    `transport`, `write_cache` and `scheduler` are those of `storage_stack.blockdev`;
    `discard_max_hw_bytes` is the driver's limit, `cache_type` that of the SCSI disk,
    `off_by_bytes` the kernel's alignment_offset. `link_bytes_per_s` is the negotiated speed,
    `best_link_bytes_per_s` the highest that both ends support. `array_metadata` is the format of
    an md array's metadata ("1.2"; "imsm" and "ddf" are firmware RAID), `array_component_bytes` what
    the array uses of each member. `controller` is the driver of the RAID controller whose volume
    this is, and `smart_type` smartctl's -d option for a drive behind one; `members_of` is "volume"
    if `below` are the drives of this volume, "controller" if only the controller's drives are
    known. `zoned` is "host-aware" or "host-managed".
    """

    name: str
    node: str
    layer: str
    transport: str
    depth: int = 0
    is_drive: bool = False
    is_partition: bool = False
    below: tuple[str, ...] = ()
    size_bytes: int | None = None
    start_bytes: int | None = None
    model: str | None = None
    vendor: str | None = None
    serial: str | None = None
    firmware: str | None = None
    rotational: bool | None = None
    read_only: bool | None = None
    logical_sector_bytes: int | None = None
    physical_sector_bytes: int | None = None
    optimal_io_bytes: int | None = None
    off_by_bytes: int | None = None
    data_starts_bytes: tuple[int, ...] = ()
    scheduler: str | None = None
    write_cache: str | None = None
    cache_type: str | None = None
    fua: bool | None = None
    discard_max_bytes: int | None = None
    discard_max_hw_bytes: int | None = None
    discard_granularity_bytes: int | None = None
    provisioning_mode: str | None = None
    backing_file: str | None = None
    direct_io: bool | None = None
    array_level: str | None = None
    array_missing: int | None = None
    array_action: str | None = None
    array_component_bytes: int | None = None
    array_metadata: str | None = None
    controller: str | None = None
    smart_type: str | None = None
    members_of: str = ""
    zoned: str | None = None
    usb_driver: str | None = None
    is_multipath: bool = False
    usb_id: str | None = None
    mapped_name: str | None = None
    used_bytes: int | None = None
    link_bytes_per_s: float | None = None
    best_link_bytes_per_s: float | None = None
    temperature_c: float | None = None
    temperature_limit_c: float | None = None
    health: Health | None = None

    @property
    def smartctl_target(self) -> str:
        """What smartctl needs to reach the drive: its node, after -d TYPE behind a controller."""
        return f"-d {self.smart_type} {self.node}" if self.smart_type else self.node

    @property
    def name_and_model(self) -> str:
        """As in "sda (Samsung SSD 840)"."""
        words = " ".join(word for word in (self.vendor, self.model) if word)
        return f"{self.name} ({words})" if words and not self.mapped_name else self.name


class TrimLayer(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether one layer passes a TRIM.

    `layer` is its kind: schedule, file system, partition, dm-crypt, LVM, thin pool, device mapper,
    md, bcache, loop, USB or drive. The schedule is whether discards are triggered automatically.
    `device` is a kernel name, or the mount point of a file system. `passes` is "yes", "no" or
    "unknown", and `why` the evidence. `of_below`: it rejects discards only because a device
    below does. `below_file`: it is below the backing file of a loop device, where a discard only
    punches a hole in that file.
    """

    layer: str
    device: str
    passes: str
    why: str
    of_below: bool = False
    below_file: bool = False


class PoolMember(msgspec.Struct, frozen=True, omit_defaults=True):
    """A drive or partition of a ZFS pool.

    `role` is data, log, cache, spare, special or dedup; `vdev` the mirror or raidz group, or "";
    `trim` what ZFS reports of its last TRIM, such as "untrimmed" or "trim unsupported".
    """

    node: str
    role: str
    vdev: str = ""
    state: str = ""
    trim: str = ""


class Pool(msgspec.Struct, frozen=True, omit_defaults=True):
    """A ZFS pool; `ashift` is the smallest of its vdevs: blocks of 2**ashift bytes."""

    name: str
    members: tuple[PoolMember, ...] = ()
    autotrim: bool | None = None
    ashift: int | None = None


class Mounted(msgspec.Struct, frozen=True, omit_defaults=True):
    """A mounted file system; `free_bytes` are those free for ordinary users.

    `discards_online` is the mount option that discards when files are deleted, or "". `devices`
    are those directly below. `warnings` are sentences by code. `pool` and `properties` are those
    of a ZFS dataset.
    """

    mount_point: str
    fs_type: str
    source: str
    options: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    block_bytes: int | None = None
    total_bytes: int | None = None
    free_bytes: int | None = None
    discards_online: str = ""
    pool: Pool | None = None
    properties: dict[str, str] = msgspec.field(default_factory=dict)
    layers: tuple[TrimLayer, ...] = ()
    warnings: dict[str, str] = msgspec.field(default_factory=dict, name="doubts")


class Swap(msgspec.Struct, frozen=True, omit_defaults=True):
    """A swap space and the drives under it."""

    name: str
    size_bytes: int
    used_bytes: int
    drives: tuple[str, ...] = ()
    in_memory: bool = False


class Piece(msgspec.Struct, frozen=True):
    """One timed read of a read map: offset and length in the file, and its duration.

    `extent` is the index, from 0, of the extent that it begins in; `touched` is the number of
    extents that it reads from.
    """

    offset: int
    length: int
    seconds: float
    extent: int
    touched: int = 1


class File(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file: `extents` is the number of joined extents with data.

    `written_days` is the time since the last change; `cached_bytes` are in the page cache.
    `not_read` is the reason why the file has no read map, or "". `unsteady` is the fraction of the
    slow pieces whose two fastest reads differ by half.
    """

    path: str
    size_bytes: int
    extents: int | None = None
    allocated_bytes: int | None = None
    ideal_extents: int | None = None
    written_days: float | None = None
    cached_bytes: int | None = None
    flags: tuple[str, ...] = ()
    pieces: tuple[Piece, ...] = ()
    unsteady: float | None = None
    not_read: str = ""


class Unread(msgspec.Struct, frozen=True):
    """Information that could not be read, why, and the command that reads it."""

    what: str
    why: str
    command: str = ""


class Snapshot(msgspec.Struct, frozen=True, omit_defaults=True):
    """The storage stack of one target. `layers` is for a device without a mount."""

    target: str
    as_root: bool
    kernel: str = ""
    memory_bytes: int | None = None
    mounts: tuple[Mounted, ...] = ()
    devices: tuple[Device, ...] = ()
    layers: tuple[TrimLayer, ...] = ()
    swaps: tuple[Swap, ...] = ()
    files: tuple[File, ...] = ()
    lvm_discards: bool | None = None
    unread: tuple[Unread, ...] = ()

    @property
    def drives(self) -> tuple[Device, ...]:
        """The devices without another device below."""
        return tuple(device for device in self.devices if device.is_drive)

    def device(self, name: str) -> Device | None:
        """The device with this kernel name, or None."""
        return next((device for device in self.devices if device.name == name), None)


def decode(text: str | bytes) -> Snapshot:
    """A snapshot from its JSON text.

    Raises:
        UsageError: the text is not a snapshot.
    """
    try:
        return msgspec.json.decode(text, type=Snapshot)
    except msgspec.MsgspecError as error:
        raise UsageError(
            f"this is not a snapshot of a storage stack ({error}); give one that "
            "`ssdlab doctor --json` printed"
        ) from error
