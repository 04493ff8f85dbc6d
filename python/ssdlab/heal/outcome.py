"""The result of a heal, as `--json` prints it: sizes in bytes, speeds in MiB/s."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ssdlab.heal.pieces import MIN_GAIN, Piece, Range, fastest_speed
from ssdlab.heal.refusal import Refusal
from ssdlab.storage_stack.blockdev import BlockDevice

MIB: Final = 1 << 20
WARRANTED_DRIVE_WRITES_PER_DAY: Final = 0.3
"""Of client drives: a 1 TB drive is warranted for 600 TB of writes in five years."""
_FLASH_TRANSPORTS: Final = frozenset({"nvme", "sata", "ata", "sas", "scsi", "usb", "mmc"})


class MapRow(msgspec.Struct):
    """One piece of the read-speed map; a speed is None if it was not measured."""

    offset_bytes: int
    length_bytes: int
    before_mib_per_s: float | None
    after_mib_per_s: float | None
    is_slow: bool
    is_rewritten: bool


class FileOutcome(msgspec.Struct):
    """The result for one file or device. `plan` and `left` are (offset, length) ranges.

    `plan` has the ranges to rewrite, `left` those that were not rewritten, `why` the reason.
    `not_timed` is why no speed is known, `only_measured` why no heal can follow a dry run.
    `days_of_endurance`: the drive's warranty allows `planned_bytes` in this many days; None if no
    underlying flash drive is known. For devices only: `restored_bytes` were torn by a crash of an
    earlier run and restored from its journal; `longest_freeze_ms` is None if not mounted.
    """

    path: str
    file_system: str = ""
    size_bytes: int = 0
    way: str | None = None
    refused: Refusal | None = None
    not_timed: Refusal | None = None
    only_measured: Refusal | None = None
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


class HealReport(msgspec.Struct):
    """The result of one command; `small_files` counts files too small to measure."""

    ssdlab: str
    dry_run: bool
    duration_s: float
    files: list[FileOutcome]
    verdict: str
    small_files: int = 0
    leftovers: list[str] = []
    interrupted: bool = False


def mib_per_s(bytes_per_s: float | None) -> float | None:
    """Converts bytes per second to MiB/s, rounded to a tenth."""
    return None if bytes_per_s is None else round(bytes_per_s / MIB, 1)


def days_of_endurance(write_bytes: int, drives: Iterable[BlockDevice]) -> float | None:
    """Days in which the smallest flash drive's warranty allows `write_bytes`; None without one."""
    sizes = [
        d.size for d in drives if d.transport in _FLASH_TRANSPORTS and not d.rotational and d.size
    ]
    return write_bytes / (WARRANTED_DRIVE_WRITES_PER_DAY * min(sizes)) if sizes else None


def map_rows(
    before: Iterable[Piece], after: Iterable[Piece], slow: list[Range], rewritten: list[Range]
) -> list[MapRow]:
    """The read-speed map, one row for each piece, in file order."""
    later = {piece.range.offset: piece for piece in after}
    rows = []
    for piece in before:
        now = later.get(piece.range.offset)
        rows.append(
            MapRow(
                piece.range.offset,
                piece.range.length,
                mib_per_s(piece.bytes_per_s),
                None if now is None else mib_per_s(now.bytes_per_s),
                _overlaps(piece.range, slow),
                _overlaps(piece.range, rewritten),
            )
        )
    return rows


def _overlaps(each: Range, ranges: list[Range]) -> bool:
    return any(other.offset < each.end and each.offset < other.end for other in ranges)


def _planned(files: list[FileOutcome]) -> str:
    healed = [file for file in files if file.refused is None]
    refused = len(files) - len(healed)
    tail = f"; {refused} refused" if refused else ""
    blocked = sum(file.planned_bytes for file in healed if file.only_measured is not None)
    planned = sum(file.planned_bytes for file in healed) - blocked
    if blocked:
        tail = f"; {blocked / MIB:.1f} MiB cannot be rewritten in place{tail}"
    if not planned:
        if blocked:
            return f"nothing would be rewritten{tail}."
        return f"{'nothing reads slowly' if healed else 'nothing can be rewritten'}{tail}."
    return f"{planned / MIB:.1f} MiB would be rewritten{tail}."


def verdict(files: list[FileOutcome], *, dry_run: bool) -> str:
    """The result of all files in one sentence."""
    if not files:
        return "No files to heal: nothing was read or written."
    if dry_run:
        count = f"{len(files)} file{'' if len(files) == 1 else 's'}"
        return f"Dry run of {count}: {_planned(files)}"
    healed = [file for file in files if file.refused is None]
    refused = len(files) - len(healed)
    tail = f"; {refused} refused" if refused else ""
    planned = sum(file.planned_bytes for file in healed)
    if not healed:
        return f"Nothing was done{tail}."
    if not planned:
        return f"Nothing reads slowly: nothing was written{tail}."
    moved = sum(file.moved_bytes for file in healed)
    if any(file.no_gain for file in healed):
        tail = f"; the first part did not read faster, so the rest was not rewritten{tail}"
    left = sum(length for file in healed for _, length in file.left)
    if left:
        tail = f"; {left / MIB:.1f} MiB could not be moved{tail}"
    return f"{moved / MIB:.1f} MiB were rewritten{_gain(healed)}{tail}."


def _gain(healed: list[FileOutcome]) -> str:
    rewritten = [
        (piece.length_bytes, piece.before_mib_per_s, piece.after_mib_per_s)
        for file in healed
        for piece in file.map
        if piece.is_rewritten and piece.before_mib_per_s and piece.after_mib_per_s
    ]
    if not rewritten:
        return ""
    amount = sum(length for length, _, _ in rewritten)
    old = amount / sum(length / before for length, before, _ in rewritten)
    new = amount / sum(length / after for length, _, after in rewritten)
    if new < old * MIN_GAIN:
        return f", but read at {new:.0f} MiB/s, before at {old:.0f}: no gain"
    return f", and read at {new:.0f} instead of {old:.0f} MiB/s"


def fresh_speed(
    known: float | None, probed: float | None, pieces: list[Piece]
) -> tuple[float | None, str]:
    """The speed of freshly written data in bytes per second, and where it comes from.

    It is `known` by the user, `probed` with a test file, or the speed of the fastest pieces.
    """
    if known is not None:
        return known, "given"
    best = fastest_speed(pieces)
    if probed is not None and (best is None or probed >= best):
        return probed, "a freshly written part"
    return best, "the fastest tenth of its pieces"
