"""Layouts on real file systems: checked by FIEMAP, removed afterwards, refused if impossible."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from ssdlab.analysis.evidence import Evidence
from ssdlab.device import Drive
from ssdlab.errors import Interrupted, TargetError
from ssdlab.experiments.fragments import files
from ssdlab.experiments.fragments import measure as measure_module
from ssdlab.experiments.fragments import plan as fragments_plan
from ssdlab.experiments.fragments.analysis import conclude
from ssdlab.experiments.fragments.layout import Pieces, gaps_between
from ssdlab.experiments.fragments.measure import Plan, measure
from ssdlab.experiments.fragments.parameters import Fragments
from ssdlab.experiments.fragments.plan import NO_COLLAPSE, Order
from ssdlab.runner import open_target
from ssdlab.runner.open_target import OpenTarget, TargetOptions, open_for_run
from ssdlab.runner.progress import Listener, silent
from ssdlab.runner.resume import ResumeState
from ssdlab.runner.session import RunSession
from ssdlab.storage_stack.mounts import mount_of
from ssdlab.target import Consent, Directory, Twin, parse_target

KIB, MIB = 1 << 10, 1 << 20
# 16 MiB is written for each layout.
SMALL = Plan(degrees=(1, 64), distance=256 * KIB, repeats=1, settle_s=0)


def _refused(folder: Path, plan: Plan) -> str:
    """The error of a refused run; files that its frames kept open are closed."""
    try:
        _run(folder, plan)
    except TargetError as error:
        message = str(error)
    else:
        raise AssertionError("the run was not refused")
    gc.collect()
    return message


def _run(folder: Path, plan: Plan, listener: Listener = silent) -> tuple[OpenTarget, Evidence]:
    with open_for_run(TargetOptions(parse_target(str(folder)), plan.size)) as opened:
        session = RunSession(opened, listener)
        session.run_plan(measure, plan)
    warnings = frozenset(warning.code for warning in opened.warnings)
    return opened, Evidence(session.recording.tables(), plan.parameters(), warnings=warnings)


def punch_hole(fd: int, offset: int, length: int) -> None:
    """Frees blocks of a file (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)."""
    libc = ctypes.CDLL(None, use_errno=True)
    status = libc.fallocate64(fd, 3, ctypes.c_int64(offset), ctypes.c_int64(length))
    assert status == 0, os.strerror(ctypes.get_errno())


def _on_device(
    device: Path, listener: Listener, resume: ResumeState | None = None
) -> dict[str, pa.Table]:
    """Runs on a block device, interrupted or not, closes it and returns the tables."""
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
def test_files_have_the_planned_number_of_pieces(
    kind: str, order: Order, make_filesystem: Callable[..., Path]
) -> None:
    folder = make_filesystem(kind, 1700)
    plan = replace(SMALL, order=order)
    _, evidence = _run(folder, plan)
    extents = [(row["detail"], row["value"]) for row in evidence.observed("extents")]
    assert extents == [("worst, degree 64", 64), ("random, degree 64", 64)]
    assert all(row["value"] >= 0.9 * 63 for row in evidence.observed("distances_met"))
    assert "layout-changed" not in evidence.warnings
    assert sorted(path.name for path in folder.iterdir()) in ([], ["lost+found"])
    assert os.statvfs(folder).f_bfree * 4096 > 1500 * MIB


def test_the_host_share_is_measured_on_a_loop_device_over_memory(drive_directory: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("creating a loop device needs root")
    _, evidence = _run(drive_directory, SMALL)
    conclusion = conclude(evidence)
    assert all(row["host_ms"] > 0 for row in conclusion.measures)
    assert conclusion.findings["splitting_measured_by"].value == "file in order, drive in memory"


def test_without_root_splitting_is_measured_on_the_contiguous_file_only(
    drive_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(size_bytes: int) -> AbstractContextManager[Drive]:
        raise TargetError("cannot create a loop device, which needs root (Denied)")

    monkeypatch.setattr(measure_module, "open_memory", refuse)
    opened, evidence = _run(drive_directory, SMALL)
    assert "no-memory-drive" in evidence.warnings
    sentence = next(each.sentence for each in opened.warnings if each.code == "no-memory-drive")
    assert "needs root" in sentence
    conclusion = conclude(evidence)
    assert conclusion.findings["splitting_measured_by"].value == "file in order"
    assert all(row["host_ms"] is None for row in conclusion.measures)


def test_an_interrupted_run_removes_its_files(
    drive_directory: Path, ctrl_c_at: Callable[[str], Listener]
) -> None:
    with pytest.raises((Interrupted, KeyboardInterrupt)):
        _run(drive_directory, SMALL, ctrl_c_at("in 64 pieces"))
    assert list(drive_directory.iterdir()) == []


def test_a_file_with_other_extents_than_planned_is_refused(
    drive_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def all_but_one(pieces: Pieces, size: int) -> Pieces:
        first, *others = gaps_between(pieces, size)
        return (first, *others[1:])

    monkeypatch.setattr(files, "gaps_between", all_but_one)
    assert "should have 64 pieces, but the file system made 63" in _refused(drive_directory, SMALL)
    assert list(drive_directory.iterdir()) == []


def test_a_run_on_a_block_device_resumes_after_an_interrupt(
    loop_device: Callable[..., Path], ctrl_c_at: Callable[[str], Listener]
) -> None:
    device = loop_device(32)
    before = _on_device(device, ctrl_c_at("reading 8 MiB in 64 adjacent parts"))
    after = _on_device(device, silent, ResumeState(before, keeps_state=True))
    steps = after["steps"].to_pylist()
    assert [row for row in steps if row["phase"] == "fill"] == before["steps"].to_pylist()[:1]
    keys = [(row["phase"], row["stage"], row["case"], row["value"]) for row in steps]
    reads = [key for key in keys if key[0] not in {"fill", "flush"}]
    assert len(reads) == len(set(reads)) == 2 * (2 * 3 + 1 + 2)


def test_a_file_system_that_cannot_collapse_ranges_is_refused_early(
    make_filesystem: Callable[..., Path],
) -> None:
    folder = make_filesystem("btrfs", 1700)
    message = _refused(folder, SMALL)
    assert "cannot cut a range out of a file" in message
    assert "ext4 or xfs" in message
    assert list(folder.iterdir()) == []


def test_fragmented_free_space_is_refused_in_one_line(
    make_filesystem: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, step = make_filesystem("ext4", 96, "-m 0 -b 4096"), 16 * KIB
    with (folder / "comb").open("wb") as file:
        size = os.statvfs(folder).f_bavail * 4096 - 8 * MIB
        os.posix_fallocate(file.fileno(), 0, size)
        for offset in range(0, size, 2 * step):
            punch_hole(file.fileno(), offset, step)
    monkeypatch.setattr(open_target, "_require_room", lambda *_: None)
    assert "free space is too fragmented" in _refused(folder, SMALL)
    assert {path.name for path in folder.iterdir()} == {"comb", "lost+found"}


def test_a_full_file_system_is_refused_in_one_line(make_filesystem: Callable[..., Path]) -> None:
    folder = make_filesystem("ext4", 96)
    assert "has no room" in _refused(folder, SMALL)


@pytest.mark.parametrize("fs_type", sorted(NO_COLLAPSE))
def test_a_file_system_that_cannot_cut_ranges_out_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fs_type: str
) -> None:
    mount = replace(mount_of(tmp_path), fs_type=fs_type)
    monkeypatch.setattr(fragments_plan, "mount_of", lambda _path: mount)
    with pytest.raises(TargetError, match=f"fragments does not support {fs_type}"):
        fragments_plan.plan(Fragments(), Directory(str(tmp_path)), 0)
    fragments_plan.plan(Fragments(), Twin("toshiba-xg5"), 0)
