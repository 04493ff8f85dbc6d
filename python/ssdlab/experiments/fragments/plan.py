"""Plan of a fragments run, made from the user's parameters."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from ssdlab.errors import TargetError, UsageError
from ssdlab.experiments.fragments.layout import ALIGNMENT, COMMAND, KIB, MIB, WINDOW, Layout
from ssdlab.experiments.fragments.parameters import GAPS, Fragments, Gap
from ssdlab.runner.session import QUICK_SETTLE_S, SETTLE_S
from ssdlab.storage_stack.mounts import mount_of
from ssdlab.target import Directory, Target
from ssdlab.units import format_size, nearest_multiples

DEGREES: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256)
QUICK_DEGREES: Final = (1, 8, 64, 256)
DEPTHS: Final = (1, 32)
DISTANCE: Final = 8 * MIB
REPEATS: Final = 10
QUICK_REPEATS: Final = 3
FILL_BLOCK: Final = MIB
NO_COLLAPSE: Final = frozenset({"btrfs", "bcachefs", "zfs", "ntfs3", "exfat", "vfat", "nilfs2"})

Order = Literal["address", "file"]


@dataclass(frozen=True)
class Host:
    """Model of the host's time, in microseconds, as a twin has no host.

    At depth 1 the host's time per command and per KiB adds to the drive's time. At greater depths
    it overlaps with the drive's time, except for `us_first_deep` before the first batch of commands
    is submitted. The times at depth 1 were fitted by hand to the study's times minus the twins'
    times. The others are the study's: about 4 ms for 8 MiB on a RAM disk at any degree, and 402 us
    until the first batch in a kernel trace.
    """

    us_per_command: float = 42.0
    us_per_kib: float = 0.21
    us_per_kib_deep: float = 0.5
    us_first_deep: float = 400.0


NO_HOST: Final = Host(0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Plan:
    """The plan of a run, stored in the manifest; sizes in bytes.

    `order` is the order of writing: "address" writes the whole region including the gaps, so that
    the pieces are far apart inside the drive too; "file" writes only the pieces, as one stream.
    `twin_host` applies to twins only.
    """

    degrees: tuple[int, ...] = DEGREES
    gaps: tuple[Gap, ...] = GAPS
    distance: int = DISTANCE
    order: Order = "address"
    repeats: int = REPEATS
    depths: tuple[int, ...] = DEPTHS
    twin_host: Host = Host()
    settle_s: float = SETTLE_S
    seed: int = 0

    @property
    def layouts(self) -> tuple[Layout, ...]:
        """The layouts with more than one piece, in the order of the run."""
        return tuple(
            Layout(gap, degree, self.distance)
            for gap in self.gaps
            for degree in self.degrees
            if degree > 1
        )

    @property
    def size(self) -> int:
        """Bytes of the region: a contiguous window, then the slots of the largest degree."""
        return WINDOW + max(layout.span for layout in self.layouts)

    @property
    def request_bytes_max(self) -> int:
        """Bytes of a request that fills the region."""
        return FILL_BLOCK

    @property
    def write_bytes(self) -> int:
        """Bytes written at most: in a directory, each layout is a separate file."""
        by_address = self.order == "address"
        return WINDOW + sum(layout.span if by_address else WINDOW for layout in self.layouts)

    def parameters(self) -> dict[str, Any]:
        """The parameters for the manifest and the result."""
        return {
            "window_mib": WINDOW / MIB,
            "command_kib": COMMAND // KIB,
            "degrees": list(self.degrees),
            "gaps": list(self.gaps),
            "distance_bytes": self.distance,
            "order": self.order,
            "size_mib": self.size / MIB,
            "queue_depths": list(self.depths),
            "repeats": self.repeats,
            "twin_host_per_command_us": self.twin_host.us_per_command,
            "twin_host_per_kib_us": self.twin_host.us_per_kib,
            "twin_host_deep_per_kib_us": self.twin_host.us_per_kib_deep,
            "twin_host_deep_first_us": self.twin_host.us_first_deep,
        }

    def work(self) -> dict[str, float]:
        """Bytes of each kind of work, for the forecast of the run's duration."""
        # Per layout: the pieces, and the two reference reads.
        reads = 3 * len(self.layouts) * len(self.depths) * self.repeats
        return {
            "fill": float(self.write_bytes),
            "read": float(reads * WINDOW),
            "rest": self.settle_s,
        }


def plan(parameters: Fragments, target: Target, seed: int) -> Plan:
    """The plan for the user's parameters.

    Raises:
        UsageError: the distance leaves no gaps, or the size has no room for two pieces.
        TargetError: the file system cannot cut ranges out of files.
    """
    if isinstance(target, Directory):
        _require_collapse(target.path)
    distance = parameters.size_bytes(DISTANCE, "distance")
    size = None if parameters.size is None else parameters.size_bytes(0)
    smallest = WINDOW // DEGREES[-1]
    if distance % ALIGNMENT or not smallest < distance <= 1 << 40:
        raise UsageError(
            f"--distance is {format_size(distance)}; it must be a multiple of "
            f"{format_size(ALIGNMENT)} above {format_size(smallest)}, the smallest piece; give "
            f"{nearest_multiples(distance, ALIGNMENT, smallest + 1, 1 << 40)}"
        )
    # With a distance up to the length of a piece there would be no gaps.
    with_gaps = [degree for degree in DEGREES if degree == 1 or WINDOW // degree < distance]
    degrees = _fitting(with_gaps, distance, size)
    if parameters.quick:
        degrees = [d for d in degrees if d in QUICK_DEGREES or d == degrees[-1]]
    return Plan(
        degrees=tuple(degrees),
        gaps=parameters.gaps,
        distance=distance,
        order=parameters.order,
        repeats=QUICK_REPEATS if parameters.quick else REPEATS,
        twin_host=Host() if parameters.host else NO_HOST,
        settle_s=QUICK_SETTLE_S if parameters.quick else SETTLE_S,
        seed=seed,
    )


def _require_collapse(directory: Path) -> None:
    """Refuses the file systems known not to have FALLOC_FL_COLLAPSE_RANGE; others are tried."""
    fs_type = mount_of(directory).fs_type
    if fs_type in NO_COLLAPSE:
        raise TargetError(
            f"{directory} is on {fs_type}: fragments does not support {fs_type}, which cannot cut "
            "a range out of a file; give a directory on ext4 or xfs, a block device or twin:NAME"
        )


def _fitting(degrees: list[int], distance: int, size: int | None) -> list[int]:
    if size is None:
        return degrees
    fitting = [degree for degree in degrees if degree == 1 or WINDOW + degree * distance <= size]
    if len(fitting) < 2:
        least = WINDOW + degrees[1] * distance
        raise UsageError(
            f"--size is {format_size(size)}; with pieces {format_size(distance)} apart it must "
            f"be at least {format_size(least)}; twice the size has room for twice as many pieces"
        )
    return fitting
