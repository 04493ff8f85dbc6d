"""What was read of a storage stack, as plain records: JSON in and out, no conclusions.

`stack.look` fills it, `analysis.doctor` judges it, `report.doctor` shows it: they meet here alone,
so what was read on one machine can be judged on another. None: nothing told. Sizes are in bytes.
"""

from __future__ import annotations

import msgspec

from ssdlab.errors import UsageError


class Health(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a drive says of itself, in the words of smartctl and nvme-cli; `source` names them.

    Shares are in percent. `spare_blocks` is what is left of the reserve for worn blocks, and not
    the hidden flash; below `spare_blocks_least` the drive warns. `cache_on` is its volatile write
    cache. `hot_minutes` is time above the limit that the drive warns at.
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
    """One block device. `below` are those it stands on; `is_drive`: none.

    `transport`, `write_cache`, `scheduler` as in `stack.blockdev`. `discard_max_hw_bytes` is what
    its driver allows. `cache_type` is what the SCSI layer asked the disk. `drive_link` and
    `best_link` are bytes a second, as negotiated and as both ends could.
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
    def name_and_model(self) -> str:
        """For people: "sda (Samsung SSD 840)"."""
        words = " ".join(word for word in (self.vendor, self.model) if word)
        return f"{self.name} ({words})" if words and not self.mapped_name else self.name


class Layer(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether a TRIM passes one layer; the fields are those of `stack.trim.Passage`."""

    layer: str
    device: str
    passes: str
    why: str
    of_below: bool = False
    below_file: bool = False


class Mounted(msgspec.Struct, frozen=True, omit_defaults=True):
    """A mounted file system; `free_bytes` is what an ordinary user may use.

    `discards_online` is the option by which it discards as files are deleted, "" for none.
    `devices` are those that it stands on directly. `doubts` are sentences by code.
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
    layers: tuple[Layer, ...] = ()
    doubts: dict[str, str] = {}


class Swap(msgspec.Struct, frozen=True, omit_defaults=True):
    """A swap space and the drives below it."""

    name: str
    size_bytes: int
    used_bytes: int
    drives: tuple[str, ...] = ()
    in_memory: bool = False


class Piece(msgspec.Struct, frozen=True):
    """One read of a map: where in the file, how much, and how long it took.

    `extent` is the number of the file's fragment that it begins in, from 0, and `touched` how many
    it has parts of.
    """

    offset: int
    length: int
    seconds: float
    extent: int
    touched: int = 1


class File(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file: `extents` on the device after joining, `largest_bytes` the longest of them.

    `written_days` since it was last changed; `cached_bytes` of it in the page cache;
    `not_read` why there is no map of it; "" where there is one. `unsteady` is the share of the slow
    pieces whose two fastest readings differ by half.
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
    """What could not be read, why, and the command that reads it."""

    what: str
    why: str
    command: str = ""


class Snapshot(msgspec.Struct, frozen=True, omit_defaults=True):
    """All that was read for one target. `layers` are those of a device without a mount."""

    target: str
    as_root: bool
    kernel: str = ""
    memory_bytes: int | None = None
    mounts: tuple[Mounted, ...] = ()
    devices: tuple[Device, ...] = ()
    layers: tuple[Layer, ...] = ()
    swaps: tuple[Swap, ...] = ()
    files: tuple[File, ...] = ()
    lvm_discards: bool | None = None
    unread: tuple[Unread, ...] = ()

    @property
    def drives(self) -> tuple[Device, ...]:
        """The devices at the bottom, of which nothing lies below."""
        return tuple(device for device in self.devices if device.is_drive)

    def device(self, name: str) -> Device | None:
        """The device of this kernel name."""
        return next((each for each in self.devices if each.name == name), None)


def decode(text: str | bytes) -> Snapshot:
    """A snapshot from its JSON text.

    Raises:
        UsageError: it is something else.
    """
    try:
        return msgspec.json.decode(text, type=Snapshot)
    except msgspec.MsgspecError as error:
        raise UsageError(f"this is no snapshot of a storage stack: {error}") from error
