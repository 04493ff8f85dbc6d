"""Sector stamps: the content of each 512 bytes that the witness writes.

A stamp identifies the request that wrote the sector, the sector it belongs to, and the newest
acknowledged request of the same stream. The rest is noise, so that a drive can neither compress nor
deduplicate it. After a power cut each sector shows by itself whether it is intact, in its place,
and which write it belongs to.

    bytes    0   8 magic            44   4 stream: one writer's order of requests
             8  16 run              48   8 sequence: number in the stream, from 1
            24   8 generation       56   8 covered: newest acknowledged sequence of the stream
            32   8 sector           64   8 first: first sector of the request
            40   4 sectors          72 436 noise
                                   508   4 CRC-32 of bytes 0 to 507
"""

from __future__ import annotations

import enum
import zlib
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ssdlab.witness.limits import SECTOR, SECTORS_MAX

MAGIC: Final = b"SSDLABW1"
RUN_BYTES: Final = 16

STAMP: Final = np.dtype(
    {
        "names": [
            *("magic", "run", "generation", "sector", "sectors", "stream", "sequence", "covered"),
            *("first", "noise", "checksum"),
        ],
        "formats": ["S8", "V16", "<u8", "<u8", "<u4", "<u4", "<u8", "<u8", "<u8", "V436", "<u4"],
        "offsets": [0, 8, 24, 32, 40, 44, 48, 56, 64, 72, 508],
        "itemsize": SECTOR,
    }
)
"""A sector as a row; all numbers little-endian."""


class State(enum.IntEnum):
    """The state of a sector, judged from its own content."""

    BLANK = 0
    """All zeros."""
    OURS = 1
    """An intact stamp of this run, in its place."""
    ELSEWHERE = 2
    """An intact stamp of this run that belongs to another sector."""
    FOREIGN = 3
    """An intact stamp of another run."""
    BROKEN = 4
    """The magic or the run matches, but the checksum is wrong."""
    OTHER = 5
    """No stamp: older data, or noise."""
    UNREADABLE = 6
    """The read failed."""


@dataclass(frozen=True, slots=True)
class Request:
    """A write of `sectors` sectors from `first` on; `generation` rises with each write of a run.

    `covered` is the newest sequence of the stream that an acknowledged flush had covered when the
    request was issued.
    """

    generation: int
    stream: int
    sequence: int
    first: int
    sectors: int
    covered: int = 0


@dataclass(frozen=True, slots=True)
class Sectors:
    """Sectors as read: `states` (uint8) and `stamps`, which are valid only if intact."""

    states: NDArray[np.uint8]
    stamps: NDArray[Any]


def encode(run: bytes, request: Request, into: memoryview | None = None) -> memoryview:
    """The stamped sectors of a request, written to `into` if given.

    The noise is seeded by run and generation: the same request has the same bytes.
    """
    assert len(run) == RUN_BYTES, f"a run is {RUN_BYTES} bytes"
    assert 0 < request.sectors <= SECTORS_MAX, f"{request.sectors} sectors"
    size = request.sectors * SECTOR
    data = memoryview(bytearray(size)) if into is None else into[:size]
    noise = np.random.Generator(
        np.random.SFC64([int.from_bytes(run, "little"), request.generation])
    )
    data[:] = noise.bytes(size)
    rows = np.frombuffer(data, dtype=STAMP)
    rows["magic"], rows["run"] = MAGIC, np.void(run)
    rows["sector"] = request.first + np.arange(request.sectors, dtype=np.uint64)
    for name in ("generation", "first", "sectors", "stream", "sequence", "covered"):
        rows[name] = getattr(request, name)
    rows["checksum"] = checksums(data)
    return data


def checksums(data: memoryview | bytes) -> NDArray[np.uint32]:
    """CRC-32 of each sector without its last four bytes."""
    view = memoryview(data)
    crcs = [zlib.crc32(view[at : at + SECTOR - 4]) for at in range(0, len(view), SECTOR)]
    return np.array(crcs, dtype=np.uint32)


def decode(run: bytes, first: int, data: memoryview | bytes) -> Sectors:
    """States and stamps of the sectors from `first` on."""
    rows = np.frombuffer(data, dtype=STAMP)
    words = np.frombuffer(data, dtype="<u8").reshape(-1, SECTOR // 8)
    expected = first + np.arange(len(rows), dtype=np.uint64)
    has_magic, has_run = rows["magic"] == MAGIC, rows["run"] == np.void(run)
    intact = has_magic & (checksums(data) == rows["checksum"])
    states = np.full(len(rows), State.OTHER, dtype=np.uint8)
    states[~words.any(axis=1)] = State.BLANK
    # Damage may have hit the magic or the run: one of them is enough to recognise a stamp.
    states[~intact & (has_run | (has_magic & (rows["sector"] == expected)))] = State.BROKEN
    states[intact & ~has_run] = State.FOREIGN
    states[intact & has_run] = State.ELSEWHERE
    states[intact & has_run & (rows["sector"] == expected)] = State.OURS
    return Sectors(states, rows)


def unreadable(sectors: int) -> Sectors:
    """Sectors whose read failed."""
    return Sectors(
        np.full(sectors, State.UNREADABLE, dtype=np.uint8), np.zeros(sectors, dtype=STAMP)
    )
