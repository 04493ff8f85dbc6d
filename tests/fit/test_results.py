"""Ageing rows in TOML and CSV: parsing and errors."""

from __future__ import annotations

from pathlib import Path

import pytest

import ssdlab
from ssdlab.errors import UsageError
from ssdlab.fit.ageing import AgeingRow
from ssdlab.fit.results import published_rows, read_ageing, read_results

ROW = AgeingRow("one", 4096.0, (50.0, 200.0), (1.9, 2.9, 3.7))
TOML = """[aging]
file_mib = 4096
written_mib = [50, 200]
"""


def _write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_table_in_toml_or_csv_is_read(tmp_path: Path) -> None:
    toml = _write(tmp_path, "one.toml", TOML + "seconds = [1.9, 2.9, 3.7]\n")
    lines = "file_mib,written_mib,read_s\n4096,0,1.9\n4096,50,2.9\n4096,250,3.7\n"
    assert read_ageing(toml) == ROW
    assert read_ageing(_write(tmp_path, "one.csv", lines)) == ROW


def test_one_of_several_drives_is_selected_by_a_part_of_its_model(tmp_path: Path) -> None:
    drives = "".join(
        f'[[aging.drive]]\nmodel = "{model}"\nseconds = [1.9, 2.9, 3.7]\n'
        for model in ("one", "two")
    )
    path = _write(tmp_path, "several.toml", TOML + drives)
    assert read_ageing(path, "ONE") == ROW
    with pytest.raises(UsageError, match=r"2 ageing rows \(one, two\); select one with --model"):
        read_ageing(path)
    with pytest.raises(UsageError, match="no ageing row of three; it has one, two"):
        read_ageing(path, "three")


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.toml", "[aging", "cannot read results"),
        ("a.toml", "[fsync]\nclass = 'volatile'\n", "no ageing row"),
        ("a.toml", TOML + "seconds = [1.9]\n", "has 1 seconds for 2 amounts"),
        ("a.toml", "[aging]\nseconds = [1.9, 2]\n", "has no file_mib"),
        ("a.toml", TOML + "seconds = [1.9, 0, 3]\n", "above zero"),
        ("a.csv", "written_mib,read_s\n0,1\n50,2\n", "no column 'file_mib'"),
        ("a.csv", "file_mib,written_mib,read_s\n1,50,1\n1,60,1\n", "fresh file's time"),
        ("a.csv", "file_mib,written_mib,read_s\n1,0,1\n1,5,1\n1,5,1\n", "must grow"),
        ("a.csv", "file_mib,written_mib,read_s\n1,0,x\n", "read_s is 'x'; it must be a number"),
    ],
)
def test_an_invalid_ageing_row_is_refused_with_one_line(
    tmp_path: Path, name: str, text: str, reason: str
) -> None:
    with pytest.raises(UsageError, match=reason) as raised:
        read_ageing(_write(tmp_path, name, text))
    assert "\n" not in str(raised.value)


def test_holding_out_an_amount_also_removes_all_later_ones() -> None:
    assert ROW.without((200.0,)) == AgeingRow("one", 4096.0, (50.0,), (1.9, 2.9))
    assert ROW.without(()) == ROW


def test_each_published_row_belongs_to_a_shipped_twin() -> None:
    assert len(published_rows()) == 10
    assert published_rows()["toshiba-xg5"].seconds == (1.9, 2.9, 3.7, 4.8, 6.8)


def test_results_that_garbage_collection_slowed_are_refused(tmp_path: Path) -> None:
    target = ssdlab.open_target("twin:toshiba-xg5", capacity="256MiB")
    run = target.run(ssdlab.Fsync(size="192MiB", quick=True), out=tmp_path)
    with pytest.raises(UsageError) as raised:
        read_results([run.folder])
    assert "fsync wrote 192 MiB of a drive of 256 MiB" in str(raised.value)
    assert "with --size of at most 128 MiB" in str(raised.value)
    run = target.run(ssdlab.Fsync(size="128MiB", quick=True), out=tmp_path)
    assert read_results([run.folder]).others[0].experiment == "fsync"
