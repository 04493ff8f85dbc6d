"""Twins whose layout is known, regular or not, for the stripe experiment's tests and bench."""

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
    """A twin's geometry and times: sizes in KiB, rates in MB/s, times in us.

    `order` says in which order the region's 4 KiB units are written (of so many); None: ascending.
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
        """Dies in all."""
        return self.channels * self.dies

    def profile(self, capacity_mib: int) -> str:
        """Its TOML."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        read = json.dumps([f"{each:g} us" for each in self.read])
        return _PROFILE.format(**{**fields, "read": read}, capacity=capacity_mib)

    def open(self, size: int, noise: float, seed: int) -> Drive:
        """A drive for a region of `size` bytes; each job's time has so much noise."""
        # Superblocks are large where dies are many: room for twelve of them.
        superblock = self.units * self.planes * self.page * 64 // KIB
        capacity = max(size // MIB, 12 * superblock)
        drive = open_twin("known", self.profile(capacity), seed=seed)
        order = None if self.order is None else list(self.order(size // UNIT))
        return cast(Drive, _Noisy(drive, noise, random.Random(seed), order))


class _Noisy:
    """A drive whose jobs take a few per cent longer or shorter, and that writes in its order."""

    def __init__(
        self, drive: Drive, noise: float, stream: random.Random, order: list[int] | None
    ) -> None:
        self._drive, self._noise, self._random, self._order = drive, noise, stream, order

    def __getattr__(self, name: str) -> Any:
        return getattr(self._drive, name)

    def run(self, job: str, watch: Any = None) -> dict[str, Any]:
        if self._order is not None and json.loads(job)["op"] == "write":
            job = encode(_written_in(self._order))
        found = self._drive.run(job, watch)
        factor = max(0.5, self._random.gauss(1.0, self._noise))
        took = (found["end_ns"] - found["start_ns"]) * factor
        return {**found, "end_ns": found["start_ns"] + int(took)}


def _written_in(order: list[int]) -> Job:
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


def drawn(seed: int) -> Twin:
    """A regular twin at random: up to 16 x 8 dies, chunks of 4 to 128 KiB, other times."""
    stream = random.Random(seed)
    chunk = 4 << stream.randrange(6)
    planes, page = stream.choice([(1, 16), (2, 16), (4, 16), (1, 8), (2, 8), (1, 32), (2, 4)])
    while chunk % (planes * page) and planes * page % chunk:  # a drive of another generation
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


def irregular() -> dict[str, Twin]:
    """Ten drives without a regular stripe, by what is wrong with them."""
    fine = Twin(chunk=4, page=16)  # the order of writing alone decides where a unit lies
    return {
        "one die": Twin(1, 1),
        "a link slower than a die": Twin(4, 4, read=(25.0,), link=80),
        "channels slower than the dies behind them": Twin(4, 4, read=(15.0,), channel=200),
        "two planes in each unit, by chance": replace(fine, order=_planes(8, 2)),
        "four planes in each unit, by chance": replace(fine, channels=8, order=_planes(8, 4)),
        "a period of 604 KiB": replace(fine, dies=2, order=_period_151),
        "dies in another order in each stripe": replace(fine, dies=2, order=_shuffled_stripes),
        "pieces of 64 KiB anywhere": Twin(4, 4, order=_pieces(16)),
        "pieces of 1 MiB anywhere, 15 dies": Twin(3, 5, order=_pieces(256)),
        "chunks of 16 and 48 KiB in turn": replace(fine, dies=2, order=_uneven),
    }


def _placed(count: int, dies: int, die_of: Callable[[int], int]) -> list[int]:
    """The order of writing that puts each unit on its die, where dies take turns unit by unit.

    What finds its die full is written at the end.
    """
    waiting: list[list[int]] = [[] for _ in range(dies)]
    for unit in reversed(range(count)):
        waiting[die_of(unit)].append(unit)
    order = []
    while all(waiting):
        order += [units.pop() for units in waiting]
    return order + sorted(unit for units in waiting for unit in units)


def _planes(units: int, planes: int) -> Callable[[int], list[int]]:
    def order(count: int) -> list[int]:
        stream = random.Random(1)
        return _placed(
            count,
            units * planes,
            lambda unit: unit // 8 % units * planes + stream.randrange(planes),
        )

    return order


def _period_151(count: int) -> list[int]:
    return _placed(count, 8, lambda unit: unit % 151 * 8 // 151)


def _shuffled_stripes(count: int) -> list[int]:
    def die_of(unit: int) -> int:
        return random.Random(unit // 64).sample(range(8), 8)[unit // 8 % 8]

    return _placed(count, 8, die_of)


def _uneven(count: int) -> list[int]:
    def die_of(unit: int) -> int:
        pair, inside = divmod(unit, 16)
        return 2 * pair % 8 + (inside >= 4)

    return _placed(count, 8, die_of)


def _pieces(units: int) -> Callable[[int], list[int]]:
    def order(count: int) -> list[int]:
        starts = list(range(0, count - units + 1, units))
        random.Random(2).shuffle(starts)
        return [start + number for start in starts for number in range(units)]

    return order
