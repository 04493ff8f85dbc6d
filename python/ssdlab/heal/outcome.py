"""What came of a heal, as `--json` prints it: sizes in bytes, speeds in MiB/s."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ssdlab.heal.pieces import Piece, Range, fastest
from ssdlab.storage_stack.blockdev import BlockDevice

MIB: Final = 1 << 20
WRITES_A_DAY: Final = 0.3
"""Drive writes a day that client drives are warranted for: 600 TB over five years for 1 TB."""
_WEARING: Final = frozenset({"nvme", "sata", "ata", "sas", "scsi", "usb", "mmc"})


class MapRow(msgspec.Struct):
    """One piece of the read-speed map; a speed is None where it was not measured."""

    offset_bytes: int
    length_bytes: int
    before_mib_per_s: float | None
    after_mib_per_s: float | None
    is_slow: bool
    is_rewritten: bool


class Refused(msgspec.Struct, frozen=True):
    """Why a file was left as it is."""

    code: str
    sentence: str


class FileOutcome(msgspec.Struct):
    """One file. `plan` and `left` are (offset, length) ranges.

    `plan` is what was to be rewritten, `left` what of it kept its old place, and `why`.
    `days_of_endurance` says how many days of the drive's warranted writing `planned_bytes` take;
    None where no drive is known that wears. `restored_bytes` were torn by a crash of an earlier run
    and were put back from its journal; `longest_freeze_ms` is of a mounted one (devices alone).
    """

    path: str
    file_system: str = ""
    size_bytes: int = 0
    way: str | None = None
    refused: Refused | None = None
    fresh_mib_per_s: float | None = None
    fresh_from: str = ""
    before_mib_per_s: float | None = None
    after_mib_per_s: float | None = None
    extents_before: int = 0
    extents_after: int | None = None
    plan: list[tuple[int, int]] = []
    planned_bytes: int = 0
    days_of_endurance: float | None = None
    moved_bytes: int = 0
    written_bytes: int = 0
    left: list[tuple[int, int]] = []
    why: str = ""
    restored_bytes: int = 0
    longest_freeze_ms: float | None = None
    no_gain: bool = False
    interrupted: bool = False
    map: list[MapRow] = []


class Healed(msgspec.Struct):
    """A whole run. `small_files` were found in directories and are too small to measure."""

    ssdlab: str
    dry_run: bool
    duration_s: float
    files: list[FileOutcome]
    verdict: str
    small_files: int = 0
    leftovers: list[str] = []
    interrupted: bool = False


def mib(bytes_per_s: float | None) -> float | None:
    """MiB a second, in a tenth."""
    return None if bytes_per_s is None else round(bytes_per_s / MIB, 1)


def days_of_endurance(write_bytes: int, drives: Iterable[BlockDevice]) -> float | None:
    """Days of warranted writing that so many bytes take of the smallest drive below."""
    sizes = [d.size for d in drives if d.transport in _WEARING and not d.rotational and d.size]
    return write_bytes / (WRITES_A_DAY * min(sizes)) if sizes else None


def map_rows(
    before: Iterable[Piece], after: Iterable[Piece], slow: list[Range], rewritten: list[Range]
) -> list[MapRow]:
    """The map, a row a piece, in the file's order."""
    later = {piece.range.offset: piece for piece in after}
    rows = []
    for piece in before:
        now = later.get(piece.range.offset)
        rows.append(
            MapRow(
                piece.range.offset,
                piece.range.length,
                mib(piece.bytes_per_s),
                None if now is None else mib(now.bytes_per_s),
                _touches(piece.range, slow),
                _touches(piece.range, rewritten),
            )
        )
    return rows


def _touches(each: Range, ranges: list[Range]) -> bool:
    return any(other.offset < each.end and each.offset < other.end for other in ranges)


def verdict(files: list[FileOutcome], *, dry_run: bool) -> str:
    """One sentence."""
    looked = [each for each in files if each.refused is None]
    refused = len(files) - len(looked)
    tail = f"; {refused} refused" if refused else ""
    planned = sum(each.planned_bytes for each in looked)
    if not looked:
        return f"Nothing was done{tail}."
    if not planned:
        return f"Nothing reads slowly: nothing was written{tail}."
    if dry_run:
        return f"{planned / MIB:.1f} MiB would be rewritten{tail}."
    moved = sum(each.moved_bytes for each in looked)
    if any(each.no_gain for each in looked):
        tail = f"; a first part brought no gain, so no more was written{tail}"
    left = sum(length for each in looked for _, length in each.left)
    if left:
        tail = f"; {left / MIB:.1f} MiB kept their place{tail}"
    return f"{moved / MIB:.1f} MiB were rewritten{_gain(looked)}{tail}."


def _gain(looked: list[FileOutcome]) -> str:
    pairs = [
        (piece.length_bytes, piece.before_mib_per_s, piece.after_mib_per_s)
        for each in looked
        for piece in each.map
        if piece.is_rewritten and piece.before_mib_per_s and piece.after_mib_per_s
    ]
    if not pairs:
        return ""
    amount = sum(length for length, _, _ in pairs)
    was = amount / sum(length / before for length, before, _ in pairs)
    now = amount / sum(length / after for length, _, after in pairs)
    return f", and read at {now:.0f} instead of {was:.0f} MiB/s"


def fresh_of(
    given: float | None, probed: float | None, pieces: list[Piece]
) -> tuple[float | None, str]:
    """The speed that fresh data has, in bytes a second, and where it is known from."""
    if given is not None:
        return given, "given"
    best = fastest(pieces)
    if probed is not None and (best is None or probed >= best):
        return probed, "a freshly written part"
    return best, "the fastest tenth of its pieces"
