"""Tables of results: parsing, and errors of one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssdlab.errors import UsageError
from ssdlab.fit.ageing import AgeingRow
from ssdlab.fit.ageing_rows import check_agreement
from ssdlab.fit.measurement import Measurement
from ssdlab.fit.results import Results, read_results

STRIPE = '[stripe]\nchunk = "32 KiB"\nstripe = "512 KiB"\nunits = 16\n'


def _write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def _read(folder: Path, *texts: str) -> Results:
    """Reads each text as a file: TOML if it begins with a bracket, otherwise CSV."""
    names = [f"{n}.{'toml' if text.startswith('[') else 'csv'}" for n, text in enumerate(texts)]
    return read_results([_write(folder, *pair) for pair in zip(names, texts, strict=True)])


def test_findings_are_read_with_their_units(tmp_path: Path) -> None:
    text = '[steady]\nhidden_spare = "5.6 %"\n[cache]\nbuffer = "8 MB"\nlasting_mib_per_s = '
    results = _read(tmp_path, text + '"709 MiB/s"\n[fsync]\nclass = "volatile"\n', STRIPE)
    others = {each.experiment: each for each in results.others}
    assert others["steady"].number("hidden_spare") == 5.6
    assert others["cache"].number("buffer_mib") == pytest.approx(8e6 / 2**20)
    assert others["cache"].number("lasting_mib_per_s") == 709
    assert others["fsync"].text("class") == "volatile"
    assert [others["stripe"].number(x) for x in ("chunk_kib", "stripe_kib", "units")] == [
        32,
        512,
        16,
    ]


def test_rows_are_read_from_toml_and_csv(tmp_path: Path) -> None:
    toml = '[[suite.row]]\ntest = "random 4k"\nop = "read"\nmean = "47 MiB/s"\n'
    csv = "test,op,mean,unit\nrandom 4k,read,47,MiB/s\n"
    [one], [other] = (_read(tmp_path, text).others for text in (toml, csv))
    assert one.cells == other.cells
    assert (one.cells[0].case, one.cells[0].value) == (("random 4k", "read"), 47.0)
    [split] = _read(tmp_path, "unit_kib,queue_depth,read_ms\n4,1,46.9\n").others
    assert (split.experiment, split.cells[0].case) == ("split", (4.0, 1.0))


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (("",), "is empty; it must have a header"),
        (("[steady]\n",), r"\[steady\] is empty; it may have hidden_spare"),
        (("[stedy]\nx = 1\n",), r"unknown table \[stedy\]; it must be aging, cache"),
        (("[steady]\nspare = 7\n",), "has spare; it may have hidden_spare"),
        (("[steady]\nhidden_spare = 7\n",), "a number with its unit, such as '0.01 %'"),
        (('[steady]\nhidden_spare = "700 %"\n',), "from 0.01 to 90 %"),
        (('[cache]\nbuffer = "0 MiB"\n',), "buffer is 0 MiB"),
        (("[cache]\nbuffer = 8\n",), "with its unit"),
        (
            ('[fsync]\nclass = "safe"\n',),
            "must be one of protected, volatile, ignores flush, protected or ignores flush",
        ),
        (('[[suite.row]]\ntest = "random 4k"\nmean = "4 MiB/s"\n',), "row has no op"),
        (('[[suite.row]]\ntest = "x"\nop = "read"\nmean = "4 MB"\n',), "MiB/s or us"),
        (('[[suite.row]]\ntest = "x"\nop = "read"\nmean = 47\n',), "row has no unit"),
        (('[[suite.row]]\ntest = "x"\nop = "read"\nmean = "47 us"\n',), "unit of x is 'us'"),
        (("[suite]\nrow = 3\n",), r"row must be a table; give \[\[suite.row\]\]"),
        (("test,op,mean\nrandom 4k,read,47\n",), "no column 'unit'"),
        (("test,op,mean,unit\nrandom 4k,read,47,furlongs\n",), "it must be MiB/s"),
        (("test,op,mean,unit\nrandom 4k,read,1e12,MiB/s\n",), "from 0.001 to 100000 MiB/s"),
        (("unit_kib,queue_depth,read_ms\n4,0,2\n",), "queue_depth is 0; it must be from 1"),
        (("unit_kib,queue_depth,read_ms\n4,1\n",), "as many values as the header"),
        (("unit_kib,queue_depth,read_ms\n4,1,-2\n",), "0 or more"),
        (("unit_kib,read_ms\n4,2\n",), "no column 'queue_depth'"),
        ((STRIPE.replace("16", "12"),), "512 KiB is not 12 chunks of 32 KiB"),
        (
            (f'{STRIPE}chunk_distance = "40 KiB"\n',),
            "40, which is not a whole number of chunks of 32",
        ),
        ((STRIPE, STRIPE.replace("32", "64").replace("16", "8")), "chunk_kib is 32 in .* and 64"),
        (
            ('[steady]\nhidden_spare = "7 %"\n', '[steady]\nhidden_spare = "20 %"\n'),
            "hidden_spare is 7 in .* leave one out",
        ),
        (
            ('[fsync]\nclass = "volatile"\n', '[fsync]\nclass = "protected"\n'),
            "class is volatile in .* and protected",
        ),
        (
            ("unit_kib,queue_depth,read_ms\n4,1,46\n", "unit_kib,queue_depth,read_ms\n4,1,9\n"),
            "read_ms of 4, 1 is 46 in .* and 9",
        ),
        (("unit_kib,queue_depth,read_ms\n4,1,46\n4,1,9\n",), "is 46 in .* and 9 in another row"),
    ],
)
def test_invalid_or_contradictory_results_are_refused_with_one_line(
    tmp_path: Path, texts: tuple[str, ...], reason: str
) -> None:
    with pytest.raises(UsageError, match=reason) as raised:
        _read(tmp_path, *texts)
    assert "\n" not in str(raised.value)


AGEING = "[aging]\nfile_mib = 4096\nwritten_mib = [50]\nseconds = [1.9, 2.9]\n"


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        ((AGEING.replace("4096", '"4 GiB"'),), "file_mib has '4 GiB'; it must be a number of MiB"),
        ((AGEING.replace("2.9", '"2.9 s"'),), "seconds has '2.9 s'; it must be a number of sec"),
        ((AGEING.replace("[50]", '["50"]'),), "written_mib has '50'"),
        ((AGEING.replace("2.9", "nan"),), "seconds has nan"),
        ((AGEING.replace("2.9", "1e9"),), "from 0.1 to 100000 MiB/s"),
        ((AGEING.replace("4096", "-4"),), "file_mib is -4 MiB; it must be from 1"),
        ((AGEING.replace("[1.9", "[1.7, 1.9"),), "has 3 seconds for 1 amounts; it must have 2"),
        (("aging = 3\n[stripe]\nunits = 3\n",), r"\[aging\] is 3"),
        ((AGEING, AGEING.replace("1.9, 2.9", "9.9, 12")), "at 2156 MiB/s in .* 413.7 .* leave one"),
        ((AGEING, AGEING), "are two ageing rows of one drive; leave one out"),
    ],
)
def test_an_impossible_ageing_row_is_refused_with_one_line(
    tmp_path: Path, texts: tuple[str, ...], reason: str
) -> None:
    names = [_write(tmp_path, f"{n}.toml", text) for n, text in enumerate(texts)]
    with pytest.raises(UsageError, match=reason) as raised:
        read_results(names)
    assert "\n" not in str(raised.value)


def _results(experiment: str, model: str) -> Measurement:
    return Measurement(experiment, model, f"run of {model}")


def test_results_of_two_drives_are_refused_even_if_one_is_an_ageing_row() -> None:
    row = AgeingRow("XG5", 4096.0, (50.0,), (1.9, 2.9), "row.toml", "Toshiba XG5")
    check_agreement([_results("stripe", "Toshiba XG5 KXG50ZNV512G")], [row])
    with pytest.raises(UsageError, match=r"of two drives, Samsung PM981 in .* and Toshiba XG5 in"):
        check_agreement([_results("stripe", "Samsung PM981")], [row])


def test_a_small_difference_between_repeats_is_accepted(tmp_path: Path) -> None:
    texts = ('[steady]\nhidden_spare = "7 %"\n', '[steady]\nhidden_spare = "7.5 %"\n')
    assert len(_read(tmp_path, *texts).others) == 2
