"""The questions that a target can be asked: a class an experiment, its parameters as fields.

The command line's options and Python's parameters both become one of these, and these a plan: a
parameter is named like its option. A size is bytes or a text with its unit ("512MiB"), a time
seconds or such a text ("5min"). What a plan refuses is named as the command line spells it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, Protocol

from ssdlab.device import TraceStatistics, read_trace_statistics
from ssdlab.errors import UsageError
from ssdlab.experiments.aging import measure as aging
from ssdlab.experiments.cache import measure as cache
from ssdlab.experiments.fragments import measure as fragments
from ssdlab.experiments.fragments.layout import Gap
from ssdlab.experiments.fragments.plan import GAPS
from ssdlab.experiments.fragments.plan import Asked as AskedFragments
from ssdlab.experiments.fsync import measure as fsync
from ssdlab.experiments.placement import measure as placement
from ssdlab.experiments.replay import measure as replay
from ssdlab.experiments.split import measure as split
from ssdlab.experiments.steady import measure as steady
from ssdlab.experiments.stripe import measure as stripe
from ssdlab.experiments.suite import measure as suite
from ssdlab.experiments.trim import measure as trim
from ssdlab.experiments.workload import measure as workload
from ssdlab.runner.as_options import AsOptions
from ssdlab.runner.defaults import PLACEMENT_HOST_US, STEADY_DEPTH
from ssdlab.runner.session import Plan
from ssdlab.target import Directory, Target, Twin
from ssdlab.units import parse_duration, parse_size

Size = int | str
Duration = float | str


def bytes_of(size: Size | None) -> int | None:
    """Bytes of a size that may be left out.

    Raises:
        UsageError: a text that is no size, or less than nothing.
    """
    if isinstance(size, str):
        return parse_size(size)
    if size is not None and size < 0:
        raise UsageError(f"a size is {size} bytes; it may be 0 or more, or a text such as 512MiB")
    return size


def seconds_of(duration: Duration) -> float:
    """Seconds of a time.

    Raises:
        UsageError: a text that is no time, or less than nothing.
    """
    if isinstance(duration, str):
        return parse_duration(duration)
    if not 0 <= duration < float("inf"):
        raise UsageError(f"a time is {duration} s; it may be 0 or more, or a text such as 5min")
    return float(duration)


class Question(Protocol):
    """An experiment with its parameters; `size_from` is where its size was given."""

    experiment: ClassVar[str]
    size_from: ClassVar[str]

    def options(self) -> dict[str, str | bool]:
        """The parameters that differ from their defaults, as options of the command line."""

    def plan(self, target: Target, seed: int, /) -> Plan:
        """What is to be done on a target.

        Raises:
            UsageError: a parameter out of its range: which, and what it may be.
        """


@dataclass(frozen=True, kw_only=True)
class Aging(AsOptions):
    """Does random writing slow this drive's sequential reads, and does rest heal it?

    `size` is that of the test file [4096 MiB, 512 MiB if quick]: the amounts written over it scale
    with it. `rest` is a long rest at the end, and one more read.
    """

    experiment: ClassVar[str] = "aging"
    size_from: ClassVar[str] = "--size"
    size: Size | None = None
    quick: bool = False
    rest: Duration = "0"

    def plan(self, _target: Target, seed: int) -> Plan:
        """As `Question.plan`."""
        rest_s = seconds_of(self.rest)
        return aging.plan(bytes_of(self.size), quick=self.quick, long_rest_s=rest_s, seed=seed)


@dataclass(frozen=True, kw_only=True)
class Cache(AsOptions):
    """How much do buffer and SLC cache take, and how long a rest gives it back?

    `size` is that of the region [16 GiB, 1 GiB if quick; a half of a twin or block device, an
    eighth if quick].
    """

    experiment: ClassVar[str] = "cache"
    size_from: ClassVar[str] = "--size"
    size: Size | None = None
    quick: bool = False

    def plan(self, target: Target, seed: int) -> Plan:
        """As `Question.plan`."""
        return cache.plan(target.capacity_bytes, bytes_of(self.size), quick=self.quick, seed=seed)


@dataclass(frozen=True, kw_only=True)
class Fragments(AsOptions):
    """What does a file in pieces cost to read, and is it the host or the drive?

    `size` is the room for the layout, `distance` that from one piece to the next [8 MiB], `gaps`
    the kinds of gaps, `order` that of writing, `host` whether a twin is read by a host that takes
    time.
    """

    experiment: ClassVar[str] = "fragments"
    size_from: ClassVar[str] = "--size"
    size: Size | None = None
    distance: Size | None = None
    gaps: tuple[Gap, ...] = GAPS
    order: Literal["address", "file"] = "address"
    host: bool = True
    quick: bool = False

    def plan(self, _target: Target, seed: int) -> Plan:
        """As `Question.plan`."""
        sizes = bytes_of(self.size), bytes_of(self.distance)
        asked = AskedFragments(*sizes, self.gaps, self.order, self.host)
        return fragments.plan(asked, quick=self.quick, seed=seed)


@dataclass(frozen=True, kw_only=True)
class Fsync(AsOptions):
    """What does it cost to have each write kept, and does the drive heed a flush?

    `size` is that of the file [1 GiB]; `data_sheet` what the drive's data sheet says of its write
    cache when the power fails.
    """

    experiment: ClassVar[str] = "fsync"
    size_from: ClassVar[str] = "--size"
    size: Size | None = None
    data_sheet: Literal["protected", "volatile", "unknown"] = "unknown"
    quick: bool = False

    def plan(self, _target: Target, seed: int) -> Plan:
        """As `Question.plan`."""
        return fsync.plan(bytes_of(self.size), self.data_sheet, quick=self.quick, seed=seed)


@dataclass(frozen=True, kw_only=True)
class Placement(AsOptions):
    """Which rule for where a drive writes keeps files readable, and what does it cost?

    Of twins only. `placements` are some of them [all]; `spare` the shares, from 0 to 1, of drives
    that collect; `drive_writes` how often those are overwritten first [3, 1 if quick]; `host_us`
    the host's own time between reads, in microseconds; `plots` adds the laws of stripe and gaps.
    """

    experiment: ClassVar[str] = "placement"
    size_from: ClassVar[str] = "--size"
    placements: tuple[str, ...] = ()
    spare: tuple[float, ...] = (0.07, 0.28)
    drive_writes: float | None = None
    host_us: float = PLACEMENT_HOST_US
    plots: bool = True
    quick: bool = False

    def plan(self, target: Target, seed: int) -> Plan:
        """As `Question.plan`."""
        if not isinstance(target, Twin):
            raise UsageError(
                f"placement compares rules inside a drive, and {target} cannot be told what a "
                "write is; give twin:NAME"
            )
        names = ",".join(self.placements)
        plan = placement.plan(names, self.spare, self.drive_writes, quick=self.quick, seed=seed)
        with_host = placement.with_host(plan, self.host_us, laws=self.plots)
        return placement.fitted(with_host, target.scaled_to_bytes)


@dataclass(frozen=True, kw_only=True)
class Replay(AsOptions):
    """What does a drive do when asked what a trace of another host asked of its own?

    `speed` keeps the trace's pace (1), or so many times it [as fast as `depth` requests at a time
    go]; `volume` is one of several, or all lie side by side, or `together` onto one another;
    `fills` writes the region first. `found` is what `read_trace_statistics` found in the trace,
    where that is known already.
    """

    experiment: ClassVar[str] = "replay"
    size_from: ClassVar[str] = "--size"
    trace: Path | str
    format: str | None = None
    volume: int | None = None
    together: bool = False
    any_order: bool = False
    speed: float | None = None
    depth: int = 32
    size: Size | None = None
    fills: bool = True
    found: TraceStatistics | None = None

    def look(self) -> TraceStatistics:
        """What is in the trace: it is read to its end.

        Raises:
            UsageError: a trace that cannot be read.
        """
        return self.found or read_trace_statistics(replay.replay_of(self._asked(0)))

    def plan(self, target: Target, seed: int) -> Plan:
        """As `Question.plan`; a new test file that was not written has nothing to read."""
        found = self.look()
        if not self.fills and found.reads and isinstance(target, Directory):
            raise UsageError(
                f"--as-it-is: the test file in {target} is new, and the trace reads; leave it out"
            )
        return replay.plan(self._asked(seed), found, target.capacity_bytes)

    def _asked(self, seed: int) -> replay.Asked:
        return replay.Asked(
            Path(self.trace), self.format, self.volume, self.together, self.any_order, self.speed,
            self.depth, bytes_of(self.size), self.fills, seed,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Split(AsOptions):
    """What does it cost to read the same bytes by many small commands?

    `size` is that of the region [256 MiB].
    """

    experiment: ClassVar[str] = "split"
    size_from: ClassVar[str] = "--size"
    size: Size | None = None
    quick: bool = False

    def plan(self, _target: Target, seed: int) -> Plan:
        """As `Question.plan`."""
        return split.plan(bytes_of(self.size), quick=self.quick, seed=seed)


@dataclass(frozen=True, kw_only=True)
class Steady(AsOptions):
    """At which rate do writes last, and what would more spare area make of it?

    `region` is what is written to [all of a twin or block device; 4096 MiB of a directory, 512 MiB
    if quick]; `drive_writes` how often at random [until it is steady]; `spare` shares, from 0 to
    1, that are left unused, one after the other; `pattern` is random, sequential or zipf:THETA.
    """

    experiment: ClassVar[str] = "steady"
    size_from: ClassVar[str] = "--region"
    region: Size | None = None
    drive_writes: float | None = None
    spare: tuple[float, ...] = ()
    pattern: str = "random"
    block_size: Size = "4KiB"
    depth: int = STEADY_DEPTH
    quick: bool = False

    def plan(self, target: Target, seed: int) -> Plan:
        """As `Question.plan`."""
        drive, quick = target.capacity_bytes, self.quick
        return steady.check(
            steady.Plan(
                region=steady.region_of(drive, bytes_of(self.region), quick=quick),
                drive=drive,
                spares=self.spare,
                pattern=self.pattern,
                block=bytes_of(self.block_size) or 0,
                depth=self.depth,
                drive_writes=self.drive_writes,
                settle_s=steady.QUICK_SETTLE_S if quick else steady.SETTLE_S,
                guesses=steady.QUICK_GUESSES if quick else (steady.SPARE_GUESS, steady.CACHE_GUESS),
                seed=seed,
            )
        )


@dataclass(frozen=True, kw_only=True)
class Stripe(AsOptions):
    """Over how many units, and in what pieces, does a drive spread consecutive addresses?

    `size` is that of the region [1 GiB].
    """

    experiment: ClassVar[str] = "stripe"
    size_from: ClassVar[str] = "--size"
    size: Size | None = None
    quick: bool = False

    def plan(self, _target: Target, seed: int) -> Plan:
        """As `Question.plan`."""
        return stripe.plan(bytes_of(self.size), quick=self.quick, seed=seed)


@dataclass(frozen=True, kw_only=True)
class Suite(AsOptions):
    """The table people know: in order, 4 KiB, 4 KiB x 64, access time, with its spread.

    `size` is that of the file [1 GiB].
    """

    experiment: ClassVar[str] = "suite"
    size_from: ClassVar[str] = "--size"
    size: Size | None = None
    quick: bool = False

    def plan(self, _target: Target, seed: int) -> Plan:
        """As `Question.plan`."""
        return suite.plan(bytes_of(self.size), quick=self.quick, seed=seed)


@dataclass(frozen=True, kw_only=True)
class Trim(AsOptions):
    """Does a discard (TRIM) reach the flash, and which layer stops it?

    `size` is what is marked [32 MiB].
    """

    experiment: ClassVar[str] = "trim"
    size_from: ClassVar[str] = "--size"
    size: Size | None = None
    quick: bool = False

    def plan(self, _target: Target, seed: int) -> Plan:
        """As `Question.plan`."""
        return trim.plan(bytes_of(self.size), quick=self.quick, seed=seed)


@dataclass(frozen=True, kw_only=True)
class Workload(AsOptions):
    """What does this drive do under the jobs of a fio job file?"""

    experiment: ClassVar[str] = "workload"
    size_from: ClassVar[str] = workload.SIZE_FROM
    fio: Path | str

    def plan(self, _target: Target, seed: int) -> Plan:
        """As `Question.plan`."""
        return workload.plan(Path(self.fio), seed=seed)
