"""Sector stamps: what each 512 bytes that the witness writes say about themselves.

A stamp tells which request wrote the sector, where the sector belongs, and what its writer knew to
be durable by then; the rest is noise, so that no drive can compress or share it. So a sector found
after a power cut tells by itself whether it is whole, in its place, and how new.

    bytes    0   8 magic            44   4 stream: one writer's order of requests
             8  16 run              48   8 sequence: its number in that order, from 1
            24   8 generation       56   8 covered: up to here the stream was acknowledged
            32   8 sector           64   8 first: where the request begins
            40   4 sectors          72 436 noise
                                   508   4 CRC-32 of all before
"""

from __future__ import annotations

import enum
import zlib
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

SECTOR: Final = 512
MAGIC: Final = b"SSDLABW1"
RUN_BYTES: Final = 16
SECTORS_MAX: Final = 2048
"""The largest request: 1 MiB."""

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
    """What a sector turned out to be, looked at alone."""

    BLANK = 0
    """Zeros."""
    OURS = 1
    """A whole stamp of this run, in its place."""
    ELSEWHERE = 2
    """A whole stamp of this run that belongs to another sector."""
    FOREIGN = 3
    """A whole stamp of another run."""
    BROKEN = 4
    """It bears marks of this run, and its checksum is wrong."""
    OTHER = 5
    """Nothing of this run: what was there before it, or noise."""
    UNREADABLE = 6
    """The drive answered with an error."""


@dataclass(frozen=True, slots=True)
class Request:
    """One write: `sectors` from `first` on, of a stream; `generation` rises from write to write.

    `covered` is the newest sequence of the stream whose durability had been acknowledged when the
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
    """Sectors as they were read: states (uint8) and stamps, which mean something if whole."""

    states: NDArray[np.uint8]
    stamps: NDArray[Any]


def encode(run: bytes, request: Request, into: memoryview | None = None) -> memoryview:
    """The bytes of a request: `sectors` stamped sectors, in `into` if that is given.

    The noise follows from run and generation, so that the same request has the same bytes.
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
    """CRC-32 of each sector but its last four bytes."""
    view = memoryview(data)
    found = [zlib.crc32(view[at : at + SECTOR - 4]) for at in range(0, len(view), SECTOR)]
    return np.array(found, dtype=np.uint32)


def decode(run: bytes, first: int, data: memoryview | bytes) -> Sectors:
    """What the sectors from `first` on hold."""
    rows = np.frombuffer(data, dtype=STAMP)
    words = np.frombuffer(data, dtype="<u8").reshape(-1, SECTOR // 8)
    here = first + np.arange(len(rows), dtype=np.uint64)
    marked, own = rows["magic"] == MAGIC, rows["run"] == np.void(run)
    whole = marked & (checksums(data) == rows["checksum"])
    states = np.full(len(rows), State.OTHER, dtype=np.uint8)
    states[~words.any(axis=1)] = State.BLANK
    # A broken sector may have lost one of its marks; by chance nothing bears any.
    states[~whole & (own | (marked & (rows["sector"] == here)))] = State.BROKEN
    states[whole & ~own] = State.FOREIGN
    states[whole & own] = State.ELSEWHERE
    states[whole & own & (rows["sector"] == here)] = State.OURS
    return Sectors(states, rows)


def unreadable(sectors: int) -> Sectors:
    """Sectors that the drive did not give."""
    return Sectors(
        np.full(sectors, State.UNREADABLE, dtype=np.uint8), np.zeros(sectors, dtype=STAMP)
    )
