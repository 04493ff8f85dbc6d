"""What is measured decides what is rewritten; readings here are given, not timed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from patients import Healing, Make, Patient

from ssdlab.device import Drive
from ssdlab.errors import TargetError
from ssdlab.heal import file as course
from ssdlab.heal.file import heal_file
from ssdlab.heal.options import Watch, Wish
from ssdlab.heal.outcome import FileOutcome, verdict
from ssdlab.heal.pieces import Piece, Range
from ssdlab.heal.select_files import files_meant
from ssdlab.heal.speed import Speedometer

M = 1 << 20
FRESH, SLOW = 500.0 * M, 200.0 * M


def silent(_label: str, _done: int, _total: int) -> None:
    pass


class Readings:
    """What a file's pieces read like: slow in `aged`, unless a rewrite mended them."""

    def __init__(self, path: Path, aged: range, *, mends: bool) -> None:
        self.path, self.aged, self.mends = path, aged, mends
        self.first: dict[int, int] = {}

    def of(self, each: Range, places: dict[int, int]) -> float:
        if not self.first:
            self.first = places
        old = places[each.offset] == self.first[each.offset]
        is_slow = each.offset // M in self.aged and (old or not self.mends)
        return SLOW if is_slow else FRESH


@pytest.fixture
def reading(
    make_filesystem: Make, patient: Patient, monkeypatch: pytest.MonkeyPatch
) -> tuple[Healing, Readings]:
    """A file of 80 MiB whose readings are given."""
    healing = patient(make_filesystem("ext4", 500), 80 * M)
    readings = Readings(healing.path, range(20, 28), mends=True)

    class Given:
        def __init__(self, path: Path, watch: Watch) -> None:
            self._is_probe = path != healing.path

        def measure(self, ranges: Sequence[Range], label: str) -> list[Piece]:
            if self._is_probe:
                return [Piece(each, FRESH) for each in ranges]
            places = {
                extent.logical + at: extent.physical + at
                for extent in healing.extents
                for at in range(0, extent.length, 4096)
            }
            return [Piece(each, readings.of(each, places)) for each in ranges]

        def best_of(self, pieces: list[Piece], limit: float, label: str) -> list[Piece]:
            return pieces

        def close(self) -> None:
            pass

    monkeypatch.setattr(course, "Speedometer", Given)
    return healing, readings


def test_of_a_file_of_which_a_tenth_aged_a_tenth_is_rewritten(
    reading: tuple[Healing, Readings],
) -> None:
    healing, _ = reading
    outcome = heal_file(healing.path, Wish(), silent)
    assert outcome.plan == [(20 * M, 8 * M)]
    assert outcome.written_bytes == 8 * M
    assert outcome.fresh_from == "a freshly written part"
    assert [row.offset_bytes // M for row in outcome.map if row.is_slow] == list(range(20, 28))
    assert all(row.after_mib_per_s == 500 for row in outcome.map)
    assert verdict([outcome], dry_run=False) == (
        "8.0 MiB were rewritten, and read at 500 instead of 200 MiB/s."
    )
    healing.check()


def test_a_file_that_aged_all_over_is_known_by_what_was_written_now(
    reading: tuple[Healing, Readings],
) -> None:
    healing, readings = reading
    readings.aged = range(80)
    assert heal_file(healing.path, Wish(dry_run=True), silent).planned_bytes == 0
    outcome = heal_file(healing.path, Wish(), silent)
    assert outcome.moved_bytes == 80 * M
    assert outcome.no_gain is False


def test_where_a_first_part_brings_no_gain_no_more_is_written(
    reading: tuple[Healing, Readings],
) -> None:
    healing, readings = reading
    readings.aged, readings.mends = range(80), False
    outcome = heal_file(healing.path, Wish(), silent)
    assert outcome.no_gain is True
    assert outcome.written_bytes == 32 * M
    assert "a first part brought no gain" in verdict([outcome], dry_run=False)
    healing.check()


def test_a_file_that_reads_fast_is_not_written(reading: tuple[Healing, Readings]) -> None:
    healing, readings = reading
    readings.aged = range(0)
    outcome = heal_file(healing.path, Wish(), silent)
    assert (outcome.planned_bytes, outcome.written_bytes) == (0, 0)
    assert verdict([outcome], dry_run=False) == "Nothing reads slowly: nothing was written."


def test_a_piece_is_slow_only_if_every_reading_of_it_was(
    drive_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = drive_directory / "file"
    path.write_bytes(bytes(4 * M))
    os.sync()
    given = {0: [FRESH], M: [SLOW] * 20, 2 * M: [SLOW, SLOW, FRESH], 3 * M: [SLOW] * 4 + [FRESH]}

    def next_of(_self: Speedometer, each: Range) -> float:
        return given[each.offset].pop(0)

    monkeypatch.setattr(Speedometer, "_speed_of", next_of)
    meter = Speedometer(path, silent)
    found = meter.measure([Range(at * M, M) for at in range(4)], "")
    best = meter.best_of(found, 0.8 * FRESH, "")
    meter.close()
    assert [piece.bytes_per_s for piece in best] == [FRESH, SLOW, FRESH, FRESH]
    assert len(given[M]) > 8, "it is not read for ever"


def test_the_file_is_read_past_the_page_cache_and_only_where_it_is(drive_directory: Path) -> None:
    path = drive_directory / "file"
    path.write_bytes(os.urandom(3 * M + 10_000))
    os.sync()
    meter = Speedometer(path, silent)
    assert isinstance(meter._drive, Drive)
    ranges = [Range(0, M), Range(2 * M, M + 12_288), Range(3 * M + 8192, 4096)]
    found = [piece.bytes_per_s for piece in meter.measure(ranges, "")]
    meter.close()
    assert [speed is not None and speed > 0 for speed in found] == [True, True, False]


def test_a_directory_stands_for_its_large_plain_files_and_each_file_counts_once(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "not meant"
    elsewhere.write_bytes(bytes(2 * M))
    (tmp_path / "away").symlink_to(elsewhere)
    (tmp_path / "sub").mkdir()
    large, small = tmp_path / "sub" / "large", tmp_path / "small"
    large.write_bytes(bytes(M))
    small.write_bytes(bytes(10))
    (tmp_path / "link").symlink_to(large)
    os.link(large, tmp_path / "second-name")
    os.mkfifo(tmp_path / "pipe")
    found, left_out = files_meant([tmp_path])
    assert ([path.stat().st_ino for path in found], left_out) == ([large.stat().st_ino], 1)
    assert files_meant([small, small]) == ([small], 0)
    with pytest.raises(TargetError, match="give files, or directories"):
        files_meant([tmp_path / "absent"])


def test_the_verdict_counts_what_was_refused_and_what_is_left() -> None:
    one = FileOutcome("a", planned_bytes=4 * M, moved_bytes=3 * M, left=[(0, M)])
    assert verdict([one], dry_run=False) == "3.0 MiB were rewritten; 1.0 MiB kept their place."
    assert verdict([one], dry_run=True) == "4.0 MiB would be rewritten."
