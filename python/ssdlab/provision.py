"""A drive's spare, and the gain from more spare, simulated on a twin. Writes to no real drive.

The twin is scaled down and filled in order. Then random 4 KiB writes at queue depth 32 overwrite
its used space 1.5 times, and another 0.5 times for the measurement.

The methods to leave a part of a drive unused are text: steps, commands and risks. Sources:
blkdiscard(8), parted(8), hdparm(8), nvme-create-ns(1), mdadm(8). The unused part must be
discarded BEFORE it is hidden, and never written again: if it is formatted, resynced or wiped, the
drive counts it as in use, and it is not spare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ssdlab import profiles
from ssdlab.analysis.spare import SECTOR, SpareArea
from ssdlab.device import Drive, Job, Outcome, describe_twin, open_twin, run_job
from ssdlab.doctor.checks.drives import flash_of, published
from ssdlab.errors import Interrupted, TargetError
from ssdlab.storage_stack.blockdev import BlockDevice, partitions_of
from ssdlab.storage_stack.device_warnings import device_warnings
from ssdlab.storage_stack.in_use import recorded_uses
from ssdlab.storage_stack.resync import arrays_on, resync_warnings
from ssdlab.target import Twin
from ssdlab.units import format_size
from ssdlab.warning import MeasurementWarning

RECOMMENDED_SPARE: Final = (0.25, 0.27, 0.29)
"""Fractions of all flash that the published test of two 840 Pro drives recommends."""
SCALED_BYTES: Final = 2 << 30
_MIB: Final = 1 << 20
_BLOCK: Final = 4096
_OVERWRITES, _MEASURED_OVERWRITES = 1.5, 0.5
_WRITE_CAUSES: Final = ("host", "collection", "wear", "mapping", "folding", "padding")
ProgressCallback = Callable[[str], object]
_ALIGNED: Final = 1 << 20


@dataclass(frozen=True)
class DriveInfo:
    """A drive's spare, its source, and any twin that simulates the drive; sizes in bytes."""

    name: str
    model: str
    transport: str
    node: str
    sector: int
    area: SpareArea
    source: str
    twin: str | None
    unpartitioned: int | None = None
    warnings: tuple[MeasurementWarning, ...] = ()
    uses: tuple[str, ...] = ()
    """Why it must not be overwritten: mounts, swap, and devices above it."""


@dataclass(frozen=True)
class Gain:
    """Random 4 KiB writes per second, WAF and p99 latency of a twin with this spare."""

    spare: float
    used: int
    writes_per_s: float
    waf: float
    p99_s: float | None


def info_of_twin(name: str, flash: int | None = None) -> DriveInfo:
    """A twin, by its name or file.

    If sizes of the real model are published, they are used: those of a profile are rounded.

    Raises:
        TargetError: no such twin.
    """
    description = describe_twin(name, profiles.load(name))
    area = published(description["model"])
    source = "a published test of this model"
    if flash is not None or area is None:
        area = area_of(flash or description["flash_bytes"], description["capacity_bytes"])
        source = "as given" if flash is not None else "its profile"
    return DriveInfo(
        name=str(Twin(name)),
        model=description["model"],
        transport=description["interface"],
        node="/dev/NAME",
        sector=512,
        area=area,
        source=source,
        twin=name,
    )


def info_of_device(device: BlockDevice, flash: int | None, twin: str | None) -> DriveInfo:
    """A whole drive; `flash` and `twin` override the values known from its model.

    Raises:
        TargetError: it is a partition, reports no size, or is not a drive, so that only `flash` can
            say how much flash it has.
    """
    if device.is_partition:
        raise TargetError(
            f"{device.node} is a partition: give the whole drive, /dev/{device.whole_disk}"
        )
    if not device.size:
        raise TargetError(f"{device.node} reports no size: insert a medium")
    uses = tuple(recorded_uses(device))
    if flash is None:
        _require_drive(device, uses)
    model = " ".join(word for word in (device.vendor, device.model) if word)
    guessed = flash_of(model, device.size)
    ends = [(part.start or 0) + (part.size or 0) for part in partitions_of(device)]
    return DriveInfo(
        name=str(device.node),
        model=model or "unknown model",
        transport=device.transport,
        node=str(device.node),
        sector=device.logical_sector or 512,
        area=area_of(flash or guessed.size_bytes, device.size),
        source="as given" if flash else guessed.why,
        twin=twin or twin_like(model),
        unpartitioned=device.size - max(ends) if ends else None,
        warnings=resync_warnings(arrays_on(device)),
        uses=uses,
    )


def _require_drive(device: BlockDevice, uses: Sequence[str]) -> None:
    """Refuses a device without flash of its own."""
    codes = {"memory", "virtual", "network", "composed"}
    found = [warning for warning in device_warnings(device) if warning.code in codes]
    if not found and device.transport != "loop":
        return
    what = f"{device.name} is a loop device"
    if found:
        what = found[0].sentence.partition(",")[0].partition(":")[0]
    in_use = f"{uses[0].partition(':')[0]}, and " if uses else ""
    raise TargetError(
        f"{in_use}{what.rstrip('.')}: its flash and spare are unknown, so there is nothing to "
        "plan; give the drive below it, on the machine that has it, or --flash with all its flash"
    )


def area_of(flash: int, visible: int) -> SpareArea:
    """The spare of a drive with these sizes in bytes.

    Raises:
        TargetError: there is less flash than visible capacity.
    """
    if not 0 < visible <= flash:
        raise TargetError(
            f"{flash} bytes of flash cannot show {visible} bytes: give --flash all flash of the "
            "drive, such as 512GiB, at least its visible capacity"
        )
    return SpareArea(flash, visible)


def twin_like(model: str) -> str | None:
    """The longest-named twin whose words all occur in a model's name; None if none matches."""
    words = model.lower().replace("-", " ").replace("_", " ").split()
    matching = [
        name
        for name in profiles.names()
        if all(any(word.startswith(part) for word in words) for part in name.split("-"))
    ]
    return max(matching, key=len, default=None)


def gains(
    info: DriveInfo,
    shares: Sequence[float] = RECOMMENDED_SPARE,
    progress: ProgressCallback | None = None,
) -> Iterator[Gain]:
    """Simulates the twin with its own spare and with each greater share of all flash.

    Raises:
        Interrupted: by Ctrl-C.
        TargetError: the profile cannot be scaled to SCALED_BYTES.
    """
    if info.twin is None:
        return
    description = describe_twin(info.twin, profiles.load(info.twin), SCALED_BYTES)
    own = description["spare"]
    for share in (own, *(share for share in shares if share > own)):
        if progress is not None:
            progress(f"simulating a spare of {share:.1%} on {info.twin}")
        used = min(SCALED_BYTES, int(description["flash_bytes"] * (1 - share))) // _MIB * _MIB
        yield _gain(info.twin, share, used)


def _gain(twin: str, share: float, used: int) -> Gain:
    drive = open_twin(twin, profiles.load(twin), SCALED_BYTES)
    fill = Job("write", length_bytes=used, block_bytes=_MIB, amount_bytes=used, queue_depth=4)
    _run(drive, fill)
    _run(drive, _random_writes(used, _OVERWRITES))
    before = _write_counts(drive)
    outcome = _run(drive, _random_writes(used, _MEASURED_OVERWRITES))
    after = _write_counts(drive)
    p99 = outcome.percentiles_ns("write").p99
    return Gain(
        spare=share,
        used=used,
        writes_per_s=outcome.requests / outcome.seconds,
        waf=(after[1] - before[1]) / (after[0] - before[0]),
        p99_s=None if p99 is None else p99 / 1e9,
    )


def _random_writes(used: int, overwrites: float) -> Job:
    return Job(
        "write",
        pattern="random",
        length_bytes=used,
        block_bytes=_BLOCK,
        amount_bytes=int(overwrites * used),
        queue_depth=32,
    )


def _run(drive: Drive, job: Job) -> Outcome:
    outcome = run_job(drive, job)
    if outcome.stopped:
        raise Interrupted("interrupted")
    outcome.raise_if_failed("the twin")
    return outcome


def _write_counts(drive: Drive) -> tuple[int, int]:
    """Mapping units written by the host, and all mapping units written to flash."""
    counters = drive.counters()
    assert counters is not None, "a twin has counters"
    return counters["host_writes"], sum(counters[f"nand_{cause}_writes"] for cause in _WRITE_CAUSES)


@dataclass(frozen=True)
class Step:
    """One step: what it does, its commands, and its risk ("" for none)."""

    does: str
    commands: tuple[str, ...] = ()
    danger: str = ""


@dataclass(frozen=True)
class Method:
    """All steps of a method; its `name` begins with partition, hpa, namespace or raid."""

    name: str
    when: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class DriveSize:
    """The drive of a plan: `visible` bytes now, of which `usable` bytes are to stay in use."""

    node: str
    transport: str
    sector: int
    visible: int
    usable: int
    in_use: bool = False


_DESTROYS: Final = "destroys all data on the drive"
_CHECK: Final = Step(
    "Check the result.",
    ("ssdlab doctor DIRECTORY", "sudo ssdlab run trim DIRECTORY", "ssdlab run steady DIRECTORY"),
)


def methods(drive: DriveSize) -> tuple[Method, ...]:
    """The methods that this drive supports, simplest first.

    Those that destroy all data are left out for a drive in use.
    """
    if drive.in_use:
        return (_shrunk_partition(drive),)
    supported = [_fresh_partition(drive), _shrunk_partition(drive)]
    if drive.transport in {"sata", "unknown"}:
        supported.append(_hpa(drive))
    if drive.transport.startswith("nvme") or drive.transport == "unknown":
        supported.append(_namespace(drive))
    supported.append(_raid())
    return tuple(supported)


def _fresh_partition(drive: DriveSize) -> Method:
    end = drive.usable // _ALIGNED * _ALIGNED
    return Method(
        "partition, on an empty drive",
        "works on every drive that supports TRIM; it hides nothing, and can be undone",
        (
            Step("Back up the data on the drive.", danger="the next step destroys all data"),
            Step("Discard the whole drive.", (f"sudo blkdiscard {drive.node}",), _DESTROYS),
            Step(
                f"Make one partition that ends at {format_size(end)}, and leave the rest unused.",
                (
                    (
                        f"sudo parted --script {drive.node} mklabel gpt mkpart ssd 1MiB "
                        f"{end // _ALIGNED}MiB"
                    ),
                ),
            ),
            _CHECK,
        ),
    )


def _shrunk_partition(drive: DriveSize) -> Method:
    end = drive.usable // _ALIGNED * _ALIGNED
    start = end + _ALIGNED  # parted can include or exclude the last sector
    rest = drive.visible - start - _ALIGNED  # the last MiB holds the backup GPT
    return Method(
        "partition, on a drive in use",
        "ext4 and btrfs can shrink; xfs cannot",
        (
            Step("Back up the data on the drive.", danger="a wrong size truncates the file system"),
            Step(
                "Shrink the LAST file system to less than its new partition, then the partition.",
                (
                    "ext4, unmounted: sudo e2fsck -f PART; sudo resize2fs PART SIZE",
                    "btrfs, mounted:  sudo btrfs filesystem resize SIZE DIRECTORY",
                    f"sudo parted {drive.node} resizepart N {end // _ALIGNED}MiB",
                ),
                "shrinking the partition first loses data",
            ),
            Step(
                f"Discard the space after it: {format_size(max(0, rest))}.",
                (
                    f"sudo parted {drive.node} unit B print free   # is it free from {start} on?",
                    f"sudo blkdiscard --offset {start} --length {max(0, rest)} {drive.node}",
                ),
                "a wrong offset destroys data: compare it with the output of the previous command",
            ),
            _CHECK,
        ),
    )


def _hpa(drive: DriveSize) -> Method:
    sectors = drive.usable // SECTOR
    return Method(
        "hpa (SATA)",
        "the drive reports less; for RAID controllers and installers that use whole drives",
        (
            Step("Back up the data on the drive.", danger="the next step destroys all data"),
            Step("Discard the whole drive.", (f"sudo blkdiscard {drive.node}",), _DESTROYS),
            Step(
                "Check all three sizes: current, native, and in the configuration overlay (DCO).",
                (f"sudo hdparm -N {drive.node}", f"sudo hdparm --dco-identify {drive.node}"),
            ),
            Step(
                f"Set {sectors} sectors permanently (p), then power-cycle the drive.",
                (f"sudo hdparm -Np{sectors} --yes-i-know-what-i-am-doing {drive.node}",),
                "only once per power cycle; newer drives refuse it (they have AMAC instead); with "
                "libata.ignore_hpa=1 Linux shows the whole drive again",
            ),
            _CHECK,
        ),
    )


def _namespace(drive: DriveSize) -> Method:
    blocks = drive.usable // drive.sector
    controller = drive.node.rpartition("n")[0] or drive.node
    return Method(
        "namespace (NVMe)",
        "only if the controller supports namespace management (id-ctrl: OACS bit 3)",
        (
            Step(
                "Check what the controller supports: OACS bit 3, NN, UNVMCAP.",
                (f"sudo nvme id-ctrl -H {controller}",),
            ),
            Step("Back up the data on the drive.", danger="the next step destroys all data"),
            Step(
                "Discard, delete the namespace, create a smaller one, attach it.",
                (
                    f"sudo blkdiscard {drive.node}",
                    f"sudo nvme delete-ns {controller} --namespace-id=1",
                    f"sudo nvme create-ns {controller} --nsze={blocks} --ncap={blocks} --flbas=0",
                    f"sudo nvme attach-ns {controller} --namespace-id=1 --controllers=0",
                ),
                f"{_DESTROYS}; some drives refuse to create their only namespace again at full "
                "size, and have no disk until they are formatted: never do this on the only drive",
            ),
            _CHECK,
        ),
    )


def _raid() -> Method:
    return Method(
        "raid",
        "all members alike; most useful behind a RAID controller that does not pass TRIM",
        (
            Step(
                "Apply one of the methods above to EVERY member before the array is created.",
                danger="on an array in use: remove, change, add and resync one member at a time",
            ),
            Step(
                "Create the array from the partitions, then discard its free space.",
                ("sudo mdadm --create ... ; mkfs ... ; sudo fstrim -v DIRECTORY",),
                "a resync writes every block of every member: space after the partitions stays "
                "free, space in them counts as used until it is trimmed",
            ),
            _CHECK,
        ),
    )
