"""The plan of a steady run: region, rounds, and how much must be written before a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ssdlab.device import Zipf
from ssdlab.device.kinds import Pattern
from ssdlab.errors import UsageError
from ssdlab.experiments.steady.parameters import DEPTH, REGION_MIN, Steady
from ssdlab.experiments.steady.rates import FACTORS
from ssdlab.stats.steady import FLASH_ROUNDS, WINDOW, Rule
from ssdlab.target import Target, Twin
from ssdlab.units import format_size

KIB: Final = 1 << 10
MIB: Final = 1 << 20
REGION: Final = 4096 * MIB
"""The default region in a directory. On a twin or block device it is the whole capacity."""
QUICK_REGION: Final = 512 * MIB
BLOCK: Final = 4 * KIB
BLOCK_MAX: Final = MIB
DEPTH_MAX: Final = 1024
FILL_BLOCK: Final = MIB
FILL_DEPTH: Final = 4
SETTLE_S: Final = 30.0
"""Idle time after the fill, in which the drive empties its buffer and folds its SLC cache."""
QUICK_SETTLE_S: Final = 3.0
SPARE_GUESS: Final = 0.28
CACHE_GUESS: Final = 0.12
"""The most hidden flash and write cache to expect, as shares of the region. They determine how
much must be written before the rate can count as steady."""
QUICK_GUESSES: Final = (0.08, 0.02)
MOST_ROUNDS: Final = 45
"""Nine times the region; a drive that is not steady by then is reported as not steady."""
PASSES_LIMIT: Final = 100.0
"""The most passes over the region, if an SLC cache or free flash takes more than nine."""
FLASH_MOST: Final = 1.7
"""All flash / capacity, at most: 40 % of the flash is hidden."""
DRIVE_WRITES_MAX: Final = 1000.0
SPARES_MAX: Final = 8
SPARE_MAX: Final = 0.9
WHOLE: Final = 0.99
"""The share of a drive from which on a region counts as all of it."""
ORDERED: Final = 0.25
"""Shares of the region that the gauges write or read."""
KNOWN: Final = (1 / 8, 1 / 4, 1 / 2, 3 / 4)
"""The parts up to which the region is trimmed and written again, to collect known garbage."""
TRIMMED: Final = (1 / 8, 1 / 4, 1 / 2)
"""The parts up to which it is trimmed instead if victims are chosen at random."""
TRIMMED_WRITES: Final = 0.5  # share of the region written at random after each of these trims
READS: Final = 0.05
_READ: Final = ("drain", "read", "large read")  # the gauges that read this share
_NOT_ADDED: Final = (*_READ, "again")  # "part trimmed" may take its place and writes more
STRIDE: Final = MIB
"""Distance of the single reads that show how much of the region a part of the map covers."""
SIZES: Final = 0.05
BURST: Final = 1 / 8
BURST_MAX: Final = 512 * MIB  # more than any write buffer holds
RESTED: Final = 1 / 16
RESTED_MAX: Final = 128 * MIB  # twice what most buffers hold, and a page of each type in all dies
_INTERVALS: Final = 512  # per round, approximately
_PATTERNS: Final = "random, sequential or zipf:THETA"


@dataclass(frozen=True)
class Plan:
    """The plan of a run; sizes in bytes. `drive` is the drive's capacity, None in a directory.

    `spares` are shares of the region that stay unused. `guesses` are `SPARE_GUESS, CACHE_GUESS`.
    `slc_cache` is the most that the drive's SLC cache holds, None if unknown. `extends`: a large
    SLC cache or free flash outside the region makes the run longer; otherwise there may be no
    verdict.
    """

    region: int = REGION
    drive: int | None = None
    spares: tuple[float, ...] = ()
    pattern: str = "random"
    block: int = BLOCK
    depth: int = DEPTH
    drive_writes: float | None = None
    settle_s: float = SETTLE_S
    guesses: tuple[float, float] = (SPARE_GUESS, CACHE_GUESS)
    slc_cache: int | None = None
    extends: bool = True
    seed: int = 0

    @property
    def size(self) -> int:
        """The region."""
        return self.region

    @property
    def request_bytes_max(self) -> int:
        """The larger of the request sizes of the fill and the rounds."""
        return max(FILL_BLOCK, self.block)

    @property
    def shares(self) -> tuple[float, ...]:
        """The unused share of the region in each part of the run: 0, then `spares`."""
        return (0.0, *self.spares)

    def scope(self, share: float) -> int:
        """Bytes in use if this share of the region stays unused; a multiple of 1 MiB."""
        return round(self.region * (1 - share)) // MIB * MIB

    def rule(self, share: float) -> Rule:
        """The steady-state rule of a part; a round consists of whole requests.

        If the run can be that long, no window begins before the drive has no erased flash left. A
        round is then a share of the drive, since a fifth of a small region may be less than the
        write buffer or a superblock.
        """
        scope = self.scope(share)
        spare, cache = (round(guess * self.region) for guess in self.guesses)
        cache = max(cache, self.slc_cache or 0)
        floor = Rule.of_drive(scope, spare + self.region - scope, cache).floor_bytes
        flash = self.flash or 0
        fifth = scope // WINDOW
        large = max(fifth, flash // FLASH_ROUNDS)
        if floor < flash and flash + WINDOW * large <= self._passes_most * scope:
            fifth, floor = large, flash
        return Rule(fifth // self.block * self.block, floor)

    @property
    def flash(self) -> int | None:
        """The most flash that the drive may have; None in a directory."""
        return None if self.drive is None else round(FLASH_MOST * self.drive)

    @property
    def _passes_most(self) -> float:
        """The most passes over a part, if a large cache or free flash takes that many."""
        if self.drive_writes is not None:
            return self.drive_writes
        return PASSES_LIMIT if self.extends else MOST_ROUNDS / WINDOW

    def rounds_most(self, share: float) -> int:
        """The largest number of rounds of a part."""
        rule, scope = self.rule(share), self.scope(share)
        limit = max(1, round(self._passes_most * scope / rule.round_bytes))
        if self.drive_writes is not None:
            return limit
        # A change at the floor must have left the last half.
        needed = 2 * (rule.floor_bytes // rule.round_bytes + WINDOW)
        return min(limit, max(MOST_ROUNDS, needed))

    def random_bytes(self, share: float) -> int:
        """The most bytes that the rounds of a part write."""
        return self.rule(share).round_bytes * self.rounds_most(share)

    @property
    def gauges(self) -> bool:
        """Whether the gauges are measured: only for random writes to a whole drive."""
        is_whole = self.drive is not None and self.region >= WHOLE * self.drive
        return self.pattern == "random" and is_whole

    @property
    def gauge_bytes(self) -> dict[str, int]:
        """Bytes of each gauge; empty if there are none."""
        if not self.gauges:
            return {}
        shares = dict.fromkeys(_READ, READS) | {"ordered": ORDERED, "fill": 1.0, "large": 1.0}
        shares |= {"once": 1.0, "again": KNOWN[-1], "fill again": 1.0}
        shares["part trimmed"] = len(TRIMMED) * TRIMMED_WRITES
        if FACTORS[-1] * self.block <= BLOCK_MAX:  # larger blocks are no part of a mapping unit
            shares |= {f"size {factor}": SIZES for factor in FACTORS}
        shares |= {"burst": min(BURST, BURST_MAX / self.region), "recent": MIB / self.region}
        shares["rested"] = min(RESTED, RESTED_MAX / self.region)
        return {
            case: max(MIB, round(share * self.region)) // BLOCK_MAX * BLOCK_MAX
            for case, share in shares.items()
        }

    @property
    def gauge_trim_bytes(self) -> int:
        """Bytes that the gauges trim, at most: the region four times, and the known garbage."""
        return 4 * self.region + self.gauge_bytes["again"] if self.gauges else 0

    @property
    def write_bytes(self) -> int:
        """The most bytes that fills, rounds and the gauges write."""
        rounds = sum(self.random_bytes(share) for share in self.shares)
        gauges = sum(size for case, size in self.gauge_bytes.items() if case not in _NOT_ADDED)
        return sum(self.scope(share) for share in self.shares) + rounds + gauges

    def parameters(self) -> dict[str, Any]:
        """The parameters for the manifest and result, with round size and minimum bytes by part."""
        rules = [self.rule(share) for share in self.shares]
        return {
            "region_mib": self.region / MIB,
            "drive_mib": None if self.drive is None else self.drive / MIB,
            "spare_percent": [round(100 * share, 6) for share in self.spares],
            "pattern": self.pattern,
            "write_block_kib": self.block / KIB,
            "write_queue_depth": self.depth,
            "drive_writes": self.drive_writes,
            "settle_s": self.settle_s,
            "flash_mib": None if self.flash is None else self.flash / MIB,
            "slc_cache_mib": None if self.slc_cache is None else self.slc_cache / MIB,
            "rounds_mib": [rule.round_bytes / MIB for rule in rules],
            "floors_mib": [rule.floor_bytes / MIB for rule in rules],
        }

    def work(self) -> dict[str, float]:
        """Bytes or seconds of each kind of work, at most."""
        fill = float(sum(self.scope(share) for share in self.shares))
        return {
            "fill": fill,
            "random": float(self.write_bytes) - fill,
            "trim": fill + self.gauge_trim_bytes,
            "rest": self.settle_s * (len(self.shares) + 3 * self.gauges),
        }


def plan(parameters: Steady, target: Target, seed: int) -> Plan:
    """The plan for these parameters.

    Raises:
        UsageError: a parameter is out of range.
    """
    quick, drive = parameters.quick, target.capacity_bytes
    region = (QUICK_REGION if quick else REGION) if drive is None else drive // MIB * MIB
    region = parameters.size_bytes(region, "region", most=drive, why_most=", the drive's size")
    return check(
        Plan(
            region=region,
            drive=drive,
            spares=parameters.spare,
            pattern=parameters.pattern,
            block=parameters.size_bytes(BLOCK, "block_size"),
            depth=parameters.depth,
            drive_writes=parameters.drive_writes,
            settle_s=QUICK_SETTLE_S if quick else SETTLE_S,
            guesses=QUICK_GUESSES if quick else (SPARE_GUESS, CACHE_GUESS),
            slc_cache=_slc_cache(parameters, target),
            extends=not quick,
            seed=seed,
        )
    )


def _slc_cache(parameters: Steady, target: Target) -> int | None:
    """The size of the SLC cache that the user gave, or of a twin; None if unknown."""
    if parameters.slc_cache is None and isinstance(target, Twin):
        return int(target.description["slc_bytes"])
    return None if parameters.slc_cache is None else parameters.size_bytes(0, "slc_cache")


def check(plan: Plan) -> Plan:
    """Returns the plan.

    Raises:
        UsageError: an option is out of range.
    """
    pattern_of(plan.pattern)
    if plan.block < 512 or plan.block > BLOCK_MAX or plan.block & (plan.block - 1):
        raise UsageError(
            f"--block-size is {format_size(plan.block)}; it must be a power of two from 512 B to "
            f"{format_size(BLOCK_MAX)}"
        )
    if not 1 <= plan.depth <= DEPTH_MAX:
        raise UsageError(f"--depth is {plan.depth}; it must be 1 to {DEPTH_MAX}")
    if plan.drive_writes is not None and not 1 <= plan.drive_writes <= DRIVE_WRITES_MAX:
        raise UsageError(
            f"--drive-writes is {plan.drive_writes:g}; it must be 1 to {DRIVE_WRITES_MAX:g} (a "
            "verdict needs five rounds of a fifth of the region)"
        )
    rising = all(low < high for low, high in zip(plan.shares, plan.spares, strict=False))
    if not rising or len(plan.spares) > SPARES_MAX or any(x > SPARE_MAX for x in plan.spares):
        shares = ",".join(f"{100 * share:.4g}%" for share in plan.spares)
        raise UsageError(
            f"--spare is {shares}; it must be up to {SPARES_MAX} percentages in ascending order, "
            f"above 0% and at most {SPARE_MAX:.0%}: 7%,15%,28%"
        )
    if plan.scope(plan.shares[-1]) < REGION_MIN:
        raise UsageError(
            f"--spare leaves {format_size(plan.scope(plan.shares[-1]))} of the region, "
            f"{format_size(REGION_MIN)} are needed; give smaller shares or a larger --size"
        )
    return plan


def pattern_of(text: str) -> Pattern:
    """The pattern with this name on the command line.

    Raises:
        UsageError: there is no such pattern.
    """
    if text == "random":
        return "random"
    if text == "sequential":
        return "sequential"
    name, _, theta = text.partition(":")
    try:
        if name == "zipf" and 0 < float(theta) < 10:
            return Zipf(float(theta))
    except ValueError:
        pass
    raise UsageError(f"--pattern is {text!r}; it must be {_PATTERNS} (THETA above 0, such as 1.1)")


def interval_us(seconds: float) -> int:
    """The recording interval of a job that takes about this many seconds."""
    return min(5_000_000, max(1000, round(1e6 * seconds / _INTERVALS)))
