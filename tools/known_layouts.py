"""Twins with known layouts, regular or not, for the tests and bench of the stripe experiment."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from ssdlab.device import Drive, Extents, Job, open_twin
from ssdlab.device.kinds import encode

KIB: Final = 1 << 10
MIB: Final = 1 << 20
UNIT: Final = 4 * KIB
_PROFILE: Final = """
drive = {{ model = "known layout", capacity = "{capacity} MiB", interface = "nvme" }}
buffer = {{ size = "128 MiB" }}

[link]
bandwidth = "{link} MB/s"
read_overhead = "{overhead} us"
max_transfer = "256 KiB"

[flash]
channels = {channels}
dies_per_channel = {dies}
planes = {planes}
page = "{page} KiB"
pages_per_block = 64
read = {read}
program = "300 us"
erase = "3000 us"
channel_bandwidth = "{channel} MB/s"

[ftl]
chunk = "{chunk} KiB"
spare = 0.3
"""


@dataclass(frozen=True)
class Twin:
    """A twin's geometry and timing: sizes in KiB, rates in MB/s, times in us.

    `order(count)` is the order in which the `count` 4 KiB units of the region are written; None
    means ascending.
    """

    channels: int = 4
    dies: int = 4
    chunk: int = 32
    planes: int = 1
    page: int = 32
    read: tuple[float, ...] = (50.0,)
    channel: int = 800
    link: int = 3200
    overhead: int = 20
    order: Callable[[int], Iterable[int]] | None = field(default=None, compare=False)

    @property
    def units(self) -> int:
        """The number of dies."""
        return self.channels * self.dies

    def profile(self, capacity_mib: int) -> str:
        """The profile as TOML."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        read = json.dumps([f"{time:g} us" for time in self.read])
        return _PROFILE.format(**{**fields, "read": read}, capacity=capacity_mib)

    def open(self, size: int, noise: float, seed: int) -> Drive:
        """A drive for a region of `size` bytes; `noise` is the relative deviation of job times."""
        # At least twelve superblocks, which are large if there are many dies.
        superblock = self.units * self.planes * self.page * 64 // KIB
        capacity = max(size // MIB, 12 * superblock)
        drive = open_twin("known", self.profile(capacity), seed=seed)
        order = None if self.order is None else list(self.order(size // UNIT))
        return cast(Drive, _Noisy(drive, noise, random.Random(seed), order))


class _Noisy:
    """A drive with noisy job times, whose writes are reordered to `order`."""

    def __init__(
        self, drive: Drive, noise: float, stream: random.Random, order: list[int] | None
    ) -> None:
        self._drive, self._noise, self._random, self._order = drive, noise, stream, order

    def __getattr__(self, name: str) -> Any:
        return getattr(self._drive, name)

    def run(self, job: str, watch: Any = None) -> dict[str, Any]:
        if self._order is not None and json.loads(job)["op"] == "write":
            job = encode(_write_job(self._order))
        outcome = self._drive.run(job, watch)
        factor = max(0.5, self._random.gauss(1.0, self._noise))
        duration_ns = (outcome["end_ns"] - outcome["start_ns"]) * factor
        return {**outcome, "end_ns": outcome["start_ns"] + int(duration_ns)}


def _write_job(order: list[int]) -> Job:
    extents = Extents(tuple((number * UNIT, UNIT) for number in order))
    size = len(order) * UNIT
    return Job(
        op="write",
        pattern=extents,
        length_bytes=size,
        block_bytes=UNIT,
        amount_bytes=size,
        queue_depth=4,
    )


def random_twin(seed: int) -> Twin:
    """A random regular twin: up to 16 x 8 dies, chunks of 4 to 128 KiB, random timing."""
    stream = random.Random(seed)
    chunk = 4 << stream.randrange(6)
    planes, page = stream.choice([(1, 16), (2, 16), (4, 16), (1, 8), (2, 8), (1, 32), (2, 4)])
    while chunk % (planes * page) and planes * page % chunk:  # not a combination that drives have
        planes, page = 1, chunk
    fastest, types = stream.uniform(25, 80), stream.randint(1, 4)
    read = [round(fastest * (1 + 0.35 * number), 1) for number in range(types)]
    stream.shuffle(read)
    return Twin(
        channels=stream.randint(1, 16),
        dies=stream.randint(1, 8),
        chunk=chunk,
        planes=planes,
        page=page,
        read=tuple(read),
        channel=stream.choice([300, 400, 533, 800, 1200]),
        link=stream.choice([550, 1800, 3200, 6800]),
        overhead=stream.choice([5, 10, 20, 40]),
    )


def irregular_layouts() -> dict[str, Twin]:
    """Nine twins without a regular stripe, by the reason."""
    fine = Twin(chunk=4, page=16)  # the write order alone decides the die of a unit
    return {
        "one die": Twin(1, 1),
        "a link slower than a die": Twin(4, 4, read=(25.0,), link=80),
        "two planes in each unit, by chance": replace(fine, order=_planes(8, 2)),
        "four planes in each unit, by chance": replace(fine, channels=8, order=_planes(8, 4)),
        "a period of 604 KiB": replace(fine, dies=2, order=_period_151),
        "dies in another order in each stripe": replace(fine, dies=2, order=_shuffled_stripes),
        "pieces of 64 KiB anywhere": Twin(4, 4, order=_pieces(16)),
        "pieces of 1 MiB anywhere, 15 dies": Twin(3, 5, order=_pieces(256)),
        "chunks of 16 and 48 KiB in turn": replace(fine, dies=2, order=_uneven),
    }


def _write_order(count: int, dies: int, die_of: Callable[[int], int]) -> list[int]:
    """The write order that puts each unit on its die, on a drive that fills dies in rotation.

    Once a die has no units left, the remaining units are written in ascending order.
    """
    by_die: list[list[int]] = [[] for _ in range(dies)]
    for unit in reversed(range(count)):
        by_die[die_of(unit)].append(unit)
    order = []
    while all(by_die):
        order += [units.pop() for units in by_die]
    return order + sorted(unit for units in by_die for unit in units)


def _planes(units: int, planes: int) -> Callable[[int], list[int]]:
    def order(count: int) -> list[int]:
        stream = random.Random(1)
        return _write_order(
            count,
            units * planes,
            lambda unit: unit // 8 % units * planes + stream.randrange(planes),
        )

    return order


def _period_151(count: int) -> list[int]:
    return _write_order(count, 8, lambda unit: unit % 151 * 8 // 151)


def _shuffled_stripes(count: int) -> list[int]:
    def die_of(unit: int) -> int:
        return random.Random(unit // 64).sample(range(8), 8)[unit // 8 % 8]

    return _write_order(count, 8, die_of)


def _uneven(count: int) -> list[int]:
    def die_of(unit: int) -> int:
        pair, inside = divmod(unit, 16)
        return 2 * pair % 8 + (inside >= 4)

    return _write_order(count, 8, die_of)


def _pieces(units: int) -> Callable[[int], list[int]]:
    def order(count: int) -> list[int]:
        starts = list(range(0, count - units + 1, units))
        random.Random(2).shuffle(starts)
        return [start + number for start in starts for number in range(units)]

    return order
