"""Generic profiles: what interface, capacity and type of flash determine of a drive, and how well.

Times of the flash come from `tables/nand.toml`. Numbers that neither it nor the caller determines
are the median of the shipped profiles with the same interface, which also show how much drives
differ. Each number has its range, so that `variants` can show what findings may be.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, Literal

import numpy as np

from ssdlab import profiles
from ssdlab.errors import UsageError
from ssdlab.units import parse_duration, parse_size

Interface = Literal["nvme", "sata"]
NAND: Final = "nand.toml"
RATES: Final = "iocost.toml"
GIB: Final = 1 << 30
CAPACITY_MIN: Final = 8 * 10**9
CAPACITY_MAX: Final = 256 * 10**12
SPARE_MIN: Final = 0.065
"""The least spare of a drive: 512 GB of 512 GiB are 6.9 %."""
DIES_WANTED: Final = 8
"""A maker takes the largest dies of which a drive still has this many."""
DIES_MAX: Final = 128
INHERITED: Final = (
    "link.bandwidth",
    "link.read_overhead",
    "link.write_overhead",
    "link.max_transfer",
    "flash.channels",
    "flash.channel_bandwidth",
    "buffer.size",
)
"""Numbers that are the median of the shipped profiles with the same interface."""
EMULATED: Final = "placement-study"
"""The shipped profile that is not of a real drive."""
PAGE: Final = "16 KiB"


@dataclass(frozen=True)
class Number:
    """A number of a profile with its range: `low` and `high` are the extremes of real drives."""

    key: str
    value: Any
    low: Any
    high: Any
    kind: str
    source: str


@dataclass(frozen=True)
class GenericDrive:
    """What is known of a drive: its interface, capacity and flash; the rest may be None."""

    interface: Interface
    capacity_bytes: int
    nand: str
    model: str = ""
    channels: int | None = None
    dies: int | None = None
    spare: float | None = None
    protected: bool = False

    @property
    def name(self) -> str:
        """The model, or a description of the drive."""
        size = f"{self.capacity_bytes / 1e9:g} GB"
        return self.model or f"generic {self.interface.upper()} {self.nand.upper()} {size}"


def nand_types() -> list[str]:
    """The types of flash that are known."""
    return list(_nand())


def numbers(drive: GenericDrive) -> list[Number]:
    """The numbers of a drive's profile.

    Raises:
        UsageError: nothing is known of such a drive.
    """
    _check(drive)
    stated = {one.key: one for one in _stated(drive)}
    return list(stated.values())


def profile(drive: GenericDrive, given: Sequence[Number] | None = None) -> str:
    """The text of a drive's profile; `given` are its numbers, if not the usual ones.

    Raises:
        UsageError: as `numbers`.
    """
    sections: dict[str, list[str]] = {}
    for one in _consistent(numbers(drive) if given is None else given):
        section, name = one.key.split(".")
        entry = (
            f"value = {_toml(one.value)}, source = {_toml(one.source)}, kind = {_toml(one.kind)}"
        )
        sections.setdefault(section, []).append(f"{name} = {{ {entry} }}")
    sections["drive"] = [
        f"model = {_toml(drive.name)}",
        f"interface = {_toml(drive.interface)}",
        *sections["drive"],
    ]
    sections["ftl"] += ['placement = "striped"', 'victim = "greedy"']
    order = ("drive", "link", "flash", "ftl", "buffer")
    tables = "\n".join(f"[{name}]\n" + "\n".join(sections[name]) + "\n" for name in order)
    return f"# {drive.name}: a generic twin. kind guessed: usual for such drives.\n\n{tables}"


def variants(drive: GenericDrive, count: int, seed: int = 0) -> Iterator[str]:
    """Profiles whose guessed numbers are drawn from their ranges, on a logarithmic scale."""
    stated, random = numbers(drive), np.random.default_rng(seed)
    for _ in range(count):
        yield profile(drive, [_drawn(one, random) for one in stated])


def _consistent(given: Sequence[Number]) -> list[Number]:
    """The numbers; the overhead of writes is at least the part of it that each command takes."""
    by_key = {one.key: one for one in given}
    part, whole = by_key["link.write_command"], by_key["link.write_overhead"]
    if _plain(part.key, part.value) > _plain(whole.key, whole.value):
        by_key[whole.key] = replace(whole, value=part.value)
    return list(by_key.values())


def _drawn(one: Number, random: np.random.Generator) -> Number:
    if one.low == one.high:
        return one
    low, high = (_plain(one.key, bound) for bound in (one.low, one.high))
    value = float(np.exp(random.uniform(math.log(low), math.log(high))))
    return replace(one, value=_like(one.key, one.value, value))


def _check(drive: GenericDrive) -> None:
    if drive.nand not in _nand():
        raise UsageError(f"--nand is {drive.nand!r}; it must be one of {', '.join(_nand())}")
    if not CAPACITY_MIN <= drive.capacity_bytes <= CAPACITY_MAX:
        raise UsageError(
            f"--capacity is {drive.capacity_bytes / 1e9:g} GB; it must be from "
            f"{CAPACITY_MIN / 1e9:g} GB to {CAPACITY_MAX / 1e12:g} TB"
        )
    for name, count in (("channels", drive.channels), ("dies", drive.dies)):
        if count is not None and not 1 <= count <= DIES_MAX:
            raise UsageError(f"--{name} is {count}; it must be from 1 to {DIES_MAX}")
    if drive.spare is not None and not 0.01 <= drive.spare <= 0.9:
        raise UsageError(f"--spare is {drive.spare:g}; it must be from 0.01 to 0.9 of all flash")


def _stated(drive: GenericDrive) -> Iterator[Number]:
    size = f"{drive.capacity_bytes} B"
    yield _sure("drive.capacity", size, "given")
    for key in INHERITED:
        if key != "flash.channels":
            yield _inherited(key, drive.interface)
    yield _write_command(drive.interface)
    yield from _flash(drive)
    yield _sure("ftl.mapping_unit", "4 KiB", "usual for drives with DRAM: 1 GB for 1 TB", "guessed")
    yield from _spare(drive)
    word = "given: protected" if drive.protected else "given: a client drive"
    yield _sure("buffer.power_loss_protection", drive.protected, word)
    yield _sure("buffer.honours_flush", True, "as the interface requires", "guessed")


def _flash(drive: GenericDrive) -> Iterator[Number]:
    nand = _nand()[drive.nand]
    source = f"usual for {drive.nand.upper()}: {nand['source']}"
    yield from _parallelism(drive, nand)
    planes = nand["planes"]
    yield Number("flash.planes", planes["usual"], planes["low"], planes["high"], "guessed", source)
    yield _sure("flash.page", PAGE, "usual for 3D flash", "guessed")
    yield _sure("flash.pages_per_block", nand["pages_per_block"], "usual for its type", "guessed")
    for key in ("read", "program", "erase"):
        times = nand[key]
        yield Number(f"flash.{key}", times["usual"], times["low"], times["high"], "guessed", source)
    chunk = f"{planes['usual'] * parse_size(PAGE) // 1024} KiB"
    yield _sure("ftl.chunk", chunk, "one multi-plane page, as in most shipped profiles", "guessed")


def _parallelism(drive: GenericDrive, nand: dict[str, Any]) -> Iterator[Number]:
    """Channels and dies; if neither is known, from half to twice as many dies."""
    dies, why = _dies(drive, nand, _flash_bytes(drive))
    inherited = _inherited("flash.channels", drive.interface)
    wanted = drive.channels or inherited.value
    channels = max(n for n in range(1, min(wanted, dies) + 1) if dies % n == 0)
    each, fewest = dies // channels, channels
    low, high = (each, each) if drive.dies else (max(1, each // 2), 2 * each)
    if drive.channels is not None:
        yield _sure("flash.channels", channels, "given")
    else:
        if each == 1 and drive.dies is None:
            fewest = max(1, channels // 2)
        yield Number("flash.channels", channels, fewest, channels, "guessed", inherited.source)
    kind = "guessed" if drive.dies is None else "datasheet"
    yield Number("flash.dies_per_channel", each, low, high, kind, why)


def _dies(drive: GenericDrive, nand: dict[str, Any], flash: int) -> tuple[int, str]:
    """The number of dies, and its source."""
    if drive.dies is not None:
        return drive.dies, "given"
    sizes = [gbit for gbit in nand["die_gbit"] if flash // (gbit << 27) >= DIES_WANTED]
    gbit = max(sizes, default=min(nand["die_gbit"]))
    dies = min(DIES_MAX, max(1, round(flash / (gbit << 27))))
    return dies, f"{flash / GIB:g} GiB of flash in dies of {gbit} Gbit: {dies} of them"


def _spare(drive: GenericDrive) -> Iterator[Number]:
    if drive.spare is not None:
        yield _sure("ftl.spare", drive.spare, "given")
        return
    flash = _flash_bytes(drive)
    spare = round(1 - drive.capacity_bytes / flash, 4)
    source = f"{drive.capacity_bytes / 1e9:g} GB visible of {flash / GIB:g} GiB of flash"
    yield Number("ftl.spare", spare, round(spare * 0.9, 4), max(0.28, spare), "guessed", source)


def _flash_bytes(drive: GenericDrive) -> int:
    """The flash of a drive: a power of two of GiB, or 1.5 times one, that leaves some spare."""
    least = drive.capacity_bytes / (1 - SPARE_MIN)
    sizes = sorted(size << power for size in (2, 3) for power in range(48))
    return next(size for size in sizes if size >= least and size >= GIB)


def _sure(key: str, value: Any, source: str, kind: str = "datasheet") -> Number:
    """A number without a range: given, or of no consequence for rates."""
    return Number(key, value, value, value, kind, source)


@cache
def _inherited(key: str, interface: Interface) -> Number:
    """The median of the shipped profiles with this interface, and their extremes."""
    section, name = key.split(".")
    found = []
    for shipped in profiles.names():
        table = tomllib.loads(profiles.load(shipped))
        if shipped != EMULATED and table["drive"]["interface"] == interface:
            entry = table.get(section, {}).get(name)
            if entry is not None:
                found.append(entry["value"] if isinstance(entry, dict) else entry)
    found.sort(key=lambda value: _plain(key, value))
    value, low, high = found[(len(found) - 1) // 2], found[0], found[-1]
    source = f"median of {len(found)} shipped {interface.upper()} twins, {low} to {high}"
    if key == "link.bandwidth":
        rates = [row["rbps"] for row in _rates(interface)]
        low, high = (f"{rate} MB/s" for rate in (min(rates), max(rates)))
        source += f"; {len(rates)} drives read {low} to {high} ({RATES})"
    return Number(key, value, low, high, "guessed", source)


def _write_command(interface: Interface) -> Number:
    """The controller's time for a write: the shortest of measured drives, up to the longest."""
    times = sorted(1e6 / row["wseqiops"] for row in _rates(interface))
    low, high = (f"{time:.2f} us" for time in (times[0], times[-1]))
    source = f"4 KiB writes at depth 64 take {low} to {high} on {len(times)} drives ({RATES})"
    return Number("link.write_command", low, low, high, "guessed", source)


def _rates(interface: Interface) -> list[dict[str, Any]]:
    """iocost's numbers of drives with this interface."""
    rows = tomllib.loads((profiles.tables() / RATES).read_text(encoding="utf-8"))["iocost"]
    return [row for row in rows if row["interface"] == interface]


@cache
def _nand() -> dict[str, dict[str, Any]]:
    return tomllib.loads((profiles.tables() / NAND).read_text(encoding="utf-8"))


_TIMES: Final = frozenset(
    {"read", "program", "erase", "read_overhead", "write_overhead", "write_command"}
)
_COUNTS: Final = frozenset({"channels", "dies_per_channel", "planes"})


def _plain(key: str, value: Any) -> float:
    """A value as a number: seconds, bytes or bytes/s."""
    if isinstance(value, int | float):
        return float(value)
    if key.rpartition(".")[2] in _TIMES:
        return parse_duration(value)
    return float(parse_size(value.removesuffix("/s")))


def _like(key: str, example: Any, value: float) -> Any:
    """A number as a value of the profile."""
    name = key.rpartition(".")[2]
    if name in _COUNTS:
        return 2 ** round(math.log2(value))
    if name in _TIMES:
        return f"{value * 1e6:.2f} us"
    if isinstance(example, float):
        return round(value, 4)
    if "bandwidth" in name:
        return f"{value / 1e6:.1f} MB/s"
    return f"{2 ** round(math.log2(value / 1024))} KiB"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', "'") + '"'
    return str(value)
