"""The layout in a directory: a file is written whole, then what lies between the pieces is cut out.

Appending by turns with another file, as the study did, gives far fewer pieces on an ext4 of today,
which reserves room ahead. Collapsing the gaps of one preallocated file is exact on ext4 and xfs. It
is not believed but looked up: the merged extents (FIEMAP) must be the pieces.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from typing import Final

from ssdlab.device import open_real
from ssdlab.errors import TargetError
from ssdlab.experiments.fragments.layout import (
    WINDOW,
    Layout,
    Pieces,
    Seen,
    gaps_between,
    seen,
    stays_whole,
)
from ssdlab.experiments.fragments.plan import Plan
from ssdlab.experiments.fragments.reading import (
    Ground,
    Reading,
    Turn,
    fill_in_order,
    fill_pieces,
    take_turns,
    whole,
)
from ssdlab.runner.open_target import OpenTarget
from ssdlab.runner.session import RunSession
from ssdlab.runner.testfile import TestFile
from ssdlab.runner.written import check_uncached, check_written
from ssdlab.storage_stack.extents import merged, read_extents

_COLLAPSE: Final = 0x08  # FALLOC_FL_COLLAPSE_RANGE
_DRAWS: Final = 64
"""So many places in the stretches are tried until no border of the file system's is in the way."""
_MET: Final = 0.9
"""With less than this share of gaps as asked, the layout is another one than the report says."""
_PIECES: Final[Pieces] = ((0, WINDOW),)
"""In the file itself the pieces follow each other."""


def measure(session: RunSession, plan: Plan) -> None:
    """Makes one fragmented file after the other beside one in order, and reads both in turn.

    Raises:
        TargetError: the layout cannot be made here; before anything is written where possible.
        Interrupted, DeviceFailure: as `RunSession.run_plan`.
    """
    opened = session.target
    assert opened.test_file is not None
    _require_collapse(opened.test_file)
    os.ftruncate(opened.test_file.fd, WINDOW)
    beside = Ground(opened.drive, WINDOW)
    fill_in_order(session, beside)
    extents = read_extents(opened.test_file.fd)
    if extents is None or len(merged(extents)) != 1:
        opened.warn(
            "layout-changed",
            "The file that should lie in order has more than one extent: slowdowns are too small.",
        )
    for stage, layout in enumerate(plan.layouts, 1):
        with TestFile(opened.test_file.path.parent, layout.span) as file:
            _measure_one(session, plan, (stage, layout), (file, beside))


def _measure_one(
    session: RunSession, plan: Plan, which: tuple[int, Layout], where: tuple[TestFile, Ground]
) -> None:
    (stage, layout), (file, beside) = which, where
    pieces = _place(file, layout, plan.seed)
    _write(session, plan, which, (file, pieces))
    _cut_out(file, gaps_between(pieces, layout.span))
    _verify(session.target, file, layout, pieces)
    # Opened anew: it has another size now.
    ground = Ground(open_real(file.path, request_bytes_max=plan.request_bytes_max), WINDOW)
    fragmented = Reading(layout.gap, layout, ground, _PIECES)
    readings: Sequence[Reading] = (fragmented, *whole(layout, beside))
    turns = [Turn(stage, repeat, depth) for repeat in range(plan.repeats) for depth in plan.depths]
    take_turns(session, turns, lambda _: readings)
    check_uncached(file.fd, session.target.warn)
    found = seen(merged(read_extents(file.fd) or ()), pieces)
    _tell(session, layout, found)


def _write(
    session: RunSession, plan: Plan, which: tuple[int, Layout], where: tuple[TestFile, Pieces]
) -> None:
    """Writes all of the file in order, or the pieces alone."""
    (stage, layout), (file, pieces) = which, where
    drive = open_real(file.path, request_bytes_max=plan.request_bytes_max, seed=stage)
    ground = Ground(drive, layout.span)
    if plan.order == "address":
        fill_in_order(session, ground, stage)
    else:
        fill_pieces(session, ground, layout, pieces, stage)


def _place(file: TestFile, layout: Layout, seed: int) -> Pieces:
    """The pieces at places where the file system divides none of them, the first that are found."""
    extents = merged(read_extents(file.fd) or ())
    for draw in range(_DRAWS):
        pieces = layout.pieces(seed, draw)
        if stays_whole(pieces, extents):
            return pieces
    raise TargetError(
        f"{file.path.parent}: the free space lies in {len(extents)} parts, among which a file in "
        f"{layout.degree} even pieces finds no place; give an emptier file system, a smaller "
        "--distance or a smaller --size"
    )


def _require_collapse(file: TestFile) -> None:
    """Cuts a little out of the file that is there anyway: not every file system can."""
    try:
        _collapse(file.fd, 0, WINDOW)
    except OSError as error:
        raise TargetError(
            f"{file.path.parent}: this file system cannot cut a range out of a file "
            f"({error.strerror}), by which pieces are laid out; give a directory on ext4 or xfs, a "
            "block device or twin:NAME"
        ) from error


def _cut_out(file: TestFile, gaps: Pieces) -> None:
    try:
        for offset, length in gaps:
            if offset + length == os.fstat(file.fd).st_size:  # at the end there is nothing to move
                os.ftruncate(file.fd, offset)
            else:
                _collapse(file.fd, offset, length)
        os.fsync(file.fd)
    except OSError as error:
        raise TargetError(
            f"{file.path.parent}: cutting a range out of the test file failed ({error.strerror}); "
            "give a directory on ext4 or xfs with blocks of 4 KiB, a block device or twin:NAME"
        ) from error


def _collapse(fd: int, offset: int, length: int) -> None:
    """Removes a range; what follows moves up. Whole blocks of the file system only.

    Raises:
        OSError: as fallocate(2).
    """
    libc = ctypes.CDLL(None, use_errno=True)
    sizes = ctypes.c_int64(offset), ctypes.c_int64(length)
    if libc.fallocate64(fd, _COLLAPSE, *sizes) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _verify(opened: OpenTarget, file: TestFile, layout: Layout, pieces: Pieces) -> None:
    """Looks up where the file lies; refuses another layout, warns about a similar one."""
    if check_written(file.fd, opened.warn) is None:
        raise TargetError(
            f"{file.path.parent}: this file system does not tell where a file lies (no FIEMAP), so "
            "a layout cannot be proved; give a directory on ext4 or xfs, or twin:NAME"
        )
    found = seen(merged(read_extents(file.fd) or ()), pieces)
    if found.lengths != (layout.piece,) * layout.degree:
        raise TargetError(
            f"{file.path.parent}: asked for {layout.degree} pieces, the file system made "
            f"{found.pieces}; give a directory on ext4 or xfs with more free space"
        )
    if found.distances_met < _MET * (layout.degree - 1):
        opened.warn(
            "layout-changed",
            f"Of the {layout.degree - 1} gaps between pieces ({layout.gap}) only "
            f"{found.distances_met} are as long as asked: the free space is in parts.",
        )


def _tell(session: RunSession, layout: Layout, found: Seen) -> None:
    words = f"{layout.gap}, degree {layout.degree}"
    session.observe("extents", found.pieces, words)
    session.observe("distances_met", found.distances_met, words)
    session.observe("jumps_back", found.jumps_back, words)
