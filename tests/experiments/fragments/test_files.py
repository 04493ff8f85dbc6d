"""The layout on real file systems: looked up by FIEMAP, gone afterwards, refused where it fails."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pyarrow as pa
import pytest

from ssdlab.analysis.evidence import Evidence
from ssdlab.device import Drive
from ssdlab.errors import Interrupted, TargetError
from ssdlab.experiments.fragments import files, memory
from ssdlab.experiments.fragments.analysis import conclude
from ssdlab.experiments.fragments.layout import Pieces, gaps_between
from ssdlab.experiments.fragments.measure import Plan, measure
from ssdlab.experiments.fragments.plan import Order
from ssdlab.runner import open_target as opened
from ssdlab.runner.open_target import OpenTarget, TargetOptions, open_for_run
from ssdlab.runner.progress import Listener, silent
from ssdlab.runner.resume import ResumeState
from ssdlab.runner.session import RunSession
from ssdlab.target import Consent, parse_target

KIB, MIB = 1 << 10, 1 << 20
# 16 MiB is written for each layout.
SMALL = Plan(degrees=(1, 64), distance=256 * KIB, repeats=1)


def _refused(place: Path, chosen: Plan) -> str:
    """The line that refuses a run; what its frames held open is closed."""
    try:
        _run(place, chosen)
    except TargetError as error:
        line = str(error)
    else:
        raise AssertionError("it was not refused")
    gc.collect()
    return line


def _run(place: Path, chosen: Plan, listener: Listener = silent) -> tuple[OpenTarget, Evidence]:
    with open_for_run(TargetOptions(parse_target(str(place)), chosen.size)) as opened:
        session = RunSession(opened, listener)
        session.run_plan(measure, chosen)
    doubts = frozenset(warning.code for warning in opened.warnings)
    return opened, Evidence(session.recording.tables(), chosen.parameters(), warnings=doubts)


def punch_hole(fd: int, offset: int, length: int) -> None:
    """Gives blocks of a file back (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)."""
    libc = ctypes.CDLL(None, use_errno=True)
    done = libc.fallocate64(fd, 3, ctypes.c_int64(offset), ctypes.c_int64(length))
    assert done == 0, os.strerror(ctypes.get_errno())


def _on_device(
    device: Path, listener: Listener, resume: ResumeState | None = None
) -> dict[str, pa.Table]:
    """The tables of a run on a block device, interrupted or not; the device is free again."""
    with open_for_run(
        TargetOptions(parse_target(str(device)), SMALL.size, consent=Consent(any_empty=True))
    ) as opened:
        session = RunSession(opened, listener, resume)
        with contextlib.suppress(Interrupted, KeyboardInterrupt):
            session.run_plan(measure, SMALL)
    tables = session.recording.tables()
    del session, opened
    gc.collect()
    return tables


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
@pytest.mark.parametrize("order", ["address", "file"])
def test_files_have_as_many_pieces_as_asked_on_the_drive(
    kind: str, order: Order, make_filesystem: Callable[..., Path]
) -> None:
    place = make_filesystem(kind, 1700)
    chosen = Plan(SMALL.degrees, distance=SMALL.distance, order=order, repeats=1)
    _, evidence = _run(place, chosen)
    found = [(row["detail"], row["value"]) for row in evidence.observed("extents")]
    assert found == [("worst, degree 64", 64), ("random, degree 64", 64)]
    assert all(row["value"] >= 0.9 * 63 for row in evidence.observed("distances_met"))
    assert "layout-changed" not in evidence.warnings
    assert sorted(path.name for path in place.iterdir()) in ([], ["lost+found"])
    assert os.statvfs(place).f_bfree * 4096 > 1500 * MIB


def test_a_directory_gets_the_hosts_share_from_a_drive_in_memory(drive_directory: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("a loop device takes root")
    _, evidence = _run(drive_directory, SMALL)
    conclusion = conclude(evidence)
    assert all(row["host_ms"] > 0 for row in conclusion.measures)
    assert conclusion.findings["splitting_measured_by"].value == ("file in order, drive in memory")


def test_without_root_the_price_of_splitting_is_that_of_the_file_in_order(
    drive_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(size_bytes: int) -> AbstractContextManager[Drive]:
        raise TargetError("no loop device over memory can be had, which takes root (Denied)")

    monkeypatch.setattr(memory, "open_memory", refuse)
    opened, evidence = _run(drive_directory, SMALL)
    assert "no-memory-drive" in evidence.warnings
    told = next(each.sentence for each in opened.warnings if each.code == "no-memory-drive")
    assert "takes root" in told
    conclusion = conclude(evidence)
    assert conclusion.findings["splitting_measured_by"].value == "file in order"
    assert all(row["host_ms"] is None for row in conclusion.measures)


def test_a_run_that_is_interrupted_leaves_no_file(
    drive_directory: Path, ctrl_c_at: Callable[[str], Listener]
) -> None:
    with pytest.raises((Interrupted, KeyboardInterrupt)):
        _run(drive_directory, SMALL, ctrl_c_at("in 64 pieces"))
    assert list(drive_directory.iterdir()) == []


def test_what_did_not_become_the_pieces_is_refused(
    drive_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def all_but_one(pieces: Pieces, size: int) -> Pieces:
        first, *others = gaps_between(pieces, size)
        return (first, *others[1:])

    monkeypatch.setattr(files, "gaps_between", all_but_one)
    assert "asked for 64 pieces, the file system made 63" in _refused(drive_directory, SMALL)
    assert list(drive_directory.iterdir()) == []


def test_a_block_device_is_gone_on_with_where_it_was_left(
    loop_device: Callable[..., Path], ctrl_c_at: Callable[[str], Listener]
) -> None:
    device = loop_device(32)
    before = _on_device(device, ctrl_c_at("reading 8 MiB in 64 parts"))
    after = _on_device(device, silent, ResumeState(before, keeps_state=True))
    steps = after["steps"].to_pylist()
    assert [row for row in steps if row["phase"] == "fill"] == before["steps"].to_pylist()[:1]
    places = [(row["phase"], row["stage"], row["case"], row["value"]) for row in steps]
    reads = [place for place in places if place[0] not in {"fill", "flush"}]
    assert len(reads) == len(set(reads)) == 2 * (2 * 3 + 2)


def test_a_file_system_that_cannot_cut_files_is_refused_before_all_is_written(
    make_filesystem: Callable[..., Path],
) -> None:
    place = make_filesystem("btrfs", 1700)
    line = _refused(place, SMALL)
    assert "cannot cut a range out of a file" in line
    assert "ext4 or xfs" in line
    assert list(place.iterdir()) == []


def test_free_space_in_parts_is_refused_in_one_line(
    make_filesystem: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, step = make_filesystem("ext4", 96, "-m 0 -b 4096"), 16 * KIB
    with (place / "comb").open("wb") as file:
        size = os.statvfs(place).f_bavail * 4096 - 8 * MIB
        os.posix_fallocate(file.fileno(), 0, size)
        for offset in range(0, size, 2 * step):
            punch_hole(file.fileno(), offset, step)
    monkeypatch.setattr(opened, "_require_room", lambda *_: None)
    assert "finds no place" in _refused(place, SMALL)
    assert {path.name for path in place.iterdir()} == {"comb", "lost+found"}


def test_a_full_file_system_is_refused_in_one_line(make_filesystem: Callable[..., Path]) -> None:
    place = make_filesystem("ext4", 96)
    assert "has no room" in _refused(place, SMALL)
