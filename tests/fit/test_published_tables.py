"""Rows of published tables: the shipped ones, and those of a reader's file."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssdlab import profiles
from ssdlab.errors import UsageError
from ssdlab.fit.validation.comparison import compare as compare_item
from ssdlab.fit.validation.comparison import select
from ssdlab.fit.validation.rates import FITTED, compare
from ssdlab.fit.validation.tables import TABLES, read_rows, shipped_rows

RATES = """
rbps = 2000
rseqiops = 100000
rrandiops = 100000
wbps = 500
wseqiops = 50000
wrandiops = 40000
"""
DRIVE = f"""
[[iocost]]
name = "mine"
drive = "Drive X"
gb = 256
interface = "nvme"
nand = "tlc"{RATES}"""
SIBLING = DRIVE.replace('"mine"', '"larger"\nlike = "mine"').replace("gb = 256", "gb = 512")


def _write(folder: Path, text: str) -> str:
    path = folder / "table.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_the_shipped_tables_have_forty_drives_and_each_row_a_name() -> None:
    rows = shipped_rows()
    assert {row.table for row in rows} == set(TABLES)
    assert len({row.drive for row in rows}) >= 40
    for table in TABLES:
        names = [row.name for row in rows if row.table == table]
        assert len(names) == len(set(names)), table


def test_four_numbers_of_a_generic_twin_are_fitted_and_two_predicted(tmp_path: Path) -> None:
    [item] = select([_write(tmp_path, DRIVE)], [])
    comparison = compare_item(item)
    roles = {figure.label.partition(",")[0]: figure.role for figure in comparison.figures}
    assert {name for name, role in roles.items() if role == "fitted"} == set(FITTED)
    assert set(roles.values()) == {"fitted", "predicted"}
    fitted = [figure for figure in comparison.figures if figure.role == "fitted"]
    assert max(abs(figure.error) for figure in fitted) < 0.05
    assert comparison.command == f"ssdlab twin validate {item.file} mine --table iocost"


def test_a_sibling_has_the_dies_of_its_capacity_and_nothing_of_it_is_fitted(tmp_path: Path) -> None:
    rows = {row.name: row for row in read_rows(Path(_write(tmp_path, DRIVE + SIBLING)))}
    small, large = ({f.label: f for f in rows[name].compare()} for name in ("mine", "larger"))
    assert {figure.role for figure in large.values()} == {"predicted"}
    label = "rrandiops, requests/s"
    assert large[label].twin > 1.5 * small[label].twin
    label = "wseqiops, requests/s"
    assert large[label].twin == pytest.approx(small[label].twin, rel=0.05)


def test_a_profile_is_compared_with_the_rows_of_its_model(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(profiles.load("toshiba-xg5"), encoding="utf-8")
    items = select([str(mine)], [])
    assert [(item.row.table, item.row.name) for item in items] == [("aging", "toshiba-xg5")]
    assert items[0].command == f"ssdlab twin validate {mine} toshiba-xg5 --table aging"
    [named] = select([str(mine), "samsung-pm9a3-960"], [])
    assert named.row.table == "write_amplification"
    [figure] = compare_item(named).figures
    assert figure.twin != pytest.approx(4.2, rel=0.1)  # its spare is that of the XG5
    with pytest.raises(UsageError, match="no published table contains 'toshiba-xg'"):
        select([str(mine), "toshiba-xg"], [])


def test_a_profile_of_an_unknown_model_is_refused_with_what_to_do(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    text = profiles.load("toshiba-xg5").replace("Toshiba XG5 KXG50ZNV512G", "Drive X")
    mine.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="no published table has a drive of the model of"):
        select([str(mine)], [])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty; it must be a profile, or a table"),
        ("[[suite]]\nx = 1\n", "has 'suite'; it must be a profile, or a table with"),
        ("[iocost]\nrbps = 3\n", r"iocost must be a list of tables; give \[\[iocost\]\]"),
        ('[[iocost]]\nname = "x"\n', r"an entry \[\[iocost\]\] has no drive"),
        (DRIVE.replace("wbps = 500\n", ""), "mine has no wbps; it must have drive"),
        (DRIVE.replace("wbps = 500", 'wbps = "x"'), "wbps is 'x'; it must be a number"),
        (DRIVE.replace('"nvme"', '"usb"'), "interface is 'usb'; it must be nvme or sata"),
        ('[[uniform]]\nname = "x"\ndrive = "X"\n', r"\[\[uniform\]\] x has no visible_gb"),
        (
            '[[uniform]]\nname = "x"\ndrive = "X"\nvisible_gb = 960\nflash_gib = 1024\nwaf = 0.5\n',
            "waf has 0.5; it must be a number from 1 to 100",
        ),
        (
            '[[permutation]]\nname = "x"\ndrive = "X"\nmean = 2\nbegins_at = 1\nwaf = [1, 2]\n',
            "waf must have 20 numbers",
        ),
        ("[aging]\nfile_mib = 4096\nwritten_mib = [50]\nseconds = [1, 2]\n", "has no twin"),
    ],
)
def test_a_wrong_table_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        select([_write(tmp_path, text)], [])


def test_a_row_like_an_unknown_one_is_refused(tmp_path: Path) -> None:
    [row] = read_rows(Path(_write(tmp_path, SIBLING)))
    with pytest.raises(UsageError, match="larger is like 'mine'; it must be another row"):
        compare(row.data, row.rows)
