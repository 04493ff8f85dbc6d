"""What a run of the fragments experiment does, and which plans make sense."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from ssdlab.errors import UsageError
from ssdlab.experiments.fragments.layout import COMMAND, GRAIN, KIB, MIB, WINDOW, Layout
from ssdlab.experiments.fragments.parameters import GAPS, Fragments, Gap
from ssdlab.target import Target
from ssdlab.units import format_size

DEGREES: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256)
QUICK_DEGREES: Final = (1, 8, 64, 256)
DEPTHS: Final = (1, 32)
DISTANCE: Final = 8 * MIB
REPEATS: Final = 10
QUICK_REPEATS: Final = 3
FILL_BLOCK: Final = MIB

Order = Literal["address", "file"]


@dataclass(frozen=True)
class Host:
    """The host's own time, which a twin does not have; in microseconds.

    One command at a time, it comes on top: so much a command and so much a KiB of it. Many at a
    time, so much a KiB passes while the drive works, but for a first part that nothing overlaps:
    commands are handed over in batches. Fitted by hand to the study's rows at depth 1, less what
    the twins take; its disk in memory took about 4 ms for 8 MiB at any degree when many were in
    flight, and its trace of the kernel shows 402 us until the first batch is handed over.
    """

    us_per_command: float = 42.0
    us_per_kib: float = 0.21
    us_per_kib_deep: float = 0.5
    us_first_deep: float = 400.0


NO_HOST: Final = Host(0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Plan:
    """What a run does; sizes in bytes.

    `order` is that of writing: "address" fills all of the region, gaps and all, so that the drive
    too has the pieces far apart; "file" writes the pieces alone, so that it has them in one stream.
    `twin_host` stands for the host where the drive is a twin.
    """

    degrees: tuple[int, ...] = DEGREES
    gaps: tuple[Gap, ...] = GAPS
    distance: int = DISTANCE
    order: Order = "address"
    repeats: int = REPEATS
    depths: tuple[int, ...] = DEPTHS
    twin_host: Host = Host()
    seed: int = 0

    @property
    def layouts(self) -> tuple[Layout, ...]:
        """Those with more than one piece, in the order in which they are measured."""
        return tuple(
            Layout(gap, degree, self.distance)
            for gap in self.gaps
            for degree in self.degrees
            if degree > 1
        )

    @property
    def size(self) -> int:
        """A window in order, and the stretches of the largest degree behind it."""
        return WINDOW + max(layout.span for layout in self.layouts)

    @property
    def request_bytes_max(self) -> int:
        """What the region is filled by."""
        return FILL_BLOCK

    @property
    def write_bytes(self) -> int:
        """At most: in a directory, where each layout is written by itself."""
        pieces_only = self.order == "file"
        each = (WINDOW if pieces_only else layout.span for layout in self.layouts)
        return WINDOW + sum(each)

    def parameters(self) -> dict[str, Any]:
        """For the manifest and the result."""
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
        """Work to do by kind, for the forecast."""
        # Of each layout: its pieces, the same commands in order, the file in one piece.
        reads = 3 * len(self.layouts) * len(self.depths) * self.repeats
        return {"fill": float(self.write_bytes), "read": float(reads * WINDOW)}


def plan(parameters: Fragments, _target: Target, seed: int) -> Plan:
    """The plan for these parameters.

    Raises:
        UsageError: a distance that leaves no gaps, or a size without room for fragments.
    """
    distance = parameters.size_bytes(DISTANCE, "distance")
    size = None if parameters.size is None else parameters.size_bytes(0)
    smallest = WINDOW // DEGREES[-1]
    if distance % GRAIN or not smallest < distance <= 1 << 40:
        raise UsageError(
            f"--distance is {format_size(distance)}; it may be a multiple of {format_size(GRAIN)} "
            f"above {format_size(smallest)}, the smallest piece"
        )
    # With less distance than a piece, or as much, two pieces would be one.
    fitting = [degree for degree in DEGREES if degree == 1 or WINDOW // degree < distance]
    degrees = _that_have_room(fitting, distance, size)
    if parameters.quick:
        degrees = [d for d in degrees if d in QUICK_DEGREES or d == degrees[-1]]
    return Plan(
        degrees=tuple(degrees),
        gaps=parameters.gaps,
        distance=distance,
        order=parameters.order,
        repeats=QUICK_REPEATS if parameters.quick else REPEATS,
        twin_host=Host() if parameters.host else NO_HOST,
        seed=seed,
    )


def _that_have_room(degrees: list[int], distance: int, size: int | None) -> list[int]:
    if size is None:
        return degrees
    kept = [degree for degree in degrees if degree == 1 or WINDOW + degree * distance <= size]
    if len(kept) < 2:
        least = WINDOW + degrees[1] * distance
        raise UsageError(
            f"--size is {format_size(size)}; with pieces {format_size(distance)} apart it may be "
            f"{format_size(least)} or more; each doubling has room for twice as many pieces"
        )
    return kept
