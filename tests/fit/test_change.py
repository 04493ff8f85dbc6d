"""`KEY=VALUE`: what a change makes of a profile, and which ones are refused."""

from __future__ import annotations

import pytest

from ssdlab import profiles
from ssdlab.device import describe_twin
from ssdlab.errors import UsageError
from ssdlab.fit.change import Change, changed
from ssdlab.profiles.toml_edit import number, restored, with_number

XG5 = profiles.load("toshiba-xg5")


def test_a_change_replaces_one_number_and_nothing_else() -> None:
    text, changes = changed("xg5", XG5, ["ftl.spare=0.27"])
    assert changes == [Change("ftl.spare", 0.0687, 0.27)]
    assert describe_twin("xg5", text)["spare"] == pytest.approx(0.27, abs=0.001)
    assert set(text.splitlines()) - set(XG5.splitlines()) == {"spare = 0.27"}


MULTI_LINE = """[
    "40.06 us", # the fast page
    "52.07 us",
    "64.09 us",
]"""


def _with_multi_line_arrays() -> str:
    lines = XG5.splitlines()
    place = next(n for n, line in enumerate(lines) if line.startswith("read = "))
    lines[place] = f"read = {MULTI_LINE}"
    text = "\n".join(lines) + "\n"
    assert number(text, "flash.read") == number(XG5, "flash.read")
    return text


def test_a_multi_line_array_survives_a_change_of_another_key() -> None:
    before = _with_multi_line_arrays()
    text, _ = changed("xg5", before, ["flash.program=800 us", "ftl.spare=0.27"])
    assert MULTI_LINE in text
    assert number(text, "flash.program") == "800 us"
    assert set(text.splitlines()) - set(before.splitlines()) == {
        *('program = "800 us"', "spare = 0.27")
    }


def test_a_multi_line_array_is_replaced_and_restored_whole() -> None:
    before = _with_multi_line_arrays()
    text, _ = changed("xg5", before, ['flash.read=["50 us", "60 us"]'])
    assert number(text, "flash.read") == ["50 us", "60 us"]
    assert "52.07 us" not in text
    fitted = with_number(before, "flash.read", ["50 us"], "a fit")
    assert number(fitted, "flash.read") == ["50 us"]
    assert 'source = "a fit", kind = "fitted"' in fitted
    assert restored(fitted, before, "flash.read") == before


@pytest.mark.parametrize(
    ("wish", "becomes"),
    [
        ("flash.read=50 us", "50 us"),
        ('flash.read=["40 us", "60 us"]', ["40 us", "60 us"]),
        ("buffer.power_loss_protection=true", True),
        ("ftl.read_portion=none", None),
        ("flash.channels = 4", 4),
    ],
)
def test_values_are_written_as_toml_or_plainly(wish: str, becomes: object) -> None:
    text, [change] = changed("xg5", XG5, [wish])
    assert number(text, change.key) == change.becomes == becomes


def test_a_table_that_is_not_there_is_added() -> None:
    text, _ = changed("xg5", XG5, ["slc.size=12 GiB", "slc.program=200 us"])
    assert number(text, "slc.size") == "12 GiB"
    assert number(text, "buffer.size") == "8 MiB"


@pytest.mark.parametrize(
    ("wishes", "reason"),
    [
        (["ftl.spar=0.2"], "ftl.spar: no such key, did you mean spare"),
        (["ftl.spare=2"], "ftl.spare: is 2; may be a share"),
        (["flash.read=50"], "flash.read: is 50; may be a time"),
        (["spare=0.2"], "TABLE.KEY=VALUE"),
        (["ftl.spare"], "TABLE.KEY=VALUE"),
        (["ftl.spare=0.2", "ftl.spare=0.3"], "twice"),
        (["ftl.spare=0.0687"], "is 0.0687 already"),
        (["slc.size=none"], "is not given already"),
        (["slac.size=1 GiB"], "no such key"),
    ],
)
def test_a_wrong_change_is_one_line(wishes: list[str], reason: str) -> None:
    with pytest.raises(UsageError, match=reason) as raised:
        changed("xg5", XG5, wishes)
    assert "\n" not in str(raised.value)
