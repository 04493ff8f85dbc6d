"""Random drives: profiles far apart in geometry, timing, caches and rules, and noise of the host.

Tests and benches draw all their random drives here, so that a probe meets drives that
its author did not think of. The same seed gives the same drive.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any, Final, cast

from ssdlab.device import Drive, describe_twin, open_twin
from ssdlab.errors import TargetError
from ssdlab.experiments.steady.map_pages import MAP_ENTRY_BYTES

KIB: Final = 1 << 10
MIB: Final = 1 << 20
_LINKS: Final = {"sata": (290, 545), "nvme": (1700, 3500, 7000, 14000)}
"""MB/s: SATA 2 and 3, and four lanes of PCIe 3 (or two), 4 and 5."""
_CELLS: Final = {
    1: ((8, 30), (75, 250)),
    2: ((30, 60), (300, 1300)),
    3: ((35, 80), (400, 1500)),
    4: ((70, 150), (1500, 3000)),
}
"""Bits per cell: ranges of the mean tR and of tPROG in us."""


@dataclass(frozen=True)
class RandomDrive:
    """A random profile. `noise` is the relative standard deviation of the times of jobs."""

    seed: int
    profile: str
    values: dict[str, dict[str, Any]]
    noise: float

    def open(self) -> Drive:
        """The twin, with the noise of the host."""
        drive = open_twin("random", self.profile, seed=self.seed)
        if not self.noise:
            return drive
        return cast(Drive, NoisyDrive(drive, self.noise, random.Random(self.seed)))

    def without(self, section: str) -> RandomDrive:
        """The same drive without a section of its profile, such as `slc`."""
        return self.with_values({name: k for name, k in self.values.items() if name != section})

    def with_values(self, values: dict[str, dict[str, Any]]) -> RandomDrive:
        """A drive of the same seed and noise with these sections."""
        return RandomDrive(self.seed, _toml(values), values, self.noise)

    def describe(self) -> dict[str, Any]:
        """The geometry that the model derives from the profile."""
        return describe_twin("random", self.profile)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key such as `flash.planes`; text with a unit, or a number."""
        section, name = key.split(".")
        return self.values.get(section, {}).get(name, default)

    @property
    def mapping_unit_kib(self) -> float:
        """The mapping unit."""
        return float(str(self.get("ftl.mapping_unit")).split()[0])

    @property
    def map_misses(self) -> float:
        """The share of accesses all over the drive that load a page of the map."""
        memory, units = self.get("ftl.map_cache"), float(self.describe()["capacity_bytes"]) / KIB
        if memory is None:
            return 0.0
        whole_kib = MAP_ENTRY_BYTES * units / self.mapping_unit_kib / KIB
        return max(0.0, 1 - float(str(memory).split()[0]) / whole_kib)

    @property
    def map_page_span_mib(self) -> float:
        """How much of the drive a page of the map covers."""
        entries = float(self.describe()["page_bytes"]) / MAP_ENTRY_BYTES
        return entries * self.mapping_unit_kib / KIB

    @property
    def map_waf(self) -> float:
        """What map pages add to the WAF of random writes of 4 KiB."""
        return self.map_misses * float(self.describe()["page_bytes"]) / 4096

    def __str__(self) -> str:
        shape = self.describe()
        parts = [
            f"{self.get('flash.channels')} x {self.get('flash.dies_per_channel')} dies",
            f"{self.get('flash.planes')} planes of {self.get('flash.page')}",
            f"chunk {shape['chunk_bytes'] // KIB} KiB",
            f"unit {self.get('ftl.mapping_unit')}",
            f"link {self.get('link.bandwidth')}",
            f"channel {self.get('flash.channel_bandwidth')}",
            f"buffer {self.get('buffer.size')}",
        ]
        if "slc" in self.values:
            parts.append(f"SLC {self.get('slc.mode')} {self.get('slc.size')}")
        if self.get("slc.folding"):
            parts.append(f"folded {self.get('slc.folding')}")
        if self.get("buffer.merges_writes"):
            parts.append("merges writes")
        if self.get("ftl.pacing"):
            parts.append(f"pacing by {self.get('ftl.pacing')}")
        if self.get("ftl.map_cache"):
            parts.append(f"map cache {self.get('ftl.map_cache')}")
        return ", ".join(parts)


class NoisyDrive:
    """A drive whose job times vary by a relative standard deviation of `noise`."""

    def __init__(self, drive: Drive, noise: float, stream: random.Random) -> None:
        """`stream` gives the noise."""
        self._drive, self._noise, self._random = drive, noise, stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._drive, name)

    def run(self, job: str, watch: Any = None) -> dict[str, Any]:
        """Runs a job; its recorded duration is the true one times a random factor."""
        outcome = self._drive.run(job, watch)
        factor = max(0.5, self._random.gauss(1.0, self._noise))
        duration_ns = (outcome["end_ns"] - outcome["start_ns"]) * factor
        return {**outcome, "end_ns": outcome["start_ns"] + int(duration_ns)}


class TrimlessDrive:
    """A drive that reports success for a trim and drops it, as a layer above a drive may do."""

    def __init__(self, drive: Drive) -> None:
        """`drive` never receives a trim."""
        self._drive = drive

    def __getattr__(self, name: str) -> Any:
        return getattr(self._drive, name)

    def run(self, job: str, watch: Any = None) -> dict[str, Any]:
        """Runs a job; instead of a trim, reads one block, so that time passes."""
        values = json.loads(job)
        if values["op"] == "trim":
            values |= {"op": "read", "amount_bytes": values["block_bytes"]}
        outcome: dict[str, Any] = self._drive.run(json.dumps(values), watch)
        return outcome


def random_drive(seed: int, capacity: int = 2048 * MIB, scale: int = 1) -> RandomDrive:
    """The drive with this seed; all have about `capacity` bytes, times `scale`.

    A larger `scale` makes more blocks, not larger ones: most real drives have hundreds of
    superblocks, and a buffer that is small relative to their hidden flash.
    """
    stream = random.Random(seed)
    # A stream of its own: what the other one draws stays the same for each seed.
    rules = random.Random(f"{seed}, pacing and folding")
    features = random.Random(f"{seed}, features")
    while True:
        values = _draw(stream, capacity * scale, scale)
        _add_rules(rules, values)
        noise = stream.choice((0.0, 0.0, 0.01, 0.03))
        drive = RandomDrive(seed, _toml(values), values, noise)
        if _is_valid(drive):
            break
    featured = drive.with_values(_with_features(features, values))
    return featured if _is_valid(featured) else drive


def _is_valid(drive: RandomDrive) -> bool:
    try:
        drive.describe()
    except TargetError:  # for example fewer superblocks than its streams and reserves need
        return False
    return True


def _draw(stream: random.Random, capacity: int, scale: int) -> dict[str, dict[str, Any]]:
    interface = "sata" if stream.random() < 0.25 else "nvme"
    link = stream.choice(_LINKS[interface]) * stream.uniform(0.85, 1.0)
    flash, bits = _draw_flash(stream, capacity // scale)
    unit = stream.choice((4, 4, 4, 4, 4, 8, 16))
    values = {
        "drive": {"model": "random", "capacity": f"{capacity} B", "interface": interface},
        "link": _draw_link(stream, interface, link),
        "flash": flash,
        "ftl": _draw_ftl(stream, capacity, unit, flash),
        "buffer": _draw_buffer(stream),
    }
    if stream.random() < 0.5 and bits > 1:
        values["slc"] = draw_slc(stream, capacity, bits, flash, link)
    return values


def _draw_link(stream: random.Random, interface: str, link: float) -> dict[str, Any]:
    read, write = stream.uniform(4, 60), stream.uniform(3, 30)
    values: dict[str, Any] = {
        "bandwidth": f"{link:.0f} MB/s",
        "read_overhead": f"{read:.1f} us",
        "write_overhead": f"{write:.1f} us",
        "max_transfer": f"{stream.choice((128, 256, 512, 1024))} KiB",
    }
    if stream.random() < 0.4:
        slowest = 12.0 if interface == "sata" else 3.0
        values["read_command"] = f"{min(read, stream.uniform(0.3, slowest)):.2f} us"
        values["write_command"] = f"{min(write, stream.uniform(0.3, slowest)):.2f} us"
    return values


def _draw_flash(stream: random.Random, capacity: int) -> tuple[dict[str, Any], int]:
    channels, dies = stream.choice(
        [(c, d) for c in (1, 2, 3, 4, 6, 8, 12, 16) for d in (1, 2, 3, 4, 8) if 1 < c * d <= 64]
    )
    planes, page = stream.choice((1, 1, 2, 2, 4)), stream.choice((4, 8, 16, 16, 16, 32))
    bits = stream.choice((1, 2, 2, 3, 3, 3, 4))
    mean_read, program = (stream.uniform(*limits) for limits in _CELLS[bits])
    types = max(1, bits if stream.random() < 0.8 else 1)
    slope = stream.uniform(0.0, 0.35)
    read = [mean_read * (1 + slope * (at - (types - 1) / 2)) for at in range(types)]
    row = channels * dies * planes * page * KIB
    pages = max(4 * bits, round(capacity / row / stream.choice((64, 96, 150, 250))))
    values: dict[str, Any] = {
        "channels": channels,
        "dies_per_channel": dies,
        "planes": planes,
        "page": f"{page} KiB",
        "pages_per_block": pages,
        "read": [f"{time:.1f} us" for time in read],
        "program": f"{program:.0f} us",
        "erase": f"{stream.uniform(1500, 10000):.0f} us",
        "channel_bandwidth": f"{stream.choice((200, 333, 400, 533, 800, 1200, 1600, 2400))} MB/s",
        "cache_register": stream.random() < 0.7,
    }
    if stream.random() < 0.4:
        values["suspend"] = f"{stream.uniform(5, 50):.0f} us"
    return values, bits


def _draw_ftl(
    stream: random.Random, capacity: int, unit: int, flash: dict[str, Any]
) -> dict[str, Any]:
    page = int(flash["page"].split()[0])
    row = page * flash["planes"]
    chunks = [size for size in (4, 8, 16, 32, 64, 128) if size >= unit]
    chunks = [size for size in chunks if size % row == 0 or row % size == 0] or [row]
    values: dict[str, Any] = {
        "mapping_unit": f"{unit} KiB",
        "chunk": f"{stream.choice(chunks)} KiB",
        "spare": round(stream.choice((stream.uniform(0.04, 0.12), stream.uniform(0.12, 0.4))), 4),
        "victim": stream.choice(
            ("greedy", "greedy", "d-choices", "fifo", "random", "cost-benefit")
        ),
        "relocation": stream.choice(("separate", "mixed")),
    }
    if stream.random() < 0.3:
        values["read_ahead"] = f"{stream.choice((128, 256, 512))} KiB"
    if stream.random() < 0.2:
        entries = capacity // (unit * KIB)
        values["map_cache"] = f"{int(8 * entries * stream.uniform(0.05, 0.6)) // KIB + 64} KiB"
    return values


def _draw_buffer(stream: random.Random) -> dict[str, Any]:
    protected = stream.random() < 0.35
    return {
        "size": f"{stream.choice((512, 1024, 2048, 4096, 8192, 16384, 32768, 65536))} KiB",
        "power_loss_protection": protected,
        "honours_flush": protected or stream.random() < 0.75,
        "flush_overhead": f"{stream.choice((0, 0, 5, 30, 200, 760))} us",
        "elides_zeros": stream.random() < 0.15,
    }


def draw_slc(
    stream: random.Random, capacity: int, bits: int, flash: dict[str, Any], link: float
) -> dict[str, Any]:
    """An SLC cache whose rate is often close to that of the link or of the channels."""
    row = flash["channels"] * flash["dies_per_channel"] * flash["planes"]
    row_bytes = row * int(flash["page"].split()[0]) * KIB
    program = stream.uniform(75, 300)
    if stream.random() < 0.3:
        program = min(600.0, max(75.0, row_bytes / link * stream.uniform(0.7, 1.3)))
    mode = stream.choice(("static", "dynamic"))
    share = stream.uniform(0.02, 0.12) if mode == "static" else stream.uniform(0.05, 1 / bits)
    return {
        "size": f"{max(1, round(share * capacity / MIB))} MiB",
        "mode": mode,
        "bits_per_cell": bits,
        "program": f"{program:.0f} us",
        "read": f"{stream.uniform(10, 40):.0f} us",
    }


def _add_rules(stream: random.Random, values: dict[str, dict[str, Any]]) -> None:
    """Sets when victims are emptied, when a cache is folded, and whether writes are merged."""
    victim, writing, merges = stream.random() < 0.25, stream.random() < 0.5, stream.random() < 0.5
    if victim:
        values["ftl"]["pacing"] = "victim"
    if writing and values.get("slc", {}).get("mode") == "dynamic":
        values["slc"]["folding"] = "while writing"
    if merges and values["ftl"]["mapping_unit"] != "4 KiB":
        values["buffer"]["merges_writes"] = True


def _with_features(
    stream: random.Random, values: dict[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """The values with what few drives have.

    These are pages that stay in the registers of dies, planes that read independently, a bound for
    suspended programs, a larger reserve, collection while idle, and a link that writes slower than
    it reads.
    """
    values = {section: dict(keys) for section, keys in values.items()}
    flash, ftl, link = (values[section] for section in ("flash", "ftl", "link"))
    if stream.random() < 0.15:
        flash["keeps_page"] = True
    if stream.random() < 0.2 and flash["planes"] > 1 and flash["cache_register"]:
        flash["independent_plane_reads"] = True
    if stream.random() < 0.4 and "suspend" in flash:
        flash["delay_limit"] = f"{stream.uniform(300, 5000):.0f} us"
    if stream.random() < 0.15:
        ftl["reserve"] = stream.choice((3, 4, 6))
    if stream.random() < 0.15:
        ftl["idle_reserve"] = ftl.get("reserve", 2) + stream.choice((2, 4, 8))
        ftl["idle_after"] = f"{stream.choice((10, 100, 1000))} ms"
    if stream.random() < 0.15:
        read_rate = float(link["bandwidth"].split()[0])
        link["write_bandwidth"] = f"{stream.uniform(0.5, 0.95) * read_rate:.0f} MB/s"
    return values


def _toml(values: dict[str, dict[str, Any]]) -> str:
    lines = []
    for section, keys in values.items():
        lines.append(f"[{section}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    return "\n".join(lines) + "\n"
