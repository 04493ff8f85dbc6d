"""Verdicts on files with known layouts and read speeds."""

from __future__ import annotations

import pytest

from ssdlab.doctor.checks import Verdict, judge
from ssdlab.doctor.checks.files import reference_mib_per_s, regions, slowdown
from ssdlab.snapshot import Device, File, Mounted, Piece, Snapshot

MIB = 1 << 20
DRIVE = Device("sda", "/dev/sda", "drive", "sata", is_drive=True, rotational=False)


def _file(speeds: list[float], **more: object) -> File:
    """A file of 4 MiB pieces with these speeds (MiB/s)."""
    pieces = tuple(Piece(4 * at * MIB, 4 * MIB, 4 / speed, 0) for at, speed in enumerate(speeds))
    size = 4 * len(speeds) * MIB
    return File("/data/file", size, 1, size, 1, pieces=pieces, **more)  # type: ignore[arg-type]


def _verdicts(*files: File, drive: Device = DRIVE, fs_type: str = "ext4") -> dict[str, Verdict]:
    mount = Mounted("/data", fs_type, "/dev/sda", devices=("sda",))
    stack = Snapshot("/data", True, mounts=(mount,), devices=(drive,), files=files)
    return {verdict.code: verdict for verdict in judge(stack)}


def test_the_slow_quarter_of_a_file_is_located() -> None:
    file = _file([500.0] * 12 + [50.0] * 8 + [500.0] * 12)
    reference = reference_mib_per_s([file])
    assert reference == 500.0
    (region,) = regions(file, reference)
    assert (region.start, region.end) == (48 * MIB, 80 * MIB)
    assert region.mib_per_s == pytest.approx(50)
    assert slowdown(file, reference) == pytest.approx((24 + 80) / 32)
    verdict = _verdicts(file)["aged-regions"]
    assert verdict.remedy.splitlines()[-1].startswith("ssdlab heal ")
    assert verdict.severity == "bad"
    assert verdict.value == 3.25
    assert "48 MiB to 80 MiB at 50 MiB/s; reference 500 MiB/s" in verdict.evidence


def test_small_speed_differences_are_not_ageing() -> None:
    verdicts = _verdicts(_file([500.0, 450.0, 480.0, 300.0] * 8))
    assert "aged-regions" not in verdicts
    assert verdicts["reads-even"].severity == "good"


def test_a_file_is_compared_with_the_fast_parts_of_other_files() -> None:
    verdicts = _verdicts(_file([500.0] * 16), _file([100.0] * 16))
    assert verdicts["aged-regions"].value == pytest.approx(5.0)


def test_unsteady_readings_give_no_verdict_on_the_drive() -> None:
    steady = _file([500.0] * 12 + [50.0] * 8)
    verdicts = _verdicts(_file([500.0] * 12 + [50.0] * 8, unsteady=0.9), steady)
    assert "aged-regions" not in verdicts
    assert "reads-even" not in verdicts
    assert "90%" in verdicts["map-unsteady"].evidence


def test_slow_regions_of_a_virtual_disk_are_only_a_note() -> None:
    virtual = Device("vda", "/dev/vda", "drive", "virtio", is_drive=True)
    verdicts = _verdicts(_file([500.0] * 12 + [50.0] * 8), drive=virtual)
    assert verdicts["aged-regions"].severity == "note"


def test_reads_from_the_page_cache_below_a_loop_device_are_no_map() -> None:
    loop = Device("loop3", "/dev/loop3", "loop", "loop", is_drive=True, direct_io=False)
    maps = {"aged-regions", "reads-even"}
    assert not maps & set(_verdicts(_file([9000.0] * 16), drive=loop))
    assert not maps & set(_verdicts(_file([9000.0] * 12 + [900.0] * 8), drive=loop))


def test_too_few_pieces_give_no_verdict() -> None:
    assert not {"aged-regions", "reads-even"} & set(_verdicts(_file([500.0, 50.0])))
    few = [_file([500.0] * 4) for _ in range(3)]
    assert not {"aged-regions", "reads-even"} & set(_verdicts(*few))


@pytest.mark.parametrize(("mean_kib", "severity"), [(32, "warn"), (512, "note"), (4096, None)])
def test_the_severity_of_fragmentation_depends_on_size(mean_kib: int, severity: str | None) -> None:
    file = File("/data/a b", 256 * mean_kib << 10, 256, 256 * mean_kib << 10, 1)
    verdict = _verdicts(file).get("fragmented")
    assert (verdict.severity if verdict else None) == severity
    if verdict:
        assert verdict.value == 256
        assert verdict.remedy == "sudo e4defrag -v '/data/a b'"


@pytest.mark.parametrize(
    ("fs_type", "word"),
    [("xfs", "xfs_fsr"), ("btrfs", "btrfs filesystem defragment"), ("f2fs", "cp --reflink=never")],
)
def test_the_remedy_names_the_defragmenter_of_the_file_system(fs_type: str, word: str) -> None:
    file = File("/data/file", 256 << 15, 256, 256 << 15, 1)
    assert word in _verdicts(file, fs_type=fs_type)["fragmented"].remedy


def test_a_compressed_file_is_not_called_fragmented() -> None:
    file = File("/data/file", 1 << 25, 256, 1 << 25, 1, flags=("compressed",))
    assert "fragmented" not in _verdicts(file)
