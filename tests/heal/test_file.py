"""The measured speeds decide what is rewritten; the speeds here are simulated."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from sample_file import MakeFileSystem, MakeSample, SampleFile

from ssdlab.device import Drive
from ssdlab.errors import TargetError
from ssdlab.heal import file as heal_module
from ssdlab.heal.file import heal_file, select_files
from ssdlab.heal.options import HealOptions, ProgressCallback
from ssdlab.heal.outcome import FileOutcome, MapRow, verdict
from ssdlab.heal.pieces import Piece, Range
from ssdlab.heal.speed import ReadSpeedMeter

M = 1 << 20
FRESH, SLOW = 500.0 * M, 200.0 * M


def silent(_label: str, _done: int, _total: int) -> None:
    pass


class SimulatedSpeeds:
    """Speeds of a file's pieces: slow in the MiB of `aged`, until they are moved."""

    def __init__(self, path: Path, aged: range, *, gets_faster: bool) -> None:
        self.path, self.aged, self.gets_faster = path, aged, gets_faster
        self.original_places: dict[int, int] = {}

    def of(self, each: Range, places: dict[int, int]) -> float:
        if not self.original_places:
            self.original_places = places
        is_moved = places[each.offset] != self.original_places[each.offset]
        is_slow = each.offset // M in self.aged and (not is_moved or not self.gets_faster)
        return SLOW if is_slow else FRESH


@pytest.fixture
def simulated(
    make_filesystem: MakeFileSystem, make_sample: MakeSample, monkeypatch: pytest.MonkeyPatch
) -> tuple[SampleFile, SimulatedSpeeds]:
    """A file of 80 MiB with simulated speeds."""
    sample = make_sample(make_filesystem("ext4", 500, direct_io=True), 80 * M)
    speeds = SimulatedSpeeds(sample.path, range(20, 28), gets_faster=True)

    class SimulatedMeter:
        def __init__(self, path: Path, progress: ProgressCallback) -> None:
            self._is_probe = path != sample.path

        def measure(self, ranges: Sequence[Range], label: str) -> list[Piece]:
            if self._is_probe:
                return [Piece(each, FRESH) for each in ranges]
            places = {
                extent.logical + at: extent.physical + at
                for extent in sample.extents
                for at in range(0, extent.length, 4096)
            }
            return [Piece(each, speeds.of(each, places)) for each in ranges]

        def best_of(self, pieces: list[Piece], limit: float, label: str) -> list[Piece]:
            return pieces

        def close(self) -> None:
            pass

    monkeypatch.setattr(heal_module, "ReadSpeedMeter", SimulatedMeter)
    return sample, speeds


def test_only_the_aged_tenth_of_a_file_is_rewritten(
    simulated: tuple[SampleFile, SimulatedSpeeds],
) -> None:
    sample, _ = simulated
    outcome = heal_file(sample.path, HealOptions(), silent)
    assert outcome.plan == [(20 * M, 8 * M)]
    assert outcome.written_bytes == 8 * M
    assert outcome.fresh_from == "a freshly written part"
    assert [row.offset_bytes // M for row in outcome.map if row.is_slow] == list(range(20, 28))
    assert all(row.after_mib_per_s == 500 for row in outcome.map)
    assert verdict([outcome], dry_run=False) == (
        "8.0 MiB were rewritten, and read at 500 instead of 200 MiB/s."
    )
    sample.check()


def test_a_completely_aged_file_is_recognized_by_a_freshly_written_test_file(
    simulated: tuple[SampleFile, SimulatedSpeeds],
) -> None:
    sample, speeds = simulated
    speeds.aged = range(80)
    assert heal_file(sample.path, HealOptions(dry_run=True), silent).planned_bytes == 0
    outcome = heal_file(sample.path, HealOptions(), silent)
    assert outcome.moved_bytes == 80 * M
    assert outcome.no_gain is False


def test_a_heal_stops_if_the_first_part_is_not_faster(
    simulated: tuple[SampleFile, SimulatedSpeeds],
) -> None:
    sample, speeds = simulated
    speeds.aged, speeds.gets_faster = range(80), False
    outcome = heal_file(sample.path, HealOptions(), silent)
    assert outcome.no_gain is True
    assert outcome.written_bytes == 32 * M
    assert "the first part did not read faster" in verdict([outcome], dry_run=False)
    sample.check()


def test_a_file_that_reads_fast_is_not_written(
    simulated: tuple[SampleFile, SimulatedSpeeds],
) -> None:
    sample, speeds = simulated
    speeds.aged = range(0)
    outcome = heal_file(sample.path, HealOptions(), silent)
    assert (outcome.planned_bytes, outcome.written_bytes) == (0, 0)
    assert verdict([outcome], dry_run=False) == "Nothing reads slowly: nothing was written."


def test_a_piece_is_slow_only_if_every_reading_of_it_was(
    drive_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = drive_directory / "file"
    path.write_bytes(bytes(4 * M))
    os.sync()
    speeds = {0: [FRESH], M: [SLOW] * 20, 2 * M: [SLOW, SLOW, FRESH], 3 * M: [SLOW] * 4 + [FRESH]}

    def next_speed(_self: ReadSpeedMeter, each: Range) -> float:
        return speeds[each.offset].pop(0)

    monkeypatch.setattr(ReadSpeedMeter, "_speed_of", next_speed)
    meter = ReadSpeedMeter(path, silent)
    pieces = meter.measure([Range(at * M, M) for at in range(4)], "")
    best = meter.best_of(pieces, 0.8 * FRESH, "")
    meter.close()
    assert [piece.bytes_per_s for piece in best] == [FRESH, SLOW, FRESH, FRESH]
    assert len(speeds[M]) > 8, "the number of readings is limited"


def test_reading_uses_direct_io_and_stops_at_the_last_sector(drive_directory: Path) -> None:
    path = drive_directory / "file"
    path.write_bytes(os.urandom(3 * M + 10_000))
    os.sync()
    meter = ReadSpeedMeter(path, silent)
    assert isinstance(meter._drive, Drive)
    ranges = [Range(0, M), Range(2 * M, M + 12_288), Range(3 * M + 8192, 4096)]
    measured = [piece.bytes_per_s for piece in meter.measure(ranges, "")]
    meter.close()
    assert [speed is not None and speed > 0 for speed in measured] == [True, True, False]


def test_a_directory_selects_its_large_regular_files_each_once(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "not selected"
    elsewhere.write_bytes(bytes(2 * M))
    (tmp_path / "away").symlink_to(elsewhere)
    (tmp_path / "sub").mkdir()
    large, small = tmp_path / "sub" / "large", tmp_path / "small"
    large.write_bytes(bytes(M))
    small.write_bytes(bytes(10))
    (tmp_path / "link").symlink_to(large)
    os.link(large, tmp_path / "second-name")
    os.mkfifo(tmp_path / "pipe")
    selected, skipped = select_files([tmp_path])
    assert ([path.stat().st_ino for path in selected], skipped) == ([large.stat().st_ino], 1)
    assert select_files([small, small]) == ([small], 0)
    with pytest.raises(TargetError, match="give files, or directories"):
        select_files([tmp_path / "absent"])


def test_the_verdict_has_the_amount_that_could_not_be_moved() -> None:
    one = FileOutcome("a", planned_bytes=4 * M, moved_bytes=3 * M, left=[(0, M)])
    assert verdict([one], dry_run=False) == "3.0 MiB were rewritten; 1.0 MiB could not be moved."
    assert verdict([one], dry_run=True) == "Dry run of 1 file: 4.0 MiB would be rewritten."


def test_a_page_cache_below_is_not_judged(
    make_filesystem: MakeFileSystem, make_sample: MakeSample
) -> None:
    sample = make_sample(make_filesystem("ext4", 100), 8 * M)
    for options in (HealOptions(), HealOptions(dry_run=True)):
        reason = heal_file(sample.path, options, silent).refused
        assert reason is not None
        assert reason.code == "page-cache-below"
        assert "losetup --direct-io=on /dev/loop" in reason.sentence
    chosen = heal_file(sample.path, HealOptions(ranges=((0, 4 * M),)), silent)
    assert chosen.not_timed is not None
    assert (chosen.fresh_mib_per_s, chosen.after_mib_per_s) == (None, None)
    assert chosen.moved_bytes == 4 * M
    assert verdict([chosen], dry_run=False) == "4.0 MiB were rewritten."
    sample.check()


def test_a_dry_run_measures_a_file_without_a_journal_and_says_what_to_do_instead(
    make_filesystem: MakeFileSystem, make_sample: MakeSample
) -> None:
    point = make_filesystem("ext4", 100, "-O ^has_journal", direct_io=True)
    sample = make_sample(point, 8 * M)
    dry = heal_file(sample.path, HealOptions(dry_run=True, ranges=((0, 4 * M),)), silent)
    assert dry.refused is None
    assert dry.before_mib_per_s is not None
    assert dry.only_measured is not None
    assert "copy it" in dry.only_measured.sentence
    assert verdict([dry], dry_run=True) == (
        "Dry run of 1 file: nothing would be rewritten; 4.0 MiB cannot be rewritten in place."
    )
    refused = heal_file(sample.path, HealOptions(everything=True), silent).refused
    assert refused is not None
    assert refused.code == "no-journal"


@pytest.mark.parametrize(
    ("after", "sentence"),
    [
        (190.0, "4.0 MiB were rewritten, but read at 190 MiB/s, before at 200: no gain."),
        (205.0, "4.0 MiB were rewritten, but read at 205 MiB/s, before at 200: no gain."),
        (400.0, "4.0 MiB were rewritten, and read at 400 instead of 200 MiB/s."),
    ],
)
def test_a_heal_that_gained_nothing_says_so(after: float, sentence: str) -> None:
    row = MapRow(0, 4 * M, 200.0, after, is_slow=False, is_rewritten=True)
    one = FileOutcome("a", planned_bytes=4 * M, moved_bytes=4 * M, map=[row])
    assert verdict([one], dry_run=False) == sentence
