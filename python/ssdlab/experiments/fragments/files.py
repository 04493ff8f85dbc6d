"""Makes fragmented files in a directory: writes a file, then cuts the gaps out of it.

Appending to two files in turn, as the study did, gives far fewer pieces on a recent ext4, because
it preallocates. Collapsing the gaps of a preallocated file is exact on ext4 and xfs. The result is
checked: the merged extents (FIEMAP) must be the planned pieces.
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
    ActualLayout,
    Layout,
    Pieces,
    actual_layout,
    fits_extents,
    gaps_between,
)
from ssdlab.experiments.fragments.plan import Plan
from ssdlab.experiments.fragments.reading import (
    FileRead,
    Region,
    fill_in_order,
    fill_pieces,
    read_in_turn,
    reference_reads,
)
from ssdlab.runner.open_target import OpenTarget
from ssdlab.runner.session import RunSession
from ssdlab.runner.testfile import TestFile
from ssdlab.runner.written import check_uncached, check_written
from ssdlab.storage_stack.extents import merged, read_extents

_FALLOC_FL_COLLAPSE_RANGE: Final = 0x08
_DRAWS: Final = 64  # draws of piece offsets until none crosses a border between extents
_DISTANCES_MET_MIN: Final = 0.9  # share of distances that must be as planned, or the run warns


def measure(session: RunSession, plan: Plan) -> None:
    """Makes the fragmented files one by one, and reads each alternately with a contiguous file.

    Raises:
        TargetError: the layout cannot be made here; if possible, before anything is written.
        Interrupted, DeviceFailure: as `RunSession.run_plan`.
    """
    opened = session.target
    assert opened.test_file is not None
    _require_collapse(opened.test_file)
    os.ftruncate(opened.test_file.fd, WINDOW)
    reference = Region(opened.drive, WINDOW)
    fill_in_order(session, reference)
    extents = read_extents(opened.test_file.fd)
    if extents is None or len(merged(extents)) != 1:
        opened.warn(
            "layout-changed",
            "The contiguous reference file has more than one extent, so the slowdowns come out "
            "too small. Measure on a file system with more contiguous free space.",
        )
    for stage, layout in enumerate(plan.layouts, 1):
        with TestFile(opened.test_file.path.parent, layout.span) as file:
            pieces = _choose_pieces(file, layout, plan.seed)
            _write(session, plan, file, layout, pieces, stage)
            _cut_gaps(file, gaps_between(pieces, layout.span))
            _verify(opened, file, layout, pieces)
            _read(session, plan, file, layout, stage, reference)
            _record(session, layout, _layout_of(file, pieces))


def _write(
    session: RunSession, plan: Plan, file: TestFile, layout: Layout, pieces: Pieces, stage: int
) -> None:
    drive = open_real(file.path, request_bytes_max=plan.request_bytes_max, seed=stage)
    region = Region(drive, layout.span)
    if plan.order == "address":
        fill_in_order(session, region, stage)
    else:
        fill_pieces(session, region, layout, pieces, stage)


def _read(
    session: RunSession, plan: Plan, file: TestFile, layout: Layout, stage: int, reference: Region
) -> None:
    # Opened again, because the size has changed. The file's offsets no longer include the gaps.
    region = Region(open_real(file.path, request_bytes_max=plan.request_bytes_max), WINDOW)
    fragmented = FileRead(layout.gap, layout, region, ((0, WINDOW),))
    reads: Sequence[FileRead] = (fragmented, *reference_reads(layout, reference))
    read_in_turn(session, plan, stage, lambda _: reads)
    check_uncached(file.fd, session.target.warn)


def _layout_of(file: TestFile, pieces: Pieces) -> ActualLayout:
    return actual_layout(merged(read_extents(file.fd) or ()), pieces)


def _choose_pieces(file: TestFile, layout: Layout, seed: int) -> Pieces:
    """Draws pieces until none crosses a border between the file's extents."""
    extents = merged(read_extents(file.fd) or ())
    for draw in range(_DRAWS):
        pieces = layout.pieces(seed, draw)
        if fits_extents(pieces, extents):
            return pieces
    raise TargetError(
        f"{file.path.parent}: free space is too fragmented: the test file has {len(extents)} "
        f"extents, and {layout.degree} pieces do not fit into them; give an emptier file system, a "
        "smaller --distance or a smaller --size"
    )


def _require_collapse(file: TestFile) -> None:
    """Tries to collapse a range of the test file, which not all file systems support."""
    try:
        _collapse(file.fd, 0, WINDOW)
    except OSError as error:
        raise TargetError(
            f"{file.path.parent}: this file system cannot cut a range out of a file "
            f"({error.strerror}), which is needed to make fragmented files; give a directory on "
            "ext4 or xfs, a block device or twin:NAME"
        ) from error


def _cut_gaps(file: TestFile, gaps: Pieces) -> None:
    try:
        for offset, length in gaps:
            if offset + length == os.fstat(file.fd).st_size:  # collapsing at the end is an error
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
    """Removes a range of whole file system blocks; the data after it moves up.

    Raises:
        OSError: as fallocate(2).
    """
    libc = ctypes.CDLL(None, use_errno=True)
    start, size = ctypes.c_int64(offset), ctypes.c_int64(length)
    if libc.fallocate64(fd, _FALLOC_FL_COLLAPSE_RANGE, start, size) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _verify(opened: OpenTarget, file: TestFile, layout: Layout, pieces: Pieces) -> None:
    """Fails if the file's extents are not the pieces; warns if their distances differ."""
    if check_written(file.fd, opened.warn) is None:
        raise TargetError(
            f"{file.path.parent}: this file system does not report a file's extents (no FIEMAP), "
            "so the layout cannot be checked; give a directory on ext4 or xfs, or twin:NAME"
        )
    actual = _layout_of(file, pieces)
    if actual.lengths != (layout.piece,) * layout.degree:
        raise TargetError(
            f"{file.path.parent}: the file should have {layout.degree} pieces, but the file system "
            f"made {actual.pieces}; give a directory on ext4 or xfs with more free space"
        )
    if actual.distances_met < _DISTANCES_MET_MIN * (layout.degree - 1):
        opened.warn(
            "layout-changed",
            f"Only {actual.distances_met} of {layout.degree - 1} gaps between pieces "
            f"({layout.gap}) have the planned length, because free space is fragmented. Measure "
            "on an emptier file system.",
        )


def _record(session: RunSession, layout: Layout, actual: ActualLayout) -> None:
    detail = f"{layout.gap}, degree {layout.degree}"
    session.observe("extents", actual.pieces, detail)
    session.observe("distances_met", actual.distances_met, detail)
    session.observe("jumps_back", actual.jumps_back, detail)
