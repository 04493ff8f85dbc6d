"""The trim experiment on loop devices with known behaviour, on twins, and without root."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import numpy as np
import pytest

from known_twins import KnownTwin
from random_drives import TrimlessDrive, random_drive
from ssdlab import profiles
from ssdlab.analysis.evidence import Conclusion, Evidence
from ssdlab.device import Drive, describe_twin, sync_file_system
from ssdlab.errors import TargetError, UsageError
from ssdlab.experiments.trim import measure_real, measure_twin
from ssdlab.experiments.trim.analysis import conclude
from ssdlab.experiments.trim.blocks import blocks_of, middle
from ssdlab.experiments.trim.content import BLOCK, digests, tally
from ssdlab.experiments.trim.measure import Plan, measure, plan
from ssdlab.experiments.trim.parameters import Trim
from ssdlab.experiments.trim.twin_analysis import reach_of
from ssdlab.records import Recording, StepRow
from ssdlab.runner.open_target import OpenTarget, TargetOptions, open_for_run
from ssdlab.runner.session import RunSession
from ssdlab.storage_stack.extents import Extent, ExtentFlag
from ssdlab.target import Consent, Directory, parse_target

MIB = 1 << 20
SMALL = Plan(size=8 * MIB, wait_s=600.0)  # a wait ends with what is waited for
# Little is written but the test's own, and 1 GiB stays free beside it.
EXT4 = "-m 0 -N 64 -J size=4 -E lazy_itable_init=0"
ROOM_MIB = 1200


def _run(target: Path | str, *, destroy_data: bool = False) -> tuple[Conclusion, list[str]]:
    options = TargetOptions(
        parse_target(str(target)), SMALL.size, consent=Consent(any_empty=destroy_data)
    )
    with open_for_run(options) as opened_target:
        session = RunSession(opened_target)
        session.run_plan(measure, SMALL)
        codes = [warning.code for warning in opened_target.warnings]
    tables, parameters = session.recording.tables(), SMALL.parameters()
    return conclude(Evidence(tables, parameters, virtual=opened_target.is_virtual)), codes


def _found(conclusion: Conclusion) -> tuple[object, object, object]:
    reaches, layer, back = (
        conclusion.findings[name].value for name in ("reaches", "layer", "reads_back")
    )
    return reaches, layer, back


def _details(conclusion: Conclusion, step: str) -> list[str]:
    return [row["detail"] for row in conclusion.measures if row["step"] == step]


@pytest.fixture
def without_discard(
    make_filesystem: Callable[..., Path], tmp_path: Path
) -> Iterator[tuple[Path, str]]:
    """A mounted ext4 on a loop device without discard support, and the name of that device.

    Its image is in ramfs, where no holes can be made.
    """
    image = make_filesystem("ramfs", 0) / "image"
    with image.open("xb") as file:
        file.truncate(ROOM_MIB * MIB)
    done = subprocess.run(
        ["losetup", "--find", "--show", image], check=True, capture_output=True, text=True
    )
    device, point = done.stdout.strip(), tmp_path / "without"
    point.mkdir()
    try:
        subprocess.run(["mkfs.ext4", "-q", *EXT4.split(), device], check=True)
        subprocess.run(["mount", device, point], check=True)
        try:
            yield point, device.removeprefix("/dev/")
        finally:
            subprocess.run(["umount", point], check=True)
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)
        image.unlink()


@pytest.mark.parametrize("options", ["", "discard"])
def test_a_discard_that_reaches_the_device_reads_as_zeros(
    make_filesystem: Callable[..., Path], options: str
) -> None:
    top = make_filesystem("ext4", ROOM_MIB, EXT4, options)
    before = sorted(top.iterdir())
    conclusion, codes = _run(top)
    assert _found(conclusion) == (True, "none", "zeros")
    assert sorted(top.iterdir()) == before
    assert "loop-below" in codes
    assert "as written" in _details(conclusion, "read before deleting")[0]
    # Where the mount discards as files are deleted, nothing else has to be parameters.
    assert len(_details(conclusion, "asked to discard")) == (0 if options else 1)
    assert any(row["step"] == "sent" for row in conclusion.measures)
    before_mib, written_mib, after_mib = _used_mib(conclusion)
    assert written_mib - before_mib == pytest.approx(8, abs=1)
    assert written_mib - after_mib == pytest.approx(8, abs=1)


def _used_mib(conclusion: Conclusion) -> list[float]:
    (detail,) = _details(conclusion, "in use below")
    return [float(part.split()[1]) for part in detail.split(", ")]


def test_a_layer_that_stops_the_discard_is_named_and_the_old_data_remain(
    without_discard: tuple[Path, str],
) -> None:
    top, device = without_discard
    conclusion, _ = _run(top)
    assert _found(conclusion) == (False, f"{device} (loop)", "old data")
    assert "refused" in _details(conclusion, "asked to discard")[0]
    passes = {row["layer"]: row["passes"] for row in conclusion.measures if row["layer"]}
    assert passes["loop"] == "no"
    assert conclusion.verdict.startswith("Discards do not reach the flash;")


def test_blocks_reused_by_another_file_leave_the_result_undecided(
    make_filesystem: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    top = make_filesystem("ext4", ROOM_MIB, EXT4)

    def sync_and_reuse(directory: Path) -> None:
        sync_file_system(directory)
        with (top / "another").open("xb") as file:
            file.write(np.random.default_rng(1).bytes(64 * MIB))
            os.fsync(file.fileno())

    monkeypatch.setattr(measure_real, "sync_file_system", sync_and_reuse)
    conclusion, _ = _run(top)
    assert _found(conclusion) == (None, None, "other")
    assert "neither" in _details(conclusion, "read after deleting")[0]
    assert (top / "another").stat().st_size == 64 * MIB


@contextmanager
def _as_nobody(top: Path) -> Iterator[Path]:
    """Drops root privileges; yields a path to `top` that an ordinary user can access."""
    top.chmod(0o777)
    with TemporaryDirectory() as reached:
        Path(reached).chmod(0o755)
        subprocess.run(["mount", "--bind", top, reached], check=True)
        os.setegid(65534)
        os.seteuid(65534)
        try:
            yield Path(reached)
        finally:
            os.seteuid(0)
            os.setegid(0)
            subprocess.run(["umount", reached], check=True)


def test_root_is_not_told_to_become_root(
    make_filesystem: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    top = make_filesystem("ext4", ROOM_MIB, EXT4)

    def forbidden(path: Path) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted", str(path))

    monkeypatch.setattr(measure_real, "DirectReader", forbidden)
    conclusion, codes = _run(top)
    assert "needs-root" not in codes
    why = conclusion.findings["reads_back"].why
    assert "this machine forbids it, also to root" in why
    assert "as root" not in why


@pytest.mark.parametrize("options", ["", "discard"])
def test_without_root_it_reports_what_is_declared_and_sent(
    make_filesystem: Callable[..., Path], options: str
) -> None:
    top = make_filesystem("ext4", ROOM_MIB, EXT4, options)
    with _as_nobody(top) as reached:
        conclusion, codes = _run(reached)
    assert "needs-root" in codes
    assert conclusion.findings["reads_back"].value is None
    assert "run this as root" in conclusion.findings["reads_back"].why
    layers = [row["layer"] for row in conclusion.measures if row["step"] == "declared"]
    assert layers == ["schedule", "file system", "loop"]
    sent = float(_details(conclusion, "sent")[0].split()[0])
    assert (sent >= 8) == bool(options)


def test_without_root_a_layer_that_declares_no_discards_decides(
    without_discard: tuple[Path, str],
) -> None:
    top, device = without_discard
    with _as_nobody(top) as reached:
        conclusion, _ = _run(reached)
    assert _found(conclusion) == (False, f"{device} (loop)", None)


def test_blocks_of_xfs_are_read_back(make_filesystem: Callable[..., Path]) -> None:
    conclusion, _ = _run(make_filesystem("xfs", ROOM_MIB))
    assert _found(conclusion) == (True, "none", "zeros")


def test_blocks_of_btrfs_are_not_read_as_its_addresses_are_virtual(
    make_filesystem: Callable[..., Path],
) -> None:
    conclusion, codes = _run(make_filesystem("btrfs", ROOM_MIB, "", "discard=sync"))
    assert conclusion.findings["reads_back"].value is None
    assert "not-read" in codes
    assert conclusion.findings["reaches"].value is True
    assert "were freed below" in conclusion.findings["reaches"].why


def test_a_block_device_is_discarded_directly(loop_device: Callable[..., Path]) -> None:
    conclusion, _ = _run(loop_device(32), destroy_data=True)
    assert _found(conclusion) == (True, "none", "zeros")
    assert _details(conclusion, "asked to discard") == ["8 MiB, by its own count"]


def test_a_killed_run_leaves_no_file(drive_directory: Path) -> None:
    program = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from ssdlab.experiments.trim import measure as trim\n"
        "from ssdlab.runner.session import RunSession\n"
        "from ssdlab.runner.open_target import TargetOptions, open_for_run\n"
        "from ssdlab.target import parse_target\n"
        "plan = trim.Plan(size=8 << 20, wait_s=0.0)\n"
        "def kill(*_): os.kill(os.getpid(), 9)\n"
        "RunSession.flush = kill\n"
        "with open_for_run(TargetOptions(parse_target(sys.argv[1]), plan.size)) as target:\n"
        "    trim.measure(RunSession(target), plan)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, drive_directory], check=False)
    assert done.returncode == -9
    assert list(drive_directory.iterdir()) == []


def test_a_twin_unmaps_trimmed_blocks_and_relocates_less() -> None:
    conclusion, codes = _run("twin:toshiba-xg5")
    assert _found(conclusion) == (True, "none", None)
    full, trimmed = (conclusion.findings[f"waf_{name}"].value for name in ("full", "trimmed"))
    assert isinstance(full, float)
    assert isinstance(trimmed, float)
    assert full > 2 * trimmed > 2
    assert codes == []


@pytest.mark.parametrize(("seed", "dropped"), [(0, False), (0, True), (10, False), (10, True)])
def test_the_time_of_reads_shows_whether_a_trim_reaches_the_flash(seed: int, dropped: bool) -> None:
    drive = random_drive(seed).open()
    opened = TrimlessDrive(drive) if dropped else drive
    session = RunSession(OpenTarget(cast(Drive, opened), {"kind": "twin"}))
    session.run_plan(measure_twin.measure_reach, SMALL)
    evidence = Evidence(session.recording.tables(), SMALL.parameters(), virtual=True)
    assert reach_of(evidence).value is not dropped


def test_a_drive_of_large_superblocks_is_not_scaled_below_what_makes_a_twin() -> None:
    """With 1 GiB it has too few superblocks for its 3 % of spare."""
    ftl = 'victim = "greedy"\nchunk = "64 KiB"'
    twin = KnownTwin(8 << 30, spare=0.03, dies=32, planes=2, pages_per_block=18, ftl=ftl)
    text, own = twin.text, twin.capacity
    with pytest.raises(TargetError):
        describe_twin("large", text, 1 << 30)
    assert measure_twin._scaled_capacity("large", text, own) == 2 << 30
    assert measure_twin._scaled_capacity("large", text, 3 << 29) == 3 << 29, "its own capacity"
    small = profiles.load("toshiba-xg5")
    assert measure_twin._scaled_capacity("small", small, 256 << 30) == 1 << 30


def test_reads_that_are_slightly_faster_leave_it_open() -> None:
    recording = Recording()
    for stage, read_ns in ((0, 1050), (1, 1000)):
        for repeat in range(measure_twin.REPEATS):
            noise = 200 * (repeat % 3)
            step = {"phase": "timed", "stage": stage, "repeat": repeat, "requests": 1}
            recording.add(StepRow(step | {"start_ns": 0, "end_ns": read_ns + noise}))
    finding = reach_of(Evidence(recording.tables(), {}, virtual=True))
    assert finding.value is None
    assert "too close to tell; run it again" in finding.why


def test_what_a_twins_trimmed_blocks_read_as_is_not_taken_from_its_profile(tmp_path: Path) -> None:
    text = profiles.load("toshiba-xg5") + '\n[trim]\nreads_back = "old data"\n'
    (tmp_path / "drive.toml").write_text(text)
    conclusion, _ = _run(f"twin:{tmp_path}/drive.toml")
    assert _found(conclusion) == (True, "none", None)
    assert "ssdlab serve" in conclusion.findings["reads_back"].why


@pytest.mark.parametrize("size", [0, 2 * MIB, 8 * MIB + 4096])
def test_a_size_too_small_or_not_in_whole_mebibytes_is_refused(size: int) -> None:
    with pytest.raises(UsageError, match="a multiple of 1 MiB, at least 4 MiB"):
        plan(Trim(size=size, quick=True), Directory("."), 0)


def test_the_ends_of_an_extent_are_not_read_back() -> None:
    assert middle(0, 8 * MIB, MIB) == (MIB, 6 * MIB)
    assert middle(4096, 8 * MIB, MIB) == (2 * MIB, 5 * MIB)
    assert middle(0, 8 * MIB, 4 * MIB)[1] == 0
    assert middle(0, 8 * MIB, 512) == (BLOCK, 8 * MIB - 2 * BLOCK)


def test_the_same_bytes_are_read_in_the_file_and_on_its_device() -> None:
    listed = [
        Extent(0, 64 * MIB, 4 * MIB, ExtentFlag(0)),
        Extent(4 * MIB, 16 * MIB + 4096, 4 * MIB, ExtentFlag(0)),
        Extent(8 * MIB, 32 * MIB, 4096, ExtentFlag(0)),
    ]
    blocks = blocks_of(listed, MIB)
    assert blocks.on_device == ((65 * MIB, 2 * MIB), (18 * MIB, MIB))
    assert blocks.in_file == ((MIB, 2 * MIB), (4 * MIB + 2 * MIB - 4096, MIB))
    assert blocks.extents == ((64 * MIB, 4 * MIB), (16 * MIB + 4096, 4 * MIB), (32 * MIB, 4096))
    assert "larger --size" in blocks_of(listed, 4 * MIB).why_not


@pytest.mark.parametrize("flag", ["INLINE", "ENCODED", "DELALLOC", "UNWRITTEN", "SHARED"])
def test_addresses_that_cannot_be_read_are_refused(flag: str) -> None:
    blocks = blocks_of([Extent(0, MIB, 8 * MIB, ExtentFlag[flag])], 4096)
    assert (blocks.on_device, blocks.extents) == ((), ())
    assert "does not report readable addresses" in blocks.why_not


class _Content:
    """A fake of `Blocks` with its content in memory."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def pieces(self, offset: int, length: int) -> Iterator[memoryview]:
        yield memoryview(self.content)[offset : offset + length]


def test_each_block_is_compared_with_what_was_written_at_its_address() -> None:
    first, second = (np.random.default_rng(at).bytes(BLOCK) for at in (0, 1))
    written = _Content(first + second + first + second + first)
    spans = [(0, 2 * BLOCK), (2 * BLOCK, 3 * BLOCK)]
    known = digests(written, spans)  # type: ignore[arg-type]  # only `pieces` is parameters
    now = _Content(first + bytes(BLOCK) + b"\xff" * BLOCK + first + second[:-1] + b"\0")
    seen = tally(now, spans, known)  # type: ignore[arg-type]  # as above
    assert (seen.old, seen.zeros, seen.ones, seen.other) == (1, 1, 1, 2)
    assert not seen.is_gone
    empty = _Content(bytes(5 * BLOCK))
    assert tally(empty, spans, known).is_gone  # type: ignore[arg-type]  # as above
