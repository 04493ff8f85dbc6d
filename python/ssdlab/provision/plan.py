"""How much of a drive to leave unused: its spare now, what more takes, what that brings on a twin.

The twin is scaled down, filled in order, overwritten at random with one and a half times its used
part, and measured over another half: 4 KiB at depth 32. Nothing real is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ssdlab import profiles
from ssdlab.analysis.spare import SpareArea
from ssdlab.device import Drive, Job, Outcome, describe_twin, open_twin, run_job
from ssdlab.doctor.checks.drives import flash_of, published
from ssdlab.errors import Interrupted, TargetError
from ssdlab.storage_stack.blockdev import BlockDevice, partitions_of
from ssdlab.target import Twin

WANTED: Final = (0.25, 0.27, 0.29)
"""Of all flash: what the published test of two 840 Pro recommends."""
SCALED: Final = 2 << 30
_MIB: Final = 1 << 20
_BLOCK: Final = 4096
_PAST, _MEASURED = 1.5, 0.5
_MAPPED: Final = ("host", "collection", "wear", "mapping", "folding", "padding")
Listener = Callable[[str], object]


@dataclass(frozen=True)
class Subject:
    """What is to be provisioned: its spare, where that is known from, the twin like it if any."""

    name: str
    model: str
    transport: str
    node: str
    sector: int
    area: SpareArea
    source: str
    twin: str | None
    unpartitioned: int | None = None


@dataclass(frozen=True)
class Gain:
    """What a twin did with so much spare: 4 KiB writes a second at random, WAF, p99 in seconds."""

    spare: float
    used: int
    writes_per_s: float
    waf: float
    p99_s: float | None


def of_twin(name: str, flash: int | None = None) -> Subject:
    """A twin by its name or file.

    Of a model with published numbers those are taken: a profile's are rounded to them.

    Raises:
        TargetError: no such twin.
    """
    told = describe_twin(name, profiles.load(name))
    area = published(told["model"])
    source = "a published test of this model"
    if flash is not None or area is None:
        area = area_of(flash or told["flash_bytes"], told["capacity_bytes"])
        source = "as given" if flash is not None else "its profile"
    return Subject(
        name=str(Twin(name)),
        model=told["model"],
        transport=told["interface"],
        node="/dev/NAME",
        sector=512,
        area=area,
        source=source,
        twin=name,
    )


def of_device(device: BlockDevice, flash: int | None, twin: str | None) -> Subject:
    """A whole drive.

    Raises:
        TargetError: it is a partition, or tells no size.
    """
    if device.is_partition:
        raise TargetError(
            f"{device.node} is a partition: give the whole drive, /dev/{device.whole_disk}"
        )
    if not device.size:
        raise TargetError(f"{device.node} tells no size: is a medium in it?")
    model = " ".join(word for word in (device.vendor, device.model) if word)
    guessed = flash_of(model, device.size)
    ends = [(part.start or 0) + (part.size or 0) for part in partitions_of(device)]
    return Subject(
        name=str(device.node),
        model=model or "not told",
        transport=device.transport,
        node=str(device.node),
        sector=device.logical_sector or 512,
        area=area_of(flash or guessed.size_bytes, device.size),
        source="as given" if flash else guessed.why,
        twin=twin or twin_like(model),
        unpartitioned=device.size - max(ends) if ends else None,
    )


def area_of(flash: int, visible: int) -> SpareArea:
    """The spare of these sizes.

    Raises:
        TargetError: less flash than is visible.
    """
    if not 0 < visible <= flash:
        raise TargetError(
            f"{flash} bytes of flash cannot show {visible}: --flash is all of it, as 512GiB, and "
            "at least as much as is visible"
        )
    return SpareArea(flash, visible)


def twin_like(model: str) -> str | None:
    """The name of the twin whose words are all in a model's name; None: there is none."""
    words = model.lower().replace("-", " ").replace("_", " ").split()
    fitting = [
        name
        for name in profiles.names()
        if all(any(word.startswith(part) for word in words) for part in name.split("-"))
    ]
    return max(fitting, key=len, default=None)


def gains(
    subject: Subject, shares: Sequence[float] = WANTED, listener: Listener | None = None
) -> Iterator[Gain]:
    """What each share of all flash brings on the twin, after what is there now.

    Raises:
        Interrupted: by Ctrl-C.
        TargetError: a profile that cannot be scaled so far.
    """
    if subject.twin is None:
        return
    told = describe_twin(subject.twin, profiles.load(subject.twin), SCALED)
    own = told["spare"]
    for share in (own, *(each for each in shares if each > own)):
        if listener is not None:
            listener(f"simulating a spare of {share:.1%} on {subject.twin}")
        used = min(SCALED, int(told["flash_bytes"] * (1 - share))) // _MIB * _MIB
        yield _gain(subject.twin, share, used)


def _gain(twin: str, share: float, used: int) -> Gain:
    drive = open_twin(twin, profiles.load(twin), SCALED)
    fill = Job("write", length_bytes=used, block_bytes=_MIB, amount_bytes=used, queue_depth=4)
    _run(drive, fill)
    _run(drive, _at_random(used, _PAST))
    before = _counted(drive)
    outcome = _run(drive, _at_random(used, _MEASURED))
    after = _counted(drive)
    p99 = outcome.percentiles_ns("write").p99
    return Gain(
        spare=share,
        used=used,
        writes_per_s=outcome.requests / outcome.seconds,
        waf=(after[1] - before[1]) / (after[0] - before[0]),
        p99_s=None if p99 is None else p99 / 1e9,
    )


def _at_random(used: int, times: float) -> Job:
    return Job(
        "write",
        pattern="random",
        length_bytes=used,
        block_bytes=_BLOCK,
        amount_bytes=int(times * used),
        queue_depth=32,
    )


def _run(drive: Drive, job: Job) -> Outcome:
    outcome = run_job(drive, job)
    if outcome.stopped:
        raise Interrupted("interrupted")
    outcome.raise_if_failed("the twin")
    return outcome


def _counted(drive: Drive) -> tuple[int, int]:
    """Units written by the host, and units written to the flash for whatever reason."""
    counters = drive.counters()
    assert counters is not None, "a twin counts"
    return counters["host_writes"], sum(counters[f"nand_{why}_writes"] for why in _MAPPED)
